"""The table of the people whom every curator of a released table has: "absent" is conditioned on, like any category.

With P the table of all n rows of the hub, W its share without an absent attribute and Q = P/W on the cells of these,
dQ(x) = (dP(x) - Q(x) dW)/W to first order. With the five terms of Cov(P_hat), of cells that are sums of `each` cells,

    constant' = c/W^2    linear' = L/W    cross' = (c - b k)/W^2    background' = b/W^2
    sampling' = (L W - c k + b k^2)/W^2        c = each C,  b = each^2 B,  k cells

are those of Cov(Q_hat): the variance at each candidate share is exactly that of its contrast, as for conditional shares
(analysis/shares.py). So whatever takes a measured table takes this one.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import sqrt
from statistics import NormalDist
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.common.study.missing import joined
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import CovarianceTerms, Design, score_interval, variances

Floats = NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentDesign:
    """The design of a table of some cells of a measured one.

    Args:
        observed: of the measured table.
        cells: of this one, k.
        each: how many cells of the measured table one of this sums.
        present: W, the share of the n rows that is in them; None if the table is of shares of n.
    """

    observed: Design
    cells: int
    each: int
    present: float | None

    @property
    def population(self) -> int:
        """Rows n of the hub."""
        return self.observed.population

    @property
    def people(self) -> float:
        """How many people the shares are of, an estimate."""
        return self.population * (1.0 if self.present is None else self.present)

    @property
    def sample(self) -> int:
        """Rows that were counted, m."""
        return self.observed.sample

    @property
    def terms(self) -> CovarianceTerms:
        """Coefficients of the covariance."""
        terms, k = self.observed.terms, self.cells
        constant, background = self.each * terms.constant, self.each**2 * terms.background
        if self.present is None:
            return replace(terms, constant=constant, cross=self.each * terms.cross, background=background)
        share = Fraction(self.present)
        return CovarianceTerms(
            constant=constant / share**2,
            linear=terms.linear / share,
            cross=(constant - background * k) / share**2,
            background=background / share**2,
            sampling=(terms.linear * share - constant * k + background * k**2) / share**2,
        )

    def expected_rows(self, fractions: Floats) -> Floats:
        """Return how many noisy rows each cell of a table with these fractions expects, shape (K,)."""
        share = 1.0 if self.present is None else self.present
        return self.each * self.observed.expected_rows(fractions * share / self.each)

    def marginal(self, cells: int) -> "PresentDesign":
        """Return the design of the same rows seen through a subset of the attributes, of `cells` cells."""
        return replace(self, cells=cells, each=self.each * self.cells // cells)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PresentEstimate(TableEstimate):
    """A table of the people who are present; `among_present` makes it.

    Args:
        domain: attributes of the observed table without "absent".
        observed: the table of all n rows, with everybody who is absent.
        hub: the curator whose rows they are.
        spokes: the curators who have these people.
    """

    design: PresentDesign
    observed: TableEstimate
    hub: str
    spokes: tuple[str, ...]

    @cached_property
    def raw(self) -> Floats:
        """Q_hat, shape (K,): unbiased to first order, sums to 1, possibly negative (probabilities)."""
        return self._sums(self.observed.raw) / self.present

    @cached_property
    def present(self) -> float:
        """W_hat, the share of the n rows that are of people who are present."""
        return float(self._sums(self.observed.raw).sum())

    @cached_property
    def rows(self) -> tuple[Floats, ...]:
        """Estimate, standard error and both ends of the interval of each cell in rows, shape (K,) each."""
        counted, shares = replace(self.design, present=None), self.present * self.raw
        spread = np.sqrt(variances(self.present * self.projected, counted))
        ends = score_interval(shares, counted, self.confidence)
        return tuple(self.population * one for one in (shares, spread, *ends))

    @property
    def contradiction(self) -> float:
        """As of the observed table."""
        return self.observed.contradiction

    @property
    def released_counts(self) -> NDArray[np.int64] | None:
        """Noisy rows in each cell as they were released."""
        counts = self.observed.released_counts
        return None if counts is None else self._sums(counts.astype(np.float64)).astype(np.int64)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Whom the shares are of, and how many people that is about."""
        everybody = np.ones((1, self.domain.cells))
        spread = sqrt(max(float(self.observed.contrast_covariance(self.expanded(everybody))[0, 0]), 0.0))
        half = NormalDist().inv_cdf((1.0 + self.confidence) / 2.0) * spread
        ends = (min(max(self.present + way * half, 0.0), 1.0) * self.population for way in (-1, 1))
        return (
            *self.observed.remarks,
            present_sentence(self.hub, self.spokes, self.population, self.design.people)
            + " Their number lies between {:,.0f} and {:,.0f} at {:g}%.".format(*ends, 100 * self.confidence),
        )

    def marginal(self, names: Sequence[str]) -> Self:
        """Return the estimate of a subset of the attributes, of the same people."""
        domain = self.domain.subset(names)
        return replace(self, domain=domain, design=self.design.marginal(domain.cells))

    def expanded(self, contrasts: NDArray[Number]) -> NDArray[Number]:
        """Return contrasts over the cells of the observed table that are 0 where somebody is absent."""
        return np.pad(contrasts, ((0, 0), (0, 1)))[:, self._cells]

    def transported(self, contrasts: Floats) -> Floats:
        """Return the contrasts of the observed table that have the errors of contrasts of this one."""
        return self.expanded(contrasts - (contrasts @ self.raw)[:, None]) / self.present

    @cached_property
    def _cells(self) -> NDArray[np.intp]:
        """The cell of each cell of the observed table; K where somebody is absent."""
        return cells_among_present(self.observed.domain, self.domain.names)

    def _sums(self, values: Floats) -> Floats:
        """Return the sums of values of the observed cells in each cell."""
        sums: Floats = np.bincount(self._cells, values, self.domain.cells + 1)[:-1].astype(np.float64)
        return sums


def cells_among_present(domain: Domain, names: Sequence[str]) -> NDArray[np.intp]:
    """Return of each cell of a domain the cell of some attributes without "absent"; their number if any is absent."""
    part = domain.subset(names).without_absent
    codes = dict(zip(domain.names, np.unravel_index(np.arange(domain.cells), domain.shape), strict=True))
    absent = np.zeros(domain.cells, np.bool_)
    for attribute in domain.attributes:
        if attribute.has_absent:
            absent |= codes[attribute.name] == attribute.size - 1
    cells = np.ravel_multi_index([codes[name] for name in part.names], part.shape, mode="clip")
    return np.where(absent, part.cells, cells)


def among_present(observed: TableEstimate, study: Study) -> TableEstimate:
    """Return the table of the people whom every curator of a measured table has; itself if nobody may be absent.

    Raises:
        InvalidInputError: the table does not tell whether there are any.
    """
    domain = observed.domain.without_absent
    if domain == observed.domain:
        return observed
    spokes, hub = spokes_of(observed.domain, study), study.hub
    design = PresentDesign(observed=observed.design, cells=domain.cells, each=1, present=None)
    estimate = PresentEstimate(
        domain=domain,
        design=design,
        confidence=observed.confidence,
        study_digest=observed.study_digest,
        observed=observed,
        hub=hub,
        spokes=spokes,
    )
    terms, z = design.terms, NormalDist().inv_cdf((1.0 + observed.confidence) / 2.0)
    noise = float(terms.constant) * domain.cells - float(terms.background) * domain.cells**2
    if not estimate.present > z * sqrt(max(noise, 0.0)):
        raise nobody_present(hub, spokes)
    return replace(estimate, design=replace(design, present=estimate.present))


def spokes_of(domain: Domain, study: Study) -> tuple[str, ...]:
    """Return from whose tables people of the hub may be absent, of who has an attribute: "bob", "north or south"."""
    lacking = {one.name for one in domain.attributes if one.has_absent}
    return tuple(dict.fromkeys(" or ".join(rule.holders) for rule in study.attributes if rule.name in lacking))


def present_sentence(hub: str, spokes: Sequence[str], population: int, people: float) -> str:
    """Say what n is, and how many of the rows an estimate is about."""
    return (
        f"n = {population:,} rows of {hub}; about {min(people, population):,.0f} of them are in the table of"
        f" {joined(spokes)}, and this is about these."
    )


def nobody_present(hub: str, spokes: Sequence[str]) -> InvalidInputError:
    """Return what says that a table does not tell whether anybody is present."""
    return InvalidInputError(
        f"the release does not tell whether anybody of {hub} is in the table of {joined(spokes)}",
        where="absent",
        remedy='Show "absent" as a category (--absent shown), or ask for a release with a larger epsilon.',
    )
