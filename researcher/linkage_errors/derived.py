"""A table that is a smooth function of a measured one: it has that table's errors, by the derivative.

With P = f(O) and J = dP/dO a contrast L of P has, to first order, the error of the contrast L J of O. An interval of a
cell takes the variance at each candidate, as for other tables.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import CovarianceTerms
from veiltab.researcher.linkage_errors.inversion import Floats

_BLOCK = 64
"""Cells whose errors are computed together."""


def cells_of(domain: Domain, names: Sequence[str]) -> NDArray[np.intp]:
    """Return the cell, in the domain of some attributes, that each cell of a domain belongs to."""
    part = domain.subset(names)
    codes = dict(zip(domain.names, np.unravel_index(np.arange(domain.cells), domain.shape), strict=True))
    return np.ravel_multi_index([codes[name] for name in part.names], part.shape)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DerivedEstimate(TableEstimate):
    """A smooth function of a measured table.

    Args:
        domain: the attributes; cells in C order.
        design: of the observed table, over the cells of `domain`.
        confidence: probability that one cell's interval holds its true fraction.
        study_digest: SHA-256 of the study file, as of every TableEstimate.
        observed: the table that it is a function of; perhaps derived itself.
    """

    observed: TableEstimate

    @abstractmethod
    def transported(self, contrasts: Floats) -> Floats:
        """Return the contrasts of the observed table that have the errors of contrasts of this one: L J."""

    def expanded(self, contrasts: Floats) -> Floats:
        """Return contrasts over the cells of the observed table that say of each cell here the same."""
        return contrasts[:, cells_of(self.observed.domain, self.domain.names)]

    @property
    def ends(self) -> "Sequence[DerivedEstimate]":
        """The tables at both ends of what is known as a range: one or two."""
        return (self,)

    @property
    def terms(self) -> CovarianceTerms | None:
        """None: the covariance has another form."""
        return None

    def as_measured(self, contrasts: Floats) -> tuple[Floats, TableEstimate]:
        """Return contrasts of the measured table that have the errors of contrasts of this one, and that table."""
        return self.observed.as_measured(self.transported(contrasts))

    @cached_property
    def se(self) -> Floats:
        """Standard error of `raw`, shape (K,), at the projected tables (probabilities)."""
        return np.sqrt(self._by_cell[0])

    @cached_property
    def root_mse(self) -> float:
        """Root of the expected squared error summed over all cells, at the projected tables (probability)."""
        return sqrt(float(self._by_cell[0].sum()))

    @property
    def contradiction(self) -> float:
        """As of the observed table."""
        return self.observed.contradiction

    @property
    def has_few_rows(self) -> bool:
        """As of the observed table."""
        return self.observed.has_few_rows

    @property
    def released_counts(self) -> NDArray[np.int64] | None:
        """Noisy rows in each cell as they were released."""
        return self.observed.released_counts

    def covariance(self) -> Floats:
        """Return the (K, K) covariance of `raw`."""
        return self.contrast_covariance(np.eye(self.domain.cells))

    @cached_property
    def _by_cell(self) -> tuple[Floats, Floats]:
        """Variance of each cell, and its slope in the cell's true fraction, at the projected tables, shape (K,)."""
        if len(self.ends) > 1:
            return self.ends[0]._by_cell  # noqa: SLF001 - of the same class
        cells = self.domain.cells
        variance, slope = np.empty(cells), np.empty(cells)
        for start in range(0, cells, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, cells))
            one_each = np.eye(len(rows), cells, start)
            moved, measured = self.as_measured(one_each)
            terms, projected = measured.design.terms, measured.projected
            linear, cross, sampling = (float(one) for one in (terms.linear, terms.cross, terms.sampling))
            variance[rows] = np.maximum(np.diagonal(self.contrast_covariance(one_each)), 0.0)
            # One cell grows and all shrink in proportion, so that the sum stays 1.
            within = self.expanded(one_each)
            within = within * (projected + 1e-300)
            within /= within.sum(axis=1, keepdims=True)
            mean, grows = moved @ projected, (moved * within).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                steep = ((moved**2 * within).sum(axis=1) - moved**2 @ projected) / (grows - mean)
            slope[rows] = linear * np.nan_to_num(steep) - 2.0 * (cross * moved.sum(axis=1) + sampling * mean)
        return variance, slope

    @cached_property
    def _interval(self) -> tuple[Floats, Floats]:
        if len(self.ends) > 1:
            lows, highs = zip(*((end.low, end.high) for end in self.ends), strict=True)
            return np.minimum(*lows), np.maximum(*highs)
        # (raw - t)^2 = z^2 (variance + slope (t - projected)), a quadratic in t around raw.
        z2 = NormalDist().inv_cdf((1.0 + self.confidence) / 2.0) ** 2
        variance, slope = self._by_cell
        centre = z2 * slope / 2.0
        spread = z2 * (variance + slope * (self.raw - self.projected))
        half = np.sqrt(centre**2 + np.maximum(spread, 0.0))
        return np.clip(self.raw + (centre - half), 0.0, 1.0), np.clip(self.raw + (centre + half), 0.0, 1.0)
