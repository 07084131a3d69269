""""""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest

from tests.common.collection.rounds import FUTURE, ID, OTHER_ID, round_with
from tests.conftest import refuses
from tests.power import Power
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
from veiltab.common.collection.round import RoundState
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    VeiltabError,
)
from veiltab.common.storage.database import Database
from veiltab.server.rounds.rounds_store import Arrival, CollectionStore


def test_a_round_is_opened_once(store: CollectionStore) -> None:
    spec = round_with()
    with refuses(NotFoundError, where="round 00000000000000000000000000000001"):
        store.round(ID)
    assert store.open_round(spec, BUDGET) is RoundState.OPEN
    assert store.open_round(spec, BUDGET) is RoundState.OPEN
    assert (store.round(ID), store.rounds()) == (spec, (spec,))
    with refuses(ConflictError, where="round 00000000000000000000000000000001"):
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
    store.open_round(round_with(round_id=OTHER_ID, epsilon=Decimal("1.4999914")), BUDGET)
    with pytest.raises(BudgetExceededError, match="and 4 of it is spent"):
        store.open_round(round_with(round_id="a" * 32, epsilon=Decimal("1e-5")), BUDGET)
    # A repeat costs nothing, and what a round has cost is not given back when it ends.
    store.open_round(round_with(round_id=OTHER_ID, epsilon=Decimal("1.4999914")), BUDGET)
    for round_id in (ID, OTHER_ID):
        store.close_round(round_id, 1)
    store.forget(100)
    with pytest.raises(BudgetExceededError):
        store.open_round(round_with(round_id="a" * 32, epsilon=Decimal("1e-5")), BUDGET)


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


def test_tokens_are_enrolled_once(opened: CollectionStore) -> None:
    assert opened.enrol(ID, NORTH, DIGESTS[:3], 10) == 3
    assert opened.enrol(ID, NORTH, [DIGESTS[0], DIGESTS[9], DIGESTS[9]], 10) == 4
    assert opened.status(ID).enrolled == (4, 4)
    with refuses(ConflictError, where="round 00000000000000000000000000000001"):
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
