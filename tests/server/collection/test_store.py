import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

from tests.common.collection.rounds import FUTURE, ID, OTHER_ID, round_with
from tests.power import Power
from veiltab.common.collection.oracles import ORACLE_NAMES, Bits, Category
from veiltab.common.collection.round import RoundState, Stratum
from veiltab.common.collection.tokens import token_digest
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    VeiltabError,
)
from veiltab.common.storage.database import Database
from veiltab.server.rounds.rounds_store import BLOCK, Arrival, CollectionStore, split_digests

BUDGET = Decimal(4)
NORTH, SOUTH = 0, 1
DIGESTS = [token_digest(ID, bytes([number] * 16)) for number in range(30)]


ON_SQLITE = pytest.mark.parametrize("database", [""], ids=["sqlite"])


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[CollectionStore]:
    store = CollectionStore(tmp_path, database)
    yield store
    store.close()


@pytest.fixture
def opened(store: CollectionStore) -> CollectionStore:
    """An open round with three tokens in the north and four in the south."""
    store.open_round(round_with(), BUDGET)
    assert store.enrol(ID, NORTH, DIGESTS[:3], 10) == 3
    assert store.enrol(ID, SOUTH, DIGESTS[3:7], 20) == 4
    return store


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the server's clock."""
    return lambda now: monkeypatch.setattr("veiltab.server.rounds.rounds_store.time.time", lambda: now)


def arrival(number: int, symbol: int = 7, stratum: int = NORTH, round_id: str = ID) -> Arrival:
    return Arrival(round_id=round_id, digest=DIGESTS[number], stratum=stratum, report=Category(symbol=symbol))


def said(answers: list[VeiltabError | None]) -> list[str]:
    return ["" if answer is None else answer.reason for answer in answers]


def counted(store: CollectionStore, symbol: int = 7) -> list[int]:
    return [int(count) for count in store.counts(ID)[:, symbol]]


def test_a_round_is_opened_once(store: CollectionStore) -> None:
    spec = round_with()
    with pytest.raises(NotFoundError, match=f"round {ID}: no such round here"):
        store.round(ID)
    assert store.open_round(spec, BUDGET) is RoundState.OPEN
    assert store.open_round(spec, BUDGET) is RoundState.OPEN
    assert (store.round(ID), store.rounds()) == (spec, (spec,))
    with pytest.raises(ConflictError, match="another round was opened under this id"):
        store.open_round(replace(spec, deadline=FUTURE - 1), BUDGET)
    store.close_round(ID, 1)
    assert store.open_round(spec, BUDGET) is RoundState.CLOSED


def test_a_researchers_rounds_cost_a_node_no_more_than_its_share(store: CollectionStore) -> None:
    share = Fraction(3, 2)
    assert store.open_round(round_with(epsilon=Decimal(1)), BUDGET, share) is RoundState.OPEN
    with pytest.raises(BudgetExceededError, match=r"share of a node's budget is epsilon 1\.5, and 1 of it is spent"):
        store.open_round(round_with(round_id=OTHER_ID, epsilon=Decimal("0.500001")), BUDGET, share)
    # What one has spent is none of another's.
    other = round_with(round_id=OTHER_ID, epsilon=Decimal("1.5"), researcher="rita")
    assert store.open_round(other, BUDGET, share) is RoundState.OPEN
    assert store.open_round(round_with(round_id="a" * 32, epsilon=Decimal("0.5")), BUDGET, share) is RoundState.OPEN


def test_rounds_cost_a_node_no_more_than_the_budget_together(store: CollectionStore) -> None:
    store.open_round(round_with(epsilon=Decimal("2.5")), BUDGET)
    with pytest.raises(BudgetExceededError, match=r"allows a node epsilon 4 over all rounds, and 2\.5 of it is spent"):
        store.open_round(round_with(round_id=OTHER_ID, epsilon=Decimal("1.500000000001")), BUDGET)
    assert [spec.round_id for spec in store.rounds()] == [ID]
    store.open_round(round_with(round_id=OTHER_ID, epsilon=Decimal("1.5")), BUDGET)
    with pytest.raises(BudgetExceededError, match="4 of it is spent"):
        store.open_round(round_with(round_id="a" * 32, epsilon=Decimal("1e-12")), BUDGET)
    # A repeat costs nothing, and what a round has cost is not given back when it ends.
    store.open_round(round_with(round_id=OTHER_ID, epsilon=Decimal("1.5")), BUDGET)
    for round_id in (ID, OTHER_ID):
        store.close_round(round_id, 1)
    store.forget(100)
    with pytest.raises(BudgetExceededError):
        store.open_round(round_with(round_id="a" * 32, epsilon=Decimal("1e-12")), BUDGET)


def test_what_rounds_cost_is_added_up_exactly(store: CollectionStore) -> None:
    half = Decimal("2." + "0" * 40 + "1")
    store.open_round(round_with(epsilon=half), BUDGET)
    with pytest.raises(BudgetExceededError):
        store.open_round(round_with(round_id=OTHER_ID, epsilon=half), BUDGET)


def test_nothing_is_written_in_the_order_in_which_it_came(
    store: CollectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[bytes]()
    add_tokens, record = store._add_tokens, store._record

    def added(round_id: str, stratum: int, digests: list[bytes]) -> None:
        written.extend(digests)
        add_tokens(round_id, stratum, digests)

    def recorded(round_id: str, arrivals: list[Arrival]) -> list[VeiltabError | None]:
        written.extend(one.digest for one in arrivals)
        return record(round_id, arrivals)

    monkeypatch.setattr(store, "_add_tokens", added)
    monkeypatch.setattr(store, "_record", recorded)
    store.open_round(round_with(), BUDGET)
    ordered = sorted(DIGESTS[:10])
    store.enrol(ID, NORTH, ordered[::-1], 10)
    assert store.record([arrival(DIGESTS.index(digest)) for digest in ordered[::-1]]) == [None] * 10
    assert written == [*ordered, *ordered]


@ON_SQLITE
def test_traces_are_erased_again_and_again(store: CollectionStore, tmp_path: Path) -> None:
    store.open_round(round_with(), BUDGET)
    store.enrol(ID, NORTH, DIGESTS[:3], 10)
    for number in range(3):
        assert store.record([arrival(number)]) == [None]
        assert (tmp_path / "collection.sqlite-wal").stat().st_size > 0
        store.erase_traces()
        assert (tmp_path / "collection.sqlite-wal").stat().st_size == 0


@ON_SQLITE
def test_what_is_counted_outlives_a_failing_power(
    store: CollectionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    power = Power(monkeypatch)
    store.open_round(round_with(), BUDGET)
    store.enrol(ID, NORTH, DIGESTS[:2], 10)
    assert store.record([arrival(0)]) == [None]
    (tmp_path / "later").mkdir()
    left = power.content_after_failure(cast("Database", store.connection))
    (tmp_path / "later" / "collection.sqlite").write_bytes(left)
    with closing(CollectionStore(tmp_path / "later")) as later:
        assert counted(later) == [1, 0]
        assert said(later.record([arrival(0), arrival(1)])) == ["TOKEN_SPENT", ""]


def test_a_round_outlives_the_process(tmp_path: Path, database: str) -> None:
    store = CollectionStore(tmp_path, database)
    store.open_round(round_with(), BUDGET)
    store.enrol(ID, NORTH, DIGESTS[:2], 10)
    assert store.record([arrival(0)]) == [None]
    store.close()
    again = CollectionStore(tmp_path, database)
    assert said(again.record([arrival(0), arrival(1)])) == ["TOKEN_SPENT", ""]
    assert (again.status(ID).enrolled, again.status(ID).reports, counted(again)) == ((2, 0), (2, 0), [2, 0])
    again.close()


def test_what_was_recorded_stands_before_the_answer(tmp_path: Path) -> None:
    """A copy of the files, as they are when record returns, is what a crash would leave."""
    store = CollectionStore(tmp_path / "state")
    store.open_round(round_with(), BUDGET)
    store.enrol(ID, NORTH, DIGESTS[:2], 10)
    assert store.record([arrival(0)]) == [None]
    shutil.copytree(tmp_path / "state", tmp_path / "crashed")
    store.close()
    crashed = CollectionStore(tmp_path / "crashed")
    assert said(crashed.record([arrival(0)])) == ["TOKEN_SPENT"]
    assert counted(crashed) == [1, 0]
    crashed.close()


def test_tokens_are_enrolled_once(opened: CollectionStore) -> None:
    assert opened.enrol(ID, NORTH, DIGESTS[:3], 10) == 3
    assert opened.enrol(ID, NORTH, [DIGESTS[0], DIGESTS[9], DIGESTS[9]], 10) == 4
    assert opened.status(ID).enrolled == (4, 4)
    with pytest.raises(ConflictError, match="enrolled in another stratum"):
        opened.enrol(ID, SOUTH, [DIGESTS[10], DIGESTS[0]], 20)
    assert opened.status(ID).enrolled == (4, 4)


def test_more_tokens_than_nodes_are_refused_and_none_of_them_is_kept(opened: CollectionStore) -> None:
    assert opened.enrol(ID, NORTH, DIGESTS[10:12], 5) == 5
    with pytest.raises(InvalidInputError, match="6 tokens would be more than the stratum's population of 5"):
        opened.enrol(ID, NORTH, [DIGESTS[12]], 5)
    assert opened.status(ID).enrolled == (5, 4)
    assert said(opened.record([arrival(12)])) == ["DENIED"]


def test_enrolment_ends_with_the_round(opened: CollectionStore, at: Callable[[float], None]) -> None:
    with pytest.raises(NotFoundError):
        opened.enrol(OTHER_ID, NORTH, DIGESTS[:1], 10)
    at(FUTURE + 1)
    with pytest.raises(ClosedRoundError):
        opened.enrol(ID, NORTH, [DIGESTS[20]], 10)


def test_each_report_counts_once(opened: CollectionStore) -> None:
    assert said(opened.record([arrival(0), arrival(1, 8), arrival(3, stratum=SOUTH)])) == ["", "", ""]
    assert said(opened.record([arrival(0, 19), arrival(2)])) == ["TOKEN_SPENT", ""]
    assert (counted(opened), counted(opened, 8), counted(opened, 19)) == ([2, 1], [1, 0], [0, 0])
    assert (opened.status(ID).reports, opened.counts(ID).sum()) == ((3, 1), 4)


def test_of_two_reports_with_one_token_in_a_batch_one_counts(opened: CollectionStore) -> None:
    answers = said(opened.record([arrival(0, 3), arrival(0, 4), arrival(0, 3)]))
    assert sorted(answers) == ["", "TOKEN_SPENT", "TOKEN_SPENT"]
    assert opened.counts(ID).sum() == 1
    assert opened.counts(ID)[NORTH, 4 if answers[1] == "" else 3] == 1


def test_a_batch_of_more_tokens_than_a_query_takes_counts_each_once(
    opened: CollectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.server.rounds.rounds_store._AT_ONCE", 2)
    batch = [
        *(arrival(number) for number in (2, 0, 1, 0)),
        *(arrival(number, stratum=SOUTH) for number in (6, 4, 3, 5, 29)),
    ]
    assert Counter(said(opened.record(batch))) == {"": 7, "TOKEN_SPENT": 1, "DENIED": 1}
    assert set(said(opened.record(batch))) == {"TOKEN_SPENT", "DENIED"}
    assert (counted(opened), opened.status(ID).reports) == ([3, 4], (3, 4))


def test_a_token_counts_in_its_own_stratum_and_round_alone(opened: CollectionStore) -> None:
    opened.open_round(round_with(round_id=OTHER_ID), BUDGET)
    refused = [arrival(0, stratum=SOUTH), arrival(0, round_id=OTHER_ID), arrival(29)]
    assert said(opened.record(refused)) == ["DENIED", "DENIED", "DENIED"]
    assert opened.status(ID).reports == (0, 0)
    # A refusal spends nothing.
    assert said(opened.record([arrival(0)])) == [""]


def test_a_round_that_is_unknown_has_no_tokens(store: CollectionStore) -> None:
    assert said(store.record([arrival(0)])) == ["DENIED"]


def test_one_refusal_does_not_undo_the_others(opened: CollectionStore) -> None:
    answers = opened.record([arrival(29), arrival(0), arrival(28), arrival(1)])
    assert said(answers) == ["DENIED", "", "DENIED", ""]
    assert counted(opened) == [2, 0]


def test_a_closed_round_takes_nothing_and_says_which_tokens_were_spent(opened: CollectionStore) -> None:
    opened.record([arrival(0)])
    assert opened.close_round(ID, 77) == (77, False)
    assert opened.close_round(ID, 99) == (77, True)
    assert said(opened.record([arrival(0), arrival(1), arrival(29)])) == ["TOKEN_SPENT", "ROUND_CLOSED", "DENIED"]
    status = opened.status(ID)
    assert (status.state, status.closed, status.reports) == (RoundState.CLOSED, 77, (1, 0))
    assert counted(opened) == [1, 0]


def test_a_deadline_closes_a_round_for_good(opened: CollectionStore, at: Callable[[float], None]) -> None:
    at(FUTURE)
    assert said(opened.record([arrival(0)])) == [""]
    at(FUTURE + 1)
    assert said(opened.record([arrival(1)])) == ["ROUND_CLOSED"]
    assert (opened.status(ID).state, opened.status(ID).closed) == (RoundState.CLOSED, FUTURE + 1)
    # Whatever the clock says later.
    at(FUTURE - 10)
    assert said(opened.record([arrival(1)])) == ["ROUND_CLOSED"]
    assert opened.status(ID).state is RoundState.CLOSED


def test_a_failure_in_the_middle_of_a_batch_changes_nothing(
    opened: CollectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(CollectionStore, "_count", full)
        with pytest.raises(sqlite3.OperationalError):
            opened.record([arrival(0), arrival(1)])
    assert opened.status(ID).reports == (0, 0)
    assert said(opened.record([arrival(0), arrival(1)])) == ["", ""]
    assert counted(opened) == [2, 0]


@ON_SQLITE
def test_a_disk_that_is_full_counts_nothing_and_spends_nothing(opened: CollectionStore) -> None:
    size = 70 * BLOCK
    spec = round_with("oue", round_id=OTHER_ID, size=size)
    opened.open_round(spec, BUDGET)
    opened.enrol(OTHER_ID, NORTH, DIGESTS[:2], 10)
    (pages,) = opened.connection.execute("PRAGMA page_count").fetchone()
    opened.connection.execute(f"PRAGMA max_page_count = {pages}")
    whole = Arrival(round_id=OTHER_ID, digest=DIGESTS[0], stratum=NORTH, report=Bits(bits=b"\xff" * (size // 8)))
    with pytest.raises(sqlite3.OperationalError):
        opened.record([whole])
    opened.connection.execute("PRAGMA max_page_count = 1000000")
    assert said(opened.record([whole])) == [""]
    assert (opened.counts(OTHER_ID)[NORTH] == 1).all()


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("size", [2, 20, BLOCK, BLOCK + 1, 3 * BLOCK - 1])
def test_counts_are_the_supports_of_the_reports(tmp_path: Path, name: str, size: int) -> None:
    store = CollectionStore(tmp_path)
    spec = round_with(name, size=size)
    store.open_round(spec, BUDGET)
    store.enrol(ID, SOUTH, DIGESTS[:12], 20)
    expected = np.zeros((2, size), np.int64)
    for batch in (range(8), range(8, 12)):
        reports = [spec.randomiser.randomise(number % size, SystemSource()) for number in batch]
        arrivals = [
            Arrival(round_id=ID, digest=DIGESTS[number], stratum=SOUTH, report=report)
            for number, report in zip(batch, reports, strict=True)
        ]
        assert store.record(arrivals) == [None] * len(batch)
        for report in reports:
            spec.randomiser.add_support(report, expected[SOUTH])
    assert np.array_equal(store.counts(ID), expected)
    assert (store.counts(ID).dtype, store.status(ID).reports) == (np.dtype("<i8"), (0, 12))
    store.close()


def test_all_digests_of_a_message_are_split_and_a_rest_is_refused() -> None:
    assert list(split_digests(b"a" * 32 + b"b" * 32)) == [b"a" * 32, b"b" * 32]
    for joined in (b"", b"a" * 31, b"a" * 33):
        with pytest.raises(InvalidInputError, match=f"do not make {len(joined)} bytes"):
            split_digests(joined)


def test_one_token_at_many_threads_counts_once(opened: CollectionStore) -> None:
    answers: list[str] = []
    gate = threading.Barrier(20)

    def hand_in() -> None:
        gate.wait()
        answers.extend(said(opened.record([arrival(0)])))

    threads = [threading.Thread(target=hand_in) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["", *["TOKEN_SPENT"] * 19]
    assert counted(opened) == [1, 0]


def test_the_last_of_the_budget_is_won_once(store: CollectionStore) -> None:
    won: list[str] = []
    gate = threading.Barrier(16)

    def open_one(number: int) -> None:
        gate.wait()
        try:
            store.open_round(round_with(round_id=f"{number:032x}", epsilon=Decimal(3)), BUDGET)
            won.append("")
        except BudgetExceededError as error:
            won.append(error.reason)

    threads = [threading.Thread(target=open_one, args=[number]) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == ["", *["BUDGET_EXCEEDED"] * 15]
    assert len(store.rounds()) == 1


def test_what_is_over_is_forgotten_and_what_it_cost_is_not(
    opened: CollectionStore, at: Callable[[float], None]
) -> None:
    opened.open_round(round_with(round_id=OTHER_ID), BUDGET)
    opened.enrol(OTHER_ID, NORTH, DIGESTS[:1], 10)
    opened.record([arrival(0), arrival(0, round_id=OTHER_ID)])
    opened.close_round(ID, 50)
    opened.forget(50)
    assert counted(opened) == [1, 0]
    opened.forget(51)
    # Zeros would be wrong, whatever the clock says when they are asked for.
    at(0)
    with pytest.raises(ClosedRoundError, match="no longer kept"):
        opened.counts(ID)
    assert opened.status(ID).reports == (1, 0)
    assert opened.counts(OTHER_ID).sum() == 1
    for name in ("token", "block"):
        found = opened.connection.execute(f"SELECT * FROM {name} WHERE round_id = ?", [ID])  # noqa: S608 - as above
        assert found.fetchone() is None


def test_a_round_without_reports_has_counts_of_zero(opened: CollectionStore) -> None:
    opened.close_round(ID, 1)
    assert not opened.counts(ID).any()
    opened.forget(2)
    assert not opened.counts(ID).any()


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@ON_SQLITE
def test_nothing_joins_a_token_to_what_was_reported(opened: CollectionStore, tmp_path: Path) -> None:
    opened.record([arrival(0), arrival(1, 8)])
    opened.close_round(ID, 1)
    schema = {
        name: {row["name"] for row in opened.connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in opened.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    }
    assert schema["token"] == {"round_id", "digest", "stratum", "spent"}
    assert not any("digest" in columns for name, columns in schema.items() if name != "token")
    rows = opened.connection.execute("SELECT * FROM token WHERE stratum = 0").fetchall()
    # In the order of the digests, which is no order of arrival.
    assert [bytes(row["digest"]) for row in rows] == sorted(DIGESTS[:3])
    assert sorted(row["spent"] for row in rows) == [0, 1, 1]
    with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
        opened.connection.execute("SELECT rowid FROM token")
    # The log, where the order of arrivals stood, is empty.
    assert (tmp_path / "collection.sqlite-wal").stat().st_size == 0


def test_a_report_leaves_nothing_but_counts_on_disk(tmp_path: Path) -> None:
    canary = bytes(range(100, 164))
    store = CollectionStore(tmp_path)
    store.open_round(round_with("oue", size=8 * len(canary)), BUDGET)
    store.enrol(ID, NORTH, DIGESTS[:1], 10)
    store.record([Arrival(round_id=ID, digest=DIGESTS[0], stratum=NORTH, report=Bits(bits=canary))])
    assert canary not in files(tmp_path)
    token = bytes([0] * 16)
    assert token_digest(ID, token) == DIGESTS[0]
    assert DIGESTS[0] in files(tmp_path)
    store.close_round(ID, 1)
    store.forget(2)
    store.erase_traces()
    assert DIGESTS[0] not in files(tmp_path)
    store.close()


class Rounds(RuleBasedStateMachine):
    """Any order of enrolments, reports, closings and restarts, beside a model that is a set and some counters."""

    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = self._started()
        everywhere = [Stratum(name=name, population=30, rate=Decimal(1)) for name in ("north", "south")]
        self.store.open_round(round_with(strata=tuple(everywhere)), BUDGET)
        self.enrolled: dict[int, int] = {}
        self.spent: set[int] = set()
        self.expected = np.zeros((2, 20), np.int64)
        self.closed = False

    @precondition(lambda self: not self.closed)
    @rule(target=tokens, numbers=st.sets(st.integers(0, 29), min_size=1, max_size=5), stratum=st.integers(0, 1))
    def enrol(self, numbers: set[int], stratum: int) -> object:
        if any(self.enrolled.get(number, stratum) != stratum for number in numbers):
            with pytest.raises(ConflictError):
                self.store.enrol(ID, stratum, [DIGESTS[number] for number in numbers], 30)
            return multiple()
        self.enrolled |= dict.fromkeys(numbers, stratum)
        here = sum(known == stratum for known in self.enrolled.values())
        assert self.store.enrol(ID, stratum, [DIGESTS[number] for number in numbers], 30) == here
        return multiple(*numbers)

    @rule(
        batch=st.lists(st.tuples(st.integers(0, 29), st.integers(0, 1), st.integers(0, 19)), min_size=1, max_size=6),
        known=st.lists(tokens, max_size=3),
    )
    def report(self, batch: list[tuple[int, int, int]], known: list[int]) -> None:
        batch += [(number, self.enrolled[number], number % 20) for number in known]
        answers = said(self.store.record([arrival(number, symbol, stratum) for number, stratum, symbol in batch]))
        for (number, stratum, symbol), answer in zip(batch, answers, strict=True):
            if answer == "":
                assert number not in self.spent
                assert (self.enrolled[number], self.closed) == (stratum, False)
                self.spent.add(number)
                self.expected[stratum, symbol] += 1
        for (number, stratum, _), answer in zip(batch, answers, strict=True):
            if number not in self.enrolled:
                assert answer == "DENIED"
            elif number in self.spent:
                assert answer in {"", "TOKEN_SPENT", "DENIED"}
            else:
                assert answer == ("ROUND_CLOSED" if self.closed else "DENIED")
                assert self.closed or self.enrolled[number] != stratum

    @rule(chance=st.integers(0, 4))
    def close_now_and_then(self, chance: int) -> None:
        if chance == 4:
            self.closed = True
            self.store.close_round(ID, 1)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self._started()

    def _started(self) -> CollectionStore:
        store = CollectionStore(self.folder)
        # What is asked here is not what a power failure leaves.
        store.connection.execute("PRAGMA synchronous = OFF")
        return store

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        assert np.array_equal(self.store.counts(ID), self.expected)
        status = self.store.status(ID)
        assert status.reports == tuple(self.expected.sum(axis=1))
        assert sum(status.reports) == len(self.spent)
        assert sum(status.enrolled) == len(self.enrolled)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


TestRounds = Rounds.TestCase
TestRounds.settings = settings(max_examples=15, stateful_step_count=12)
