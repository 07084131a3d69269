"""One table that was measured several times: the weighted sum of its independent unbiased estimates."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain, check_names
from veiltab.common.dataclass import dataclass, fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import FEWEST_ROWS
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.estimates.uncertainty import CovarianceTerms, ReleaseDesign, total_variance, variances


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDesign:
    """The designs of independent releases of one table and the weights of their estimates.

    The releases are of the same n respondents, whose table is fixed: their samples and their noise are independent, so
    Cov(sum w_i T_hat_i) = sum w_i^2 Cov(T_hat_i), which has the five terms of a single release.

    Args:
        parts: the designs, at least one, of the same n and K.
        weights: one a part, above 0, summing to 1 exactly.
    """

    parts: tuple[ReleaseDesign, ...]
    weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len({(part.population, part.cells) for part in self.parts}) != 1 or len(self.parts) != len(self.weights):
            raise InvalidInputError("pooled releases have the same respondents and cells, and a weight each")
        if sum(self.weights) != 1 or min(self.weights) <= 0:
            raise InvalidInputError("a weight is not above 0, or they do not sum to 1")

    @property
    def population(self) -> int:
        """Respondents n."""
        return self.parts[0].population

    @property
    def people(self) -> float:
        """Respondents n."""
        return float(self.population)

    @property
    def sample(self) -> int:
        """Rows that were counted, of all releases together."""
        return sum(part.sample for part in self.parts)

    @property
    def cells(self) -> int:
        """Cells of the table, K."""
        return self.parts[0].cells

    @property
    def terms(self) -> CovarianceTerms:
        """Coefficients of the covariance of the weighted sum, exactly."""
        of_parts = [part.terms for part in self.parts]

        def summed(name: str) -> Fraction:
            pairs = zip(self.weights, of_parts, strict=True)
            return sum((weight**2 * Fraction(getattr(terms, name)) for weight, terms in pairs), Fraction(0))

        return CovarianceTerms(**{field.name: summed(field.name) for field in fields(CovarianceTerms)})

    def expected_rows(self, fractions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many noisy rows of all releases each cell of a table expects, shape (K,)."""
        rows: NDArray[np.float64] = np.sum([part.expected_rows(fractions) for part in self.parts], axis=0)
        return rows

    def marginal(self, cells: int) -> "PooledDesign":
        """Return the design of the same rows seen through a subset of the attributes, with the same weights."""
        return PooledDesign(parts=tuple(part.marginal(cells) for part in self.parts), weights=self.weights)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PooledEstimate(TableEstimate):
    """A table that several releases measured; `pooled` makes it.

    Args:
        domain: the attributes; cells in C order.
        design: the releases and their weights.
        parts: the estimates of the releases, all over `domain`, in the order of `design`.
        confidence: probability that one cell's interval holds its true fraction.
        study_digest: SHA-256 of the study file, as of every TableEstimate.
    """

    design: PooledDesign
    parts: tuple[Estimate, ...]

    @cached_property
    def raw(self) -> NDArray[np.float64]:
        """Sum of w_i T_hat_i, shape (K,): unbiased, sums to 1, possibly negative (probabilities)."""
        weights = np.array([float(weight) for weight in self.design.weights])
        summed: NDArray[np.float64] = weights @ np.array([part.raw for part in self.parts])
        return summed

    @property
    def contradiction(self) -> float:
        """Most standard errors by which a cell of a part differs from the pooled one, of cells that expect rows enough.

        The parts are independent given the table, so Var(part - pooled) = (1 - 2 w) Var(part) + Var(pooled). Numbers
        were rounded anew for each part.
        """
        rounding, weights = self._rounding, [float(weight) for weight in self.design.weights]
        together = variances(self.projected, self.design) + sum(weight**2 for weight in weights) * rounding
        most = 0.0
        for weight, part in zip(weights, self.parts, strict=True):
            spread = (1 - 2 * weight) * (variances(self.projected, part.design) + rounding) + together
            apart = np.abs(part.raw - self.raw) / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
            has_rows = part.design.expected_rows(self.projected) >= FEWEST_ROWS
            most = max(most, float(apart[has_rows].max(initial=0.0)))
        return most

    @property
    def _rounding(self) -> NDArray[np.float64]:
        """At most what rounding adds to the variance of a cell of one part: (its share and its neighbours') / (4 n)."""
        shape, near = self.domain.shape, np.zeros(self.domain.shape)
        shares = self.projected.reshape(shape)
        for axis, attribute in enumerate(self.domain.attributes):
            if attribute.number:
                beside = np.pad(shares, [(1, 1) if one == axis else (0, 0) for one in range(len(shape))])
                below, above = (np.take(beside, np.arange(shape[axis]) + step, axis) for step in (0, 2))
                near += shares + below + above
        result: NDArray[np.float64] = near.reshape(-1) / (4 * self.population)
        return result

    def marginal(self, names: Sequence[str]) -> Self:
        """Return the estimate of a subset of the attributes, in the order of `names`, with the same weights.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none.
        """
        domain = self.domain.subset(names)
        return type(self)(
            domain=domain,
            design=self.design.marginal(domain.cells),
            parts=tuple(part.marginal(names) for part in self.parts),
            confidence=self.confidence,
            study_digest=self.study_digest,
        )


def pooled(estimates: Sequence[Estimate], names: Sequence[str] | None = None) -> TableEstimate:
    """Return what several releases of the same respondents say together about one table.

    The marginal of each release over `names` estimates the same fixed table without bias, so their weighted sum does
    too. The weights, inversely proportional to E||T_hat_i - T||^2 at the uniform table, depend on public parameters
    alone: what was drawn cannot bias the sum. They are the best scalar weights up to the shape of the table.

    Args:
        estimates: of different releases of one study file and population; each with all of `names`.
        names: the attributes of the table; by default those of the first estimate.

    Returns:
        The marginal of the only estimate, or the pooled one of several.

    Raises:
        InvalidInputError: no estimate; the same release twice; releases of other respondents, study files or
            confidences; an attribute that one lacks.

    Source: inverse-variance weighting (Cochran, Problems arising in the analysis of a series of similar experiments,
    1937).
    """
    if not estimates:
        raise InvalidInputError("no release has all of these attributes", remedy="Ask for a table with them.")
    if len(set(map(id, estimates))) != len(estimates):
        raise InvalidInputError("the same release is pooled with itself", remedy="Give each release once.")
    first = estimates[0]
    names = first.domain.names if names is None else names
    check_names(names)
    for other in estimates[1:]:
        _check_together(first, other)
    parts = tuple(estimate.marginal(names) for estimate in estimates)
    domain = parts[0].domain
    if any(part.domain != domain for part in parts):
        raise InvalidInputError("pooled releases must have the same categories")
    if len(parts) == 1:
        return parts[0]
    return PooledEstimate(
        domain=domain,
        design=PooledDesign(parts=tuple(part.design for part in parts), weights=_weights(parts, domain)),
        parts=parts,
        confidence=first.confidence,
        study_digest=first.study_digest,
    )


def _check_together(one: TableEstimate, other: TableEstimate) -> None:
    """Refuse two estimates that are not of the same respondents, study file and confidence."""
    if one.study_digest != other.study_digest:
        raise InvalidInputError("the releases were asked for under different study files")
    if one.population != other.population:
        raise InvalidInputError(
            f"the releases are of {one.population:,} and of {other.population:,} respondents",
            remedy="Pool releases of the same respondents; compare others.",
        )
    if one.confidence != other.confidence:
        raise InvalidInputError("the estimates have different confidences")


def _weights(parts: Sequence[Estimate], domain: Domain) -> tuple[Fraction, ...]:
    precisions = [Fraction(1.0 / total_variance(1.0 / domain.cells, part.design)) for part in parts]
    return tuple(precision / sum(precisions) for precision in precisions)
