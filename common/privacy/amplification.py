"""What sampling without replacement buys: the pure epsilon of a gamma-diagonal mechanism on a secret sample.

Neighbouring relation: substitution of one respondent's row; the population size n is public.
"""

from decimal import Decimal
from fractions import Fraction

from common.errors import InvalidInputError
from common.privacy.rounding import exp_below, ln_above


def pure_epsilon(gamma: Fraction, *, population: int, sample: int) -> Decimal:
    """Return the pure epsilon of a release, rounded up.

    epsilon = ln(1 + (m/n)(gamma - 1))

    Args:
        gamma: worst-case ratio of the mechanism's probabilities, at least 1.
        population: common respondents n, in rows.
        sample: sampled rows m, drawn uniformly without replacement and secretly.

    Returns:
        An upper bound in nats, within 1e-12 of the tight value, against a researcher who knows every other row.

    Raises:
        InvalidInputError: the sample is not 1..n rows, or gamma is below 1.

    Source: Lin, Wang, Rane, Theorem 3.2 (tight by their Example 3.3).
    """
    check_sizes(population=population, sample=sample)
    return ln_above(1 + Fraction(sample, population) * (gamma - 1))


def gamma_for_pure_epsilon(epsilon: Decimal, *, population: int, sample: int) -> Fraction:
    """Return the largest gamma that keeps a release inside a pure epsilon, rounded down.

    gamma = 1 + (e^epsilon - 1) n/m

    Args:
        epsilon: the pure epsilon to keep, in nats.
        population: common respondents n, in rows.
        sample: sampled rows m.

    Returns:
        An exact fraction, at most the real value and within a relative 1e-55 of it.

    Raises:
        InvalidInputError: the sample is not 1..n rows.

    Source: Lin, Wang, Rane, Theorem 3.2.
    """
    check_sizes(population=population, sample=sample)
    return 1 + (exp_below(epsilon) - 1) * Fraction(population, sample)


def check_sizes(*, population: int, sample: int) -> None:
    """Refuse a sample that is empty or larger than the population."""
    if not 1 <= sample <= population:
        raise InvalidInputError(
            f"a sample has 1 to n = {population} rows, not {sample}",
            where="sample size",
            remedy="Ask for a smaller sample, or let the planner choose it.",
        )
