"""Ids that tables write otherwise: steps of numbers, shapes, and what a check says about them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.curator.made_rows import ids_in
from tests.curator.tables.test_forms import STUDY
from veiltab.common.command.cli import json_text
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.common.study.form_matching import after as after_steps
from veiltab.curator.check.id_forms import plain_forms
from veiltab.curator.check.inspection import Inspection, inspect_table
from veiltab.curator.table.ids import normalised_ids
from veiltab.curator.table.table_reading import load_table

IDS = 'id_columns = ["pid"]\n'


def study(alice: str = "", bob: str = "") -> Study:
    first, second, third = STUDY.decode().split(IDS)
    return study_from_bytes(f"{first}{IDS}{alice}\n{second}{IDS}{bob}\n{third}".encode(), "s.toml")


def normalised(steps: Sequence[str], *ids: str | None) -> list[str | None]:
    found: list[str | None] = normalised_ids([pa.array(ids, pa.string())], steps).values.to_pylist()
    return found


def test_integer_makes_one_id_of_all_writings_of_a_whole_number() -> None:
    writings = ("1234", "1234.0", " 1234", "0001234", "+1234", "1234.", "1234.000 ")
    assert set(normalised(("integer",), *writings)) == {"1234"}
    assert normalised(("integer",), "0", "000", "-0", "-5", "12345678901234567890.0") == [
        "0",
        "0",
        "0",
        "-5",
        "12345678901234567890",
    ]


@pytest.mark.parametrize("text", ["1234.5", "1e5", "12a", "1,234", "1 234", "--1", "0x10", ".0", "\u0663"])
def test_integer_takes_nothing_but_whole_numbers(text: str) -> None:
    ids = normalised_ids([pa.array([text, "7", ""])], ("strip", "integer"))
    assert ids.values.to_pylist() == [None, "7", None]
    assert (ids.broken.tolist(), ids.empty.tolist()) == ([True, False, False], [False, False, True])


def test_digits_and_zeros() -> None:
    assert normalised(("digits",), "AB-00 12", "x", "7", None) == ["0012", None, "7", None]
    assert normalised(("digits",), "12.0", "12.345.678", "12.", "E1-7") == [None, "12345678", "12", "17"]
    assert normalised(("zfill:4",), "7", "12345", "ab", "", "\u00e9") == ["0007", "12345", "00ab", None, "000\u00e9"]
    assert normalised(("zfill:4", "integer"), "007.0", "12345") == ["0007", "12345"]


@pytest.mark.parametrize(
    "text", ["12,0", "12.50", "1.25", " -12.5", ".5", "1,234.0", "1.234.567,5", "1 234,5", "1e3", "1.5E+06", "1,2e-3"]
)
def test_digits_take_no_number_with_decimals_or_an_exponent(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'pid,land,wage,kids\nAB-1,A,1,0\n"{text}",A,1,0\n')
    with pytest.raises(InvalidInputError, match=r"1 row has an id .pid. that is a number with decimals.*row 3") as it:
        load_table(path, study('normalise = ["digits"]'), "alice")
    assert '"integer" is for whole numbers' in it.value.remedy


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**18), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", " ", "\t"]))
def test_integer_agrees_with_python(number: int, zeros: int, decimals: int, blank: str) -> None:
    written = f"{blank}{'0' * zeros}{number}{'.' + '0' * decimals if decimals else ''}{blank}"
    assert normalised(("integer",), written) == [str(number)]


def test_rows_whose_id_is_no_whole_number_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pid,land,wage,kids\n1.0,A,1,0\n1234.5,A,1,0\nzebra,A,1,0\n")
    with pytest.raises(InvalidInputError, match=r"2 rows have an id .pid. that is not a whole.*rows 3, 4") as caught:
        load_table(path, study('normalise = ["integer"]'), "alice")
    assert "zebra" not in str(caught.value)
    assert "1234" not in str(caught.value)


def test_floating_point_ids_need_the_step_and_to_be_exact(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"land": ["A"] * 3, "wage": [1] * 3, "kids": [0] * 3}
    pq.write_table(pa.table({"pid": [3.0, 1234.0, 2.0**53 - 1], **columns}), path)
    with pytest.raises(InvalidInputError, match="'pid' has the type double") as caught:
        load_table(path, study(), "alice")
    assert '"integer"' in caught.value.remedy
    integer = study('normalise = ["strip", "casefold", "nfc", "integer"]')
    assert ids_in(load_table(path, integer, "alice").respondents) == ["3", "1234", "9007199254740991"]
    pq.write_table(pa.table({"pid": pa.array([3.0, 1.5, 2.0**24], pa.float32()), **columns}), path)
    with pytest.raises(InvalidInputError, match=r"2 rows have an id .* not a whole number.*first in rows 3, 4"):
        load_table(path, integer, "alice")
    pq.write_table(pa.table({"pid": [3.0, 1.5, 2.0**53], **columns}), path)
    with pytest.raises(InvalidInputError, match=r"2 rows have an id .* not a whole number.*first in rows 3, 4"):
        load_table(path, integer, "alice")


@pytest.mark.parametrize(
    ("normalise", "problem"),
    [
        ('["integer", "digits"]', "both digits and integer"),
        ('["zfill"]', "which names no length"),
        ('["zfill:0"]', "which names no length"),
        ('["zfill:65"]', "which names no length"),
        ('["zfill:3", "zfill:4"]', "names 'zfill' twice"),
        ('["whole"]', "normalise"),
    ],
)
def test_steps_that_contradict_one_another_are_refused(normalise: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        study(f"normalise = {normalise}")


@pytest.mark.parametrize(
    ("steps", "ids", "before", "after"),
    [
        (("integer",), ("1.0", "22.0"), "9+.0", "9+"),
        (("integer",), ("0012", "1234"), "0999", "9+"),
        (("integer",), ("12", "34"), "99", "99"),
        (("zfill:4",), ("1", "22"), "9+", "0999"),
        (("zfill:4",), ("11", "22"), "99", "0999"),
        (("zfill:2",), ("111", "222"), "999", "999"),
        (("digits",), ("a-11", "b-22"), "a-99", "99"),
        (("integer", "zfill:6"), ("1.0", "22.0"), "9+.0", "099999"),
    ],
)
def test_a_form_after_a_step_is_that_of_the_ids(
    steps: tuple[str, ...], ids: tuple[str, ...], before: str, after: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pid,land,wage,kids\n" + "".join(f"{one},A,1,0\n" for one in ids))
    quoted = ", ".join(f'"{step}"' for step in steps)
    report = inspect_table(path, study(f"normalise = [{quoted}]"), "alice")
    old, new = ((before, len(ids)),), ((after, len(ids)),)
    assert (plain_forms(report.forms["pid"]), plain_forms(report.normal_forms["pid"])) == (old, new)
    assert after_steps(old, steps) == new


def check(path: Path, ids: Sequence[object], alice: str = "", bob: str = "") -> Inspection:
    path.write_text("pid,land,wage,kids\n" + "".join(f"{one},A,1,0\n" for one in ids))
    return inspect_table(path, study(alice, bob), "alice")


def test_a_check_says_that_ids_cannot_match(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    theirs = 'forms = { pid = { "0999999" = 400 } }'
    (problem,) = check(path, [f"{one}.0" for one in range(1, 300)], bob=theirs).problems
    assert problem.startswith("ids cannot match: pid is written as 9+.0, by bob as 0999999. Compare the id columns")
    steps = 'normalise = ["integer"]'
    repaired = check(path, [f"{one}.0" for one in range(1, 300)], steps, f"{steps}\n{theirs}")
    assert repaired.ok
    assert "written as 9+.0, and as 9+ once normalised" in repaired.as_text()
    (problem,) = check(path, [f"{one:.6E}" for one in range(10**7, 10**7 + 90 * 99, 99)], bob=theirs).problems
    assert problem.startswith("90 ids (pid) are numbers with an exponent, such as 1.234567E+07, which have lost their")


def test_a_check_names_a_part_of_the_ids_that_is_written_otherwise(tmp_path: Path) -> None:
    ids = [*(f"{one:08}" for one in range(9_999_900, 10_000_100)), *range(5_000_000, 5_000_050), "T-12"]
    report = check(tmp_path / "t.csv", ids, bob='forms = { pid = { "09999999" = 200 } }')
    assert report.ok
    few, lost, strangers = report.notes[:3]
    assert few == "pid: few are written as a-99, such as 't-12', first in row 252"
    assert lost.startswith(
        "pid has numbers with leading zeros beside others that may have lost them: 200 as 09999999 ("
    )
    assert "50 as 9999999 ('5000000' in row 202)" in lost
    own = "pid is written as 200 as 09999999, 50 as 9999999, 1 as a-99"
    assert strangers == f"51 of 251 rows can be none of bob: {own}, by bob as 09999999"
    plain = json.loads(json_text(report.as_dict()))
    assert plain["forms"] == {
        "pid": [
            {"form": "09999999", "rows": 200, "example_row": 2},
            {"form": "9999999", "rows": 50, "example_row": 202},
            {"form": "a-99", "rows": 1, "example_row": 252},
        ]
    }
    assert "normal_forms" not in plain


@pytest.mark.parametrize(
    ("steps", "texts", "expected"),
    [
        (("first",), ("000123/24", "N-12-3", "x", "7"), ["000123", "12", None, "7"]),
        (("last", "integer"), ("000123/024", "N-12-3k", "x", "7"), ["24", "3", None, "7"]),
    ],
)
def test_one_group_is_kept(steps: Sequence[str], texts: Sequence[str], expected: Sequence[str | None]) -> None:
    assert normalised(steps, *texts) == expected
    assert normalised_ids([pa.array(["12.0", "1.5", "1e3"])], steps).broken.all()
    with pytest.raises(InvalidInputError, match="both first and last"):
        study('normalise = ["first", "last"]')


def test_the_rules_of_all_curators_stand_in_one_sentence() -> None:
    rules = [one.id_rule for one in study('normalise = []\nforms = { pid = { "9+" = 70, "text" = 3 } }').curators]
    assert rules == ["alice has pid by no step, written as 70 as 9+, 3 as text", "bob has pid by strip, casefold, nfc"]
