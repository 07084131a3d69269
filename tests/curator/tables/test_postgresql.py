"""A PostgreSQL of this test's own: what a query returns, and what is refused; no message quotes the data or a URL."""

from collections.abc import Iterator

import pytest

from tests.server.cluster import Cluster
from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns, read_header
from veiltab.curator.formats.opening import open_table

pytestmark = pytest.mark.long

SELECT = "select * from people order by pid"
COMPARED = {
    "select pid, rank() over (order by w) as r from people": "WindowAgg",
    "select pid, w / (select sum(w) from people) as w from people": "Aggregate",
    "select max(pid) as pid, w from people group by w": "Aggregate",
    "select pid, w from people order by w limit 5": "Limit",
    "select pid, w from people tablesample system (10)": "Sample Scan",
    "select a.pid, b.w from people a join people b on b.pid = a.pid + 1": "two readings of public.people",
    "select pid, w from people union select pid, -w from people": "two readings of public.people",
}
"""Views, and what the plan of a query of them shows."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Cluster() as cluster:
        cluster.ask(
            "create table people (pid bigint, name text, wage numeric(10, 2), born date, seen timestamp, w float8)"
        )
        cluster.ask(
            "insert into people select i, 'n' || i, i + 0.25, date '1990-01-01' + i, '2020-01-02 03:04:05', i / 2.0"
            " from generate_series(1, 200000) i"
        )
        cluster.ask("insert into people values (200001)")
        cluster.ask("create user guest password 'hunter2'")
        cluster.ask("create view plain as select pid, upper(name) as name, w from people where w > 1")
        for number, view in enumerate(COMPARED):
            cluster.ask(f"create view compared_{number} as {view}")
        yield f"postgresql://veiltab@/postgres?host={cluster.folder}"


def address(url: str, query: str = SELECT) -> TableAddress:
    return TableAddress(location=url, query=query)


def test_a_query_streams_its_rows(url: str) -> None:
    source = open_table(address(url))
    assert source.where == "postgresql:///postgres"
    assert source.description == "a query of a PostgreSQL"
    assert read_header(source) == dict.fromkeys(["pid", "name", "wage", "born", "seen", "w"], "")
    batches = list(NamedColumns(source, ["pid", "name"], ["wage", "born", "seen", "w"]).batches())
    assert len(batches) > 1
    assert sum(batch.rows for batch in batches) == 200_001
    first, last = batches[0], batches[-1]
    assert (first.texts["pid"][0].as_py(), first.texts["name"][0].as_py()) == ("1", "n1")
    values = [first.coded[name][0].as_py() for name in ("wage", "born", "seen", "w")]
    assert values == ["1.25", "1990-01-02", "2020-01-02 03:04:05.000000", "0.5"]
    assert (last.texts["pid"][-1].as_py(), last.texts["name"][-1].as_py()) == ("200001", None)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("delete from people", "is not a statement that reads"),
        ("with gone as (delete from people returning *) select * from gone", "the query does more than read"),
        ("select * into copied from people", "returns no columns"),
        ("select 1; drop table people", "does not understand"),
        ("select 1) to stdout; drop table people; copy (select 1", "does not understand"),
        ("select name::int pid from people", "the query fails"),
        ("select zebra from people", "no column of a name that the query has"),
        ("select set_config('transaction_read_only', 'off', false) pid", "the query fails"),
    ],
)
def test_what_does_not_only_read_is_refused(url: str, query: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        list(NamedColumns(open_table(address(url, query)), ["pid"], ()).batches())
    assert caught.value.where == "postgresql:///postgres"
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "n1" not in str(caught.value)
    assert sum(batch.rows for batch in NamedColumns(open_table(address(url)), ["pid"], ()).batches()) == 200_001


@pytest.mark.parametrize(("number", "seen"), list(enumerate(COMPARED.values())))
def test_a_view_that_compares_people_is_seen_in_the_plan(url: str, number: int, seen: str) -> None:
    with pytest.raises(InvalidInputError, match=f"which was not read from the query: .*{seen}") as caught:
        open_table(address(url, f"select * from compared_{number} order by pid"))  # noqa: S608 - of the test
    assert "Write what a view does into the query" in caught.value.remedy


def test_text_that_duckdb_does_not_read_is_seen_in_the_plan(url: str) -> None:
    with pytest.raises(InvalidInputError, match="not read from the query: Limit"):
        open_table(address(url, "select pid, w from people order by w fetch first 9 rows with ties"))


@pytest.mark.parametrize(
    "query",
    [
        "select pid, w from plain order by pid",
        "select pid, sum(w) as w from people group by pid",
        "select pid, w - lag(w) over (partition by pid order by born) as d from people",
        "select p.pid, v.w from people p join plain v on p.pid = v.pid",
    ],
)
def test_what_the_text_shows_is_taken(url: str, query: str) -> None:
    assert open_table(address(url, query)).columns


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("/postgres?", "/absent?"), "has no database of this name"),
        (("host=", "host=/absent"), "no PostgreSQL listens"),
        (("postgresql://veiltab@", "postgresql://nobody:hunter2@"), "does not let this user in"),
        (("postgresql://veiltab@", "postgresql://guest:hunter2@"), "may not read what the query names"),
        (("host=", "hots="), "cannot be reached"),
    ],
)
def test_a_database_that_lets_nobody_in_shows_no_password(url: str, change: tuple[str, str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        list(NamedColumns(open_table(address(url.replace(*change))), ["pid"], ()).batches())
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__
