"""Numbers drawn back within the steps of their grid, for rows whose symbols are its points.

A number was rounded at random to one of its two neighbouring points, to point k with probability hat_k(X), which falls
from 1 at the point to 0 at its neighbours. So the shares p of the points say E hat_k(X) = p_k of the law f of the
numbers. Of the laws that are even within each sixteenth of a step, f is the one to which expectation maximisation leads
from half the share of each point on each of its sides,

    f_j <- f_j sum_k hat_k(x_j) p_k / m_k        m_k = sum_j hat_k(x_j) f_j

and a row with point k gets a number of the law f_j hat_k(x_j) / m_k. The numbers have the mean of the points wherever
m = p, and less variance: what rounding had added is gone.

One law of all rows would draw the means of groups together. So each sixteenth of the rows has a law of its own, in the
order of what least squares expect of a row's number by its other columns: within it, groups differ little.

Source: Richardson, Bayesian-based iterative method of image restoration (1972); Lucy (1974).
"""

from math import floor, log10

import numpy as np

from veiltab.common.core.domain import Domain
from veiltab.researcher.model.measurement import Floats
from veiltab.researcher.model.row_drawing import Rows, Symbols
from veiltab.researcher.numbers.points import numbers_of

GROUPS = 16
"""Of rows, each with a law of its own."""

PARTS = 16
"""Parts of a step, within which the law of numbers is even."""

ROUNDS = 300
"""Of expectation maximisation."""

SWEEPS = 20
"""Over the other columns, of least squares."""

_UP = (np.arange(PARTS) + 0.5) / PARTS
"""Probability of being rounded up, in the middle of each part."""

_LEAST = 1e-9


class DrawnNumbers:
    """Draws the numbers of one column.

    Args:
        domain: of the rows.
        axis: of the column, an attribute of kind number.
        rows: symbols that the laws are taken from, shape (rows, attributes).
    """

    def __init__(self, domain: Domain, axis: int, rows: Rows) -> None:
        numbers = numbers_of(domain.attributes[axis])
        self._axis, self._points = axis, numbers[~np.isnan(numbers)]
        size = len(self._points)
        present = rows[rows[:, axis] < size]
        self._effects = _effects(self._points[present[:, axis]], present, domain.shape, axis)
        expected = np.sort(self._expected(present))
        self._bounds = expected[np.arange(1, GROUPS) * len(expected) // GROUPS] if len(expected) else np.zeros(0)
        counts = np.bincount(self._kinds(present), minlength=GROUPS * size).reshape(GROUPS, size)
        laws = np.stack([part_law(group / max(group.sum(), 1)) for group in counts])
        beside = np.zeros((GROUPS, size, 2, PARTS))
        beside[:, 1:, 0], beside[:, :-1, 1] = laws * _UP, laws * (1 - _UP)
        chances = np.cumsum(beside.reshape(GROUPS * size, -1), axis=1)
        chances = np.pad(chances / chances[:, -1:], [(0, 0), (1, 0)])
        self._chances = (np.arange(GROUPS * size)[:, None] + chances).ravel()
        self._places = np.tile(_places(self._points).ravel(), GROUPS)
        self._digits = 2 - floor(log10(np.diff(self._points).min()))

    def draw(self, rows: Rows, uniforms: Floats) -> Floats:
        """Return a number for each row, shape (rows,), to a hundredth of the shortest step or finer.

        Args:
            rows: symbols, shape (rows, attributes).
            uniforms: a uniform number for each row, shape (rows,), in [0, 1].

        Returns:
            float64; NaN where the row says that it is missing.
        """
        values = np.interp(self._kinds(rows) + np.minimum(uniforms, 1 - _LEAST), self._chances, self._places)
        values = values.round(self._digits).clip(self._points[0], self._points[-1])
        numbers: Floats = np.where(rows[:, self._axis] < len(self._points), values, np.nan)
        return numbers

    def points_of(self, rows: Rows) -> Floats:
        """Return the point of each row, shape (rows,), NaN where it says that the number is missing."""
        return np.append(self._points, np.nan)[np.minimum(rows[:, self._axis], len(self._points))]

    def rounding(self, numbers: Floats) -> float:
        """Return the most that rounding may have added to the variance of some numbers: mean step^2 / 4."""
        present = numbers[~np.isnan(numbers)]
        places = np.searchsorted(self._points, present, side="right").clip(1, len(self._points) - 1) - 1
        return float(np.mean(np.diff(self._points)[places] ** 2)) / 4 if len(present) else 0.0

    def _kinds(self, rows: Rows) -> Symbols:
        """Return the group and the point of each row as one number, group by group."""
        size = len(self._points)
        groups = np.searchsorted(self._bounds, self._expected(rows), side="right")
        kinds: Symbols = groups * size + np.minimum(rows[:, self._axis], size - 1)
        return kinds

    def _expected(self, rows: Rows) -> Floats:
        """Return what least squares expect of each row, but for a constant."""
        expected = np.zeros(len(rows))
        for axis, effects in self._effects.items():
            expected += effects[rows[:, axis]]
        return expected


def _effects(numbers: Floats, rows: Rows, shape: tuple[int, ...], own: int) -> dict[int, Floats]:
    """Return what each category of each other column adds to a number, by least squares, column after column."""
    effects = {axis: np.zeros(size) for axis, size in enumerate(shape) if axis != own}
    rest = numbers - numbers.mean() if len(numbers) else numbers
    for _ in range(SWEEPS):
        for axis, old in effects.items():
            column = rows[:, axis]
            counts = np.bincount(column, minlength=len(old))
            change = np.bincount(column, rest, len(old)) / np.maximum(counts, 1)
            effects[axis] = old + change
            rest = rest - change[column]
    return effects


def _places(points: Floats) -> Floats:
    """Return the ends of the parts below and above each point, shape (points, 2 PARTS + 1)."""
    steps, ends = np.diff(points), np.arange(PARTS + 1) / PARTS
    below = points[:, None] - np.append(0.0, steps)[:, None] * (1 - ends[:-1])
    return np.hstack([below, points[:, None] + np.append(steps, 0.0)[:, None] * ends])


def part_law(shares: Floats) -> Floats:
    """Return f, shape (points - 1, PARTS), summing to 1.

    Args:
        shares: p of each point, shape (points,), at least two.
    """
    target = np.maximum(shares, _LEAST)
    target /= target.sum()
    halves = target / 2
    halves[[0, -1]] *= 2
    law: Floats = np.repeat((halves[:-1] + halves[1:])[:, None] / PARTS, PARTS, axis=1)
    for _ in range(ROUNDS):
        ratios = target / (np.append(law @ (1 - _UP), 0.0) + np.append(0.0, law @ _UP))
        law = law * (ratios[:-1, None] * (1 - _UP) + ratios[1:, None] * _UP)
    return law
