"""A table of linked people, weighted by a curator's own table of match rates: links that are missing bias it less.

N_c of the N rows of the curator's table have category c, and P_c is its share in the table of linked people:

    Q(x) = P(x) r_c(x),    r_c = (N_c/N) / P_c

estimates the table of all N people of that curator, if within a category linked people are like the others. The linked
rows are counted by the release itself, so that the noise of the rates is in N_c alone, where it does no harm however
few rows of a category are linked. With L a contrast of Q, m_c its mean in c, M_c = n P_c and f_c = M_c/N_c,

    Var(L Q) = a Cov(P_hat) a' + sum_c 2 sd^2 (m_c - L Q)^2 / N^2 + sum_c (N_c/N)^2 (1 - f_c)/M_c Var(L | c)
    a(x)     = r_c(x) (L(x) - m_c(x))

The last term is what the draw of the M_c linked people out of N_c adds. Categories that the release does not tell from
empty ones, of LEAST standard deviations, are pooled with the next larger ones: then no interval knows how far off that
is, and the answer says so.

Source: Holt, Smith, Post stratification (1979); Kalton, Flores-Cervantes, Weighting methods (2003), weighting classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.match_rates import MatchRates
from veiltab.common.study.file import Study
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import MATRIX_LIMIT
from veiltab.researcher.linkage_errors.derived import DerivedEstimate, cells_of
from veiltab.researcher.linkage_errors.hull import uncorrected
from veiltab.researcher.linkage_errors.inversion import Floats

LEAST = 5.0
"""Standard errors that the share of a category, or of pooled ones, must reach in the table of linked people."""


def weighted(estimate: TableEstimate, rates: MatchRates, study: Study) -> TableEstimate:
    """Return the estimate of a table that has the attribute of the match rates, weighted with them.

    Args:
        estimate: of linked people, its wrong links perhaps undone.
        rates: as a curator released them.

    Raises:
        InvalidInputError: the rates are of another study or linkage, the table has not their attribute or too many
            cells, or noise dominates them.
    """
    name, n = rates.attribute, estimate.population
    own = [rule.attribute for rule in study.attributes if (rule.name, rule.owner) == (name, rates.curator)]
    if rates.study != study.id or not own or own[0].categories != rates.categories:
        raise _refusal(
            f"they are those of {name} of curator {rates.curator} in study {rates.study}, which this study has not, or"
            " with other categories",
            "Ask the curator for the rates of this study.",
        )
    if name not in estimate.domain.names:
        raise _refusal(
            f"the table has no attribute {name}, by which it is to be weighted",
            f"Ask for a table that was measured with {name}, or leave the rates out.",
        )
    if estimate.domain.cells > MATRIX_LIMIT:
        raise _refusal(
            f"the table has {estimate.domain.cells:,} cells, and up to {MATRIX_LIMIT:,} are weighted",
            "Name fewer attributes.",
        )
    if abs(sum(rates.linked) - n) > LEAST * rates.sd * sqrt(len(rates.linked)):
        raise _refusal(
            f"they count {sum(rates.linked):,} linked rows with noise, and the release has {n:,}",
            "They are of another linkage. A curator releases them once for each attribute: take another attribute's.",
        )
    return WeightedEstimate(
        domain=estimate.domain,
        design=estimate.design,
        confidence=estimate.confidence,
        study_digest=estimate.study_digest,
        observed=estimate,
        weighting=Weighting(observed=estimate, rates=rates, groups=pooled_categories(estimate, rates)),
    )


def pooled_categories(estimate: TableEstimate, rates: MatchRates) -> tuple[int, ...]:
    """Return the group of each category, from 0: one of its own, or the one of those with too few linked rows.

    Args:
        estimate: with the attribute of the rates.

    Raises:
        InvalidInputError: fewer than two groups are left.
    """
    part = estimate.marginal([rates.attribute])
    pool, share, variance = list[int](), 0.0, 0.0
    for category in np.argsort(part.raw).tolist():
        if share >= LEAST * sqrt(variance) and part.raw[category] >= LEAST * part.se[category]:
            break
        pool.append(category)
        share, variance = share + float(part.raw[category]), variance + float(part.se[category]) ** 2
    if len(part.raw) - len(pool) + bool(pool) < 2:
        raise _refusal(
            f"the release does not tell the categories of {rates.attribute} from empty ones, even pooled",
            "Leave the rates out, or ask for a release with a larger epsilon.",
        )
    alone = iter(range(bool(pool), len(part.raw) + 1))
    return tuple(0 if category in pool else next(alone) for category in range(len(part.raw)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WeightedEstimate(DerivedEstimate):
    """A weighted table, or a marginal of one; `weighted` makes it. Its rows are scaled to the n linked people.

    Args:
        domain: attributes of the observed table, not necessarily that of the rates.
        design: of the observed table, over the cells of `domain`.
        confidence: probability that one cell's interval holds its true fraction.
        study_digest: SHA-256 of the study file, as of every TableEstimate.
        observed: the table, with the attribute of the rates.
        weighting: of its cells.
    """

    weighting: "Weighting"

    @cached_property
    def raw(self) -> Floats:
        """Q_hat, shape (K,): unbiased to first order, sums to 1, possibly negative (probabilities)."""
        return self.observed.domain.summed(self.weighting.table, self.domain.names)

    @cached_property
    def projected(self) -> Floats:
        """The weighted projected table, shape (K,): none is negative, and they sum to 1 (probabilities)."""
        return self.observed.domain.summed(self.weighting.likely, self.domain.names)

    def marginal(self, names: Sequence[str]) -> Self:
        """Return the estimate of a subset of the attributes: the whole table is weighted, then summed.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none.
        """
        self.domain.subset(names)
        part = self.observed.marginal(names)
        return replace(self, domain=part.domain, design=part.design)

    def transported(self, contrasts: Floats) -> Floats:
        """Return the contrasts of the observed table that have the errors of contrasts of this one, a above."""
        wide, weighting = self.expanded(contrasts), self.weighting
        moved: Floats = (wide - weighting.means(wide)[:, weighting.group]) * weighting.ratios
        return moved

    @property
    def ends(self) -> "Sequence[WeightedEstimate]":
        """The weighted tables at both ends of the shares of wrong links."""
        if not isinstance(self.observed, DerivedEstimate):
            return (self,)
        return tuple(self._of(end) for end in self.observed.ends)

    @property
    def plain(self) -> TableEstimate:
        """The table weighted, without any wrong link undone."""
        return self._of(uncorrected(self.observed))

    @property
    def released_counts(self) -> NDArray[np.int64] | None:
        """None: these are no released rows."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was corrected, and by what the table is weighted."""
        rates, groups = self.weighting.rates, self.weighting.groups
        rows = sum(rates.linked) + sum(rates.unlinked)
        ratios = self.weighting.of_groups[0] * rows / self.population
        few = [name for name, group in zip(rates.categories, groups, strict=True) if groups.count(group) > 1]
        pooled = f"; {', '.join(few)} are pooled, as the release does not tell some from empty ones" if few else ""
        unsure = (
            ["Pooled categories have one weight: what that hides is NOT COVERED by these intervals."] if few else []
        )
        said = (
            f"Weighted by {rates.attribute} with the match rates of curator {rates.curator}, weights"
            f" {ratios.min():.3g} to {ratios.max():.3g}{pooled}: this is the table of its"
            f" {rows:,} rows, scaled to the linked ones."
        )
        return (*self.observed.remarks, said, *unsure)

    def contrast_covariance(self, contrasts: Floats) -> Floats:
        """Return the (c, c) covariance of c linear combinations of cells, given as rows of shape (c, K)."""
        weighting, wide = self.weighting, self.expanded(contrasts)
        _, variances, draws = weighting.of_groups
        in_group = np.eye(len(variances))[weighting.group]
        slopes = weighting.means(wide) - (contrasts @ self.raw)[:, None]
        # Within each category the linked people are drawn: of a contrast Q_c sum Q L^2 - (sum Q L)^2.
        likely = weighting.likely @ in_group
        sums = (wide * weighting.likely) @ in_group
        drawn = (wide * (weighting.likely * (draws * likely)[weighting.group])) @ wide.T - (sums * draws) @ sums.T
        moved = self.observed.contrast_covariance(self.transported(contrasts))
        found: Floats = moved + (slopes * variances) @ slopes.T + drawn
        return found

    def _of(self, observed: TableEstimate) -> Self:
        """Return another observed table, weighted alike."""
        return replace(self, observed=observed, weighting=replace(self.weighting, observed=observed))


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighting:
    """The weights of an observed table.

    Args:
        observed: the table, with the attribute of the rates.
        rates: by which it is weighted.
        groups: of the categories, from 0.
    """

    observed: TableEstimate
    rates: MatchRates
    groups: tuple[int, ...]

    @cached_property
    def group(self) -> NDArray[np.intp]:
        """Group of each cell."""
        return np.array(self.groups)[cells_of(self.observed.domain, [self.rates.attribute])]

    @cached_property
    def of_groups(self) -> tuple[Floats, Floats, Floats]:
        """Of each group its weight r, the variance of its share N_c/N, and (1 - f)/M, each of shape (groups,)."""
        every, several = (
            np.bincount(self.groups, weights=some)
            for some in (np.add(self.rates.linked, self.rates.unlinked), np.ones(len(self.groups)))
        )
        shares = np.bincount(self.group, weights=self.observed.raw)  # P_c
        linked = self.observed.population * shares
        ratios = every / every.sum() / shares
        return ratios, 2 * self.rates.sd**2 * several / every.sum() ** 2, 1 / linked - 1 / np.maximum(every, linked)

    @cached_property
    def ratios(self) -> Floats:
        """Weight of each cell."""
        return self.of_groups[0][self.group]

    @cached_property
    def table(self) -> Floats:
        """Q_hat over the cells; it sums to 1."""
        return self.observed.raw * self.ratios

    @cached_property
    def likely(self) -> Floats:
        """The weighted projected table; it sums to 1."""
        found: Floats = self.observed.projected * np.maximum(self.ratios, 0.0)
        return found / float(found.sum())

    def means(self, contrasts: Floats) -> Floats:
        """Return the mean of contrasts of the table in each group, shape (c, groups)."""
        in_group, table = np.eye(int(self.group.max()) + 1)[self.group], self.observed.raw
        means: Floats = ((contrasts * table) @ in_group) / (table @ in_group)
        return means


def _refusal(problem: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(problem, where="match rates", remedy=remedy)
