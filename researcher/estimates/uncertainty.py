"""How far the estimated table may be from the true one: exact covariances and the intervals that follow.

Two independent sources of error are in an estimate: which m of the n rows were sampled (hypergeometric, without
replacement) and what the mechanism replaced (a mixture of multinomials). With T the true fractions, rho the retention,
r = 1 - rho the replacement probability and y = rho T + r/K,

    Cov(T_hat) = [diag(y) - rho^2 diag(T) - (rho r/K)(T 1' + 1 T') - (r/K)^2 11'] / (m rho^2)
               + (n-m)/((n-1) m) (diag(T) - T T').

It is a diagonal plus terms of low rank, so variances and contrasts cost O(K); the K x K matrix is built only when
asked for.
"""

from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.mechanism import NoiseLaw
from veiltab.common.core.numbers.confidence import squared_quantile
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import Scheme
from veiltab.common.schemes.without_replacement import WithoutReplacement

MATRIX_LIMIT = 4096
"""Largest number of cells, or of contrasts, whose covariance matrix is built (128 MiB)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceTerms:
    """The five exact coefficients of Cov(T_hat), each a function of public parameters alone.

    Cov = diag(constant + linear T) - cross (T 1' + 1 T') - background 11' - sampling T T'
    """

    constant: Fraction
    linear: Fraction
    cross: Fraction
    background: Fraction
    sampling: Fraction


class Design(Protocol):
    """What the errors of an unbiased estimate of a table depend on: everything but the table itself."""

    @property
    def population(self) -> int:
        """Respondents n, whose table is estimated."""

    @property
    def people(self) -> float:
        """How many people the shares are of: n, unless some of the hub's are absent from a table."""

    @property
    def sample(self) -> int:
        """Rows that were counted, m."""

    @property
    def cells(self) -> int:
        """Cells of the table, K."""

    @property
    def terms(self) -> CovarianceTerms:
        """Coefficients of the covariance."""

    def expected_rows(self, fractions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many noisy rows each cell of a table with these fractions expects, shape (K,)."""

    def marginal(self, cells: int) -> Self:
        """Return the design of the same rows seen through a subset of the attributes, of `cells` cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDesign:
    """What is public about a release: n respondents, m rows sampled of them, and the mechanism.

    Copies of one respondent are perturbed independently, so they are correlated through the sampling alone.

    Args:
        population: n, rows that all curators share.
        sample: m, rows drawn.
        mechanism: the noise over the cells of the release.
        scheme: how they were drawn; None is without replacement, 1 <= m <= n.
    """

    population: int
    sample: int
    mechanism: NoiseLaw
    scheme: Scheme | None = None

    def __post_init__(self) -> None:
        if self.scheme is None and not 1 <= self.sample <= self.population:
            raise InvalidInputError(f"{self.sample} rows were asked for, not 1 to n = {self.population}")
        if self.mechanism.retention <= 0:
            raise InvalidInputError(
                "the mechanism replaces every row, so nothing can be estimated", remedy="Ask for a larger epsilon."
            )

    @property
    def people(self) -> float:
        """Respondents n."""
        return float(self.population)

    @property
    def cells(self) -> int:
        """Cells of the table, K."""
        return self.mechanism.cells

    @property
    def terms(self) -> CovarianceTerms:
        """Coefficients of the covariance of an estimate made under this design.

        Source: derived by the law of total covariance over the sample and the mechanism of Lin, Wang, Rane, section
        III-A.
        """
        n, m, rho = self.population, self.sample, self.mechanism.retention
        uniform = (1 - rho) / self.mechanism.cells
        scheme = self.scheme or WithoutReplacement(population=n, sample=m)
        sampling = scheme.variance_factor
        return CovarianceTerms(
            constant=uniform / (m * rho**2),
            linear=(1 - rho) / (m * rho) + sampling,
            cross=uniform / (m * rho),
            background=uniform**2 / (m * rho**2),
            sampling=sampling,
        )

    def expected_rows(self, fractions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return m (rho T + (1-rho)/K): the noisy rows that each cell of the table T expects, shape (K,)."""
        rho = float(self.mechanism.retention)
        return self.sample * (rho * fractions + (1.0 - rho) / self.cells)

    def marginal(self, cells: int) -> "ReleaseDesign":
        """Return the design of the same rows seen through a subset of the attributes, of `cells` cells."""
        return replace(self, mechanism=self.mechanism.marginal(cells))


def variances(fractions: NDArray[np.float64], design: Design) -> NDArray[np.float64]:
    """Return Var(T_hat(x)) of every cell: constant - background + (linear - 2 cross) t - sampling t^2.

    Args:
        fractions: shape (K,), float64; T, or what is plugged in for it (probabilities).

    Returns:
        Shape (K,), float64, exact for the T given (squared probabilities).

    Raises:
        InvalidInputError: not one fraction a cell.
    """
    _require_cells(fractions, design)
    terms = design.terms
    base, slope = float(terms.constant - terms.background), float(terms.linear - 2 * terms.cross)
    return np.maximum(base + fractions * (slope - float(terms.sampling) * fractions), 0.0)


def total_variance(sum_of_squares: float, design: Design) -> float:
    """Return E||T_hat - T||^2, the trace of the covariance; exact, not a bound.

    (1/m) [(K-1)(2 gamma + K - 2)/(gamma - 1)^2 + (n-m)/(n-1) (1 - sum T^2)]

    Args:
        sum_of_squares: sum of T(x)^2 over the cells, between 1/K and 1.

    Returns:
        Squared probabilities; multiply by n^2 for squared rows.

    Source: derived; Lin, Wang, Rane, Theorem 3.4 bounds E||T_hat - T||, which is at most the root of this.
    """
    terms, cells = design.terms, design.cells
    fixed = cells * (terms.constant - terms.background) + terms.linear - 2 * terms.cross
    return float(fixed - terms.sampling * Fraction(sum_of_squares))


def contrast_covariance(
    contrasts: NDArray[np.float64], fractions: NDArray[np.float64], design: Design
) -> NDArray[np.float64]:
    """Return L Cov(T_hat) L', the covariance of linear combinations of cells, without the K x K matrix.

    Args:
        contrasts: L, shape (c, K), float64; one combination a row, c at most MATRIX_LIMIT.
        fractions: shape (K,), float64; T, or what is plugged in for it (probabilities).

    Returns:
        Shape (c, c), float64.

    Raises:
        InvalidInputError: shapes that do not fit, or too many contrasts.
    """
    _require_cells(fractions, design)
    if contrasts.ndim != 2 or contrasts.shape[1] != fractions.size:
        raise InvalidInputError(f"the contrasts do not have {fractions.size} coefficients, one a cell")
    _require_limit(contrasts.shape[0])
    terms = design.terms
    along, ones = contrasts @ fractions, contrasts.sum(axis=1)
    diagonal = float(terms.constant) + float(terms.linear) * fractions
    crossed = np.outer(along, ones)
    covariances: NDArray[np.float64] = (contrasts * diagonal) @ contrasts.T
    covariances -= float(terms.cross) * (crossed + crossed.T)
    covariances -= float(terms.background) * np.outer(ones, ones) + float(terms.sampling) * np.outer(along, along)
    return covariances


def covariance(fractions: NDArray[np.float64], design: Design) -> NDArray[np.float64]:
    """Return the full covariance matrix of T_hat.

    Args:
        fractions: shape (K,), float64; T, or what is plugged in for it (probabilities).

    Returns:
        Shape (K, K), float64; singular, because the estimates of all cells sum to exactly 1.

    Raises:
        InvalidInputError: not one fraction a cell, or more than MATRIX_LIMIT cells.
    """
    _require_cells(fractions, design)
    _require_limit(fractions.size)
    terms = design.terms
    scaled = float(terms.cross) * fractions
    matrix = -np.outer(float(terms.sampling) * fractions, fractions) - float(terms.background)
    matrix -= scaled[:, None] + scaled[None, :]
    matrix[np.diag_indices_from(matrix)] += float(terms.constant) + float(terms.linear) * fractions
    return matrix


def score_interval(
    raw: NDArray[np.float64], design: Design, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return every share t that the estimate does not reject: (T_hat - t)^2 <= z^2 Var(T_hat | t), within 0 and 1.

    The variance is taken at each candidate t, so nothing is plugged in. With few expected rows in a cell this covers
    better than T_hat +- z se does (Adult, K = 24, m = 500, gamma = 156: the worst cell is covered in 94% against 88%);
    with many the two agree. A true share lies within 0 and 1, so the cut takes nothing off the coverage; an interval
    that would lie outside altogether is the nearer end. A raw T_hat outside of 0 and 1 lies outside its interval.

    Args:
        raw: T_hat, shape (K,), float64 (probabilities).
        confidence: probability that one interval holds its cell, above 0 and below 1; not simultaneous over cells.

    Returns:
        Lower and upper ends, each of shape (K,), float64, within 0 and 1 (probabilities).

    Raises:
        InvalidInputError: a confidence outside (0, 1), or not one estimate a cell.

    Source: Wilson, Probable inference, the law of succession, and statistical inference (1927), with this variance.
    """
    _require_cells(raw, design)
    z2 = squared_quantile(confidence)
    terms = design.terms
    base, slope = float(terms.constant - terms.background), float(terms.linear - 2 * terms.cross)
    sampling = float(terms.sampling)
    # (raw - t)^2 = z2 (base + slope t - sampling t^2), a quadratic in t; written around raw to keep its digits.
    lead = 1.0 + z2 * sampling
    centre = z2 * (slope - 2.0 * sampling * raw) / (2.0 * lead)
    spread = z2 * (base + raw * (slope - sampling * raw)) / lead
    half = np.sqrt(centre**2 + np.maximum(spread, 0.0))
    return np.clip(raw + (centre - half), 0.0, 1.0), np.clip(raw + (centre + half), 0.0, 1.0)


def _require_cells(values: NDArray[np.float64], design: Design) -> None:
    cells = design.cells
    if values.shape != (cells,):
        raise InvalidInputError(f"the values have the shape {values.shape}, not one for each of {cells} cells")


def _require_limit(size: int) -> None:
    if size > MATRIX_LIMIT:
        raise InvalidInputError(
            f"a covariance matrix of {size} rows is above the limit of {MATRIX_LIMIT}",
            remedy="Ask for variances, for fewer contrasts, or for a marginal.",
        )
