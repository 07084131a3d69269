"""Each report counts once, in its own stratum and round."""

import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

from tests.common.collection.rounds import FUTURE, ID, OTHER_ID, round_with, support_of
from tests.conftest import refuses
from tests.server.collection.opened_rounds import (  # noqa: F401 - fixtures
    BUDGET,
    DIGESTS,
    NORTH,
    ON_SQLITE,
    SOUTH,
    arrival,
    at_fixture,
    counted,
    files,
    opened_fixture,
    said,
    store_fixture,
)
from veiltab.common.collection.oracles import ORACLE_NAMES, Bits
from veiltab.common.collection.round import RoundState, Stratum
from veiltab.common.collection.tokens import token_digest
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import BudgetExceededError, ClosedRoundError, ConflictError, InvalidInputError
from veiltab.server.rounds.rounds_store import BLOCK, Arrival, CollectionStore, split_digests


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
            expected[SOUTH][support_of(spec.randomiser, report)] += 1
    assert np.array_equal(store.counts(ID), expected)
    assert (store.counts(ID).dtype, store.status(ID).reports) == (np.dtype("<i8"), (0, 12))
    store.close()


def test_all_digests_of_a_message_are_split_and_a_rest_is_refused() -> None:
    assert list(split_digests(b"a" * 32 + b"b" * 32)) == [b"a" * 32, b"b" * 32]
    for joined in (b"", b"a" * 31, b"a" * 33):
        with pytest.raises(InvalidInputError, match=f"do not make {len(joined)} bytes"):
            split_digests(joined)


def test_one_token_at_many_threads_counts_once(opened: CollectionStore) -> None:
    gate = threading.Barrier(20)

    def hand_in(_: int) -> list[str]:
        gate.wait()
        return said(opened.record([arrival(0)]))

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(hand_in, range(20)))
    assert sorted(answers) == [[""], *[["TOKEN_SPENT"]] * 19]
    assert counted(opened) == [1, 0]


def test_the_last_of_the_budget_is_won_once(store: CollectionStore) -> None:
    gate = threading.Barrier(16)

    def open_one(number: int) -> str:
        gate.wait()
        try:
            store.open_round(round_with(round_id=f"{number:032x}", epsilon=Decimal(3)), BUDGET)
        except BudgetExceededError as error:
            return error.reason
        return ""

    with ThreadPoolExecutor(16) as threads:
        won = list(threads.map(open_one, range(16)))
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
    with refuses(ClosedRoundError, where="round 00000000000000000000000000000001"):
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
    assert token_digest(ID, bytes([0] * 16)) == DIGESTS[0]
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
