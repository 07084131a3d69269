"""When a server that cheats counts as caught."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.made_receipts import made_tests
from veiltab.common.core.mechanism import UNIT
from veiltab.common.release.state import ReleaseState
from veiltab.deploy.local.cheating_demo import CheatOutcome, CuratorOutcome
from veiltab.deploy.local.cheating_server import Cheat

REJECTED, ACCEPTED = 0.0, 1.0
"""Shares of its noise that a server adds."""


@pytest.mark.parametrize(
    ("ends", "is_caught"),
    [
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.FAILED, REJECTED)], True),
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.FAILED, None)], True),
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.FAILED, ACCEPTED)], True),
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.READY, ACCEPTED)], False),
        ([(ReleaseState.FAILED, None), (ReleaseState.FAILED, None)], False),
        ([(ReleaseState.FAILED, ACCEPTED), (ReleaseState.FAILED, None)], False),
        ([(ReleaseState.READY, ACCEPTED), (ReleaseState.READY, ACCEPTED)], False),
    ],
)
def test_caught_is_a_server_that_a_test_rejects_before_any_curator_is_ready(
    make_spec: Callable[..., Any], ends: list[tuple[ReleaseState, float | None]], *, is_caught: bool
) -> None:
    spec = make_spec(canaries=4000, server_replacement=UNIT // 4)
    curators = tuple(
        CuratorOutcome(
            curator=name,
            state=state,
            failure="",
            receipts=() if share is None else made_tests(spec, share=share).receipts(name),
        )
        for name, (state, share) in zip(("alice", "bob"), ends, strict=True)
    )
    outcome = CheatOutcome(cheat=Cheat.LAZY, release_id=spec.release_id, curators=curators, seconds=1.0)
    assert outcome.is_caught is is_caught
    assert outcome.as_dict()["caught"] is is_caught
    assert ("NOT caught" in outcome.as_text()) is not is_caught
