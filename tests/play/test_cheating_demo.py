"""When a server that cheats counts as caught."""

import pytest

from tests.conftest import spec_with
from tests.made_receipts import made_tests
from veiltab.common.core.mechanism import UNIT
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.play.demos.cheating import CheatOutcome, CuratorOutcome
from veiltab.play.demos.cheating_server import Cheat

REJECTED, ACCEPTED, TOGETHER = 0.0, 1.0, -1.0
"""Whether the server passes a curator's test of its own columns, or fails that of all columns alone."""


@pytest.mark.parametrize(
    ("ends", "is_caught"),
    [
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.FAILED, REJECTED)], True),
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.FAILED, None)], True),
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.FAILED, ACCEPTED)], True),
        ([(ReleaseState.FAILED, TOGETHER), (ReleaseState.FAILED, TOGETHER)], True),
        ([(ReleaseState.FAILED, TOGETHER), (ReleaseState.FAILED, ACCEPTED)], True),
        ([(ReleaseState.FAILED, REJECTED), (ReleaseState.READY, ACCEPTED)], False),
        ([(ReleaseState.FAILED, TOGETHER), (ReleaseState.READY, ACCEPTED)], False),
        ([(ReleaseState.FAILED, None), (ReleaseState.FAILED, None)], False),
        ([(ReleaseState.FAILED, ACCEPTED), (ReleaseState.FAILED, None)], False),
        ([(ReleaseState.READY, ACCEPTED), (ReleaseState.READY, ACCEPTED)], False),
    ],
)
def test_caught_is_a_server_that_a_test_rejects_before_any_curator_is_ready(
    ends: list[tuple[ReleaseState, float | None]], *, is_caught: bool
) -> None:
    spec = spec_with(canaries=4000, server_replacement=UNIT // 4)
    curators = tuple(
        CuratorOutcome(curator=name, state=state, failure="", receipts=receipts_of(spec, name, tested))
        for name, (state, tested) in zip(("alice", "bob"), ends, strict=True)
    )
    outcome = CheatOutcome(cheat=Cheat.LAZY, release_id=spec.release_id, curators=curators, seconds=1.0)
    assert outcome.is_caught is is_caught
    assert outcome.as_dict()["caught"] is is_caught
    assert ("NOT caught" in outcome.as_text()) is not is_caught
    for one in curators:
        for receipt in one.receipts:
            for failure in receipt.failures:
                assert f"\n  {failure.sentence()}\n" in outcome.as_text()


def receipts_of(spec: TableSpec, name: str, tested: float | None) -> tuple[Receipt, ...]:
    """Return the receipts of a curator that tests all columns only if the server passes the test of its own."""
    if tested is None:
        return ()
    if tested == TOGETHER:
        return (made_tests(spec).receipts(name)[0], made_tests(spec, share=0.0).together())
    own, together = made_tests(spec, share=tested).receipts(name)
    return (own, together) if own.passed else (own,)
