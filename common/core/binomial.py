"""Binomial probabilities by Loader's saddle-point expansion, to ten digits at any size, with numpy alone.

The remaining error comes from the mean n p: relatively about 1e-16 times the distance from it.
"""

from math import log1p, pi

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PIECE = 8192
"""Most numbers that are worked on at once, so that their temporary arrays stay in the processor's cache."""

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
    x, n = np.asarray(x, np.int64), np.asarray(n, np.int64)
    shape = np.broadcast_shapes(x.shape, n.shape)
    result = np.empty(shape or 1)
    with np.errstate(under="ignore"):
        _fill(result, _with_axes(x, result.ndim), _with_axes(n, result.ndim), p)
    return result.reshape(shape)


def _with_axes(array: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return array.reshape((1,) * (count - array.ndim) + array.shape)


def _fill(result: Floats, x: NDArray[np.int64], n: NDArray[np.int64], p: float) -> None:
    """Fill an array with probabilities, by halves of its longest axis down to pieces."""
    if result.size <= PIECE:
        result[...] = _pmf(x, n, p)
        return
    axis = int(np.argmax(result.shape))
    middle = result.shape[axis] // 2
    for half in (slice(middle), slice(middle, None)):
        at = (slice(None),) * axis + (half,)
        part_of_x, part_of_n = (each if each.shape[axis] == 1 else each[at] for each in (x, n))
        _fill(result[at], part_of_x, part_of_n, p)


def _pmf(x: NDArray[np.int64], n: NDArray[np.int64], p: float) -> Floats:
    inside = (x > 0) & (x < n)
    if 0 < p < 1 and inside.all():
        return _pmf_inside(x.astype(float), n.astype(float), p)
    x, n = np.broadcast_arrays(x, n)
    result = np.zeros(x.shape)
    if p in {0.0, 1.0}:
        result[x == (n if p else 0)] = 1.0
        return result
    low, high = (x == 0) & (n >= 0), (x == n) & (x > 0)
    result[low] = np.exp(n[low] * log1p(-p))
    result[high] = np.exp(n[high] * np.log(p))
    result[inside] = _pmf_inside(x[inside].astype(float), n[inside].astype(float), p)
    return result


def _pmf_inside(k: Floats, n: Floats, p: float) -> Floats:
    """Return the probabilities for 0 < k < n; what depends on one of them alone is computed in its shape."""
    others = n - k
    exponent: Floats = _stirling_error(n) - _stirling_error(k)
    exponent -= _stirling_error(others)
    deviance = _deviance(k, n * p)
    deviance += _deviance(others, n * (1 - p))
    exponent -= deviance
    np.exp(exponent, out=exponent)
    variance = 2 * pi * k * others
    np.divide(n, variance, out=variance)
    exponent *= np.sqrt(variance, out=variance)
    return exponent


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
    safe = np.maximum(k, _EXACT_BELOW)
    square = safe * safe
    np.divide(1, square, out=square)
    # The series is (1/12 - square (1/360 - square (1/1260 - square (1/1680 - square/1188))))/k.
    series = square / 1188
    for divisor in (1680, 1260, 360):
        np.subtract(1 / divisor, series, out=series)
        series *= square
    np.subtract(1 / 12, series, out=series)
    series /= safe
    if small.any():
        series[small] = _STIRLING[k[small].astype(np.int64)]
    return series


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x/mean) + mean - x without cancellation."""
    series = x - mean
    v = x + mean
    np.divide(series, v, out=v)
    near = np.abs(v) < 0.1
    # x ln(x/mean) + mean - x = (x - mean) v + 2 x sum_{j>=1} v^(2j+1)/(2j+1); v^2 < 0.01, so ten terms are exact.
    square = v * v
    total = square * (1 / 21)
    for j in range(9, 0, -1):
        total += 1 / (2 * j + 1)
        total *= square
    series *= v
    v *= 2 * x
    v *= total
    series += v
    return series if near.all() else np.where(near, series, x * np.log(x / mean) + mean - x)


def window(n: int, p: float, *, log_mass: float = 75.0) -> tuple[int, int]:
    """Return an interval of Bin(n, p) outside which there is less than 2 e^-log_mass, by Bernstein's inequality."""
    mean, variance = n * p, n * p * (1 - p)
    reach = log_mass / 3 + (log_mass**2 / 9 + 2 * variance * log_mass) ** 0.5
    return max(0, int(mean - reach)), min(n, int(mean + reach) + 1)
