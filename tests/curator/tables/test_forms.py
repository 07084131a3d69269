"""One table in all forms: the same content has the same digest."""

import re
import sqlite3
import zipfile
from contextlib import closing
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import STUDY_HEAD
from tests.curator.made_rows import columns_in, ids_in
from tests.curator.tables import written
from tests.curator.tables.written import Rows
from tests.worlds.studies import attribute_text
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.table_reading import load_table, read_table

ATTRIBUTES = (
    attribute_text("land", "alice", 'categories = ["A", "B"]'),
    attribute_text("wage", "alice", "bins = [0, 3.5, 2000]"),
    attribute_text("kids", "alice", "integers = [0, 3]"),
    attribute_text("sex", "bob", 'categories = ["f", "m"]'),
)
STUDY = "".join([STUDY_HEAD, *ATTRIBUTES]).replace('"id"', '"pid"').encode()
ROWS: Rows = [
    ["pid", "land", "wage", "kids"],
    [100, "A", 3.25, 0],
    [7, "A", 1500.5, 3],
    [8, "B", 3.5, 1],
    [9, "B", None, 2],
    [10, "B", 12.0, 0],
]


def test_one_table_has_one_digest_in_all_forms(tmp_path: Path, study: Study) -> None:
    select = "select * from people order by rowid"
    tables: dict[str, Path | TableAddress] = {
        "looks comma-separated, UTF-8": written.write_text(tmp_path / "t.csv", ROWS),
        "looks semicolon-separated, UTF-16": written.write_text(
            tmp_path / "u.csv", ROWS, separator=";", encoding="utf-16"
        ),
        "looks tab-separated, UTF-8, compressed by gzip": written.write_text(
            tmp_path / "t.tsv.gz", ROWS, separator="\t"
        ),
        "a Parquet file": written.write_parquet(tmp_path / "t.parquet", ROWS),
        "an Arrow file": written.write_arrow(tmp_path / "t.feather", ROWS),
        "JSON objects": written.write_json(tmp_path / "t.ndjson", ROWS),
        "JSON objects.": written.write_json(tmp_path / "t.json", ROWS),
        "JSON objects, compressed by gzip": written.write_json(tmp_path / "t.jsonl.gz", ROWS),
        "a list of JSON objects": written.write_json(tmp_path / "l.json", ROWS, as_list=True),
        "2 Parquet files, land from the names of folders": written.write_folder(tmp_path / "folder", ROWS, "land"),
        "sheet 'people' of a spreadsheet": written.write_xlsx(tmp_path / "t.xlsx", {"empty": [], "people": ROWS}),
        "sheet 'people' of a spreadsheet.": written.write_ods(tmp_path / "t.ods", ROWS),
        "a table of a SQLite file": written.write_sqlite(tmp_path / "t.sqlite", ROWS),
        "a query of a SQLite file": TableAddress(location=str(tmp_path / "t.sqlite"), query=select + ";"),
        "a table of a DuckDB file": written.write_duckdb(tmp_path / "t.db", ROWS),
        "a query of a DuckDB file": TableAddress(location=str(tmp_path / "t.db"), query=select),
    }
    loaded = {looks: load_table(table, study, "alice") for looks, table in tables.items()}
    assert [table.description for table in loaded.values()] == [looks.rstrip(".") for looks in loaded]
    assert {table.content_digest for table in loaded.values()} == {next(iter(loaded.values())).content_digest}
    first = next(iter(loaded.values()))
    assert ids_in(first.respondents) == ["100", "7", "8", "10"]
    assert [values.tolist() for values in columns_in(first.respondents).values()] == [
        [0, 0, 1, 1],
        [0, 1, 1, 1],
        [0, 3, 1, 0],
    ]


def test_arrow_files_of_other_libraries(tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.formats.columns.arrow_columns.BATCH_ROWS", 3)
    expected = load_table(written.write_parquet(tmp_path / "t.parquet", ROWS), study, "alice").content_digest
    table = pa.table(written.columns(ROWS))
    for land in (
        pa.dictionary(pa.uint64(), pa.string()),
        pa.dictionary(pa.uint32(), pa.large_string()),
        pa.string_view(),
    ):
        path = tmp_path / "t.arrow"
        column = table["land"].combine_chunks()
        made = column.dictionary_encode().cast(land) if pa.types.is_dictionary(land) else column.cast(land)
        other = table.set_column(1, "land", made)
        with pa.ipc.new_file(path, other.schema) as file:
            file.write_table(other)
        assert load_table(path, study, "alice").content_digest == expected


def test_what_is_no_arrow_file_is_refused_without_a_word_of_it(tmp_path: Path, study: Study) -> None:
    whole = written.write_arrow(tmp_path / "whole.arrow", ROWS, compression="uncompressed").read_bytes()
    with pa.ipc.new_stream(tmp_path / "stream.arrow", pa.table(written.columns(ROWS)).schema) as stream:
        stream.write_table(pa.table(written.columns(ROWS)))
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(40) + b"FEA1")
    (tmp_path / "cut.arrow").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.arrow").write_bytes(b"pid,land,wage,kids\n100,A,1,1\n")
    for name in ("stream.arrow", "old.feather", "cut.arrow", "text.arrow"):
        with pytest.raises(InvalidInputError, match="is not a readable Arrow file") as refused:
            load_table(tmp_path / name, study, "alice")
        assert "Feather of version 2" in str(refused.value)
        assert "100" not in str(refused.value)


def test_an_arrow_file_whose_offsets_lie_is_refused(tmp_path: Path, study: Study) -> None:
    texts = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 2**30, 3], np.int32)), pa.py_buffer(b"abc"))
    table = {"pid": [1, 2], "land": texts, "wage": [1.0, 2.0], "kids": [1, 2]}
    batch = pa.RecordBatch.from_arrays(
        [pa.array(one) if isinstance(one, list) else one for one in table.values()], list(table)
    )
    with pa.ipc.new_file(tmp_path / "t.arrow", batch.schema) as file:
        file.write_batch(batch)
    with pytest.raises(InvalidInputError, match="is not a readable Arrow file"):
        load_table(tmp_path / "t.arrow", study, "alice")


def test_files_of_a_pattern_follow_one_another(tmp_path: Path, study: Study) -> None:
    for number in (2, 1):
        written.write_parquet(tmp_path / f"part-{number}.parquet", [ROWS[0], ROWS[number]])
    table = load_table(tmp_path / "part-*.parquet", study, "alice")
    assert (ids_in(table.respondents), table.description) == (["100", "7"], "2 Parquet files")
    written.write_parquet(tmp_path / "part-3.parquet", [["pid", "land"], [1, "A"]])
    with pytest.raises(InvalidInputError, match=r"part-3.parquet: its columns are not those of ") as got:
        load_table(tmp_path / "part-*.parquet", study, "alice")
    assert got.value.problem.endswith("part-1.parquet; it lacks 'kids', 'wage'")
    written.write_parquet(tmp_path / "part-3.parquet", [[*ROWS[0], "more"], [*ROWS[1], 1]])
    with pytest.raises(InvalidInputError, match=r"part-1.parquet; it alone has 'more'. Give files"):
        load_table(tmp_path / "part-*.parquet", study, "alice")
    with pytest.raises(InvalidInputError, match="no file fits the pattern"):
        load_table(tmp_path / "piece-*.parquet", study, "alice")
    (tmp_path / "piece-1.csv").touch()
    with pytest.raises(InvalidInputError, match=r"fits 'piece-1.csv', which is not a .parquet file"):
        load_table(tmp_path / "piece-*", study, "alice")


def test_the_values_of_a_folder_count_even_if_they_are_written_for_a_path(tmp_path: Path, study: Study) -> None:
    rows: Rows = [["pid", "wage", "kids"], [1, 2.0, 0]]
    for number, name in enumerate(("land=A", "land=__HIVE_DEFAULT_PARTITION__", "land=%42")):
        (tmp_path / name).mkdir()
        written.write_parquet(tmp_path / name / "x.parquet", [rows[0], [number, *rows[1][1:]]])
    reading = read_table(tmp_path, study, "alice")
    assert not reading.errors
    assert columns_in(reading.respondents)["land"].tolist() == [1, 0]  # "land=%42" comes first
    assert (reading.rows_read, reading.rows_dropped, reading.columns[0].missing) == (3, 1, 1)
    written.write_parquet(tmp_path / "land=A" / "y.parquet", [["land", *rows[0]], ["B", *rows[1]]])
    with pytest.raises(InvalidInputError, match="its columns are not those of"):
        load_table(tmp_path, study, "alice")
    with pytest.raises(InvalidInputError, match="'land' stands in the files, and in the names of their folders"):
        load_table(tmp_path / "*" / "y.parquet", study, "alice")


def test_a_folder_that_this_user_may_not_read_is_not_taken_for_an_empty_one(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.formats.files.parquet_files.os.access", lambda *_: False)
    with pytest.raises(InvalidInputError, match="this user may not read the folder"):
        load_table(tmp_path, study, "alice")


def test_a_folder_without_parquet_files_is_refused(tmp_path: Path, study: Study) -> None:
    written.write_parquet(tmp_path / "_t.parquet", ROWS)
    with pytest.raises(InvalidInputError, match=r"this is a directory, and it holds no .parquet file"):
        load_table(tmp_path, study, "alice")


def test_a_sheet_among_several_is_named(tmp_path: Path, study: Study) -> None:
    path = written.write_xlsx(tmp_path / "b.xlsx", {"2019": ROWS[:2], "2020": [[None], *ROWS[:3], [None], ROWS[3]]})
    with pytest.raises(InvalidInputError, match=r"several sheets hold rows: '2019', '2020'. Name one, such as b.xl"):
        load_table(path, study, "alice")
    assert ids_in(load_table(Path(f"{path}#2020"), study, "alice").respondents) == ["100", "7", "8"]
    with pytest.raises(InvalidInputError, match=r"there is no sheet '2021'. Sheets: '2019', '2020'."):
        load_table(Path(f"{path}#2021"), study, "alice")


def test_cells_of_a_sheet_are_texts_as_people_read_them(tmp_path: Path, study: Study) -> None:
    rows: Rows = [ROWS[0], ["0012", "A", 1, 2.0], [date(1990, 2, 28), "B", 1.5, 1], [2.5, "B", "", 1]]
    table = load_table(written.write_xlsx(tmp_path / "t.xlsx", {"s": rows}), study, "alice")
    assert ids_in(table.respondents) == ["0012", "1990-02-28"]
    assert read_table(tmp_path / "t.xlsx", study, "alice").columns[1].missing == 1


@pytest.mark.parametrize(("column", "row"), [("XFD", 1_048_576), ("XFD", 20_000)])
def test_a_stray_cell_far_from_the_table_is_refused(tmp_path: Path, study: Study, column: str, row: int) -> None:
    path = written.write_xlsx(tmp_path / "t.xlsx", {"s": ROWS})
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    stray = f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row></sheetData>'
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            book.writestr(name, part.replace(b"</sheetData>", stray.encode()))
    for table in (path, Path(f"{path}#s")):
        with pytest.raises(InvalidInputError, match="a sheet reaches over more than 20,000,000 cells"):
            load_table(table, study, "alice")


@pytest.mark.parametrize("name", ["t.xlsx", "t.xls", "t.ods", "t.sqlite", "t.duckdb", "t.parquet"])
def test_what_is_none_of_its_kind_is_refused_without_quoting_it(tmp_path: Path, study: Study, name: str) -> None:
    (tmp_path / name).write_bytes(b"zebra kay-9 " * 99)
    with pytest.raises(InvalidInputError, match="the file is not a readable") as caught:
        load_table(tmp_path / name, study, "alice")
    assert "zebra" not in str(caught.value)
    assert caught.value.__cause__ is None


DATABASES = ("t.sqlite", "t.duckdb")


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    return (written.write_sqlite if path.suffix == ".sqlite" else written.write_duckdb)(path, ROWS)


def refuse(table: Path, query: str, study: Study, problem: str) -> None:
    before = table.read_bytes()
    with pytest.raises(InvalidInputError, match=problem) as caught:
        load_table(TableAddress(location=str(table), query=query), study, "alice")
    assert caught.value.where == str(table)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert table.read_bytes() == before
    assert not re.search("zebra|1500", str(caught.value))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("drop table people", "is not a statement that reads"),
        (" /* select */ -- select\n delete from people", "is not a statement that reads"),
        ("select * from people; drop table people", "does not understand|more than one statement|more than read"),
        ("select nothing from people", "does not understand the query"),
        ("select pid from people", "columns 'kids', 'land', 'wage' are not in the header"),
        ("select pid, 'zebra' land, wage, kids from people", "in 5 rows, first in rows 2"),
        ("with x as (select 1) insert into people select 7, 'A', 1, 1", "more than read|not understand|more than one"),
    ],
)
def test_a_query_is_one_statement_that_reads(database: Path, study: Study, query: str, problem: str) -> None:
    refuse(database, query, study, problem)


def test_a_query_reaches_nothing_but_its_file(tmp_path: Path, study: Study) -> None:
    other = tmp_path / "zebra.csv"
    other.write_text("a\n1500\n")
    path = written.write_duckdb(tmp_path / "t.duckdb", ROWS)
    refuse(path, f"select * from read_csv('{other}')", study, "reaches beyond its file")  # noqa: S608 - refused
    refuse(path, "select cast(land as int) pid, land, wage, kids from people", study, "fails on the data")
    path = written.write_sqlite(tmp_path / "t.sqlite", ROWS)
    refuse(path, "select load_extension('x') pid, land, wage, kids from people", study, "not understand|more than read")
    refuse(path, "select * from pragma_database_list", study, "more than read|not understand")


def test_a_table_among_several_is_named(database: Path, study: Study) -> None:
    write = written.write_sqlite if database.suffix == ".sqlite" else written.write_duckdb
    write(database, [ROWS[0], ROWS[2]], 'o"ther')
    with pytest.raises(InvalidInputError, match=r"the database has 2 tables: .*data.db#people"):
        load_table(database, study, "alice")
    assert ids_in(load_table(Path(f'{database}#o"ther'), study, "alice").respondents) == ["7"]
    with pytest.raises(InvalidInputError, match="there is no table 'more'"):
        load_table(Path(f"{database}#more"), study, "alice")


def test_an_order_that_may_change_is_said(database: Path, study: Study) -> None:
    table = TableAddress(location=str(database), query="select * from people")
    assert "in the database's own order" in load_table(table, study, "alice").description


def test_bytes_of_sqlite_are_refused_by_their_row(tmp_path: Path, study: Study) -> None:
    path = written.write_sqlite(tmp_path / "t.sqlite", ROWS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update people set land = x'00' where pid = 8")
    with pytest.raises(InvalidInputError, match="column 'land' holds bytes, first in row 4"):
        load_table(path, study, "alice")


def test_floating_point_ids_of_parquet_come_as_they_would_be_written(tmp_path: Path) -> None:
    pq.write_table(pa.table({"pid": [1.0, 2.5, None, 2.0**53, float("nan"), 2.0**53 - 1]}), tmp_path / "f.parquet")
    (batch,) = NamedColumns(open_table(tmp_path / "f.parquet"), ["pid"], (), floats_as_ids=True).batches()
    assert batch.texts["pid"].to_pylist() == [
        "1.0",
        "2.5e0",
        None,
        "9.007199254740992e+15e0",
        None,
        "9007199254740991.0",
    ]


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("postgresql://ana:secret@db:5433/wages?sslmode=require&password=secret", "db:5433/wages"),
        ("postgres://ana@/wages?host=/run/postgresql", "/wages"),
        ("POSTGRESQL://ana:sec:ret@h:port/d", "..."),
        ("postgresql://ana:12/secret@db/wages", "db/wages"),
        ("postgresql://ana:p@x/secret@db", "db"),
        ("postgresql://ana:secret#secret?secret@db/wages", "..."),
        ("postgresql://ana@db/wages?password=p@secret", "..."),
        ("postgresql://db/wages;password=secret", "..."),
        ("postgresql://db:5432/wages", "db:5432/wages"),
    ],
)
def test_no_password_is_shown(location: str, shown: str) -> None:
    address = TableAddress(location=location, query="select 'secret'")
    assert address.label == f"postgresql://{shown}"
    assert "secret" not in repr(address)


def test_other_places_are_refused_without_their_url(study: Study) -> None:
    with pytest.raises(InvalidInputError, match="mysql:// is not a place") as caught:
        load_table(TableAddress(location="mysql://ana:secret@h/d"), study, "alice")
    assert "secret" not in str(caught.value)
    mistyped = ("postgresql:ana:secret@h/d", "postgresql//ana:secret@h/d", "POSTGRES:/ana:secret@h/d")
    keywords = ("host=h dbname=d password=secret", "host=h password = 'a.secret'")
    for location in ("mysql://ana:secret@h/d", *mistyped, *keywords):
        reading = read_table(TableAddress(location=location), study, "alice")
        assert "is not a place to read tables from" in str(reading.errors[0])
        assert "secret" not in "".join(map(str, reading.errors))
        assert TableAddress(location=location).label == "..."
    with pytest.raises(InvalidInputError, match="a database needs a query"):
        load_table(TableAddress(location="postgresql://ana:secret@h/d"), study, "alice")


def test_a_database_that_another_program_writes_is_refused(tmp_path: Path, study: Study) -> None:
    path = written.write_duckdb(tmp_path / "t.duckdb", ROWS)
    with closing(duckdb.connect(path)), pytest.raises(InvalidInputError, match="another program writes to it"):
        load_table(path, study, "alice")
