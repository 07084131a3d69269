"""The median's gain from sampling, by simulation: how its smooth sensitivity varies from sample to sample."""

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.pricing.gain import Gain, Variance, sample_epsilon
from veiltab.common.privacy.pricing.sensitivity import median_smooth_sensitivity, smooth_decay


def median_gain(  # noqa: PLR0913 - one argument a quantity
    values: NDArray[np.float64],
    *,
    sample: int,
    epsilon: float,
    delta: float,
    low: float,
    high: float,
    trials: int,
    seed: int,
) -> Gain:
    """Return the median's gain under Laplace noise of scale 2 S/epsilon, S the smooth sensitivity.

    V_N = 2 (2 S_N/epsilon)^2,    V_n = E (m_n - m_N)^2 + E 2 (2 S_n/epsilon_n)^2,    delta_n = (N/n) delta

    Args:
        values: the population, an odd number of values.
        sample: n, odd.
        epsilon: nats.
        delta: of the population's guarantee.
        low: least value of the domain.
        high: largest value of the domain.
        trials: samples drawn.
        seed: of the experiment.

    Raises:
        InvalidInputError: even numbers, or delta_n not below 1.

    Source: Hu, Drechsler, Kim, Section 4.3.
    """
    n, size = sample, len(values)
    epsilon_n = sample_epsilon(epsilon, population=size, sample=n)
    delta_n = delta * size / n
    if not 0 < delta_n < 1:
        raise InvalidInputError("(N/n) delta must lie between 0 and 1", where="delta")
    generator = np.random.default_rng(seed)

    def noise(data: NDArray[np.float64], eps: float, dlt: float) -> float:
        scale = 2 * median_smooth_sensitivity(data, low=low, high=high, beta=smooth_decay(eps, dlt)) / eps
        return 2 * scale**2

    middle = float(np.median(values))
    draws = [generator.choice(values, n, replace=False) for _ in range(trials)]
    return Gain(
        population=Variance(sampling=0.0, noise=noise(values, epsilon, delta)),
        sample=Variance(
            sampling=float(np.mean([(np.median(draw) - middle) ** 2 for draw in draws])),
            noise=float(np.mean([noise(draw, epsilon_n, delta_n) for draw in draws])),
        ),
        sample_epsilon=epsilon_n,
        sample_delta=delta_n,
    )


def odd_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values, without the largest if their number is even: the median's sensitivity is for odd numbers."""
    return values if len(values) % 2 else np.sort(values)[:-1]
