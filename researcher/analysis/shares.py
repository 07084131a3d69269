"""Conditional shares of a table, P(part | whole), and the score bounds of each.

A share theta = T(part)/T(whole) makes the contrast c = 1(part) - theta 1(whole) vanish: T c = 0. The estimate T_hat c
is linear in the table, so it has mean 0 and, with k cells in the part and K in the whole, exactly the variance

    V(theta) = C [(1-theta)^2 k + theta^2 (K-k)] + L T(whole) theta (1-theta) - B (k - theta K)^2

where C, L, B are the constant, linear and background terms of Cov(T_hat). The bounds at level z are the two theta at
which (T_hat c)^2 = z^2 V(theta): Fieller's argument with the variance of each candidate, a quadratic in theta.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import CovarianceTerms

Floats = NDArray[np.float64]

_BLOCK = 64
"""Pairs of contrasts whose covariances are computed together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contrasts:
    """The parts and wholes of shares of a table whose covariance has no five terms: V(theta) takes it as a whole.

    Args:
        table: knows the covariance of its contrasts.
        part: the cells of each part, shape (s, K).
        whole: of each whole, shape (s, K).
    """

    table: TableEstimate
    part: Floats
    whole: Floats

    def take(self, rows: NDArray[np.intp]) -> "Contrasts":
        """Return those of some of the shares."""
        return Contrasts(table=self.table, part=self.part[rows], whole=self.whole[rows])

    def vanishing(self, shares: Floats) -> Floats:
        """Return the contrasts of which the table makes 0 at some shares, shape (s, K)."""
        contrasts: Floats = self.part - np.nan_to_num(shares)[:, None] * self.whole
        return contrasts


def paired_errors(table: TableEstimate, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Var a, Cov(a, b) and Var b of pairs of contrasts, shape (s,) each.

    Args:
        table: knows the covariance of its contrasts.
        first: a, shape (s, K).
        second: b, likewise.
    """
    errors = np.empty((3, len(first)))
    for start in range(0, len(first), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(first)))
        size = rows.stop - start
        both = table.contrast_covariance(np.concatenate([first[rows], second[rows]]))
        errors[:, rows] = np.diagonal(both)[:size], np.diagonal(both, size), np.diagonal(both)[size:]
    return errors[0], errors[1], errors[2]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Some conditional shares, and what their errors depend on.

    Args:
        part: estimated fraction of the part, shape (s,).
        whole: estimated fraction of the whole that contains it, shape (s,).
        part_cells: cells of each part, shape (s,).
        whole_cells: cells of each whole, shape (s,).
        terms: of the estimate's covariance, or how it is known; None if it is not, as for a table from a model.
    """

    part: Floats
    whole: Floats
    part_cells: Floats
    whole_cells: Floats
    terms: CovarianceTerms | Contrasts | None

    @cached_property
    def estimate(self) -> Floats:
        """Return part/whole, shape (s,); NaN where the whole is estimated as 0."""
        return _ratio(self.part, self.whole)

    def is_said(self, z: float) -> NDArray[np.bool_]:
        """Return where the whole can be told from 0 at level z, shape (s,): elsewhere every share is possible.

        The whole is compared with its errors as they are if nobody is in it: (T_hat 1)^2 > z^2 Var(T_hat 1 | T 1 = 0).
        """
        if self.terms is None:
            return self.whole > 0
        if isinstance(self.terms, Contrasts):
            return (self.whole > 0) & (self.whole**2 > z**2 * self._variance[2])
        noise = float(self.terms.constant) * self.whole_cells - float(self.terms.background) * self.whole_cells**2
        is_sayable: NDArray[np.bool_] = (self.whole > 0) & (self.whole**2 > z**2 * np.maximum(noise, 0.0))
        return is_sayable

    def bounds(self, z: Floats) -> Floats:
        """Return the score bounds at signed levels: upper ones at z > 0, lower ones at z < 0, the estimate at 0.

        Args:
            z: shape (s, g), float64, standard deviations.

        Returns:
            Shape (s, g), float64; not cut to 0 and 1, and NaN where no share is rejected at that level.
        """
        constant, slope, curvature = self._variance
        at, whole = self.estimate[:, None], self.whole[:, None]
        here = np.maximum(constant + self.estimate * (slope + self.estimate * curvature), 0.0)[:, None]
        steep = (slope + 2.0 * self.estimate * curvature)[:, None]
        # (whole d)^2 = z^2 (here + steep d + curvature d^2) for the distance d from the estimate.
        lead = whole**2 - z**2 * curvature[:, None]
        centre = z**2 * steep
        half = np.abs(z) * np.sqrt(np.maximum(centre * steep + 4.0 * lead * here, 0.0))
        return at + _ratio(centre + np.sign(z) * half, 2.0 * np.where(lead > 0, lead, 0.0))

    def interval(self, z: float) -> tuple[Floats, Floats]:
        """Return the lower and upper score bounds at level z > 0, within 0 and 1, of shape (s,) each."""
        low, high = (np.clip(self.bounds(np.full((self.part.size, 1), level))[:, 0], 0.0, 1.0) for level in (-z, z))
        return low, high

    @property
    def spread(self) -> Floats:
        """Standard deviation of T_hat c at the estimate, shape (s,)."""
        constant, slope, curvature = self._variance
        return np.sqrt(np.maximum(constant + self.estimate * (slope + self.estimate * curvature), 0.0))

    def correlation(self, other: "Shares") -> Floats:
        """Return the correlation of T_hat c with that of shares of the same estimate in other wholes, shape (s,).

        Both contrasts vanish and no cell is in both, so of the covariance -B (sum c)(sum c') remains.
        """
        if self.terms is None:
            return np.zeros(self.part.shape)
        if isinstance(self.terms, Contrasts):
            return self._general_correlation(self.terms, other)
        crossed = -float(self.terms.background) * self.coefficient_sum * other.coefficient_sum
        return np.clip(np.nan_to_num(_ratio(crossed, self.spread * other.spread)), -0.999, 0.999)

    def take(self, rows: NDArray[np.intp]) -> "Shares":
        """Return some of the shares, each as often as it is named."""
        return Shares(
            part=self.part[rows],
            whole=self.whole[rows],
            part_cells=self.part_cells[rows],
            whole_cells=self.whole_cells[rows],
            terms=self.terms.take(rows) if isinstance(self.terms, Contrasts) else self.terms,
        )

    def _general_correlation(self, own: Contrasts, other: "Shares") -> Floats:
        if not isinstance(other.terms, Contrasts):
            return np.zeros(self.part.shape)  # of another release
        first, second = own.vanishing(self.estimate), other.terms.vanishing(other.estimate)
        one, both, two = paired_errors(own.table, first, second)
        return np.clip(np.nan_to_num(_ratio(both, np.sqrt(np.maximum(one * two, 0.0)))), -0.999, 0.999)

    @property
    def coefficient_sum(self) -> Floats:
        """Sum of the coefficients of c at the estimate, shape (s,)."""
        return self.part_cells - self.estimate * self.whole_cells

    @cached_property
    def _variance(self) -> tuple[Floats, Floats, Floats]:
        """Coefficients of V(theta) = v0 + v1 theta + v2 theta^2, each of shape (s,)."""
        if self.terms is None:
            unknown = np.full(self.part.shape, np.nan)
            return unknown, unknown, unknown
        if isinstance(self.terms, Contrasts):
            one, both, two = paired_errors(self.terms.table, self.terms.part, self.terms.whole)
            return one, -2.0 * both, two
        constant, linear, background = (
            float(term) for term in (self.terms.constant, self.terms.linear, self.terms.background)
        )
        part, whole, present = self.part_cells, self.whole_cells, linear * np.clip(self.whole, 0.0, 1.0)
        return (
            constant * part - background * part**2,
            -2.0 * constant * part + present + 2.0 * background * part * whole,
            constant * whole - present - background * whole**2,
        )


def _ratio(over: Floats, under: Floats) -> Floats:
    """Return over/under; NaN where the denominator is 0."""
    quotient: Floats = np.divide(over, under, out=np.full(over.shape, np.nan), where=under != 0)
    return quotient
