"""Rounds in a PostgreSQL that two processes share: no report is lost, none counts twice, no row tells who sent it."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from tests.common.collection.rounds import ID, OTHER_ID, round_with
from tests.server.cluster import Cluster
from tests.server.collection.opened_rounds import BUDGET, said
from veiltab.common.collection.oracles import Category, Report
from veiltab.common.collection.round import RoundState
from veiltab.common.collection.tokens import token_digest
from veiltab.common.errors import UnavailableError, VeiltabError
from veiltab.server.records.postgres import Postgres
from veiltab.server.rounds.rounds_store import Arrival, CollectionStore

DIGESTS = [token_digest(ID, number.to_bytes(16, "big")) for number in range(300)]
Two = tuple[CollectionStore, CollectionStore]


@pytest.fixture
def two(tmp_path: Path, cluster: Cluster) -> Iterator[Two]:
    """The stores of two processes, and an open round with tokens."""
    url = cluster.new_url()
    stores = CollectionStore(tmp_path, url), CollectionStore(tmp_path, url)
    stores[0].open_round(round_with(), BUDGET)
    stores[0].enrol(ID, 0, DIGESTS, 300)
    yield stores
    for store in stores:
        store.close()


def arrivals(numbers: range) -> list[Arrival]:
    return [
        Arrival(round_id=ID, digest=DIGESTS[number], stratum=0, report=Category(symbol=number % 20))
        for number in numbers
    ]


def test_reports_at_both_count_once_each(two: Two) -> None:
    """Each report comes at both processes, in batches that overlap."""

    def work(given: tuple[CollectionStore, int]) -> Counter[str]:
        store, length = given
        batches = [arrivals(range(first, min(first + length, 300))) for first in range(0, 300, length)]
        return Counter(answer for batch in batches for answer in said(store.record(batch)))

    with ThreadPoolExecutor(4) as threads:
        answers = sum(threads.map(work, product(two, (37, 50))), Counter[str]())
    assert answers == {"": 300, "TOKEN_SPENT": 900}
    for store in two:
        assert store.counts(ID)[0].tolist() == [15] * 20
        assert store.status(ID).reports == (300, 0)


def test_a_round_that_one_closes_is_closed_at_the_other(two: Two) -> None:
    first, second = two
    assert said(first.record(arrivals(range(3)))) == ["", "", ""]
    assert second.close_round(ID, 77) == (77, False)
    assert said(first.record(arrivals(range(2, 4)))) == ["TOKEN_SPENT", "ROUND_CLOSED"]
    assert (first.status(ID).state, first.close_round(ID, 99)) == (RoundState.CLOSED, (77, True))
    second.forget(78)
    assert first.status(ID).reports == (3, 0)
    with pytest.raises(VeiltabError, match="no longer kept"):
        first.counts(ID)


def test_a_database_that_fails_in_the_middle_of_a_batch_counts_nothing_and_spends_nothing(
    two: Two, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    with monkeypatch.context() as patched:
        count = first._count

        def failing(round_id: str, stratum: int, reports: Sequence[Report]) -> None:
            cluster.stop()
            cluster.start()
            count(round_id, stratum, reports)

        patched.setattr(first, "_count", failing)
        with pytest.raises(UnavailableError):
            first.record(arrivals(range(10)))
    assert second.status(ID).reports == (0, 0)
    assert said(second.record(arrivals(range(10)))) == [""] * 10
    assert first.counts(ID).sum() == 10


def test_a_closed_round_does_not_tell_which_token_came_with_which_report(two: Two) -> None:
    first, second = two
    second.open_round(round_with(round_id=OTHER_ID), BUDGET)
    db = first.connection
    for number in (250, 3, 77):
        first.record(arrivals(range(number, number + 1)))
    marked = "SELECT xmin::text AS writer FROM token UNION ALL SELECT xmin::text FROM block"
    assert len({row["writer"] for row in db.execute(marked)}) == 4, "while it is open, each report has its own"
    files = "SELECT pg_relation_filenode('token') AS token, pg_relation_filenode('block') AS block"
    old = db.execute(files).fetchone()
    second.close_round(ID, 77)
    assert len({row["writer"] for row in db.execute(marked)}) == 1
    tokens = [bytes(row["digest"]) for row in db.execute("SELECT digest FROM token ORDER BY ctid")]
    assert tokens == sorted(DIGESTS)
    assert not set(old.values()) & set(db.execute(files).fetchone().values()), (
        "the files with the earlier versions are gone"
    )


def test_what_a_reader_still_needs_is_erased_later(two: Two) -> None:
    first, second = two
    db = second.connection

    def pages() -> int:
        return int(db.execute("SELECT pg_relation_size('token') / 8192 AS pages").fetchone()["pages"])

    second.close_round(ID, 77)
    with open_reader(first):
        second.forget(78)
        assert (db.erase_traces(), pages() > 0) == (False, True)
        second.erase_traces()
        assert pages() > 0
    for _ in range(100):
        second.erase_traces()
        if pages() == 0:
            return
        time.sleep(0.05)
    raise AssertionError


@contextmanager
def open_reader(store: CollectionStore) -> Iterator[None]:
    """Look at the database all the while."""
    assert isinstance(store.connection, Postgres)
    with store.connection._pool.connection() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM veiltab")
        yield
