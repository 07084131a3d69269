"""Exponentials and logarithms with a direction: exact decimal arithmetic, never a float.

Every privacy parameter passes through here, so that what is claimed is an upper bound and what is granted a lower one
(Mironov 2012 shows what floating point does to such a claim).
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

from veiltab.common.errors import InvalidInputError

MAX_EPSILON = Decimal(100)
"""Largest epsilon (nats) that is accepted; beyond it the word privacy means nothing."""

_PRECISION = 60
_UP = Context(prec=_PRECISION, rounding=ROUND_CEILING)
_DOWN = Context(prec=_PRECISION, rounding=ROUND_FLOOR)
_REPORTED = Decimal("1e-12")


def parse_epsilon(value: str | Decimal, *, what: str = "epsilon") -> Decimal:
    """Return epsilon (nats) as an exact decimal.

    Raises:
        InvalidInputError: it is not a number in (0, 100].
    """
    try:
        epsilon = Decimal(value)
    except InvalidOperation:
        epsilon = Decimal("NaN")
    if not (epsilon.is_finite() and 0 < epsilon <= MAX_EPSILON):
        raise InvalidInputError(f"{what} must be a number above 0 and at most {MAX_EPSILON}", where=what)
    return epsilon


def parse_delta(value: str | Decimal) -> Decimal:
    """Return delta as an exact decimal.

    Raises:
        InvalidInputError: it is not a number strictly between 0 and 1.
    """
    try:
        delta = Decimal(value)
    except InvalidOperation:
        delta = Decimal("NaN")
    if not (delta.is_finite() and 0 < delta < 1):
        raise InvalidInputError("delta must lie between 0 and 1, both excluded", where="delta")
    return delta


def upward(value: Decimal) -> str:
    """Write an upper bound with six decimals, rounded up."""
    return f"{value.quantize(Decimal('1e-6'), rounding=ROUND_CEILING):f}"


def exp_below(x: Decimal) -> Fraction:
    """Return a rational number at most e^x and within a relative 1e-58 of it."""
    return Fraction(_DOWN.next_minus(_DOWN.exp(x)))


def ln_above(x: Fraction) -> Decimal:
    """Return ln x (nats) rounded up to a multiple of 1e-12, for x >= 1."""
    if x < 1:
        raise InvalidInputError("a worst-case ratio is at least 1")
    ratio = _UP.divide(Decimal(x.numerator), Decimal(x.denominator))
    return _UP.next_plus(_UP.ln(ratio)).quantize(_REPORTED, rounding=ROUND_CEILING) if x > 1 else Decimal(0)


def ln_below(x: Fraction) -> Decimal:
    """Return a decimal at most ln x and within 1e-57 of it, for x above 1."""
    return _DOWN.next_minus(_DOWN.ln(_DOWN.divide(Decimal(x.numerator), Decimal(x.denominator))))


def sqrt_of(x: Fraction) -> Decimal:
    """Return the square root to 60 digits: the same on every machine, as the curators must agree on what follows."""
    return _DOWN.sqrt(_DOWN.divide(Decimal(x.numerator), Decimal(x.denominator)))
