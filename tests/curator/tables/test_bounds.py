"""Tables that are small on the disk and large, or endless, once they are read."""

import gzip
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from tests.curator.tables.test_forms import ROWS, STUDY
from tests.curator.tables.written import write_arrow, write_parquet
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.check.drafted_table import propose_table
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns import arrow_columns, query_limit
from veiltab.curator.formats.columns.named_columns import NamedColumns, read_header
from veiltab.curator.formats.columns.source import LONGEST, Batch, Selection
from veiltab.curator.formats.databases.duckdb_file import DuckdbQuery
from veiltab.curator.formats.files import arrow_sizes
from veiltab.curator.formats.files.parquet import ParquetFile
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.table_reading import load_table, read_table

WANTED = Selection(spellings={"id": "id"}, texts=frozenset({"id"}), coded=frozenset())
CODED = Selection(spellings={"id": "id"}, texts=frozenset(), coded=frozenset({"id"}))
OTHER = Selection(spellings={"n": "n"}, texts=frozenset({"n"}), coded=frozenset())
ENDLESS = "with recursive t(n) as (select 1 union all select n + 1 from t) select n as id, n from t"


def study_of(most: int) -> Study:
    return study_from_bytes(STUDY.replace(b"[study]", b"[study]\nmaximum_respondents = %d" % most), "s.toml")


def with_id(path: Path, id_: str, kind: pa.DataType, rows: int = 1) -> Path:
    """Write a file of rows with one id."""
    ids = pa.array([id_] * rows).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array([id_] * rows)
    table = pa.table({"id": ids.cast(kind), "n": list(range(rows))})
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, compression="zstd")
        case ".duckdb":
            path.unlink(missing_ok=True)
            with closing(duckdb.connect(path)) as connection:
                connection.register("made", table)
                connection.execute("create table people as select * from made")
        case _:
            feather.write_feather(table, path, compression="zstd")
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.parquet", pa.string()),
        ("t.parquet", pa.large_string()),
        ("t.duckdb", pa.string()),
        ("t.feather", pa.string()),
        ("t.feather", pa.large_string()),
        ("t.feather", pa.string_view()),
        ("t.feather", pa.dictionary(pa.int32(), pa.string())),
    ],
)
@pytest.mark.parametrize("selection", [WANTED, CODED], ids=["text", "coded"])
def test_a_value_is_as_long_as_in_a_text_file_at_most(
    tmp_path: Path, name: str, kind: pa.DataType, selection: Selection
) -> None:
    longest = with_id(tmp_path / name, "x" * LONGEST, kind)
    assert [batch.rows for batch in open_table(longest).batches(selection)] == [1]
    longer = with_id(tmp_path / name, "x" * (LONGEST + 1), kind)
    with pytest.raises(InvalidInputError, match="column 'id' holds a value longer than 1 MiB"):
        list(open_table(longer).batches(selection))
    assert [batch.rows for batch in open_table(longer).batches(OTHER)] == [1]


def forbidden(*_: object, **__: object) -> NoReturn:
    raise AssertionError


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.duckdb"])
def test_no_text_is_made_of_a_value_that_is_too_long(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_id(tmp_path / name, "x" * (LONGEST + 1), pa.string())
    monkeypatch.setattr(arrow_columns, "formed", forbidden)
    with pytest.raises(InvalidInputError, match="longer than 1 MiB"):
        list(open_table(path).batches(WANTED))


def test_a_parquet_file_that_states_a_value_too_long_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_id(tmp_path / "t.parquet", "x" * (4 * LONGEST), pa.string())
    source = open_table(path)
    monkeypatch.setattr(ParquetFile, "_rows_at_once", forbidden)
    with pytest.raises(InvalidInputError, match="longer than 1 MiB"):
        list(source.batches(WANTED))


@pytest.mark.parametrize(
    ("name", "kind"), [("t.parquet", pa.string()), ("t.feather", pa.dictionary(pa.int32(), pa.string()))]
)
def test_a_value_that_is_stored_once_for_many_rows_is_made_for_few_of_them_at_once(
    tmp_path: Path, name: str, kind: pa.DataType
) -> None:
    path = with_id(tmp_path / name, "x" * LONGEST, kind, rows=200)
    rows = [batch.rows for batch in open_table(path).batches(WANTED)]
    assert sum(rows) == 200
    assert max(rows) * LONGEST <= 1 << 26


@pytest.mark.long
@pytest.mark.parametrize("name", ["t.parquet", "t.duckdb"])
def test_few_rows_of_long_values_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = with_id(tmp_path / name, "x" * LONGEST, pa.string(), rows=400)
    query = "select repeat('x', 100000) || range as id from range(20000)"
    source = open_table(path) if name == "t.parquet" else DuckdbQuery(path, query=query)
    read = list[int]()
    made = arrow_columns.batches_of

    def noted(where: str, batch: pa.RecordBatch, selection: Selection) -> Iterator[Batch]:
        read.append(batch.nbytes)
        return made(where, batch, selection)

    for module in ("databases.duckdb_file", "files.parquet"):
        monkeypatch.setattr(f"veiltab.curator.formats.{module}.batches_of", noted)
    next(source.batches(WANTED))
    assert read[0] <= 2048 * 100_020


def test_a_record_batch_that_unpacks_to_too_much_is_refused_before_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_id(tmp_path / "t.feather", "x" * (8 << 20), pa.string())
    monkeypatch.setattr("veiltab.curator.formats.files.arrow_file._MOST_BYTES", 4 << 20)
    monkeypatch.setattr(pa.ipc.RecordBatchFileReader, "get_batch", forbidden, raising=False)
    with pytest.raises(InvalidInputError, match="a record batch of the file takes 8 MiB of memory, more than 4"):
        list(open_table(path).batches(WANTED))


@pytest.mark.parametrize("compression", ["zstd", "lz4", "uncompressed"])
def test_a_record_batch_takes_what_its_file_states(tmp_path: Path, compression: str) -> None:
    table = pa.table({"id": pa.array(["ab" * 5000, "c"]).dictionary_encode(), "x": [1.0, 2.0], "y": ["z" * 3000, "z"]})
    feather.write_feather(table, tmp_path / "t.feather", compression=compression)
    stated = arrow_sizes.largest_batch(tmp_path / "t.feather")
    assert table.nbytes <= stated <= table.nbytes + 64 * 12  # each buffer ends at a multiple of 64 bytes


@pytest.mark.parametrize("data", [b"", b"ARROW1", b"ARROW1" * 9, b"\xff" * 100, struct.pack("<i", 8) * 20 + b"ARROW1"])
def test_what_states_no_sizes_is_no_arrow_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t.feather").write_bytes(data)
    with pytest.raises(pa.ArrowInvalid):
        arrow_sizes.largest_batch(tmp_path / "t.feather")


def test_altered_sizes_end_in_a_refusal_or_are_not_used(tmp_path: Path) -> None:
    whole = write_arrow(tmp_path / "t.arrow", ROWS).read_bytes()
    size = struct.unpack("<i", whole[-10:-6])[0]
    for place in range(len(whole) - size - 10, len(whole)):
        (tmp_path / "t.arrow").write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            arrow_sizes.largest_batch(tmp_path / "t.arrow")
        except pa.ArrowInvalid:
            continue


def test_an_arrow_file_of_a_large_record_batch_is_the_parquet_file_of_its_rows(tmp_path: Path) -> None:
    rows, study = 150_000, study_of(150_000)
    ids = [f"ID{row}" for row in range(rows)]
    table = pa.table({"pid": ids, "land": ["A"] * rows, "wage": [1.0] * rows, "kids": [1] * rows})
    pq.write_table(table, tmp_path / "t.parquet")
    parquet = load_table(tmp_path / "t.parquet", study, "alice")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    assert load_table(tmp_path / "t.arrow", study, "alice").content_digest == parquet.content_digest


def endless(path: Path, name: str) -> TableAddress:
    """Make a table with rows without end."""
    place = path / name
    if name == "t.csv.gz":
        rows = b"".join(b"%d,A,1,1\n" % row for row in range(100_000))
        place.write_bytes(gzip.compress(b"pid,land,wage,kids\n" + rows))
        return TableAddress(location=str(place))
    query = ENDLESS if name == "t.sqlite" else "select range as id, range as n from range(100000000000)"
    view = f"create view endless as select id as pid, 'A' as land, 1 as wage, 1 as kids from ({query})"  # noqa: S608 - the program's own words
    if name == "t.sqlite":
        with closing(sqlite3.connect(place)) as sqlite:
            sqlite.execute(view)
    else:
        with closing(duckdb.connect(place)) as connection:
            connection.execute(view)
    return TableAddress(location=f"{place}#endless")


@pytest.mark.parametrize("name", ["t.sqlite", "t.duckdb", "t.csv.gz"])
def test_rows_without_end_are_refused_at_the_studys_limit(tmp_path: Path, name: str) -> None:
    reading = read_table(endless(tmp_path, name), study_of(70_000), "alice")
    assert "more than 70,000 rows, the most that the study takes (maximum_respondents)" in str(reading.errors[0])
    assert reading.rows_read <= 70_000


def test_a_table_may_have_as_many_rows_as_the_study_takes(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "t.parquet", ROWS)
    assert load_table(path, study_of(len(ROWS) - 1), "alice").rows_read == len(ROWS) - 1
    with pytest.raises(InvalidInputError, match=f"more than {len(ROWS) - 2} rows"):
        load_table(path, study_of(len(ROWS) - 2), "alice")


def test_a_draft_reads_no_more_rows_than_any_study_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast("dict[str, object]", NamedColumns.batches.__kwdefaults__), "most_rows", 2)
    path = write_parquet(tmp_path / "t.parquet", ROWS)
    with pytest.raises(InvalidInputError, match="more than 2 rows"):
        propose_table(path, "alice")


SILENT = {
    "t.sqlite": f"select id from ({ENDLESS}) where n < 0",  # noqa: S608 - constants
    "t.duckdb": "select range as id from range(100000000000) where hash(range) = 0",
}


@pytest.mark.parametrize("name", SILENT)
def test_a_query_that_gives_nothing_is_ended_and_said_so(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endless(tmp_path, name)
    source = open_table(TableAddress(location=str(tmp_path / name), query=SILENT[name]))
    minutes = iter(range(0, 600, 10))
    monkeypatch.setattr(query_limit, "_MINUTE", 0.002)
    monkeypatch.setattr(query_limit.Waiting, "minutes", lambda _: next(minutes))
    with pytest.raises(InvalidInputError, match="the query gave no row for 60 minutes"):
        list(source.batches(WANTED))
    assert "the query has given no row for 50 minutes; it ends after 60" in capsys.readouterr().err


def test_who_does_not_ask_does_not_wait() -> None:
    query = query_limit.Waiting()
    assert query.minutes() > 0
    next(query.rows([1, 2]))
    assert query.minutes() == 0


def test_what_duckdb_finds_late_is_refused_without_a_value(tmp_path: Path) -> None:
    path = with_id(tmp_path / "t.duckdb", "x", pa.string())
    query = "select case when range > 9000 then error('secret') else '1' end as id from range(10000)"
    with pytest.raises(InvalidInputError, match="the query fails on the data") as refused:
        list(DuckdbQuery(path, query=query).batches(WANTED))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_header_that_is_too_long_is_told_so(tmp_path: Path, name: str) -> None:
    data = ",".join(f"c{place}" for place in range(300_000)).encode()
    data += b"\n" + b"1," * 299_999 + b"1\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(InvalidInputError, match=r"the header is longer than 1 MiB, with more than 1\d\d,\d{3} columns"):
        open_table(tmp_path / name)


def test_a_header_of_many_columns_is_read(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(40_000)]
    (tmp_path / "t.csv").write_text(f"{','.join(names)}\n{','.join(['1'] * len(names))}\n")
    assert list(read_header(open_table(tmp_path / "t.csv"))) == names
