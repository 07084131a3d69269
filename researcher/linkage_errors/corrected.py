"""A table of linked people with its wrong links undone, and how far it may be from the true one.

With O the observed table, P(O, l) as in `inversion`, J = dP/dO and g_j = dP/dl_j,

    Cov(P_hat) = J (Cov(O_hat) + R) J' + sum_j sd_j^2 g_j g_j'

Cov(O_hat) is that of the release, noise and sample; R is what the draw of the wrong links adds, all of them at both
ends of a range; sd_j is the standard deviation of the share of leg j.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, Self

import numpy as np

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import MATRIX_LIMIT
from veiltab.researcher.linkage_errors.derived import DerivedEstimate
from veiltab.researcher.linkage_errors.inversion import Correction, Floats, relinking_covariance
from veiltab.researcher.linkage_errors.linkage_error import Leg, LinkageErrors, correction_text

_ALIKE = (
    "Wrong links are taken to be as frequent in every category. Where they are not, the truth is NOT COVERED by these"
    " intervals; see docs/linkage-errors.md."
)


def corrected(estimate: TableEstimate, errors: LinkageErrors | None, owners: Mapping[str, str]) -> TableEstimate:
    """Return the estimate of a table with its wrong links undone.

    Args:
        errors: the wrong links; None for none.
        owners: attribute -> its curator, of all attributes of the study.

    Returns:
        The estimate itself where no link brings an attribute of it, or none is wrong.

    Raises:
        InvalidInputError: the legs are not known, or the table has too many cells.
    """
    legs = () if errors is None else errors.legs(owners, estimate.domain.names)
    if not legs:
        return estimate
    if estimate.domain.cells > MATRIX_LIMIT:
        raise InvalidInputError(
            f"the table has {estimate.domain.cells:,} cells, and up to {MATRIX_LIMIT:,} are corrected for wrong links",
            where="linkage error",
            remedy="Name fewer attributes.",
        )
    return CorrectedEstimate(
        domain=estimate.domain,
        design=estimate.design,
        confidence=estimate.confidence,
        study_digest=estimate.study_digest,
        observed=estimate,
        legs=legs,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CorrectedEstimate(DerivedEstimate):
    """A table with its wrong links undone; `corrected` makes it.

    Where a share of wrong links is known as a range alone, the estimate and its standard error are those of the whole
    share, and an interval is the hull of those at both `ends` of the range.

    Args:
        domain: the attributes; cells in C order.
        confidence: probability that one cell's interval holds its true fraction.
        study_digest: SHA-256 of the study file, as of every TableEstimate.
        observed: the table as it was measured, over `domain`, and over the attributes by which a leg has shares.
        legs: whose attributes come by links.
        end: of the ranges of shares; None for the hull of both, or where there is no range.
    """

    legs: tuple[Leg, ...]
    end: Literal["whole", "least"] | None = None

    @property
    def raw(self) -> Floats:
        """P_hat, shape (K,): unbiased to first order, sums to 1, possibly negative (probabilities)."""
        return self.observed.domain.summed(self._correction.table, self.domain.names)

    def marginal(self, names: Sequence[str]) -> Self:
        """Return the estimate of a subset of the attributes: the correction of the observed marginal is the same.

        But where the shares go by an attribute, the whole table is corrected, then summed.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none.
        """
        self.domain.subset(names)
        part = self.observed.marginal(names)
        if any(leg.error.by for leg in self.legs):
            return replace(self, domain=part.domain, design=part.design)
        legs = (replace(leg, names=tuple(name for name in part.domain.names if name in leg.names)) for leg in self.legs)
        return replace(
            self, domain=part.domain, design=part.design, observed=part, legs=tuple(leg for leg in legs if leg.names)
        )

    @cached_property
    def ends(self) -> tuple["CorrectedEstimate", ...]:
        """The corrections at the whole shares and, if a share is known as a range, at the least ones: one or two."""
        if self.end is not None or all(leg.error.least is None for leg in self.legs):
            return (self,)
        return replace(self, end="whole"), replace(self, end="least")

    def transported(self, contrasts: Floats) -> Floats:
        """Return the contrasts of the observed table that have the errors of contrasts of this one."""
        return self._correction.transported(self.expanded(contrasts))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was corrected."""
        return (
            *self.observed.remarks,
            *correction_text(self.legs),
            *([] if all(leg.error.by for leg in self.legs) else [_ALIKE]),
        )

    def contrast_covariance(self, contrasts: Floats) -> Floats:
        """Return the (c, c) covariance of c linear combinations of cells, given as rows of shape (c, K).

        Raises:
            InvalidInputError: a share of wrong links is a range, so that there are two.
        """
        if len(self.ends) > 1:
            raise InvalidInputError(
                "the share of wrong links is a range, and one analysis takes one value",
                where="linkage error",
                remedy="Analyse each of `ends`, or ask the release, which takes the hull of both.",
            )
        moved = self.transported(contrasts)
        whole = self.observed.domain
        deviations = np.concatenate([np.zeros(0), *(leg.shares(whole)[1].reshape(-1) for leg in self.legs)])
        along = self.expanded(contrasts) @ (self._correction.slopes.T * deviations)
        covariance: Floats = self.observed.contrast_covariance(moved) + along @ along.T
        # The person whom a wrong link brings, like or unlike, was drawn.
        mixes = [(leg.axes(whole), leg.shares(whole)[0]) for leg in self.legs]
        table = (
            self.projected
            if self.domain == whole
            else replace(self, domain=whole, design=self.observed.design).projected
        )
        covariance += relinking_covariance(moved, table, whole.shape, mixes, self.design.people)
        return covariance

    @cached_property
    def _correction(self) -> Correction:
        whole = self.observed.domain
        mixing = [
            (
                leg.axes(whole),
                leg.shares(whole)[0] if self.end != "least" or leg.error.least is None else leg.error.least,
            )
            for leg in self.legs
        ]
        return Correction(self.observed.raw, whole.shape, mixing)
