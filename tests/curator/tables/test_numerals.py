from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.curator.made_rows import columns_in
from tests.curator.tables.test_forms import STUDY
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.table import Reading, read_table
from veiltab.curator.tables.address import TableAddress
from veiltab.curator.tables.numerals import Notation, Numerals


@pytest.fixture(scope="module")
def study() -> Study:
    text = STUDY.decode().replace("bins = [0, 3.5, 2000]", "bins = [0, 2, 1000, 10000]")
    return study_from_bytes(text.encode(), "s.toml")


def decided(*values: str, has_grouped_points: bool = False) -> Notation | None:
    numerals = Numerals("t.csv", "wage", "", has_grouped_points=has_grouped_points)
    numerals.decide(values)
    return numerals.notation


@pytest.mark.parametrize(
    ("values", "notation"),
    [
        (["1", "NA", "", "1e5"], Notation.PLAIN),
        (["1234", "1 234", "1'234", "1\u00a0234 567"], Notation.PLAIN),
        (["1.234", "12.345"], Notation.PLAIN),
        (["1,5"], Notation.COMMA),
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
        ("1234,5", None, "1234.5"),
        ("-1.234,5", None, "-1234.5"),
        ("1,234.5", "1234.5", None),
        ("1.234", "1.234", "1234"),
        ("12.34", "12.34", None),
        ("1 234,5", None, "1234.5"),
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
    written = f"{number:,}".replace(",", "g").replace(".", ",").replace("g", between)
    assert Notation.COMMA.plain(written) == str(number)


def read(path: Path, study: Study, decimal: str = "") -> Reading:
    return read_table(TableAddress(location=str(path), decimal=decimal), study, "alice")


def table(folder: Path, *wages: str) -> Path:
    path = folder / "t.csv"
    path.write_text("pid;land;wage;kids\n" + "".join(f"{i};A;{wage};0\n" for i, wage in enumerate(wages)), "utf-8")
    return path


def test_a_decimal_comma_is_read_and_said(tmp_path: Path, study: Study) -> None:
    reading = read(table(tmp_path, "1,5", "1.500,25", "NA", "7"), study)
    assert columns_in(reading.respondents)["wage"].tolist() == [0, 2, 1]
    assert reading.description == "looks semicolon-separated, UTF-8, decimal comma in wage"


def test_a_person_decides_what_may_be_read_in_two_ways(tmp_path: Path, study: Study) -> None:
    path = table(tmp_path, "1,234", "2,345")
    (error,) = read(path, study).errors[:1]
    assert "may be read in two ways" in str(error)
    assert columns_in(read(path, study, "comma").respondents)["wage"].tolist() == [0, 1]
    assert columns_in(read(path, study, "point").respondents)["wage"].tolist() == [2, 2]
    assert "is not known" in str(read(path, study, "semicolon").errors[0])


@pytest.mark.parametrize(
    ("first", "later", "written"),
    [("1,5", "2.5", "a decimal comma"), ("12", "1,5", "numbers without a comma"), ("1.5", "2,5", "a decimal point")],
)
def test_a_later_row_that_contradicts_the_first_ones_is_named(
    tmp_path: Path, study: Study, first: str, later: str, written: str
) -> None:
    path = table(tmp_path, *[first] * 120_000, later)
    (error,) = read(path, study).errors
    assert "no numbers, in 1 rows, first in rows 120002" in str(error)
    assert f"The first rows write {written}, and some others do not" in error.remedy
    assert "--decimal comma" in error.remedy


def test_numbers_that_nobody_wrote_keep_their_point(tmp_path: Path, study: Study) -> None:
    pq.write_table(
        pa.table({"pid": [1, 2], "land": ["A", "B"], "wage": [1.234, 1234.5], "kids": [0, 1]}), tmp_path / "t.parquet"
    )
    assert columns_in(read(tmp_path / "t.parquet", study, "comma").respondents)["wage"].tolist() == [0, 2]
