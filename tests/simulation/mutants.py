"""Faults of the product that a simulation must notice: each undoes one promise."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from veiltab.common.errors import UnavailableError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.budget.chain import Chain
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.columns.sample_rows import SampleRows
from veiltab.curator.columns.shared_sample import SharedSample
from veiltab.curator.progress import progress
from veiltab.curator.progress.release_record import End
from veiltab.curator.release import driver
from veiltab.curator.release.step_executor import StepExecutor
from veiltab.server.records.store import ServerStore
from veiltab.server.release import perturbation


@contextmanager
def noise_that_is_drawn_anew() -> Iterator[None]:
    """Perturb a release that is perturbed again with other noise."""
    with patch.object(ServerStore, "noise_secret", lambda *_: secrets.token_bytes(32)):
        yield


@contextmanager
def no_noise() -> Iterator[None]:
    """Publish the ciphertext as it is."""

    def copied(
        inputs: list[np.ndarray],
        _sizes: object,
        _mechanism: object,
        _source: object,
        outputs: list[np.ndarray],
        *,
        chunk: int,
    ) -> None:
        del chunk
        for one, other in zip(inputs, outputs, strict=True):
            other[:] = one

    with patch.object(perturbation, "perturb_chunk", copied):
        yield


@contextmanager
def a_lost_reply_ends_a_release() -> Iterator[None]:
    """Take no answer for a refusal."""
    known = progress.outcome_of

    def outcome(error: Any, **rest: Any) -> Any:  # noqa: ANN401 - as outcome_of
        if isinstance(error, UnavailableError):
            return End(ReleaseState.FAILED, str(error))
        return known(error, **rest)

    with patch.object(driver, "outcome_of", outcome):
        yield


@contextmanager
def rows_in_another_order() -> Iterator[None]:
    """Encrypt one curator's rows beside other people's."""
    known = StepExecutor._encrypt_columns

    def turned(steps: StepExecutor, spec: Any, sample: SharedSample, *rest: Any) -> None:  # noqa: ANN401 - its own
        parts = steps.curator
        rows = SampleRows([np.roll(sample.rows[:], 1)], parts.folder) if parts.name == "bob" else sample.rows
        known(steps, spec, replace(sample, rows=rows), *rest)

    with patch.object(StepExecutor, "_encrypt_columns", turned):
        yield


@contextmanager
def a_seed_before_its_price() -> Iterator[None]:
    """Toss for the sample although not every curator has charged."""
    with patch.object(progress, "_lacking", lambda *_: None), patch.object(Chain, "standing", lambda *_: (False, True)):
        yield


@contextmanager
def a_ledger_that_forgets() -> Iterator[None]:
    """Charge nothing."""
    with patch.object(Ledger, "charge", lambda ledger, release: ledger.cancel(release)):
        yield


HONEST: dict[str, object] = {"hostile": "", "restores": False}

MUTANTS: Mapping[str, tuple[Callable[[], AbstractContextManager[None]], Mapping[str, object]]] = {
    "noise that is drawn anew": (noise_that_is_drawn_anew, {"hostile": "", "restores": True, "requests": 5}),
    "no noise": (no_noise, HONEST),
    "a lost reply ends a release": (a_lost_reply_ends_a_release, HONEST),
    "rows in another order": (rows_in_another_order, HONEST),
    "a seed before its price": (a_seed_before_its_price, HONEST),
    "a ledger that forgets": (a_ledger_that_forgets, HONEST),
}
"""Name -> the mutant, and what the plans must be that it can show itself."""
