"""The Adult rows of experiment 3, from UCI's two files: 41,292 people from the United States, nothing missing.

The rows of adult.test come first and those of adult.data after them, as in the table that the authors prepared; the
first three quarters are for training. Every column is divided by its maximum over all rows, as in the paper: those
maxima are taken from the data, which no calibration accounts for.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.papers.census import Person, complete, read_file
from veiltab.papers.must.designs import CLASSIFICATION

Floats = NDArray[np.float64]

FILES = ("adult.test", "adult.data")
"""In the order of the authors' table."""

_OFFICE = {"Adm-clerical", "Armed-Forces", "Protective-serv", "Sales", "Tech-support"}
_PROFESSIONAL = {"Exec-managerial", "Prof-specialty"}
_WORKER = {"Craft-repair", "Farming-fishing", "Machine-op-inspct", "Transport-moving"}

_FEATURES: Mapping[str, Callable[[Person], float]] = {
    "age": lambda row: float(row["age"]),
    "private": lambda row: float(row["workclass"] == "Private"),
    "fnlwgt": lambda row: float(row["weight"]),
    "education-num": lambda row: float(row["education-years"]),
    "married": lambda row: float(row["marital"].startswith("Married")),
    "white": lambda row: float(row["race"] == "White"),
    "male": lambda row: float(row["sex"] == "Male"),
    "capital-gain": lambda row: float(row["gain"]),
    "capital-loss": lambda row: float(row["loss"]),
    "hours-per-week": lambda row: float(row["hours"]),
    "office": lambda row: float(row["occupation"] in _OFFICE),
    "professional": lambda row: float(row["occupation"] in _PROFESSIONAL),
    "worker": lambda row: float(row["occupation"] in _WORKER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Training and testing rows.

    Args:
        train: float64, shape (30969, 14): ones for the intercept, then the features, each at most 1.
        train_income: float64, shape (30969,): 1 where the income is above 50,000 dollars.
        test: the same for the other 10,323 rows.
    """

    train: Floats
    train_income: Floats
    test: Floats
    test_income: Floats

    def with_label(self) -> "Split":
        """Return the same rows with the income among the features: the leak of the authors' program."""
        return Split(
            train=np.column_stack([self.train, self.train_income]),
            train_income=self.train_income,
            test=np.column_stack([self.test, self.test_income]),
            test_income=self.test_income,
        )


def has_adult(folder: Path | None) -> bool:
    """Return whether a folder holds both files."""
    return folder is not None and all((folder / name).is_file() for name in FILES)


@lru_cache(maxsize=1)
def read_split(folder: Path) -> Split:
    """Return the rows of experiment 3.

    Args:
        folder: with adult.data and adult.test as UCI has them.

    Raises:
        InvalidInputError: the files cannot be read, or have other rows than the published ones.
    """
    try:
        rows = [row for name in FILES for row in complete(read_file(folder / name)) if _kept(row)]
        table = np.array([[1.0, *(feature(row) for feature in _FEATURES.values())] for row in rows])
    except (OSError, UnicodeDecodeError, ValueError, KeyError, InvalidInputError) as error:
        raise InvalidInputError("these are not the Adult files", where=str(folder)) from error
    train = CLASSIFICATION.population
    if len(rows) * 3 // 4 != train:
        raise InvalidInputError(f"there must be 41292 complete rows, not {len(rows)}", where=str(folder))
    income = np.array([float(row["salary"].startswith(">50K")) for row in rows])
    largest = table.max(axis=0)
    table /= np.where(largest > 0, largest, 1.0)
    return Split(train=table[:train], train_income=income[:train], test=table[train:], test_income=income[train:])


def _kept(row: Person) -> bool:
    return row["country"] == "United-States"
