"""What a curator learns of its own identity fields before a linkage."""

import csv
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.studies import attribute_text, linked_text
from veiltab.common.linkage.dominance import crowded, dominating, dominating_dates
from veiltab.common.study.coding.dates import today
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.check.identity_check import IdentityInspection
from veiltab.curator.check.inspection import Inspection, inspect_table
from veiltab.play.registers.people import Row, made_registers

HEADER = ("given", "family", "birth", "sex", "postcode", "k")


def study(identity: str = "") -> Study:
    own = 'column = "k"', 'categories = ["p", "q"]'
    attributes = [attribute_text(f"{name}-k", name, *own) for name in ("hub", "spoke")]
    return study_from_bytes(linked_text(*attributes, identity=identity).encode(), "")


PEOPLE = made_registers(1500, "report").hub


def checked(
    folder: Path, rows: Sequence[Row], more: str = "", name: str = "spoke"
) -> tuple[Inspection, IdentityInspection]:
    path = folder / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([HEADER, *((*row, "pq"[place % 2]) for place, row in enumerate(rows))])
    report = inspect_table(path, study(more), name)
    assert report.identity is not None
    return report, report.identity


def test_rows_without_a_name_cannot_be_linked_and_are_counted(tmp_path: Path) -> None:
    words = ["UNKNOWN", "n/a", "Null", "Baby", "XX", "-"]
    nobody = [(words[n % 6], words[n // 6 % 6], f"19{n % 60 + 40}-02-03", "f", "9999") for n in range(120)]
    report, identity = checked(tmp_path, [*PEOPLE, *nobody])
    present = {one.name: one.present for one in identity.fields}
    assert present["given"] <= len(PEOPLE) < present["birth"]
    assert identity.unlinkable >= len(nobody)
    assert f"{identity.unlinkable:,} of {len(PEOPLE) + 120:,} rows" in report.as_text()
    assert identity.as_dict()["unlinkable"] == identity.unlinkable


def test_a_value_that_too_many_rows_share_is_named(tmp_path: Path) -> None:
    odd = [("Testperson", *PEOPLE[n][1:2], f"19{n % 60 + 40}-01-01", "m", "9999") for n in range(90)]
    for name in ("hub", "spoke"):
        report, identity = checked(tmp_path, [*PEOPLE, *odd], name=name)
        assert {one.name: [value for value, _ in one.dominating] for one in identity.fields} == {
            "given": ["testperson"],
            "family": [],
            "birth": ["01-01"],
            "sex": [],
            "postcode": ["9999"],
        }
        said = report.as_text()
        assert "identity field given: 90 rows (" in said
        assert "share 'testperson', far more than share others: if it stands for a missing value" in said
        assert "write it into default_dates of [identity]; else strangers agree on it" in said
    fixed = 'default_dates = ["01-01"]\nmissing_values = ["Testperson", "9999"]\n'
    assert not any(one.dominating for one in checked(tmp_path, [*PEOPLE, *odd], fixed)[1].fields)


def test_registers_of_usual_people_have_no_such_value(tmp_path: Path) -> None:
    report, identity = checked(tmp_path, PEOPLE)
    assert report.ok
    assert not any(one.dominating for one in identity.fields)
    assert identity.unlinkable < len(PEOPLE) // 20
    assert all(one.distinct > 1 for one in identity.fields)
    whole = [row for row in PEOPLE if all(row)][:60]
    for place, unlinkable in ((4, 0), (1, 0), (2, 60)):  # each key takes something of the date of birth
        rows: list[Any] = [(*row[:place], "", *row[place + 1 :]) for row in whole]
        assert checked(tmp_path, rows)[1].unlinkable == unlinkable


def test_births_after_today_are_refused_with_their_rows(tmp_path: Path) -> None:
    late = (today() + timedelta(days=400)).isoformat()
    rows = [*PEOPLE[:40], ("anna", "lee", late, "f", "1234"), *PEOPLE[40:]]
    report, _ = checked(tmp_path, rows)
    assert not report.ok
    assert "identity field birth: 1 dates are after today, first in row 42" in report.as_text()
    assert checked(tmp_path, rows, f'default_dates = ["{late}"]\n')[0].ok


@pytest.mark.parametrize("hidden", [40, 400])
def test_rows_that_agree_on_the_first_key_are_counted(tmp_path: Path, hidden: int) -> None:
    whole = [row for row in PEOPLE if all(row)][:500]
    _, before = checked(tmp_path, whole)
    _, after = checked(tmp_path, [*whole, *whole[:hidden]])
    assert after.ambiguous >= before.ambiguous + 2 * hidden - 2 * before.ambiguous


@given(st.dictionaries(st.text(max_size=4), st.integers(1, 60)))
def test_a_value_dominates_by_five_times_the_tenth(counts: dict[str, int]) -> None:
    ranked = sorted(counts.values(), reverse=True)
    usual = ranked[9] if len(ranked) > 9 else max(ranked, default=0)
    assert sorted(rows for _, rows in dominating(counts)) == sorted(n for n in ranked if n >= max(10, 5 * usual))


def test_days_that_one_date_explains_are_not_named_twice() -> None:
    days = {f"19{n % 60 + 40}{n % 12 + 1:02}{n % 28 + 1:02}": 1 for n in range(300)}
    assert dominating_dates(days | {"19700630": 80}) == (("1970-06-30", 80),)
    assert dominating_dates(days | {f"{1900 + n}0101": 1 for n in range(80)})[0][0] == "01-01"
    guessed = {f"{1900 + n}0101": 1 for n in range(90)}
    assert crowded(days | guessed | {"19700630": 80}, are_dates=True) == {*guessed, "19700630"}
    assert crowded(days | {"baby": 80}, are_dates=False) == {"baby"}
