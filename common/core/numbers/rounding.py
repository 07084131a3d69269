"""Exponentials and logarithms with a direction: exact decimal arithmetic, never a float.

Every privacy parameter passes through here, so that a claimed guarantee is an upper bound and a granted one a lower
bound (Mironov 2012 shows what floating point does to such a claim).
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

from veiltab.common.errors import InvalidInputError

MAX_EPSILON = Decimal(100)
"""Largest epsilon (nats) that is accepted; a larger one protects nobody."""

MIN_PARAMETER = Decimal("1e-12")
"""Smallest epsilon (nats) and delta that are accepted: bounds are rounded up to multiples of it."""

MAX_DIGITS = 100
"""Most characters of an epsilon or a delta; more cost time in every plan and composition, and say nothing."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_SMALL, _MILLIONTH = Decimal("1e-4"), Decimal("1e-6")
_PRECISION = 60
_UP = Context(prec=_PRECISION, rounding=ROUND_CEILING)
_DOWN = Context(prec=_PRECISION, rounding=ROUND_FLOOR)


Parameter = str | Decimal | float
"""What a caller may give for an epsilon, a delta or a part of the noise; an int is a float to a type checker."""


def exact_decimal(value: Parameter) -> Decimal:
    """Return a number as an exact decimal; a float is the number that Python shows for it, so that 0.1 is "0.1".

    Raises:
        InvalidOperation: a text that is not a number, or a bool.
    """
    return value if isinstance(value, Decimal) else Decimal(str(value))


def parse_epsilon(value: Parameter, *, what: str = "epsilon") -> Decimal:
    """Return epsilon (nats) as an exact decimal.

    Args:
        value: a text, a decimal, or a number, which counts as Python shows it.
        what: its name in a refusal.

    Raises:
        InvalidInputError: it is not a number from 1e-12 to 100, or has more than 100 characters.
    """
    epsilon = _parameter(value, what)
    if not MIN_PARAMETER <= epsilon <= MAX_EPSILON:
        raise InvalidInputError(
            f"{str(value)!r} is not a number from {spelled(MIN_PARAMETER)} to {MAX_EPSILON}",
            where=what,
            remedy=_rewritten(value) or "Enter nats, such as 0.5.",
        )
    return epsilon


def parse_delta(value: Parameter) -> Decimal:
    """Return delta as an exact decimal; see `parse_epsilon`.

    Raises:
        InvalidInputError: it is not a number from 1e-12 and below 1, or has more than 100 characters.
    """
    delta = _parameter(value, "delta")
    if not MIN_PARAMETER <= delta < 1:
        raise InvalidInputError(
            f"{str(value)!r} is not a number from {spelled(MIN_PARAMETER)} on and below 1",
            where="delta",
            remedy=_rewritten(value) or "Enter a small one, such as 1e-6.",
        )
    return delta


def _parameter(value: Parameter, what: str) -> Decimal:
    """Return a number, or -1 for what is none; compared with it, NaN would raise."""
    text = str(value)
    if len(text) > MAX_DIGITS:
        raise InvalidInputError(f"{what} has more than {MAX_DIGITS} characters", where=what)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return Decimal(-1)
    return number if number.is_finite() else Decimal(-1)


def _rewritten(value: Parameter) -> str:
    """Say how a number with a decimal comma is written; nothing of other texts."""
    text = str(value)
    return f"Write it with a point: {text.replace(',', '.')}." if _DECIMAL_COMMA.fullmatch(text) else ""


def spelled(value: Decimal) -> str:
    """Write a number from 0 on in one spelling, with every digit: 0.01, 1e-6, 2.5e-7."""
    plain = value.normalize()
    if plain == 0 or plain.adjusted() > -3:
        return f"{plain:f}"
    mantissa = plain.scaleb(-plain.adjusted()).normalize()
    return f"{mantissa:f}e{plain.adjusted()}"


def bound_text(value: Decimal | float, digits: int = 6) -> str:
    """Write an upper bound with so many digits, rounded up; no smaller than it stands in JSON."""
    return spelled(Context(prec=digits, rounding=ROUND_CEILING).plus(exact_decimal(value)))


def upward(value: Decimal) -> str:
    """Write an upper bound with six decimals, rounded up; one below 1e-4 with three digits."""
    if 0 < value < _SMALL:
        return bound_text(value, 3)
    return f"{value.quantize(_MILLIONTH, rounding=ROUND_CEILING):f}"


def downward(value: Decimal) -> str:
    """Write a lower bound with six decimals, rounded down."""
    return f"{value.quantize(_MILLIONTH, rounding=ROUND_FLOOR):f}"


def exp_below(x: Decimal) -> Fraction:
    """Return a rational number at most e^x and within a relative 1e-58 of it."""
    return Fraction(_DOWN.next_minus(_DOWN.exp(x)))


def exp_above(x: Decimal) -> Fraction:
    """Return a rational number at least e^x and within a relative 1e-58 of it."""
    return Fraction(_UP.next_plus(_UP.exp(x)))


def ln_above(x: Fraction) -> Decimal:
    """Return ln x (nats) rounded up to a multiple of 1e-12, for x >= 1."""
    if x < 1:
        raise InvalidInputError("the worst-case ratio is below 1")
    ratio = _UP.divide(Decimal(x.numerator), Decimal(x.denominator))
    return _UP.next_plus(_UP.ln(ratio)).quantize(MIN_PARAMETER, rounding=ROUND_CEILING) if x > 1 else Decimal(0)


def ln_below(x: Fraction) -> Decimal:
    """Return a decimal at most ln x and within 1e-57 of it, for x above 1."""
    return _DOWN.next_minus(_DOWN.ln(_DOWN.divide(Decimal(x.numerator), Decimal(x.denominator))))


def sqrt_of(x: Fraction) -> Decimal:
    """Return the square root to 60 digits, the same on every machine: the curators must agree on results."""
    return _DOWN.sqrt(_DOWN.divide(Decimal(x.numerator), Decimal(x.denominator)))
