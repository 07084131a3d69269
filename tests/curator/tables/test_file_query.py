"""A query of a file: one row a person of many rows, against a calculation of its own; and what is refused."""

from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import STUDY
from tests.curator.tables.written import write_json, write_text, write_xlsx
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.table_reading import load_table

HEADER = ("id", "day", "cost", "ward")
SUMMARY = """
select id, count(*) as visits, sum(cost::decimal(18, 2)) as cost, max(day) as last,
  bool_or(ward = 'icu') as icu
from t where day >= '2021' group by id order by id
"""


def visits(rows: int = 5000, people: int = 700) -> list[tuple[str, str, str, str]]:
    draws = np.random.default_rng(7).integers(0, (people, 4, 12, 10**5, 3), (rows, 5)).tolist()
    return [
        (f"p{person}", f"{2020 + year}-{1 + month:02}-11", f"{cents / 100:.2f}", ("icu", "a", "b")[ward])
        for person, year, month, cents, ward in draws
    ]


def expected(rows: list[tuple[str, str, str, str]]) -> dict[str, tuple[str, str, str, str]]:
    own = defaultdict[str, list[tuple[str, str, str, str]]](list)
    for row in rows:
        if row[1] >= "2021":
            own[row[0]].append(row)
    return {
        name: (
            str(len(some)),
            str(sum(Decimal(row[2]) for row in some)),
            max(row[1] for row in some),
            "true" if any(row[3] == "icu" for row in some) else "false",
        )
        for name, some in own.items()
    }


def read(path: Path, query: str = SUMMARY) -> dict[str, tuple[str, ...]]:
    source = open_table(TableAddress(location=str(path), query=query))
    names = [column.name for column in source.columns]
    found = {}
    for batch in NamedColumns(source, names, ()).batches():
        for name, *values in zip(*(batch.texts[one].to_pylist() for one in names), strict=True):
            found[name] = tuple(values)
    return found


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.ndjson", "t.xlsx", "t.parquet", "parts"])
def test_a_summary_of_any_file_is_that_of_the_rows(tmp_path: Path, name: str) -> None:
    rows, path = visits(), tmp_path / name
    match name:
        case "t.csv" | "t.csv.gz":
            write_text(path, [HEADER, *rows])
        case "t.ndjson":
            write_json(path, [HEADER, *rows])
        case "t.xlsx":
            write_xlsx(path, {"visits": [HEADER, *rows]})
        case _:
            table = pa.table(dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True)))
            if name == "parts":
                path.mkdir()
                pq.write_table(table[:1234], path / "1.parquet")
                pq.write_table(table[1234:], path / "2.parquet")
            else:
                pq.write_table(table, path)
    assert read(path) == expected(rows)


def test_a_summary_is_a_table_like_others(tmp_path: Path) -> None:
    study = study_from_bytes(
        STUDY + b'\n[[attribute]]\nname = "visits"\nowner = "alice"\nbins = [1, 2, 5, 1000]\n', "study.toml"
    )
    rows = visits()
    people = [(*row, "fm"[int(row[0][1:]) % 2], "old") for row in rows]
    path = write_text(tmp_path / "t.csv", [(*HEADER, "sex", "age"), *people])
    query = "select id, any_value(sex) as sex, any_value(age) as age, count(*) as visits from t group by id order by id"
    table = load_table(TableAddress(location=str(path), query=query), study, "alice")
    assert "a query of a table that looks comma-separated, UTF-8, 5,000 rows" in table.description
    assert len(table.respondents) == len({row[0] for row in rows})


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("select * from t a join t b using (id)", "more than once"),
        ("select * from t where cost = (select max(cost) from t)", "more than once"),
        ("select id, sum(cost) from t group by id", "its columns are texts"),
        ("select nothing from t", "does not understand"),
        ("select * from elsewhere", "does not understand"),
        ("select * from read_csv('{here}')", "reaches beyond"),
        ("select * from '{here}'", "reaches beyond"),
        ("select id from t; select id from t", "more than one statement"),
        ("copy t to '{here}.out'", "not a statement that reads"),
        ("with x as (select 1) delete from t", "does not understand"),
        ("attach '{here}' as x", "not a statement that reads"),
    ],
)
def test_queries_that_are_refused(tmp_path: Path, query: str, problem: str) -> None:
    path = write_text(tmp_path / "t.csv", [HEADER, *visits(20)])
    with pytest.raises(InvalidInputError, match=problem):
        read(path, query.format(here=path))
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]


def test_what_fails_on_the_data_says_nothing_of_them(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", [HEADER, *visits(20), ("p1", "secret", "much", "a")])
    with pytest.raises(InvalidInputError, match="fails on the data") as refused:
        read(path)
    assert "much" not in str(refused.value)


def test_a_ragged_row_is_named_as_without_a_query(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", [HEADER, *visits(20), ("p1", "2021")])
    with pytest.raises(InvalidInputError, match="more or fewer values than the header, first in row 22"):
        read(path)


def test_names_that_a_query_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", [("id", "Id"), ("1", "2")])
    with pytest.raises(InvalidInputError, match="letter case alone"):
        read(path, "select id from t")


def test_what_a_query_reads_once_and_uses_twice_is_whole_both_times(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", [HEADER, *visits()])
    query = "with s as (select id, cost::double as c from t) select count(*), (select count(*) from s) as again from s"
    ((rows, (again,)),) = read(path, query).items()
    assert (rows, again) == ("5000", "5000")
