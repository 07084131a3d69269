from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.curator.made_rows import columns_in
from tests.curator.tables import written
from tests.curator.tables.test_forms import STUDY
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.numerals import Notation, Numerals
from veiltab.curator.table.table_reading import Reading, read_table


@pytest.fixture(scope="module")
def study() -> Study:
    text = STUDY.decode().replace("bins = [0, 3.5, 2000]", "bins = [0, 2, 1000, 10000]")
    return study_from_bytes(text.encode(), "s.toml")


def decided(*values: str, has_grouped_points: bool = False) -> Notation | None:
    numerals = Numerals("t.csv", "wage", "", has_grouped_points=has_grouped_points)
    numerals.decide({value: row for row, value in enumerate(values, 2)})
    return numerals.notation


@pytest.mark.parametrize(
    ("values", "notation"),
    [
        (["1", "NA", "", "1e5"], Notation.PLAIN),
        (["1234", "1 234", "1'234", "1\u00a0234 567"], Notation.PLAIN),
        (["1.234", "12.345"], Notation.PLAIN),
        (["1,234", "1,5"], Notation.COMMA),
        (["1.234.567"], Notation.COMMA),
        (["1.234,5"], Notation.COMMA),
        ([",5", "1,234"], Notation.COMMA),
        (["0,125"], Notation.COMMA),
        (["1,234", "1.5"], Notation.POINT),
        (["1,234.5"], Notation.POINT),
        (["1,234,567"], Notation.POINT),
        (["0.125", "1,234"], Notation.POINT),
        (["1.5", "1,5"], Notation.POINT),
        (["1,5", "3.5", "2,5"], Notation.COMMA),
        (["x,y", "1;2"], Notation.PLAIN),
    ],
)
def test_the_first_values_decide(values: list[str], notation: Notation) -> None:
    assert decided(*values) is notation
    assert decided(*reversed(values)) is notation


@pytest.mark.parametrize(
    ("values", "has_grouped_points", "problem"),
    [
        (["1,234"], False, "1,234 may be 1.234, with a decimal comma, or 1234, with a comma between thousands"),
        (["12", "999,999", "1.234"], False, "1,234 may be"),
        (["1.234"], True, "1.234 may be 1.234, with a decimal point, or 1234, with a point between thousands"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused_with_both(
    values: list[str],
    has_grouped_points: bool,  # noqa: FBT001 - a case
    problem: str,
) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        decided(*values, has_grouped_points=has_grouped_points)
    assert "--decimal comma" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("-1.234,5", None, "-1234.5"),
        ("1,234.5", "1234.5", None),
        ("1.234", "1.234", "1234"),
        ("12.34", "12.34", None),
        ("+1'234'567", "+1234567", "+1234567"),
        ("1.234'567", None, None),
        ("0.123", "0.123", None),
        ("1,23,456", None, None),
        ("1234,567", None, "1234.567"),
        ("1,5e-3", None, "1.5e-3"),
        ("\u0661,5", None, None),
        ("", None, None),
        (".", None, None),
    ],
)
def test_each_notation_reads_its_own_numbers(text: str, point: str | None, comma: str | None) -> None:
    assert (Notation.POINT.plain(text), Notation.COMMA.plain(text)) == (point, comma)


@settings(max_examples=50, deadline=None)
@given(st.decimals(-(10**9), 10**9, places=2), st.sampled_from(["", ".", " ", "'", "\u202f"]))
def test_a_number_is_read_as_it_was_written(number: object, between: str) -> None:
    text = f"{number:,}".replace(",", "g").replace(".", ",").replace("g", between)
    assert Notation.COMMA.plain(text) == str(number)


def read(path: Path, study: Study, decimal: str = "") -> Reading:
    return read_table(TableAddress(location=str(path), decimal=decimal), study, "alice")


def table(folder: Path, *wages: str, separator: str = ";") -> Path:
    path = folder / "t.csv"
    rows = "".join(f"{i};A;{wage};0\n" for i, wage in enumerate(wages))
    path.write_text(f"pid;land;wage;kids\n{rows}".replace(";", separator), "utf-8")
    return path


def wages(path: Path, study: Study, decimal: str = "") -> list[int]:
    reading = read(path, study, decimal)
    assert not reading.errors
    found: list[int] = columns_in(reading.respondents)["wage"].tolist()
    return found


def in_form(form: str, folder: Path, cells: Sequence[object]) -> Path:
    rows: written.Rows = [["pid", "land", "wage", "kids"], *([row, "A", cell, 0] for row, cell in enumerate(cells))]
    match form:
        case "sqlite":
            return written.write_sqlite(folder / "t.sqlite", rows)
        case "xlsx":
            return written.write_xlsx(folder / "t.xlsx", {"s": rows})
        case "parquet":
            return written.write_parquet(folder / "t.parquet", rows)
        case _:
            return written.write_text(folder / "t.csv", rows, separator=";")


FORMS = ("csv", "parquet", "sqlite", "xlsx")


@pytest.mark.parametrize("form", FORMS)
def test_texts_may_group_thousands_by_a_point_in_every_form(tmp_path: Path, study: Study, form: str) -> None:
    path = in_form(form, tmp_path, ["850", "1.234", "2.500"])
    assert "1.234 may be 1.234, with a decimal point, or 1234" in str(read(path, study).errors[0])
    assert wages(path, study, "comma") == [1, 2, 2]
    assert wages(path, study, "point") == [1, 0, 1]


def test_a_person_decides_what_may_be_read_in_two_ways(tmp_path: Path, study: Study) -> None:
    path = table(tmp_path, "1,234", "2,345")
    (error,) = read(path, study).errors[:1]
    assert "may be read in two ways" in str(error)
    assert columns_in(read(path, study, "comma").respondents)["wage"].tolist() == [0, 1]
    assert columns_in(read(path, study, "point").respondents)["wage"].tolist() == [2, 2]
    assert "is not known" in str(read(path, study, "semicolon").errors[0])


@pytest.mark.parametrize(
    ("first", "later", "notation"),
    [("1,5", "2.5", "a decimal comma"), ("12", '"1,5"', "no comma"), ("1.5", "2,5", "a decimal point")],
)
def test_a_later_row_that_contradicts_the_first_ones_is_named(
    tmp_path: Path, study: Study, first: str, later: str, notation: str
) -> None:
    path = table(tmp_path, *[first] * 120_000, later, separator="," if '"' in later else ";")
    (error,) = read(path, study).errors
    assert "no numbers, in 1 row, first in row 120002" in str(error)
    assert f"are read with {notation}, and some are not written so" in error.remedy
    assert ("--decimal comma" in error.remedy) == (notation != "a decimal comma")


def test_numbers_that_nobody_wrote_keep_their_point(tmp_path: Path, study: Study) -> None:
    pq.write_table(
        pa.table({"pid": [1, 2], "land": ["A", "B"], "wage": [1.234, 1234.5], "kids": [0, 1]}), tmp_path / "t.parquet"
    )
    assert columns_in(read(tmp_path / "t.parquet", study, "comma").respondents)["wage"].tolist() == [0, 2]


@pytest.mark.parametrize("form", ["csv", "sqlite"])
def test_a_point_after_rows_without_marks_is_refused_with_its_row(tmp_path: Path, study: Study, form: str) -> None:
    path = in_form(form, tmp_path, [*["850"] * 120_000, "1.000", "12.5"])
    (error,) = read(path, study).errors[:1]
    assert "may be read in two ways from row 120002 on: 1.234 may be 1.234" in error.problem
    assert wages(path, study, "point")[-2:] == [0, 1]


@pytest.mark.parametrize(("first", "bins"), [("12.5", [1, 0]), ("12,5", [1, 2])])
def test_a_later_number_that_is_one_thing_decides(tmp_path: Path, study: Study, first: str, bins: list[int]) -> None:
    assert wages(table(tmp_path, *["850"] * 120_000, first, "1.234"), study)[-2:] == bins
    contradicted = read(table(tmp_path, *["850"] * 120_000, first, first.translate(str.maketrans(",.", ".,"))), study)
    assert "no numbers, in 1 row, first in row 120003" in str(contradicted.errors[0])


@pytest.mark.parametrize("form", ["sqlite", "xlsx"])
def test_numbers_of_cells_are_exact_and_no_texts_stand_among_them(tmp_path: Path, study: Study, form: str) -> None:
    assert wages(in_form(form, tmp_path, [1.234, 1234.5, "7", 850]), study, "comma") == [0, 2, 1, 1]
    (tmp_path / "mixed").mkdir()
    error = read(in_form(form, tmp_path / "mixed", [1.5, "1.234"]), study).errors[0]
    assert "holds numbers with decimals, and texts that are numbers" in error.problem
    assert "seen in row 3" in error.problem
