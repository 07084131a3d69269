from itertools import pairwise
from pathlib import Path

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.papers.census import (
    CELLS,
    POPULATION,
    TABLES,
    complete,
    count_missing,
    known_tables,
    read_people,
    tabulate_people,
)
from veiltab.play.studies.adult_tables import truth

DATA = """39, State-gov, 7, Bachelors, 13, Never-married, Adm-clerical, Unmarried, White, Male, 1, 0, 40, Cuba, <=50K
50, Private, 83311, Masters, 13, Married-civ-spouse, Sales, Husband, White, Female, 0, 0, 50, United-States, >50K

28, ?, 338409, 9th, 13, Divorced, ?, Wife, Black, Female, 0, 0, 40, United-States, <=50K
"""
TEST = (
    "|1x3 Cross validator\n25, Private, 1, HS-grad, 7, Widowed, Sales, Own-child, Black, Male, 0, 0, 40, Peru, <=50K.\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "adult.data").write_text(DATA)
    (tmp_path / "adult.test").write_text(TEST)
    return tmp_path


def test_the_counts_are_those_of_the_demo() -> None:
    assert list(CELLS) == truth().tolist()
    assert sum(CELLS) == POPULATION == 45_222


def test_people_are_read_from_both_files(folder: Path) -> None:
    people = read_people(folder)
    assert [person["age"] for person in people] == ["39", "50", "28", "25"]
    assert len(complete(people)) == 3
    assert (count_missing(people, ("workclass",)), count_missing(people, ("education", "salary"))) == (1, 0)


def test_every_table_counts_everybody_and_splits_the_one_before(folder: Path) -> None:
    tables = tabulate_people(complete(read_people(folder)))
    assert tuple(tables) == TABLES
    for cells, counts in tables.items():
        assert (len(counts), sum(counts)) == (cells, 3)
    for coarse, fine in pairwise(TABLES):
        assert [a + b for a, b in zip(tables[fine][::2], tables[fine][1::2], strict=True)] == tables[coarse]
    # education, marital status, sex, salary: (some college, else, male, below), (post-graduate, married, female, above)
    assert [cell for cell, count in enumerate(tables[24]) if count] == [4, 12, 19]


def test_without_files_two_tables_are_known(folder: Path) -> None:
    known = known_tables(None)
    assert (list(known), known[24], sum(known[12])) == ([12, 24], list(CELLS), POPULATION)
    assert known_tables(folder)[24].count(1) == 3


def test_a_damaged_file_is_refused(folder: Path) -> None:
    (folder / "adult.test").write_text("1, 2, 3\n")
    with pytest.raises(InvalidInputError, match="3 values") as caught:
        read_people(folder)
    assert caught.value.where.endswith("adult.test")
