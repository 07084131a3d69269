import shutil
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from tests.common.collection.rounds import ID, OTHER_ID, round_with, study
from tests.common.collection.rounds import STUDY as POLL
from tests.conftest import refuses
from veiltab.common.errors import BudgetExceededError, ConflictError
from veiltab.node.answers.journal import Journal, ReportDecision, State

ORIGIN, SIGNED, STUDY = bytes(32), "what rosa signed", study()
CANARY = b"a report nobody should find later"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(tmp_path)) as journal:
        yield journal


def decision(node: int, state: State = State.WAITING, request: bytes = CANARY) -> ReportDecision:
    return ReportDecision(node=node, state=state, request=request, size=40)


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_decisions_are_kept_by_round_and_node(journal: Journal) -> None:
    kept = [decision(1), decision(2, State.SILENT, b"")]
    journal.decide(ID, kept)
    journal.decide(OTHER_ID, [decision(1, State.SILENT, b"")])
    assert journal.decisions(ID) == {1: kept[0], 2: kept[1]}
    assert journal.decisions(OTHER_ID)[1].state is State.SILENT
    assert journal.decisions("a" * 32) == {}


def test_decisions_stand_when_decide_returns(tmp_path: Path) -> None:
    """A copy of the files, as they are then, is what a crash would leave."""
    journal = Journal(tmp_path / "state")
    journal.decide(ID, [decision(1)])
    shutil.copytree(tmp_path / "state", tmp_path / "crashed")
    journal.close()
    crashed = Journal(tmp_path / "crashed")
    assert crashed.decisions(ID) == {1: decision(1)}
    crashed.close()


def test_nobody_decides_twice(journal: Journal) -> None:
    journal.decide(ID, [decision(1)])
    with pytest.raises(Exception, match="UNIQUE constraint failed"):
        journal.decide(ID, [decision(2), decision(1, State.SILENT, b"")])
    assert journal.decisions(ID) == {1: decision(1)}


def test_a_report_that_was_counted_leaves_no_trace(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.decide(ID, [decision(1), decision(2, request=b"another")])
    assert CANARY in files(tmp_path)
    journal.finish(ID, [1], State.COUNTED)
    assert journal.decisions(ID)[1] == decision(1, State.COUNTED, b"")
    journal.close()
    assert CANARY not in files(tmp_path)
    assert b"another" in files(tmp_path)


def test_a_report_that_was_refused_is_kept_and_may_have_another_token(journal: Journal) -> None:
    journal.decide(ID, [decision(1), decision(2)])
    journal.finish(ID, [1, 2], State.REFUSED)
    assert journal.decisions(ID)[1] == decision(1, State.REFUSED)
    journal.give_token(ID, 1, b"with another token")
    assert journal.decisions(ID) == {1: decision(1, request=b"with another token"), 2: decision(2, State.REFUSED)}


def test_a_round_is_answered_from_one_origin(journal: Journal) -> None:
    journal.begin(round_with(), ORIGIN, STUDY, SIGNED)
    journal.begin(round_with(), ORIGIN, STUDY, SIGNED)
    with refuses(ConflictError, where="round 00000000000000000000000000000001"):
        journal.begin(round_with(), b"other files", STUDY, SIGNED)


@pytest.mark.parametrize(
    "other", [round_with(epsilon=Decimal(2)), round_with("oue"), round_with(deadline=5), round_with(researcher="rita")]
)
def test_a_round_that_is_described_anew_is_refused(journal: Journal, other: object) -> None:
    journal.begin(round_with(), ORIGIN, STUDY, SIGNED)
    with refuses(ConflictError, where="round 00000000000000000000000000000001"):
        journal.begin(other, ORIGIN, STUDY, SIGNED)  # type: ignore[arg-type] # parametrised


def test_a_node_adds_up_what_its_rounds_cost_itself(journal: Journal) -> None:
    journal.begin(round_with(epsilon=Decimal("2.5")), ORIGIN, STUDY, SIGNED)
    with pytest.raises(BudgetExceededError, match=r"allows a node epsilon 4 .*Nothing was decided or sent"):
        journal.begin(round_with(round_id=OTHER_ID, epsilon=Decimal("1.500000000001")), ORIGIN, STUDY, SIGNED)
    journal.begin(round_with(round_id=OTHER_ID, epsilon=Decimal("1.5")), ORIGIN, STUDY, SIGNED)
    journal.begin(round_with(epsilon=Decimal("2.5")), ORIGIN, STUDY, SIGNED)
    with pytest.raises(BudgetExceededError):
        journal.begin(round_with(round_id="a" * 32, epsilon=Decimal("1e-12")), ORIGIN, STUDY, SIGNED)


def test_a_node_adds_up_what_the_rounds_of_each_researcher_cost(journal: Journal) -> None:
    shared = study(POLL.replace(b"shares = { rosa = 4 }", b"shares = { rosa = 3, rita = 1 }"))
    journal.begin(round_with(epsilon=Decimal(3)), ORIGIN, shared, SIGNED)
    with pytest.raises(BudgetExceededError, match="allows a node epsilon 3 over the rounds of researcher rosa"):
        journal.begin(round_with(round_id=OTHER_ID, epsilon=Decimal("1e-12")), ORIGIN, shared, SIGNED)
    journal.begin(round_with(round_id=OTHER_ID, epsilon=Decimal(1), researcher="rita"), ORIGIN, shared, SIGNED)


def test_what_the_researcher_signed_is_kept(journal: Journal, tmp_path: Path) -> None:
    journal.begin(round_with(), ORIGIN, STUDY, SIGNED)
    assert SIGNED.encode() in files(tmp_path)
