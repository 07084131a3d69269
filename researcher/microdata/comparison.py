"""How far rows are from other rows: the mean total variation distance over all tables of so many attributes."""

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from veiltab.researcher.model.raking import cells_of
from veiltab.researcher.model.row_drawing import Rows


def fractions_of(rows: Rows, shape: Sequence[int], axes: Sequence[int]) -> NDArray[np.float64]:
    """Return the fractions of rows in each cell of the table of some attributes, in C order."""
    sizes = [shape[axis] for axis in axes]
    return np.bincount(cells_of(rows, shape, axes), minlength=prod(sizes)) / len(rows)


def mean_distance(one: Rows, other: Rows, shape: Sequence[int], attributes: int) -> float:
    """Return the mean total variation distance over all tables of so many attributes.

    Args:
        one: symbols, shape (rows, attributes).
        other: likewise, of the same attributes; another number of rows.
    """
    tables = list(combinations(range(len(shape)), attributes))
    one, other = np.asfortranarray(one), np.asfortranarray(other)
    return float(np.mean([distance(fractions_of(one, shape, t), fractions_of(other, shape, t)) for t in tables]))


def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the total variation distance of two tables of fractions: half the sum of the differences."""
    return float(np.abs(one - other).sum()) / 2
