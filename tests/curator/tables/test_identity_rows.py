"""A table whose rows have identity fields in the place of ids."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.common.study.other import CHANGES, FULL
from veiltab.common.linkage.row_keys import identity_columns, normal_rows
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.table.table_reading import load_table, read_table

OLD, NEW, _ = CHANGES["identity in the place of ids"]


@pytest.fixture
def study() -> Study:
    return study_from_bytes(
        FULL.replace(OLD, NEW).replace(b'"family", "birth"]', b'"family", "birth", "postcode"]'), ""
    )


def fields_of(study: Study, curator: str, path: Path) -> list[list[str]]:
    table = load_table(path, study, curator)
    (batch,) = table.respondents.batches()
    assert study.identity is not None
    return [column.to_pylist() for column in identity_columns(batch.ids, study.identity)]


def test_fields_come_back_as_they_are_in_the_table(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "alice.csv"
    path.write_text(
        "first,last,year,month,day,sex,age\n"
        "Anna,de la Cruz,1980,2,3,1,44\n"
        " Bo ,,1970,1,1,2,54\n"
        ",,,,,2,33\n"
        "Anna,de la Cruz,1980,2,3,1,44\n"
    )
    given, family, birth, postcode = fields_of(study, "alice", path)
    assert given == ["Anna", " Bo ", "", "Anna"]
    assert family == ["de la Cruz", "", "", "de la Cruz"]
    assert birth == ["1980 2 3", "1970 1 1", "  ", "1980 2 3"]
    assert postcode == [""] * 4
    assert study.identity is not None
    rows = normal_rows(study.identity, "ymd", [given, family, birth, postcode])
    assert rows.values("birth") == ["19800203", "19700101", "", "19800203"]


def test_types_of_a_file_do_not_count(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "alice.parquet"
    columns = {
        "first": pa.array(["A", None]),
        "last": pa.array(["B", "C"]).dictionary_encode(),
        "year": pa.array([1980.0, None]),
        "month": pa.array([2, 3], pa.int8()),
        "day": pa.array(["3", "4"]),
        "sex": ["1", "2"],
        "age": [1, 2],
    }
    pq.write_table(pa.table(columns), path)
    given, family, birth, _ = fields_of(study, "alice", path)
    assert (given, family, birth) == (["A", ""], ["B", "C"], ["1980 2 3", " 3 4"])


def test_a_date_of_a_file_is_one_whatever_the_order(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "bob.parquet"
    moments = pa.array([0, 86_400_000], pa.timestamp("ms"))
    pq.write_table(
        pa.table({"first": ["A", "B"], "last": ["B", "C"], "born": moments, "hours": [1, 2], "pay": ["low", "high"]}),
        path,
    )
    columns = fields_of(study, "bob", path)
    assert study.identity is not None
    assert normal_rows(study.identity, "dmy", columns).values("birth") == ["19700101", "19700102"]


def test_a_table_that_is_linked_by_other_rules_counts_as_another(study: Study, tmp_path: Path) -> None:
    """Else the curators would keep the links that they made before somebody corrected the study file."""
    path = tmp_path / "bob.csv"
    path.write_text("first,last,born,hours,pay\nA,B,3.2.1980,1,low\n")

    incomplete = study.source.replace(b"complete = true\n", b"")

    def digest(old: bytes, new: bytes) -> str:
        assert old in incomplete
        return load_table(path, study_from_bytes(incomplete.replace(old, new), ""), "bob").content_digest

    own = load_table(path, study, "bob").content_digest
    assert digest(b'title = "', b'title = "Another ') == own
    others = [
        digest(b'date_order = "dmy"', b'date_order = "mdy"'),
        digest(b'hub = "alice"', b'hub = "bob"'),
        digest(b"[identity]", b"[identity]\ncap = 0.001"),
        digest(b"[identity]", b'[identity]\ndefault_dates = ["1901-01-01"]'),
    ]
    assert len({own, *others}) == 5


def test_the_separator_in_a_field_is_refused(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "alice.csv"
    path.write_text("first,last,year,month,day,sex,age\nAn\x1fna,B,1980,2,3,1,44\nA,B,1980,2,3,1,44\n")
    reading = read_table(path, study, "alice")
    assert [error.problem for error in reading.errors] == [
        "1 row has the control character U+001F in an id (first, last, year, month, day), first in row 2"
    ]
    assert (reading.rows_read, len(reading.respondents)) == (2, 1)


def test_a_long_field_is_cut(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "alice.csv"
    path.write_text(f"first,last,year,month,day,sex,age\n{'é' * 5000},B,1980,2,3,1,44\n")
    given, *_ = fields_of(study, "alice", path)
    assert given == ["é" * 1024]


def test_a_row_that_misses_a_value_stays_to_be_linked(study: Study, tmp_path: Path) -> None:
    """It is no respondent, and its identity and place are part of the table's version."""
    path, head = tmp_path / "alice.csv", "first,last,year,month,day,sex,age\n"
    rows = ["Anna,Cruz,1980,2,3,2,44\n", "Bo,Li,1970,1,1,,44\n"]
    other = [rows[0], rows[1].replace("Bo,", "Bob,")]
    moved = [rows[0].replace("3,2,", "3,,"), rows[1].replace("1,,", "1,2,")]
    digests = set()
    for written, kept in ((rows, [True, False]), (other, [True, False]), (moved, [False, True])):
        path.write_text(head + "".join(written) + "Cy,Wu,1971,1,1,2,30\n")
        table = load_table(path, study, "alice")
        assert (table.rows, table.rows_read, table.rows_dropped) == (2, 3, 1)
        assert table.respondents.mask().tolist() == [*kept, True]
        (ids,) = table.respondents.all_ids()
        assert [one.split("\x1f")[0] for one in ids.to_pylist()] == [one.split(",")[0] for one in [*written, "Cy,"]]
        digests.add(table.content_digest)
    assert len(digests) == 3
