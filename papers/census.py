"""The census of Lin, Wang, Rane: counts of its 24 cells, and of finer tables if the files are given.

The paper says which four attributes make 24 cells. It also speaks of 12 to 768 cells and does not say which: here each
table doubles the one before by an attribute of two categories.
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from veiltab.common.errors import InvalidInputError

Person = Mapping[str, str]

POPULATION = 45_222
"""People without a missing value in any column of the files."""

CELLS = (
    6222,
    2233,
    802,
    245,
    5448,
    185,
    5218,
    91,
    3897,
    4626,
    600,
    615,
    4598,
    510,
    5770,
    319,
    438,
    1715,
    48,
    198,
    385,
    270,
    588,
    201,
)
"""People by education (3), marital status (2), sex (2) and salary (2), in C order."""

COLUMNS = (
    "age",
    "workclass",
    "weight",
    "education",
    "education-years",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "salary",
)

_COLLEGE = {"Some-college": 1, "Assoc-voc": 1, "Assoc-acdm": 1, "Bachelors": 1}
_POSTGRADUATE = {"Masters": 2, "Prof-school": 2, "Doctorate": 2}

_ATTRIBUTES: tuple[tuple[int, Callable[[Person], int]], ...] = (
    (3, lambda person: (_COLLEGE | _POSTGRADUATE).get(person["education"], 0)),
    (2, lambda person: int(not person["marital"].startswith("Married"))),
    (2, lambda person: int(person["sex"] != "Male")),
    (2, lambda person: int(person["salary"].startswith(">"))),
    (2, lambda person: int(int(person["age"]) >= 40)),
    (2, lambda person: int(person["race"] != "White")),
    (2, lambda person: int(int(person["hours"]) > 40)),
    (2, lambda person: int(person["workclass"] != "Private")),
    (2, lambda person: int(person["country"] != "United-States")),
)
"""(categories, function from a person to one of them) of every attribute, in the order in which tables use them."""

TABLES = (12, 24, 48, 96, 192, 384, 768)
"""Cells of the tables that can be counted: of the first 3, 4, ... attributes."""


def read_people(folder: Path) -> list[Person]:
    """Return everybody in adult.data and adult.test, column -> value without spaces around it.

    Raises:
        InvalidInputError: a line has another number of values.
    """
    return [person for name in ("adult.data", "adult.test") for person in read_file(folder / name)]


def read_file(path: Path) -> list[Person]:
    """Return the people of one of the files, column -> value without spaces around it; raises as `read_people`."""
    people: list[Person] = []
    with path.open(encoding="utf-8", newline="") as file:
        for values in csv.reader(file, skipinitialspace=True):
            # adult.test begins with a remark, and both end with an empty line.
            if not values or values[0].startswith("|"):
                continue
            if len(values) != len(COLUMNS):
                raise InvalidInputError(f"a line has {len(values)} values instead of 15", where=str(path))
            people.append(dict(zip(COLUMNS, (value.strip() for value in values), strict=True)))
    return people


def complete(people: list[Person]) -> list[Person]:
    """Return the people without a missing value in any column."""
    return [person for person in people if "?" not in person.values()]


def count_missing(people: list[Person], columns: tuple[str, ...]) -> int:
    """Return how many people have a missing value in one of these columns."""
    return sum(any(person[column] == "?" for column in columns) for person in people)


def tabulate_people(people: list[Person]) -> dict[int, list[int]]:
    """Return cells of a table -> its counts in C order, for each of TABLES."""
    tables = {cells: [0] * cells for cells in TABLES}
    for person in people:
        cell, cells = 0, 1
        for size, category in _ATTRIBUTES:
            cell, cells = cell * size + category(person), cells * size
            if cells in tables:
                tables[cells][cell] += 1
    return tables


def known_tables(folder: Path | None) -> dict[int, list[int]]:
    """Return the tables that can be counted: all from the files, two from the published counts."""
    if folder is not None:
        return tabulate_people(complete(read_people(folder)))
    return {12: [a + b for a, b in zip(CELLS[::2], CELLS[1::2], strict=True)], 24: list(CELLS)}
