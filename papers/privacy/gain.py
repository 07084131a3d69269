"""Would privatising a sample beat privatising the population at the same protection?

The question of Hu, Drechsler and Kim. A sample may be protected with a larger epsilon, because sampling amplifies; but
it varies, and a mean of fewer values is more sensitive. Relation: substitution; sampling without replacement.
"""

from math import expm1, log1p

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """Variance of a privatised statistic, split; squared units of the statistic.

    Args:
        sampling: because only a sample is used.
    """

    sampling: float
    noise: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.sampling + self.noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Privatising the population beside privatising a sample, both (epsilon, delta)-private for a respondent.

    Args:
        population: variance of the privatised population value.
        sample: variance of the privatised sample value.
        sample_epsilon: epsilon_n with which the sample is protected, nats.
        sample_delta: delta_n with which the sample is protected.
    """

    population: Variance
    sample: Variance
    sample_epsilon: float
    sample_delta: float

    @property
    def gains(self) -> bool:
        """Whether the sample is the more accurate of the two."""
        return self.sample.total < self.population.total


def sample_epsilon(epsilon: float, *, population: int, sample: int) -> float:
    """Return epsilon_n = ln(1 + (N/n)(e^epsilon - 1)), the epsilon that a sample of n of N may use.

    Source: Hu, Drechsler, Kim, Theorem 1, solved for the base.
    """
    if not 1 <= sample <= population:
        raise InvalidInputError(f"{sample} rows were asked for, not 1 to N = {population}", where="sample")
    if not 0 < epsilon <= 100:
        raise InvalidInputError("epsilon must be a number above 0 and at most 100", where="epsilon")
    return log1p(population / sample * expm1(epsilon))


def mean_noise_ratio(epsilon: float, *, population: int, sample: int) -> float:
    """Return r = (n epsilon_n / (N epsilon))^2, the mean's noise variance in the population over that in the sample.

    It is below 1 for every epsilon > 0 and n < N: by Bernoulli's inequality 1 + (N/n)(e^epsilon - 1) < e^(epsilon N/n).
    So a mean never gains, and the curve r = 1 of the paper's Figure 5 does not exist.
    """
    return (sample * sample_epsilon(epsilon, population=population, sample=sample) / (population * epsilon)) ** 2


def mean_gain(*, population: int, sample: int, epsilon: float, value_range: float, variance: float) -> Gain:
    """Return the mean's gain under Laplace noise.

    V_N = 2 (R/(epsilon N))^2,    V_n = (1 - n/N) S^2/n + 2 (R/(epsilon_n n))^2

    Args:
        population: N, rows.
        sample: n, rows.
        epsilon: pure epsilon for a respondent, nats.
        value_range: R, the width of the domain, known without the data.
        variance: S^2 of the population (divisor N-1).

    Raises:
        InvalidInputError: out of range.

    Source: Hu, Drechsler, Kim, equations 6 and 7.
    """
    if not (value_range > 0 and variance >= 0):
        raise InvalidInputError("the range must be above 0 and the variance at least 0", where="mean")
    epsilon_n = sample_epsilon(epsilon, population=population, sample=sample)
    return Gain(
        population=Variance(sampling=0.0, noise=2 * (value_range / (epsilon * population)) ** 2),
        sample=Variance(
            sampling=(1 - sample / population) * variance / sample, noise=2 * (value_range / (epsilon_n * sample)) ** 2
        ),
        sample_epsilon=epsilon_n,
        sample_delta=0.0,
    )
