"""Binomial probabilities by Loader's saddle-point expansion, to ten digits at any size, with numpy alone.

The remaining error comes from the mean n p: relatively about 1e-16 times the distance from it.
"""

from math import log1p, pi

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EXACT_BELOW = 16
_STIRLING = np.array(
    [
        0.0,
        0.08106146679532726,
        0.04134069595540929,
        0.02767792568499834,
        0.02079067210376509,
        0.01664469118982119,
        0.01387612882307075,
        0.01189670994589177,
        0.01041126526197209,
        0.009255462182712733,
        0.008330563433362871,
        0.007573675487951841,
        0.006942840107209530,
        0.006408994188004207,
        0.005951370112758848,
        0.005554733551962801,
    ]
)
"""ln(k!) - ln(sqrt(2 pi k) (k/e)^k) for k below 16 (the first entry is not used)."""


def binomial_pmf(x: NDArray[np.int64], n: NDArray[np.int64] | int, p: float) -> Floats:
    """Return P(Bin(n, p) = x) element by element; zero outside 0..n.

    Args:
        x: int64, any shape.
        n: number of trials, broadcast against x.
        p: success probability in [0, 1].

    Source: Loader (2000), Fast and accurate computation of binomial probabilities.
    """
    x, n = np.broadcast_arrays(np.asarray(x, np.int64), np.asarray(n, np.int64))
    result = np.zeros(x.shape)
    if p in {0.0, 1.0}:
        result[x == (n if p else 0)] = 1.0
        return result
    low, high = (x == 0) & (n >= 0), (x == n) & (x > 0)
    with np.errstate(under="ignore"):
        result[low] = np.exp(n[low] * log1p(-p))
        result[high] = np.exp(n[high] * np.log(p))
        inside = (x > 0) & (x < n)
        k, total = x[inside].astype(float), n[inside].astype(float)
        exponent = _stirling_error(total) - _stirling_error(k) - _stirling_error(total - k)
        exponent -= _deviance(k, total * p) + _deviance(total - k, total * (1 - p))
        result[inside] = np.exp(exponent) * np.sqrt(total / (2 * pi * k * (total - k)))
    return result


def binomial_tail(x: int, n: int, p: float) -> float:
    """Return P(Bin(n, p) >= x), to ten digits where it is above e^-75.

    Args:
        x: any whole number.
        n: number of trials.
        p: success probability in [0, 1].
    """
    last = max(x, window(n, p)[1])
    return min(1.0, float(binomial_pmf(np.arange(max(0, x), last + 1), n, p).sum()))


def _stirling_error(k: Floats) -> Floats:
    small = k < _EXACT_BELOW
    safe = np.where(small, _EXACT_BELOW, k)
    square = 1 / (safe * safe)
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    table = _STIRLING[np.where(small, k, 0).astype(np.int64)]
    return np.where(small, table, series / safe)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x/mean) + mean - x without cancellation."""
    difference = x - mean
    v = difference / (x + mean)
    near = np.abs(v) < 0.1
    # x ln(x/mean) + mean - x = difference * v + 2 x sum_{j>=1} v^(2j+1)/(2j+1); v^2 < 0.01, so ten terms are exact.
    total = np.zeros_like(x)
    square = np.where(near, v * v, 0.0)
    for j in range(10, 0, -1):
        total = (total + 1 / (2 * j + 1)) * square
    series = difference * v + 2 * x * v * total
    far = x * np.log(x / mean) + mean - x
    return np.where(near, series, far)


def window(n: int, p: float, *, log_mass: float = 75.0) -> tuple[int, int]:
    """Return an interval of Bin(n, p) outside which there is less than 2 e^-log_mass, by Bernstein's inequality."""
    mean, variance = n * p, n * p * (1 - p)
    reach = log_mass / 3 + (log_mass**2 / 9 + 2 * variance * log_mass) ** 0.5
    return max(0, int(mean - reach)), min(n, int(mean + reach) + 1)
