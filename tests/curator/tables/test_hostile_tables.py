"""Tables that change while they are read, that hold more than the memory, or that are no files on a disk."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.curator.made_rows import columns_in, ids_in
from tests.curator.tables import written
from tests.curator.tables.test_forms import ROWS
from tests.curator.tables.written import Rows
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.refusals import NotedRows
from veiltab.curator.formats.columns.source import Selection
from veiltab.curator.formats.databases import duckdb_file
from veiltab.curator.formats.databases.duckdb_file import DuckdbQuery, FileQuery
from veiltab.curator.formats.databases.sqlite import SqliteQuery
from veiltab.curator.formats.files import spreadsheet
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.table_reading import load_table, read_respondents

WRITERS = {
    "t.parquet": written.write_parquet,
    "t.arrow": written.write_arrow,
    "t.sqlite": written.write_sqlite,
    "t.duckdb": written.write_duckdb,
}


def without(rows: Rows, name: str) -> Rows:
    place = list(rows[0]).index(name)
    return [[*row[:place], *row[place + 1 :]] for row in rows]


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_that_changes_gives_no_column_for_another(tmp_path: Path, study: Study, name: str) -> None:
    for later in (without(ROWS, "land"), [[row[1], row[0], *row[2:]] for row in ROWS]):
        path = WRITERS[name](tmp_path / name, ROWS)
        source = open_table(path)
        path.unlink()
        WRITERS[name](path, later)
        reading = read_respondents(path, ["pid"], (), study.attributes_of("alice"), source=source)
        path.unlink()
        if len(later[0]) == 3 or reading.errors:
            assert not len(reading.respondents)
            words = "changed while it was read|does not understand|not a readable Arrow"
            assert re.search(words, str(reading.errors[0]))
        else:
            assert ids_in(reading.respondents) == ["100", "7", "8", "10"]
            assert columns_in(reading.respondents)["land"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("name", ["t.sqlite", "t.duckdb"])
def test_a_query_that_names_two_columns_alike_gives_the_first(tmp_path: Path, study: Study, name: str) -> None:
    path = WRITERS[name](tmp_path / name, ROWS)
    query = "select p.pid, p.land, p.wage, p.kids, p.pid + 1000 as pid from people p order by p.pid desc"
    table = load_table(TableAddress(location=str(path), query=query), study, "alice")
    assert ids_in(table.respondents) == ["100", "10", "8", "7"]


@pytest.mark.parametrize(
    ("name", "fails"), [("t.sqlite", "abs(pid * 0 - 9223372036854775807 - 1)"), ("t.duckdb", "error(land)")]
)
def test_what_the_study_does_not_use_is_not_fetched(tmp_path: Path, study: Study, name: str, fails: str) -> None:
    path = WRITERS[name](tmp_path / name, ROWS)
    query = f"select *, {fails} as photo from people order by pid"  # noqa: S608 - constants
    table = load_table(TableAddress(location=str(path), query=query), study, "alice")
    assert ids_in(table.respondents) == ["7", "8", "10", "100"]


WITH_NOTES = [[*ROWS[0], "note"], *([*row, "x" * 1000] for row in ROWS[1:])]
NOTES = Selection(spellings={"pid": "pid", "note": "note"}, texts=frozenset({"pid"}), coded=frozenset({"note"}))


def batches(path: Path) -> list[int]:
    """Return the numbers of rows that are in memory at once."""
    return [batch.rows for batch in open_table(path).batches(NOTES)]


@pytest.mark.parametrize("name", ["t.json", "t.sqlite", "t.parquet"])
@pytest.mark.parametrize("most", [1, 2])
def test_few_long_values_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    path, rows = tmp_path / name, len(ROWS) - 1
    (WRITERS | {"t.json": written.write_json})[name](path, WITH_NOTES)
    if name == "t.parquet":  # what a file of one value says of its length is that of the value alone
        pq.write_table(pq.read_table(path), path, use_dictionary=False)
    assert batches(path) == [rows]
    for module in ("columns.source", "files.parquet"):
        monkeypatch.setattr(f"veiltab.curator.formats.{module}.BATCH_CHARACTERS", 1000 * most)
    monkeypatch.setattr("veiltab.curator.formats.columns.source._FEW_ROWS", 1)
    monkeypatch.setattr("veiltab.curator.formats.files.json_file._PIECE", 100)
    found = batches(path)
    assert sum(found) == rows
    assert max(found) <= most


def test_rows_of_a_parquet_file_are_few_at_once_where_their_values_are_long_and_only_there(tmp_path: Path) -> None:
    schema = pa.schema([("pid", pa.string()), ("note", pa.string())])
    long, short = "x" * 2**16, "y"
    with pq.ParquetWriter(tmp_path / "t.parquet", schema, use_dictionary=False) as writer:
        for rows in (0, 300, 1):  # an empty row group says nothing of lengths
            writer.write_table(pa.table({"pid": [str(n) for n in range(rows)], "note": [short] * rows}, schema))
    assert batches(tmp_path / "t.parquet") == [300, 1]
    with pq.ParquetWriter(tmp_path / "t.parquet", schema, use_dictionary=False) as writer:
        for rows, note in ((300, short), (0, short), (300, long)):
            writer.write_table(pa.table({"pid": [str(n) for n in range(rows)], "note": [note] * rows}, schema))
    first, *rest = batches(tmp_path / "t.parquet")
    assert (first, sum(rest)) == (300, 300)
    assert 100 < max(rest) <= 128  # of 64 KiB each, within 8 MiB
    unused = Selection(spellings={"pid": "pid"}, texts=frozenset({"pid"}), coded=frozenset())
    assert [batch.rows for batch in open_table(tmp_path / "t.parquet").batches(unused)] == [300, 300]


def test_a_value_of_a_database_that_is_longer_than_a_row_may_be_is_refused(tmp_path: Path) -> None:
    path = written.write_sqlite(tmp_path / "t.sqlite", [*WITH_NOTES, [*WITH_NOTES[1][:-1], "x" * 2**20]])
    assert sum(batches(path)) == len(ROWS)
    path.unlink()
    written.write_sqlite(path, [*WITH_NOTES, [*WITH_NOTES[1][:-1], "x" * (2**20 + 1)]])
    with pytest.raises(InvalidInputError, match="a value is longer than 1 MiB"):
        batches(path)
    unused = Selection(spellings={"pid": "pid"}, texts=frozenset({"pid"}), coded=frozenset())
    assert sum(batch.rows for batch in open_table(path).batches(unused)) == len(ROWS)


def test_duckdb_puts_no_row_into_a_file_of_its_own(tmp_path: Path) -> None:
    path = written.write_duckdb(tmp_path / "t.duckdb", ROWS)
    wanted = Selection(spellings={"id": "id"}, texts=frozenset({"id"}), coded=frozenset())
    source = DuckdbQuery(path, query="select 'in ' || current_setting('temp_directory') as id")
    assert [batch.texts["id"].to_pylist() for batch in source.batches(wanted)] == [["in "]]


def test_of_rows_with_something_wrong_the_first_are_kept() -> None:
    rows = NotedRows()
    for row in range(2, 1000):
        rows.note(row)
    assert (rows.count, rows.first) == (998, [2, 3, 4, 5, 6])


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.parquet", "t.arrow", "t.sqlite", "t.xlsx", "t.csv.gz"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, study: Study, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidInputError, match="not a file that can be read twice"):
        load_table(tmp_path / name, study, "alice")


def test_a_pipe_among_files_is_not_waited_for(tmp_path: Path, study: Study) -> None:
    written.write_parquet(tmp_path / "a.parquet", ROWS)
    os.mkfifo(tmp_path / "b.parquet")
    for place in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(InvalidInputError, match=r"'b.parquet', which is not a .parquet file"):
            load_table(place, study, "alice")


def test_a_column_has_one_value_by_the_names_of_folders(tmp_path: Path, study: Study) -> None:
    folder = tmp_path / "land=A" / "l%61nd=B"
    folder.mkdir(parents=True)
    written.write_parquet(folder / "x.parquet", without(ROWS, "land"))
    with pytest.raises(InvalidInputError, match="two folders around the file give the same column a value"):
        load_table(tmp_path, study, "alice")


def test_no_more_sheets_are_read_than_are_named(tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written.write_xlsx(tmp_path / "b.xlsx", {str(year): ROWS for year in range(2000, 2020)})
    rows_of, read = spreadsheet._rows, list[str]()

    def watched(book: Any, name: str) -> Any:  # noqa: ANN401 - an optional package's
        read.append(name)
        return rows_of(book, name)

    monkeypatch.setattr(spreadsheet, "_rows", watched)
    with pytest.raises(InvalidInputError, match=r"several sheets hold rows: '2000', '2001'\. Name one"):
        load_table(path, study, "alice")
    assert read == ["2000", "2001"]


def sorted_tables(folder: Path) -> dict[str, Any]:
    """Return the readers that sort, of more than a database sorts in its cache."""
    rows = [{"id": f"person-{number * 7919 % 100_003:06}-{'x' * 60}"} for number in range(100_003)]
    lite = folder / "t.sqlite"
    with closing(sqlite3.connect(lite)) as connection, connection:
        connection.execute("create table p (id text)")
        connection.executemany("insert into p values (:id)", rows)
    pq.write_table(pa.Table.from_pylist(rows), folder / "t.parquet")
    duck = folder / "t.duckdb"
    with closing(duckdb.connect(str(duck))) as database:
        database.execute(f"create table p as from '{folder}/t.parquet'")
    query = "select id from p order by id"
    plain = open_table(folder / "t.parquet")
    return {
        "SQLite": SqliteQuery(lite, query=query),
        "DuckDB": DuckdbQuery(duck, query=query),
        "query of a file": FileQuery(plain, "select id from t order by id"),
    }


def open_files() -> set[str]:
    return {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}


def test_no_reader_that_sorts_opens_a_file_of_its_own(tmp_path: Path) -> None:
    selection = Selection(spellings={"id": "id"}, texts=frozenset({"id"}), coded=frozenset())
    sources, before = sorted_tables(tmp_path), open_files()
    for name, source in sources.items():
        batches = source.batches(selection)
        next(batches)
        assert {path for path in open_files() - before if path.endswith(" (deleted)") or "temp" in path} == set(), name
        batches.close()


def test_a_query_that_needs_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(duckdb_file._CLOSED, "memory_limit", "32MiB")
    duckdb.connect(str(tmp_path / "t.duckdb")).close()
    view = "select range::varchar || repeat('x', 100) as id from range(2_000_000) order by id desc"
    source = DuckdbQuery(tmp_path / "t.duckdb", query=view)
    selection = Selection(spellings={"id": "id"}, texts=frozenset({"id"}), coded=frozenset())
    with pytest.raises(InvalidInputError, match="GiB of memory"):
        next(source.batches(selection))


def test_an_id_has_a_thousand_characters_at_most(tmp_path: Path, study: Study) -> None:
    for length, is_refused in ((1024, False), (1025, True)):
        path = tmp_path / f"{length}.parquet"
        pq.write_table(pa.table({"pid": ["é" * length, "2"], "land": ["a", "b"]}), path)
        reading = read_respondents(path, ["pid"], (), study.attributes_of("alice")[:0])
        assert [error.problem for error in reading.errors] == ["an id is longer than 1,024 characters"] * is_refused


def test_parquet_whose_ids_are_no_text_is_refused(tmp_path: Path, study: Study) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"pid": ["abcdefgh", "b"]}), path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abc\xff\xfefgh"))
    reading = read_respondents(path, ["pid"], ("casefold",), study.attributes_of("alice")[:0])
    assert "not a readable Parquet file" in str(reading.errors[0])
