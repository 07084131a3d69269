import csv
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import STUDY_HEAD
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import load_study, study_from_bytes
from veiltab.common.study.naming import attribute_name
from veiltab.curator.table.table_reading import load_table
from veiltab.play.demos.own_tables import own_tables, study_text
from veiltab.play.studies.registers import among_present

ENDPOINTS = {
    "cloud": "localhost:1",
    "rosa": "localhost:2",
    "rita": "localhost:3",
    "alice": "localhost:4",
    "bob": "localhost:5",
    "carol": "localhost:6",
}


def write(path: Path, *rows: tuple[str, ...]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def two(folder: Path) -> list[Path]:
    return [
        write(folder / "a.csv", ("id", "Smokes?"), ("1", "yes"), ("2", "no"), ("3", "yes"), ("9", "no")),
        write(folder / "b.csv", ("age", "id"), ("old", "3"), ("young", "1"), ("old", "2"), ("old", "8")),
    ]


def test_each_table_is_a_curator_s(tmp_path: Path) -> None:
    files = two(tmp_path)
    tables = own_tables(files)
    assert tables.id_column == "id"
    assert tables.categories == {"Smokes?": ("no", "yes"), "age": ("old", "young")}
    assert tables.owners == {"Smokes?": "alice", "age": "bob"}
    assert tables.paths == {"alice": files[0], "bob": files[1]}
    assert tables.lacking == {"bob"}  # of 9


def test_the_truth_is_that_of_the_people_of_the_first_table(tmp_path: Path) -> None:
    tables = own_tables(two(tmp_path))
    assert tables.truth().tolist() == [1, 0, 1, 1, 1, 0]
    domain = study_from_bytes(study_text(tables, ENDPOINTS, "1").encode(), "s").domain(["smokes", "age"])
    assert domain.shape == (2, 3)
    assert among_present(domain, tables.truth()).tolist() == [1, 0, 1, 1]
    whole = own_tables([write(tmp_path / "c.csv", ("id", "a"), ("1", "x"), ("8", "y")), two(tmp_path)[1]])
    assert (whole.lacking, whole.truth().tolist()) == (frozenset(), [0, 1, 1, 0])


def test_tables_may_be_of_any_form(tmp_path: Path) -> None:
    rows = two(tmp_path)
    pq.write_table(pa.table({"id": [1, 2, 3, 9], "Smokes?": ["yes", "no ", "yes", "no"]}), tmp_path / "a.parquet")
    (tmp_path / "b.tsv").write_text(rows[1].read_text().replace(",", "\t"))
    assert own_tables([tmp_path / "a.parquet", tmp_path / "b.tsv"]).truth().tolist() == [1, 0, 1, 1, 1, 0]


def test_three_tables(tmp_path: Path) -> None:
    third = write(tmp_path / "c.csv", ("sex", "id"), ("f", "1"), ("m", "2"), ("m", "3"), ("f", "7"))
    tables = own_tables([*two(tmp_path), third])
    assert list(tables.paths) == ["alice", "bob", "carol"]
    people = [("yes", "young", "f"), ("no", "old", "m"), ("yes", "old", "m"), ("no", None, None)]
    shape = [("no", "yes"), ("old", "young", None), ("f", "m", None)]
    cells = Counter((shape[0].index(a) * 3 + shape[1].index(b)) * 3 + shape[2].index(c) for a, b, c in people)
    assert tables.truth().tolist() == [cells[cell] for cell in range(18)]


def test_blanks_around_values_and_names_do_not_count(tmp_path: Path) -> None:
    spaced = write(tmp_path / "spaced.csv", (" id", "smokes "), ("1 ", " yes"), (" 2", "no"), ("3", "yes "))
    tables = own_tables([spaced, two(tmp_path)[1]])
    assert tables.categories["smokes"] == ("no", "yes")
    assert tables.truth().sum() == 3
    study = study_from_bytes(study_text(tables, ENDPOINTS, "1").encode(), "study.toml")
    assert load_table(spaced, study, "alice").rows == 3


NASTY = ["C:\\users\\new", "a\\u0041", 'say "x"', "back\\", "é 😀", "'''", "#", "NA", "[a]"]


def test_the_study_made_of_them_loads_and_so_do_the_tables(tmp_path: Path) -> None:
    """Values that mean something to TOML come through as they are."""
    a = write(tmp_path / "a.csv", ("id", 'Na"me\\u'), *((str(number), value) for number, value in enumerate(NASTY)))
    b = write(tmp_path / "b.csv", ("id", "even"), *((str(number), "ny"[number % 2]) for number in range(len(NASTY))))
    tables = own_tables([a, b])
    path = tmp_path / "study.toml"
    path.write_text(study_text(tables, ENDPOINTS, "2.5"), "utf-8")
    study = load_study(path)
    assert set(study.attributes[0].attribute.categories) == {value.strip() for value in NASTY}
    assert [rule.owner for rule in study.attributes] == ["alice", "bob"]
    assert str(study.budget_epsilon) == "2.5"
    for name, file in tables.paths.items():
        assert load_table(file, study, name).rows == len(NASTY)
    assert tables.truth().sum() == len(NASTY)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_column_has_a_name_that_a_study_takes(column: str) -> None:
    name = attribute_name(column)
    text = study_text_with(name)
    assert study_from_bytes(text.encode(), "study.toml").attributes[0].name == name


def study_text_with(name: str) -> str:
    return f"""{STUDY_HEAD}[[attribute]]
name = "{name}"
owner = "alice"
categories = ["a", "b"]
"""


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("Age", "age"),
        ("Smokes?", "smokes"),
        ("a b_c", "a-b-c"),
        ("?", "attribute"),
        ("x" * 39 + " y", "x" * 39),
        ("é", "e"),
        ("Körperlich eingeschränkt", "korperlich-eingeschrankt"),
        ("Ko\u0308rper", "korper"),
        ("STRAẞE Nº", "strasse-no"),
        ("Ærø Łódź", "aero-lodz"),
        ("年 (kg)", "kg"),
    ],
)
def test_names_stay_readable(column: str, name: str) -> None:
    assert attribute_name(column) == name


ROWS = (("1", "yes"), ("2", "no"))


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ([("id", "a"), *ROWS], [("key", "b"), *ROWS], r"exactly one column.*They share: \[\]"),
        ([("id", "a"), *ROWS], [("id", "a"), *ROWS], r"They share: \['a', 'id'\]"),
        ([("id", "a"), ("1", "yes")], [("id", "b"), *ROWS], "column 'a' has 1 different values"),
        ([("id", "a"), ("1", "yes"), ("2", "")], [("id", "b"), *ROWS], "or empty ones"),
        ([("id", "a"), *ROWS], [("id",), ("1",)], ""),
        ([("id",), ("1",)], [("id",), ("1",)], "no column but the id"),
        (
            [("id", "a"), *((str(number), str(number)) for number in range(65))],
            [("id", "b"), *ROWS],
            "column 'a' has 65 different values",
        ),
    ],
)
def test_tables_that_make_no_study_are_refused(
    tmp_path: Path, first: list[tuple[str, ...]], second: list[tuple[str, ...]], problem: str
) -> None:
    files = [write(tmp_path / "a.csv", *first), write(tmp_path / "b.csv", *second)]
    if not problem:
        assert list(own_tables(files).categories) == ["a"]
        return
    with pytest.raises(InvalidInputError, match=problem):
        own_tables(files)


def test_two_to_eight_files_that_can_be_read(tmp_path: Path) -> None:
    files = two(tmp_path)
    for count in (0, 1, 9):
        with pytest.raises(InvalidInputError, match=f"{count} tables were given, not 2 to 8"):
            own_tables([files[0]] * count)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "wide.csv").write_bytes("id,a\n1,é\n".encode("utf-16-le"))
    (tmp_path / "ragged.csv").write_text("id,a\n1\n1,2,3\n")
    problems = {
        "none.csv": "the file cannot be read",
        "empty.csv": "the file is empty",
        "wide.csv": "not a text in UTF-8",
        "ragged.csv": "2 rows have more or fewer values",
    }
    for name, problem in problems.items():
        with pytest.raises(InvalidInputError, match=problem):
            own_tables([files[0], tmp_path / name])
