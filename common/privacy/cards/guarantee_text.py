"""A guarantee in words: the same on cards, pages, commands and reports. Every figure is rounded up."""

from decimal import ROUND_CEILING, Context, Decimal

from veiltab.common.core.numbers.rounding import exp_above, spelled

_LARGEST_FACTOR = Decimal(10) ** 6


def digits_above(value: Decimal, digits: int) -> Decimal:
    """Return a positive number, rounded up to so many digits."""
    return Context(prec=digits, rounding=ROUND_CEILING).plus(value)


def epsilon_text(epsilon: Decimal) -> str:
    """Write an epsilon (nats) with two digits, rounded up: 0.50, 1.7, 12."""
    digits = digits_above(epsilon, 2)
    return f"{digits.quantize(Decimal(1).scaleb(min(digits.adjusted() - 1, 0))):f}" if digits < 100 else f"{digits:f}"


def delta_text(delta: Decimal | str | None) -> str:
    """Write a delta (probability) in one spelling, with every digit: 1e-6, 2.5e-7, 0.01; 0 if none."""
    return spelled(Decimal(delta or 0))


def odds_text(epsilon: Decimal) -> str:
    """Say by which factor e^epsilon, rounded up to three digits, it changes the odds about one respondent at most."""
    factor = exp_above(epsilon)
    if factor > _LARGEST_FACTOR:
        return "the factor of anyone's odds is above a million"
    above = digits_above(Decimal(factor.numerator) / Decimal(factor.denominator) * (1 + Decimal("1e-25")), 3)
    return f"changes anyone's odds by at most the factor {above:,f}"


def guarantee_text(epsilon: Decimal, delta: Decimal | None) -> str:
    """Write (epsilon, delta) as people read it; without a delta it is a pure epsilon."""
    return f"epsilon {epsilon_text(epsilon)}" + (f" at delta {delta_text(delta)}" if delta else "")
