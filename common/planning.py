"""How many rows to sample and how much to perturb, from what is public: n, the cells and epsilon.

Every curator computes the plan for itself and compares; so nothing in it may depend on the machine. Sizes and privacy
parameters come from exact arithmetic; floats appear only in the expected errors, which decide nothing.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import sqrt

from common.errors import InvalidInputError
from common.mechanism import GammaDiagonal
from common.privacy.amplification import gamma_for_pure_epsilon, pure_epsilon
from common.privacy.rounding import exp_below, ln_above, sqrt_of


def mean_squared_error(
    *, population: int, sample: int, cells: int, gamma: float, sum_of_squares: float | None = None
) -> float:
    """Return the expected squared error of the estimated joint distribution.

    E||T_hat - T||_2^2 = (1/m) [ (K-1)(2 gamma + K - 2)/(gamma-1)^2 + ((n-m)/(n-1)) (1 - sum T^2) ]

    Args:
        population: common respondents n, in rows.
        sample: sampled rows m, without replacement.
        cells: cells K of the joint table.
        gamma: worst-case ratio of the mechanism, above 1.
        sum_of_squares: sum over the cells of T(x)^2; by default 1/K, its least value and so the largest error.

    Returns:
        A squared probability; exact, not a bound.

    Source: derived from the mechanism's mixture law and the hypergeometric law; the bound of Lin, Wang, Rane,
    Theorem 3.4 is about sqrt(K) above its square root.
    """
    spread = 1 - (1 / cells if sum_of_squares is None else sum_of_squares)
    noise = (cells - 1) * (2 * gamma + cells - 2) / (gamma - 1) ** 2
    correction = (population - sample) / (population - 1) if population > 1 else 0.0
    return (noise + correction * spread) / sample


def optimal_sample(*, population: int, cells: int, epsilon: Decimal, sum_of_squares: Fraction | None = None) -> int:
    """Return the sample size with the least expected error at a pure epsilon.

    m = (e^epsilon - 1) n sqrt( (1 - sum T^2) n / ((n-1) K (K-1)) ), at least 1 and at most n

    Args:
        population: common respondents n, in rows.
        cells: cells K, at least 2.
        epsilon: pure epsilon, in nats.
        sum_of_squares: sum of T(x)^2; by default 1/K, which needs no knowledge of the table.

    Returns:
        Rows, the same on every machine.

    Source: minimum over m of `mean_squared_error` with gamma from Lin, Wang, Rane, Theorem 3.2.
    """
    spread = 1 - (Fraction(1, cells) if sum_of_squares is None else sum_of_squares)
    if population <= 1 or cells <= 1 or spread <= 0:
        return population
    root = sqrt_of(spread * population / ((population - 1) * cells * (cells - 1)))
    return _within(population, (exp_below(epsilon) - 1) * population * Fraction(root))


def paper_sample(*, population: int, cells: int, epsilon: Decimal) -> int:
    """Return the sample size m* that minimises the paper's bound, capped at n.

    m* = n (1 + sqrt K)(e^epsilon - 1) / K^1.5

    Source: Lin, Wang, Rane, Corollary 3.6 (which does not say that it can exceed n).
    """
    root = Fraction(sqrt_of(Fraction(cells)))
    return _within(population, population * (1 + root) * (exp_below(epsilon) - 1) / (cells * root))


def paper_bound(*, sample: int, cells: int, gamma: float) -> float:
    """Return the paper's upper bound of the expected error, (c sqrt(K) + 1)/sqrt(m) with c = 1 + K/(gamma-1).

    Source: Lin, Wang, Rane, Theorem 3.4 (a bound, about sqrt(K) loose).
    """
    return ((1 + cells / (gamma - 1)) * sqrt(cells) + 1) / sqrt(sample)


def _within(population: int, rows: Fraction) -> int:
    return max(1, min(population, round(rows)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A release's public parameters: what will be sampled, how it will be perturbed, what that guarantees.

    `epsilon` is the pure epsilon of the mechanism that runs, an upper bound at most what was asked for (substitution,
    against a researcher); `local_epsilon` is ln gamma per row, an upper bound against who knows the sample.
    """

    population: int
    sample: int
    mechanism: GammaDiagonal
    epsilon: Decimal
    local_epsilon: Decimal

    @property
    def gamma(self) -> float:
        """Worst-case ratio of the mechanism that runs, for people to read."""
        return float(self.mechanism.gamma)

    def root_mse(self, sum_of_squares: float | None = None) -> float:
        """Return the root of `mean_squared_error` for this plan, a probability."""
        return sqrt(
            mean_squared_error(
                population=self.population,
                sample=self.sample,
                cells=self.mechanism.cells,
                gamma=self.gamma,
                sum_of_squares=sum_of_squares,
            )
        )


def plan_release(
    *,
    population: int,
    cells: int,
    epsilon: Decimal,
    sample: int | None = None,
    sum_of_squares: Fraction | None = None,
) -> Plan:
    """Choose the sample size and the replacement probability of a release at a pure epsilon.

    The replacement probability is rounded up to 64 bits, and everything reported is that of the mechanism that runs:
    gamma' <= gamma, hence epsilon' <= epsilon.

    Args:
        population: common respondents n, in rows.
        cells: cells K of the joint table.
        epsilon: pure epsilon to keep, in nats.
        sample: rows to sample; by default the optimum of the exact error.
        sum_of_squares: what is known of sum T(x)^2 from public sources.

    Returns:
        The plan, the same on every machine.

    Raises:
        InvalidInputError: sizes out of range, or an epsilon so small that nothing of a row would be kept.

    Source: Lin, Wang, Rane, Theorem 3.2; exact optimum instead of their Corollary 3.6.
    """
    if cells < 2:
        raise InvalidInputError("a table of one cell has nothing to estimate", where="cells")
    if population < 1:
        raise InvalidInputError(f"the population must be at least 1, not {population}", where="population")
    if sample is None:
        sample = optimal_sample(population=population, cells=cells, epsilon=epsilon, sum_of_squares=sum_of_squares)
    gamma = gamma_for_pure_epsilon(epsilon, population=population, sample=sample)
    mechanism = GammaDiagonal.from_gamma(cells, gamma)
    return Plan(
        population=population,
        sample=sample,
        mechanism=mechanism,
        epsilon=min(epsilon, pure_epsilon(mechanism.gamma, population=population, sample=sample)),
        local_epsilon=ln_above(mechanism.gamma),
    )
