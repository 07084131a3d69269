"""Binomial probabilities by Loader's saddle-point expansion, to ten digits at any size, the same on every machine.

The remaining error comes from the mean n p: relatively about 1e-16 times the distance from it.
"""

from math import inf, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import SERIES_TO, Floats, exp_each, log, log1p, log_each, odd_series

PIECE = 8192
"""Most numbers that are worked on at once, so that their temporary arrays stay in the processor's cache."""

_NEAR = 0.01
"""(x - mean)^2/(x + mean)^2 to which the series is used where others need the logarithm."""

_EXACT_BELOW = 16
_DIVISORS = (1188, 1680, 1260, 360)
_FEWER_FROM = 200
"""The first two terms are below 1e-19 from here on."""

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
    if not 0 < p < 1:
        return np.asarray(x == (n if p else 0), np.float64)
    if n.max(initial=0) <= _FEW:
        return _pmf_of_few(x, n, p)
    inside = (x > 0) & (x < n)
    if inside.all():
        exponent, scale = _inside(x.astype(float), n.astype(float), p)
    else:
        x, n = np.broadcast_arrays(x, n)
        low, high = (x == 0) & (n >= 0), (x == n) & (x > 0)
        exponent, scale = np.zeros(x.shape), np.zeros(x.shape)
        exponent[low], scale[low] = n[low] * log1p(-p), 1.0
        exponent[high], scale[high] = n[high] * log(p), 1.0
        exponent[inside], scale[inside] = _inside(x[inside].astype(float), n[inside].astype(float), p)
    result = exp_each(exponent)
    result *= scale
    return result


def _pmf_of_few(x: NDArray[np.int64], n: NDArray[np.int64], p: float) -> Floats:
    """Return the probabilities of up to _FEW trials, by a table of ln k!."""
    others = n - x
    exponent = _LN_FACTORIALS.take(n, mode="clip") - _LN_FACTORIALS.take(x, mode="clip")
    exponent -= _LN_FACTORIALS.take(others, mode="clip")
    exponent += x * log(p) + others * log1p(-p)
    return np.where((x >= 0) & (others >= 0), exp_each(exponent), 0.0)


def _inside(k: Floats, n: Floats, p: float) -> tuple[Floats, Floats]:
    """Return the logarithms of the probabilities for 0 < k < n, and factors of them.

    What depends on one of k and n alone is computed in its shape.
    """
    others = n - k
    exponent: Floats = _stirling_error(n) - _stirling_error(k)
    exponent -= _stirling_error(others)
    deviance = _deviance(k, n * p)
    deviance += _deviance(others, n * (1 - p))
    exponent -= deviance
    variance = 2 * pi * k * others
    np.divide(n, variance, out=variance)
    return exponent, np.sqrt(variance, out=variance)


def binomial_tail(x: int, n: int, p: float) -> float:
    """Return P(Bin(n, p) >= x), to ten digits where it is above e^-75.

    Args:
        n: number of trials.
        p: success probability in [0, 1].
    """
    last = max(x, window(n, p)[1])
    return min(1.0, float(binomial_pmf(np.arange(max(0, x), last + 1), n, p).sum()))


def _stirling_error(k: Floats) -> Floats:
    smallest = float(k.min(initial=inf))
    safe = k if smallest >= _EXACT_BELOW else np.maximum(k, _EXACT_BELOW)
    square = safe * safe
    np.divide(1, square, out=square)
    # The series is (1/12 - square (1/360 - square (1/1260 - square (1/1680 - square/1188))))/k.
    divisors = _DIVISORS if smallest < _FEWER_FROM else _DIVISORS[2:]
    series = square / divisors[0]
    for divisor in divisors[1:]:
        np.subtract(1 / divisor, series, out=series)
        series *= square
    np.subtract(1 / 12, series, out=series)
    series /= safe
    if smallest < _EXACT_BELOW:
        small = k < _EXACT_BELOW
        series[small] = _STIRLING[k[small].astype(np.int64)]
    return series


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x/mean) + mean - x without cancellation."""
    result = x - mean
    v = x + mean
    np.divide(result, v, out=v)
    square = v * v
    if is_any_far := float(square.max(initial=0.0)) > SERIES_TO:
        far = square > _NEAR
        square[far] = _NEAR
        logs = np.zeros(far.shape)
        logs[far] = log_each((x / mean)[far])
        logs *= x
        logs -= result
    # x ln(x/mean) + mean - x = (x - mean) v + 2 x v sum_{j>=1} v^(2j)/(2j+1).
    result *= v
    v *= 2 * x
    v *= odd_series(square)
    result += v
    return np.where(far, logs, result) if is_any_far else result


def _ln_factorials(last: int) -> Floats:
    k = np.arange(1, last + 1, dtype=np.float64)
    return np.concatenate([[0.0], (k + 0.5) * log_each(k) - k + 0.5 * log(2 * pi) + _stirling_error(k)])


_FEW = 1024
_LN_FACTORIALS = _ln_factorials(_FEW)


def window(n: int, p: float, *, log_mass: float = 75.0) -> tuple[int, int]:
    """Return an interval of Bin(n, p) outside which there is less than 2 e^-log_mass, by Bernstein's inequality."""
    mean, variance = n * p, n * p * (1 - p)
    reach = log_mass / 3 + sqrt(log_mass * log_mass / 9 + 2 * variance * log_mass)
    return max(0, int(mean - reach)), min(n, int(mean + reach) + 1)
