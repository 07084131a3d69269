"""The expected total variation of raw estimates, from exact biases and variances."""

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]


def expected_distance(bias: Floats | float, variance: Floats, nodes: int) -> float:
    """Return the mean of half the sum of |estimate - truth|, as fractions, of nearly normal estimates.

    E|X| = s sqrt(2/pi) exp(-b^2/(2 s^2)) + b (1 - 2 Phi(-b/s))    for X normal of mean b and variance s^2

    Args:
        bias: of the estimated counts, shape (d,) or one for all (nodes).
        variance: of the estimated counts, shape (d,) (nodes squared).
        nodes: n.

    Returns:
        The central limit theorem's approximation; counts of a few dozen reports are close to it.
    """
    spread = np.sqrt(np.maximum(variance, 1e-300))
    ratio = bias / spread
    each = spread * sqrt(2 / pi) * np.exp(-(ratio**2) / 2) + bias * (1 - 2 * ndtr(-ratio))
    return float(np.sum(each)) / (2 * nodes)
