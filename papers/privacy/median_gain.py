"""The median's gain from sampling, by simulation: how what one respondent can do to it varies from sample to sample."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.errors import InvalidInputError
from veiltab.papers.privacy.gain import Gain, Variance, sample_epsilon
from veiltab.papers.privacy.sensitivity import median_smooth_sensitivity, smooth_decay

_RATES = 24
"""Sizes of samples that are looked at between 1 and N; as many again, about, between the neighbours of the best."""


class MedianMechanism(StrEnum):
    """How a median is privatised."""

    LAPLACE = "laplace"
    EXPONENTIAL = "exponential"


def median_gain(  # noqa: PLR0913 - one argument a quantity
    values: NDArray[np.float64],
    *,
    mechanism: MedianMechanism,
    sample: int,
    epsilon: float,
    delta: float,
    low: float,
    high: float,
    trials: int,
    seed: int,
) -> Gain:
    """Return the median's gain: mean squared errors about the median m_N of the population.

    Laplace noise of scale 2 S/epsilon, S the smooth sensitivity, is (epsilon, delta)-private:

        V_N = 2 (2 S_N/epsilon)^2,    V_n = E (m_n - m_N)^2 + E 2 (2 S_n/epsilon_n)^2,    delta_n = (N/n) delta

    The exponential mechanism, with a density in proportion to e^{-epsilon |#{x < y} - n/2| / 2}, is epsilon-private:

        V_N = E (y - m_N)^2,    V_n = E E (y - m_n)^2 + what is left of E E (y - m_N)^2, which counts as sampling

    Args:
        values: the population, an odd number of values.
        mechanism: how a median is privatised.
        sample: n, odd.
        epsilon: nats.
        delta: of the population's guarantee; 0 for the exponential mechanism.
        low: least value of the domain.
        high: largest value of the domain.

    Raises:
        InvalidInputError: even numbers, or delta_n not below 1, or 0 with Laplace noise.

    Source: Hu, Drechsler, Kim, Section 4.3; McSherry, Talwar 2007, Theorem 6.
    """
    n, size = sample, len(values)
    epsilon_n = sample_epsilon(epsilon, population=size, sample=n)
    delta_n = delta * size / n
    if mechanism is MedianMechanism.LAPLACE and not 0 < delta_n < 1:
        raise InvalidInputError("(N/n) delta must lie between 0 and 1", where="delta")
    generator = np.random.default_rng(seed)

    def noise(data: NDArray[np.float64], eps: float, dlt: float, about: float) -> float:
        if mechanism is MedianMechanism.EXPONENTIAL:
            return exponential_median_error(data, epsilon=eps, low=low, high=high, about=about)
        scale = 2 * median_smooth_sensitivity(data, low=low, high=high, beta=smooth_decay(eps, dlt)) / eps
        return 2 * scale**2

    middle = float(np.median(values))
    sampling, within = [], []
    for _ in range(trials):
        draw = generator.choice(values, n, replace=False)
        own = float(np.median(draw))
        within.append(noise(draw, epsilon_n, delta_n, own))
        if mechanism is MedianMechanism.EXPONENTIAL:
            sampling.append(noise(draw, epsilon_n, delta_n, middle) - within[-1])
        else:
            sampling.append((own - middle) ** 2)
    return Gain(
        population=Variance(sampling=0.0, noise=noise(values, epsilon, delta, middle)),
        sample=Variance(sampling=float(np.mean(sampling)), noise=float(np.mean(within))),
        sample_epsilon=epsilon_n,
        sample_delta=delta_n,
    )


def exponential_median_error(values: Floats, *, epsilon: float, low: float, high: float, about: float) -> float:
    """Return the mean squared error E (y - about)^2 of a median by the exponential mechanism, exactly.

    y has a density in proportion to e^{-epsilon |#{x < y} - n/2| / 2} on [low, high]. A substitution moves #{x < y} by
    at most one, so y is epsilon-private.

    Args:
        values: (n,) float64 within [low, high], any order.
        epsilon: nats, above 0.
        low: least value of the domain.
        high: largest value of the domain.
        about: the value from which errors count.

    Raises:
        InvalidInputError: values outside the bounds, or bounds out of order.

    Source: McSherry, Talwar 2007, Theorem 6.
    """
    ends = np.concatenate([[low], np.sort(values), [high]])
    if not (low < high and ends[0] <= ends[1] and ends[-2] <= ends[-1]):
        raise InvalidInputError("values must lie within [low, high]", where="values")
    widths = np.diff(ends)
    exponents = -epsilon / 2 * np.abs(np.arange(len(widths)) - len(values) / 2)
    weights = widths * np.exp(np.minimum(exponents - exponents[widths > 0].max(), 0.0))
    left, right = ends[:-1] - about, ends[1:] - about
    return float(weights @ (left * left + left * right + right * right) / (3 * weights.sum()))


def best_sample(size: int, gain_of: Callable[[int], Gain]) -> int:
    """Return the odd size of a sample with the least error among some fifty between 1 and N, N included.

    Args:
        size: N, odd.
        gain_of: the gain of a sample of n.
    """

    def errors(sizes: NDArray[np.float64]) -> dict[int, float]:
        odd = {min(size, int(one) // 2 * 2 + 1) for one in sizes}
        return {one: gain_of(one).sample.total for one in sorted(odd)}

    looked = errors(np.geomspace(1, size, _RATES))
    sizes = list(looked)
    at = sizes.index(min(looked, key=lambda one: looked[one]))
    looked |= errors(np.geomspace(sizes[max(at - 1, 0)], sizes[min(at + 1, len(sizes) - 1)], _RATES))
    return min(looked, key=lambda one: looked[one])


def odd_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values, without the largest if their number is even: the median's sensitivity is for odd numbers."""
    return values if len(values) % 2 else np.sort(values)[:-1]
