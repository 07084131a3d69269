"""The queries that people write: each row from one person's rows alone, or refused."""

from pathlib import Path

import pytest

from tests.conftest import STUDY
from tests.curator.tables.written import write_sqlite
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.databases.own_rows import check_own_rows
from veiltab.curator.table.table_reading import load_table

OWN = (
    "select id, count(*) as n, sum(cost::decimal(18, 2)) as c, arg_min(d, day) as f from t where day > '2' group by id",
    "select id, sex from people order by id",
    "select * from people",
    "select pid as id, sum(cost) as c from t group by pid",
    "select lower(trim(pid)) as id, sum(cost) as c from t group by 1",
    "select id, sum(cost) as c from t group by all order by id",
    "with s as (select id, sum(c) as c from t group by id) select s.id, m.c from s join s m using (id)",
    "with s as (select * from t) select a.id, b.cost from s a join s b on a.id = b.id",
    "select id, ward from t qualify row_number() over (partition by id order by day) = 1",
    "select distinct on (id) id, ward from t order by id, day",
    "select id, cost - lag(cost) over (partition by id order by day) as d from t",
    "from t select id, sum(x) as s group by id",
    "from (pivot t on ward in ('a', 'b') using sum(cost) group by id) select id, a, b",
    "from (unpivot t on a, b into name ward value cost) select id, sum(cost) as c group by id",
    "select p.id, w.name from people p join wards w on p.ward = w.ward",
)
OTHERS = {
    "select id, rank() over (order by sum(cost)) as r from t group by id": r"rank\(\) goes over rows of several people",
    "select id, ntile(10) over (order by sum(cost)) as r from t group by id": "ntile",
    "select id, cost - avg(cost) over () as d from t": r"avg\(\) goes over",
    "select id, avg(cost) over (partition by ward) as d from t": r"avg\(\) goes over",
    "select id, row_number() over w as r from t window w as (order by cost)": "row_number",
    "with s as (select id, sum(c) as c from t group by id) select id, c / (select sum(c) from s) from s": "a total",
    "with s as (select * from t), m as (select sum(c) as x from s) select id, c / x as p from s, m": "a total|a join",
    "with s as (select * from t) select a.id, sum(b.c) from s a join s b on a.home = b.home group by a.id": "a join",
    "with s as (select * from t) select id, exists (select 1 from s b where b.home = s.home) as e from s": "a subquery",
    "select max(id) as id, count(*) as n from t group by home": "`group by` goes without the id",
    "select id, sum(cost) as c from t group by rollup(id)": "`group by`",
    "select min(id) as id, sum(cost) as c from t": "a total of all rows",
    "select distinct on (home) id, cost from t order by home, cost": "`distinct on`",
    "from (pivot t on ward in ('a') using max(id) as id group by home) select a_id as id": "`pivot` goes",
    "select id, cost from t order by cost desc limit 100": "it keeps some rows",
    "select id, cost from t using sample 10%": "it keeps some rows",
}


@pytest.mark.parametrize("query", OWN)
def test_a_query_that_keeps_people_apart_is_taken(query: str) -> None:
    check_own_rows("t.csv", query, ["id"])


@pytest.mark.parametrize("query", OTHERS)
def test_a_query_that_compares_people_is_refused(query: str) -> None:
    with pytest.raises(InvalidInputError, match=f"may depend on other people's rows: ({OTHERS[query]})") as caught:
        check_own_rows("t.csv", query, ["id"])
    assert "A release protects one row. Take id into every" in caught.value.remedy


def test_of_several_ids_all_are_needed() -> None:
    query = "select clinic, id, sum(cost) as c from t group by {}"
    check_own_rows("t.csv", query.format("clinic, id"), ["clinic", "id"])
    with pytest.raises(InvalidInputError, match="Take clinic, id into"):
        check_own_rows("t.csv", query.format("clinic"), ["clinic", "id"])


@pytest.mark.parametrize("name", ["t.csv", "t.sqlite"])
def test_a_curator_loads_no_table_that_compares_people(tmp_path: Path, name: str) -> None:
    rows = [["id", "sex", "age"], *([str(row), "fm"[row % 2], "old"] for row in range(9))]
    if name == "t.csv":
        (tmp_path / name).write_text("".join(",".join(row) + "\n" for row in rows), "utf-8")
    else:
        write_sqlite(tmp_path / name, rows)
    table, study = "t" if name == "t.csv" else "people", study_from_bytes(STUDY, "s.toml")
    query = f"select id, sex, case when {{}} then 'old' else 'young' end as age from {table} order by id"  # noqa: S608 - of the test
    place = str(tmp_path / name)
    assert load_table(TableAddress(location=place, query=query.format("sex = 'f'")), study, "alice").rows == 9
    with pytest.raises(InvalidInputError, match=r"rank\(\) goes over rows of several people"):
        load_table(TableAddress(location=place, query=query.format("rank() over (order by id) > 3")), study, "alice")
