"""Numbers of several columns, drawn within their steps together, so that they have the covariances of their points.

Columns are rounded independently, and rounding leaves means alone, so the covariance of the points of two columns is
that of their numbers. Drawn each for itself, numbers of rows with the same two points know nothing of each other, and
their covariance is too near zero, the more so the longer the steps are. So row i draws them at the uniform numbers

    u_ij = Phi(z_ij),    z_i normal with variances 1 and the correlations R

which leaves the law of each column as it is. R_jk is where the covariance of two columns, a rising function of it, is
that of their points, or else -1 or 1; R is then made a correlation matrix.

The variance of a column is that of its points less what rounding added, which points do not tell: between nothing, and
a quarter of the squared steps. Where that is much, the file's standard deviation is a guess, unless a second attribute
of the column tells the variance: rounded apart, the two have it as their covariance.

Source: Nelsen, An introduction to copulas (2006), section 2.3.
"""

from collections.abc import Mapping
from itertools import combinations
from math import sqrt
from statistics import NormalDist

import numpy as np

from veiltab.common.core.domain import Domain
from veiltab.researcher.drawing.drawable import NOT_COVERED
from veiltab.researcher.microdata.drawn_numbers import DrawnNumbers
from veiltab.researcher.model.measurement import Floats
from veiltab.researcher.model.row_drawing import Rows, Uniforms

ROWS = 2**15
"""From which correlations and what is lost are found."""

MOST_UNKNOWN = 0.3
"""Share of a column's variance in the file by which the true one may be another, unless it is named."""

MOST_LOST = 0.1
"""Share of a covariance that the file may lack, unless the pair is named."""

_LEVELS = np.linspace(-1, 1, 5)
_NORMAL = np.linspace(-6, 6, 2401)
_UNIFORM = np.array([NormalDist().cdf(z) for z in _NORMAL.tolist()])


class DrawnTogether:
    """Draws the numbers of all columns of kind number.

    Args:
        rows: symbols that the laws are taken from, shape (rows, attributes).
    """

    def __init__(self, domain: Domain, rows: Rows) -> None:
        axes = [axis for axis, attribute in enumerate(domain.attributes) if attribute.number]
        self._columns = {axis: DrawnNumbers(domain, axis, rows) for axis in axes}
        self._root = np.eye(len(axes))
        self.losses: tuple[str, ...] = ()
        """What the file does not keep of its numbers, a sentence for each column or pair that lost much."""
        if len(rows):
            some, uniforms = rows[:ROWS], Uniforms(b"correlations within steps")
            normals = uniforms.normals(2 * len(some)).reshape(2, -1)
            correlations = np.eye(len(axes))
            for one, other in combinations(range(len(axes)), 2):
                correlation = self._correlation(some, axes[one], axes[other], normals)
                correlations[one, other] = correlations[other, one] = correlation
            values, vectors = np.linalg.eigh(correlations)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            self._root = root / np.linalg.norm(root, axis=1, keepdims=True)
            self.losses = self._lost(domain, some, self.draw(some, uniforms))

    def draw(self, rows: Rows, uniforms: Uniforms) -> Mapping[int, Floats]:
        """Return axis -> a number for each row, shape (rows,), NaN where one is missing."""
        normals = uniforms.normals(len(rows) * len(self._columns)).reshape(len(rows), -1) @ self._root.T
        return {axis: self._at(axis, rows, z) for (axis, z) in zip(self._columns, normals.T, strict=True)}

    def _at(self, axis: int, rows: Rows, normals: Floats) -> Floats:
        return self._columns[axis].draw(rows, np.interp(normals, _NORMAL, _UNIFORM))

    def _correlation(self, rows: Rows, one: int, other: int, normals: Floats) -> float:
        """Return with which correlation two columns get the covariance of their points."""
        first, second = normals
        numbers = self._at(one, rows, first)
        mixed = (self._at(other, rows, r * first + sqrt(1 - r**2) * second) for r in _LEVELS.tolist())
        covariances = np.maximum.accumulate([_covariance(numbers, many) for many in mixed])
        target = _covariance(*(self._columns[axis].points_of(rows) for axis in (one, other)))
        return float(np.interp(target, covariances, _LEVELS))

    def _lost(self, domain: Domain, rows: Rows, draws: Mapping[int, Floats]) -> tuple[str, ...]:
        sentences, points = [], {axis: column.points_of(rows) for axis, column in self._columns.items()}
        spread = {axis: float(np.nan_to_num(np.nanstd(numbers))) for axis, numbers in draws.items()}
        for axis, numbers in draws.items():
            most = _covariance(points[axis], points[axis])
            unknown = self._columns[axis].rounding(numbers)
            number = domain.attributes[axis].number
            # Of roundings of the same numbers, the covariance is the variance of these.
            twin = next((one for one in draws if one != axis and domain.attributes[one].number == number), None)
            if twin is not None:
                shared = _covariance(points[axis], points[twin])
                if abs(shared - spread[axis] ** 2) > MOST_LOST * abs(shared):
                    sentences.append(
                        f"The standard deviation of {domain.names[axis]} is {spread[axis]:.3g} in the file, and"
                        f" {sqrt(max(shared, 0.0)):.3g} in the tables, so its variance, correlations with it and slopes"
                        f" on it are {NOT_COVERED}. Estimate them from the tables."
                    )
            elif unknown > MOST_UNKNOWN * spread[axis] ** 2:
                sentences.append(
                    f"The standard deviation of {domain.names[axis]} is {spread[axis]:.3g} in the file, but may be"
                    f" {sqrt(max(most - unknown, 0.0)):.3g} to {sqrt(most):.3g}, noise apart: its steps are too long to"
                    f" tell, so its variance, correlations with it and slopes on it are {NOT_COVERED}. Shorter steps,"
                    " or a second attribute of its column, tell them."
                )
        for one, other in combinations(draws, 2):
            target, present = (_covariance(columns[one], columns[other]) for columns in (points, draws))
            if abs(target - present) > MOST_LOST * (abs(target) + spread[one] * spread[other] / 2):
                sentences.append(
                    f"The covariance of {domain.names[one]} and {domain.names[other]} is {present:.3g} in the file, and"
                    f" {target:.3g} in the tables: their slopes and correlation are off. Estimate them from the tables."
                )
        return tuple(sentences)


def _covariance(one: Floats, other: Floats) -> float:
    """Return the covariance of two columns over the rows that have both; 0 without any."""
    both = ~(np.isnan(one) | np.isnan(other))
    if not both.any():
        return 0.0
    return float(np.mean((one[both] - one[both].mean()) * (other[both] - other[both].mean())))
