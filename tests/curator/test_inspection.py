import json
from pathlib import Path

import pytest

from tests.conftest import STUDY_HEAD
from tests.worlds.studies import attribute_text
from veiltab.common.command.cli import json_text
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.table.table_reading import load_table

STUDY = (
    STUDY_HEAD
    + attribute_text("colour", "alice", 'categories = ["red", "green"]')
    + attribute_text("size", "alice", 'categories = ["s", "l", "none"]', 'missing = "none"')
)


@pytest.fixture(scope="module")
def study() -> Study:
    return study_from_bytes(STUDY.encode(), "s.toml")


def write(folder: Path, *rows: str) -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join(["id,colour,size", *rows, ""]), "utf-8")
    return path


def hundred_rows(missing: int) -> list[str]:
    return [
        f"{row},{'?' if row < missing else 'red' if row % 2 else 'green'},{'s' if row % 2 else 'l'}"
        for row in range(100)
    ]


@pytest.mark.parametrize("missing", [1, 2])
def test_a_rule_that_drops_more_than_one_percent_is_noted(tmp_path: Path, study: Study, missing: int) -> None:
    report = inspect_table(write(tmp_path, *hundred_rows(missing)), study, "alice")
    assert report.dropped == missing
    assert ["2.0% of the rows miss it" in note for note in report.notes if "colour" in note] == [True] * (missing > 1)


def test_a_category_of_missing_values_keeps_their_rows(tmp_path: Path) -> None:
    rule = '["red", "green"]\nmissing = "category"'
    keeping = study_from_bytes(STUDY.replace('["red", "green"]', rule).encode(), "s.toml")
    report = inspect_table(write(tmp_path, *hundred_rows(2)), keeping, "alice")
    colour = report.attributes[0]
    assert (report.respondents, report.dropped, colour.missing, colour.missing_rule) == (100, 0, 2, "missing")
    assert colour.counts == {"red": 49, "green": 49, "missing": 2}
    assert not any("colour" in note for note in report.notes)


def test_a_good_table_is_counted(tmp_path: Path, study: Study) -> None:
    path = write(tmp_path, "a,red,s", "b, green,?", "c,red,none", "d,NA,l", "e,green,s")
    report = inspect_table(path, study, "alice")
    colour, size = report.attributes
    assert report.ok
    assert (report.rows, report.respondents, report.dropped) == (5, 4, 1)
    assert (colour.counts, colour.missing, colour.missing_rule) == ({"red": 2, "green": 2}, 1, "drop")
    assert (size.counts, size.missing, size.missing_rule) == ({"s": 2, "l": 1, "none": 2}, 1, "none")
    (note,) = report.notes
    assert note == (
        "attribute colour: 20.0% of the rows miss it and leave every release, also those without colour;"
        ' missing = "category" in the study keeps them'
    )
    assert load_table(path, study, "alice").rows == report.respondents


def test_everything_wrong_is_in_one_report(tmp_path: Path, study: Study) -> None:
    rows = ["a,red,s", "A ,pink,s", ",red,xl", "b,pink,xxl", "c,\x1b[2J,s", "d,NA,s", "e,red"]
    report = inspect_table(write(tmp_path, *rows), study, "alice")
    colour, size = report.attributes
    assert not report.ok
    assert [problem.split(": ", 1)[1].split(" ")[0] for problem in report.problems] == [
        "1",
        "1",
        "1",
        "column",
        "column",
    ]
    assert (report.rows, report.respondents, report.dropped, report.empty_ids, report.repeated_ids) == (6, 1, 1, 1, 1)
    assert [(u.value, u.rows, u.first_rows) for u in colour.unknown] == [("pink", 2, (3, 5)), ("\x1b[2J", 1, (6,))]
    assert [(u.value, u.rows, u.first_rows) for u in size.unknown] == [("xl", 1, (4,)), ("xxl", 1, (5,))]
    assert (colour.unknown_rows, size.unknown_rows) == (3, 2)
    for attribute in report.attributes:
        dropped = attribute.missing if attribute.missing_rule == "drop" else 0
        assert sum(attribute.counts.values()) + dropped + attribute.unknown_rows == report.rows
    assert any("minimum_population" in note for note in report.notes)
    assert any("no row is green" in note for note in report.notes)
    with pytest.raises(InvalidInputError) as caught:
        load_table(tmp_path / "t.csv", study, "alice")
    assert str(caught.value) == report.problems[0]


def test_text_shows_unknown_values_without_their_power_over_the_terminal(tmp_path: Path, study: Study) -> None:
    text = inspect_table(write(tmp_path, "a,\x1b[2J\u202e,s", "b,red,s"), study, "alice").as_text()
    assert r"'\x1b[2J\u202e', first in row 2" in text
    assert "not ready" in text
    assert "\x1b" not in text


def test_a_problem_quotes_the_values_that_the_study_does_not_know(tmp_path: Path, study: Study) -> None:
    report = inspect_table(write(tmp_path, "a,redd,s", "b,m\u00e4nnlich,s", "c,red,s"), study, "alice")
    (problem,) = report.problems
    assert (
        "2 rows, first in rows 2, 3. 'redd' in row 2, 'm\u00e4nnlich' in row 3. Did you mean 'red'? Correct" in problem
    )
    assert "missing_values" in problem
    assert "curator check" not in problem


def test_json_holds_the_whole_report(tmp_path: Path, study: Study) -> None:
    report = inspect_table(write(tmp_path, "a,pink,s", "b,red,?"), study, "alice")
    plain = json.loads(json_text(report.as_dict()))
    assert (plain["ok"], plain["rows"], plain["study_digest"]) == (False, 2, study.digest)
    assert plain["attributes"][0]["unknown"] == [{"value": "pink", "rows": 1, "first_rows": [2]}]
    assert plain["attributes"][1]["counts"] == {"s": 1, "l": 0, "none": 1}
    assert plain["problems"] == list(report.problems)


def test_a_wrong_column_does_not_flood_the_report(tmp_path: Path, study: Study) -> None:
    rows = [f"p{i},{'x' * 300}{i},s" for i in range(30)] + [f"q{i},v{i},s" for i in range(2000)]
    report = inspect_table(write(tmp_path, *rows), study, "alice")
    colour = report.attributes[0]
    assert (colour.unknown_rows, len(colour.unknown)) == (2030, 1000)
    assert max(len(unknown.value) for unknown in colour.unknown) == 200
    assert len(report.as_text().splitlines()) < 60
    assert "2,030  unknown in all" in report.as_text()


def test_a_file_that_cannot_be_read_is_a_report_and_an_unknown_curator_is_not(tmp_path: Path, study: Study) -> None:
    report = inspect_table(tmp_path / "none.csv", study, "alice")
    assert (report.ok, report.rows) == (False, 0)
    assert "cannot be read" in report.problems[0]
    with pytest.raises(InvalidInputError, match="no curator"):
        inspect_table(tmp_path / "none.csv", study, "zoe")


def test_a_complete_table_leaves_no_row_out(tmp_path: Path) -> None:
    hub = STUDY.replace('hub = "alice"', 'hub = "bob"').replace("complete = true\n", "")
    complete = study_from_bytes(
        hub.replace('name = "alice"\n', 'name = "alice"\ncomplete = true\n', 1).encode(), "s.toml"
    )
    path, said = (
        write(tmp_path, *hundred_rows(2)),
        "a complete table leaves no row out, and 2 rows have no value of colour",
    )
    with pytest.raises(InvalidInputError, match=said):
        load_table(path, complete, "alice")
    assert said in inspect_table(path, complete, "alice").problems[0]
    assert inspect_table(write(tmp_path, *hundred_rows(0)), complete, "alice").ok


def test_absent_is_no_category_of_a_table(tmp_path: Path) -> None:
    hub = STUDY.replace('hub = "alice"', 'hub = "bob"').replace("complete = true\n", "")
    report = inspect_table(write(tmp_path, "1,red,s", "2,absent,l"), study_from_bytes(hub.encode(), "s.toml"), "alice")
    assert report.attributes[0].counts == {"red": 1, "green": 0}
    assert report.attributes[0].unknown[0].value == "absent"
    assert "attribute colour: no row is green" in report.notes
