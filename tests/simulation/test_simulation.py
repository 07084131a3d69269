"""Whole deployments on virtual clocks and a virtual network, by seed; a failing one is repeated as its message says."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.simulation.deployment import Deployment, Outcome
from tests.simulation.mutants import HONEST, MUTANTS

QUICK = 6
BATCHES, EACH = 10, 100


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the parties' logs, which are long, from being formatted."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(seed: int, changes: Mapping[str, object] | None = None, *, symbols: int = 7) -> Outcome:
    """Run a deployment; say how to run a failing one again."""
    try:
        return Deployment(seed=seed, symbols=symbols, changes=changes or {}).run()
    except Exception as error:
        error.add_note(f"again: python -m tests.simulation {seed} --trace")
        raise


@pytest.mark.parametrize("seed", range(QUICK))
def test_a_deployment_keeps_its_promises(seed: int) -> None:
    run(seed)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_deployments_keep_their_promises(batch: int, record_property: Callable[[str, object], None]) -> None:
    happened, ends = Counter[str](), Counter[str]()
    for seed in range(QUICK + batch * EACH, QUICK + (batch + 1) * EACH):
        outcome = run(seed)
        happened += outcome.happened
        ends += Counter(outcome.ends.values())
    kills = happened["kill"] + happened["kill at a step"]
    record_property("figure", f"{EACH} seeds: {ends['ready']} results of {ends.total()} requests, {kills} kills")
    # Each fault befalls somebody, and releases end well nevertheless.
    assert set(happened) >= FAULTS
    assert ends["ready"] > EACH / 2


FAULTS = {
    "lost request",
    "lost reply",
    "cut",
    "repeat",
    "slow",
    "kill",
    "kill at a step",
    "stop",
    "full disk",
    "hostile answer",
    "restored server",
}


@pytest.mark.long
def test_whom_a_party_sends_how_many_bytes_and_when_does_not_depend_on_the_symbols() -> None:
    sent = 0
    for seed in range(4):
        first, second = run(seed, {"hostile": ""}), run(seed, {"hostile": ""}, symbols=8)
        assert first.trace == second.trace
        sent += sum("UploadColumn OK" in line or "UploadColumns OK" in line for line in first.trace)
    assert sent > 10


@pytest.mark.long
def test_clocks_that_are_two_days_off_or_jump_end_no_release() -> None:
    happened, ends = Counter[str](), Counter[str]()
    for seed in range(6):
        outcome = run(seed, HONEST | {"skewed": 2 * 86_400.0})
        happened += outcome.happened
        ends += Counter(outcome.ends.values())
    assert happened["clock set"]
    assert ends["ready"] >= 3


# A copy of the state that is made while a release is perturbed, and restored, is one deployment in sixty.
RARE = {"noise that is drawn anew"}
# The others are noticed in other ways in other runs.
WORDS = {"rows in another order": "are not joined"}


@pytest.mark.parametrize("mutant", [pytest.param(m, marks=pytest.mark.long) if m in RARE else m for m in MUTANTS])
def test_the_simulation_notices_a_promise_that_is_broken(mutant: str) -> None:
    broken, changes = MUTANTS[mutant]
    with broken(), pytest.raises(AssertionError, match=WORDS.get(mutant)):
        some_runs(changes)


def some_runs(changes: Mapping[str, object]) -> None:
    """Run deployments with changed plans; the first that breaks a promise ends this."""
    for seed in range(160):
        run(seed, changes)
