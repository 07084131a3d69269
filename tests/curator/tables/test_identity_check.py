"""`veiltab curator check` of a table whose rows have identity fields."""

import csv
import json
from pathlib import Path

import pytest

from tests.worlds.studies import attribute_text, linked_text
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.play.registers.people import FIELDS, Row, made_registers

STUDY = linked_text(
    attribute_text(
        "gender",
        "residents",
        'column = "sex"',
        'categories = ["f", "m", "unknown"]',
        'missing_values = [""]',
        'missing = "unknown"',
    ),
    attribute_text("age", "residents", "integers = [0, 9]"),
    attribute_text("region", "residents", 'categories = ["0", "1", "2"]'),
    attribute_text("vote", "residents", 'categories = ["0", "1"]'),
    attribute_text("drug", "clinic", 'categories = ["0", "1"]'),
    hub="residents",
    spoke="clinic",
)


@pytest.fixture
def study() -> Study:
    return study_from_bytes(STUDY.encode(), "")


def attributes(number: int, row: Row) -> dict[str, str]:
    """Age from the date, region from the postcode; vote and drug from nothing."""
    age = (2020 - int(row[2][:4] or 1990)) // 10
    chance = number * 7919 % 1009
    return {
        "age": str(age),
        "region": str(int(row[4] or 0) // 1000 % 3),
        "vote": str(chance % 2),
        "drug": str(chance % 2),
    }


def written(path: Path, rows: list[Row]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*FIELDS, "age", "region", "vote", "drug"])
        writer.writerows([*row, *attributes(number, row).values()] for number, row in enumerate(rows))
    return path


def test_the_hub_sees_which_passes_run_and_what_depends_on_identity(study: Study, tmp_path: Path) -> None:
    path = written(tmp_path / "residents.csv", list(made_registers(6000, "check").hub))
    report = inspect_table(path, study, "residents")
    assert report.ok
    assert report.identity is not None
    assert report.respondents == report.rows == 6000
    assert set(report.identity.derived) == {"gender", "age", "region"}
    assert report.identity.derived["gender"] == "is made of the column of the identity field sex"
    assert report.identity.derived["age"] == "is as good as known from birth"
    assert len(report.identity.passes) == 12
    text = report.as_text()
    assert "residents is the hub: nobody's presence in its table is protected" in text
    assert "given family birth sex: runs" in text
    assert "attribute region is as good as known from postcode" in text
    plain = report.as_dict()["identity"]
    assert json.loads(json.dumps(plain))["fields"][0]["columns"] == ["given"]


def test_in_a_small_table_the_year_shows_what_is_an_age(study: Study, tmp_path: Path) -> None:
    report = inspect_table(
        written(tmp_path / "residents.csv", list(made_registers(900, "few").hub)), study, "residents"
    )
    assert report.identity is not None
    assert report.identity.derived["age"] == "is as good as known from the year of birth"
    assert "vote" not in report.identity.derived


def test_rows_that_stand_twice_are_noted_at_a_spoke(study: Study, tmp_path: Path) -> None:
    rows = list(made_registers(300, "twice").spoke)
    whole = [row for row in rows if all(row)]
    for more, said in (([], 0), (whole[:7], 14)):
        report = inspect_table(written(tmp_path / "clinic.csv", [*dict.fromkeys(whole), *more]), study, "clinic")
        notes = [note for note in report.notes if "with another row of this table" in note]
        assert [note.split(" rows", maxsplit=1)[0] for note in notes] == ([str(said)] if said else [])
        assert not said or "agree on the key 'given family birth sex'" in notes[0]


def test_rows_that_leave_after_the_linkage_are_counted_and_take_part(study: Study, tmp_path: Path) -> None:
    """A twin without a vote makes keys as ambiguous as one with it, and hides from no count of fields."""
    rows = list(made_registers(2000, "leave").hub)
    rows += rows[:3]
    path = written(tmp_path / "residents.csv", rows)
    before = inspect_table(path, study, "residents")
    lines = path.read_text("utf-8").splitlines()
    lines[-3:] = [f"{line.rsplit(',', 2)[0]},,0" for line in lines[-3:]]
    path.write_text("\n".join(lines), "utf-8")
    report = inspect_table(path, study, "residents")
    assert report.identity is not None
    assert before.identity is not None
    assert (report.dropped, report.respondents) == (3, len(rows) - 3)
    assert (report.identity.rows, report.identity.leaving, before.identity.leaving) == (len(rows), 3, 0)
    assert (report.identity.passes, report.identity.fields) == (before.identity.passes, before.identity.fields)
    assert report.identity.derived == before.identity.derived
    assert f"3 of {len(rows):,} rows leave after the linkage, in which they take part" in report.as_text()
    assert report.as_dict()["identity"]["leaving"] == 3  # type: ignore[index]


@pytest.mark.parametrize(("written_so", "ok"), [(0.4, True), (0.6, False)])
def test_dates_that_cannot_be_read_are_a_problem(study: Study, tmp_path: Path, written_so: float, *, ok: bool) -> None:
    """Dates such as 1980-25-01, year, day and month; rows without a date do not count."""
    rows: list[Row] = [(f"a{'b' * (n % 7)}", "lee", "1980-01-25", "f", str(n)) for n in range(100)]
    made = [(*row[:2], "1980-25-01" if n < 100 * written_so else row[2], *row[3:]) for n, row in enumerate(rows)]
    made += [(*row[:2], "", *row[3:]) for row in rows]
    report = inspect_table(written(tmp_path / "clinic.csv", made), study, "clinic")
    assert report.ok is ok
    assert ok or "40.0% of the dates can be read with date_order = 'ymd'" in report.problems[0]


def test_a_field_that_cannot_be_read_is_a_problem_and_an_empty_one_is_not(study: Study, tmp_path: Path) -> None:
    for sex, said in (("kobieta", "identity field sex: no value can be read"), ("", "")):
        rows: list[Row] = [(f"a{'b' * (n % 7)}", "lee", "1980-01-25", sex, str(n)) for n in range(100)]
        report = inspect_table(written(tmp_path / "clinic.csv", rows), study, "clinic")
        assert report.ok is not bool(said)
        assert [one.partition(";")[0] for one in report.problems] == [said] * bool(said)


def test_a_hub_whose_rows_look_alike_has_no_pass(study: Study, tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "lee", f"1980-01-{day // 2 + 1:02}", "f", "1") for day in range(20)]
    report = inspect_table(written(tmp_path / "residents.csv", rows), study, "residents")
    assert report.identity is not None
    assert not any(step.does_run for step in report.identity.passes[:4])
    assert any("the pass 'given family birth sex' does not run: 100.000%" in note for note in report.notes)
