"""Exponentials and logarithms with the same digits on every machine.

Those of NumPy and of the C library differ in the last digit between processors and between versions. These consist of
what IEEE 754 fixes to the last bit: sums, products, quotients and roundings of float64, one at a time.

Curators compare what they plan to the last digit, and anyone who checks a release computes its epsilons again; so what
decides these takes its exponentials and logarithms from here, its roots from sqrt, and no sum whose order a BLAS
chooses.
"""

import math
from decimal import Context, Decimal
from itertools import accumulate, repeat
from math import frexp, inf

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_DIGITS = Context(prec=40)
_LN_2 = _DIGITS.ln(Decimal(2))

_STEPS = 256
"""Powers of two that are tabulated from 1 to below 2."""

_STEP = _DIGITS.divide(_LN_2, Decimal(_STEPS))
_PER_STEP = float(_DIGITS.divide(Decimal(_STEPS), _LN_2))
_STEP_HIGH = int(_STEP * 2**38) / 2**38
_STEP_LOW = float(_STEP - Decimal(_STEP_HIGH))
"""Both together are ln(2)/256; the product of the first with a whole number below 2^23 is exact."""

# One product after the other: of 256 powers at 40 digits, a process would take 17 ms at its start.
_ROOT = _DIGITS.power(Decimal(2), 1 / Decimal(_STEPS))
_ROOTS = np.array([*map(float, accumulate(repeat(_ROOT, _STEPS - 1), _DIGITS.multiply, initial=Decimal(1)))])
_LEAST_POWER = -1100
_POWERS = np.append(np.ldexp(1.0, np.arange(_LEAST_POWER, 1024)), inf)
_SHIFT = 1.5 * 2**52
"""Added to a small number it leaves the nearest whole one in the last bits."""

_SHIFT_BITS = int(np.float64(_SHIFT).view(np.int64))

_LN_2_HIGH = int(_LN_2 * 2**38) / 2**38
_LN_2_LOW = float(_LN_2 - Decimal(_LN_2_HIGH))

_LOG_STEPS, _FIRST_LOG, _LAST_LOG = 64, 45, 90
_LOGS = np.array([float(_DIGITS.ln(Decimal(i) / _LOG_STEPS)) for i in range(_FIRST_LOG, _LAST_LOG + 1)])
"""ln(i/64), for numbers from .7 to 1.4."""

_NEAR = 0.5
"""Numbers below have an e^x - 1 by a series of their own."""

SERIES_TO = 0.09
"""Largest square that `odd_series` takes."""

_ODD = tuple(1 / (2 * j + 1) for j in range(1, 17))
_HALF_ULP = 2.0**-53


def exp_each(x: Floats) -> Floats:
    """Return e^x element by element, within two units of the last place.

    e^x = 2^(i/256) e^r with a whole i and |r| <= ln(2)/512.

    Args:
        x: of any shape, between -10^11 and 10^11. From 709.781 on, the result is infinite.
    """
    turns = x * _PER_STEP
    turns += _SHIFT
    bits = turns.view(np.int64)
    root = bits & (_STEPS - 1)
    power = bits >> 8
    power -= (_SHIFT_BITS >> 8) + _LEAST_POWER
    turns -= _SHIFT
    rest = turns * _STEP_HIGH
    np.subtract(x, rest, out=rest)
    turns *= _STEP_LOW
    rest -= turns
    # e^r - 1 = r + r^2 (1/2 + r (1/6 + r/24)), but for 4e-17.
    result: Floats = rest * (1 / 24)
    result += 1 / 6
    result *= rest
    result += 1 / 2
    result *= rest
    result *= rest
    result += rest
    scale = _ROOTS.take(root, mode="clip")
    result *= scale
    result += scale
    result *= _POWERS.take(power, mode="clip")
    return result


def expm1_each(x: Floats) -> Floats:
    """Return e^x - 1 element by element, within three units of the last place.

    Args:
        x: of any shape, between 0 and 10^11.
    """
    near = x < _NEAR
    all_near = bool(near.all())
    small = x if all_near else np.where(near, x, 0.0)
    # The sum of x^k/k!, by Horner's rule and by as many terms as x needs.
    largest = float(small.max(initial=0.0))
    terms, term = 1, largest
    while term > _HALF_ULP:
        terms += 1
        term *= largest / terms
    series = small / terms
    for k in range(terms - 1, 0, -1):
        series += 1
        series *= small
        series /= k
    return series if all_near else np.where(near, series, exp_each(x) - 1)


def log_each(x: Floats) -> Floats:
    """Return ln x element by element, within three units of the last place.

    Args:
        x: of any shape, above 0 and finite.
    """
    part, power = np.frexp(x)
    is_small = part < 0.7
    part = np.where(is_small, 2 * part, part)
    powers = (power - is_small).astype(np.float64)
    place = np.rint(part * _LOG_STEPS)
    centre = place / _LOG_STEPS
    # Exact, as both have as good as the same size.
    v = part - centre
    v /= part + centre
    result: Floats = odd_series(v * v)
    result *= v
    result += v
    result *= 2
    result += powers * _LN_2_LOW
    result += _LOGS.take(place.astype(np.int64) - _FIRST_LOG, mode="clip")
    result += powers * _LN_2_HIGH
    return result


def odd_series(square: Floats) -> Floats:
    """Return sum_{j>=1} v^(2j) / (2j+1), which is ln((1+v)/(1-v))/(2v) - 1, by as many terms as v needs.

    Args:
        square: v^2, at most SERIES_TO.
    """
    largest = float(square.max(initial=0.0))
    terms, term = 1, largest
    while terms < len(_ODD) and term > _HALF_ULP:
        terms, term = terms + 1, term * largest
    total: Floats = square * _ODD[terms - 1]
    for coefficient in _ODD[terms - 2 :: -1] if terms > 1 else ():
        total += coefficient
        total *= square
    return total


def exp(x: float) -> float:
    """Return e^x, within two units of the last place; x as for `exp_each`."""
    return float(exp_each(np.array([x]))[0])


def log(x: float) -> float:
    """Return ln x, within three units of the last place; x above 0, perhaps infinite.

    Raises:
        ValueError: x is 0 or below.
    """
    if not 0 < x < inf:
        return math.log(x)
    part, power = frexp(x)
    if part < 0.7:
        part, power = 2 * part, power - 1
    return (_log_near_1(part - 1) + power * _LN_2_LOW) + power * _LN_2_HIGH


def log1p(x: float) -> float:
    """Return ln(1 + x), within four units of the last place; x above -1, perhaps infinite.

    Raises:
        ValueError: x is -1 or below.
    """
    return _log_near_1(x) if -0.3 < x < 0.4 else log(1 + x)


def _log_near_1(x: float) -> float:
    v = x / (2 + x)
    square, total = v * v, 0.0
    for coefficient in reversed(_ODD):
        total = (total + coefficient) * square
    return 2 * (v + v * total)
