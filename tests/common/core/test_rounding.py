from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veiltab.common.core.numbers.rounding import (
    exp_above,
    exp_below,
    ln_above,
    ln_below,
    parse_delta,
    parse_epsilon,
    sqrt_of,
    upward,
)
from veiltab.common.errors import InvalidInputError


def exact(x: Decimal | Fraction | int) -> mpmath.mpf:
    """The value to 120 digits."""
    fraction = Fraction(x)
    return mpmath.mpf(fraction.numerator) / mpmath.mpf(fraction.denominator)


@given(st.decimals(min_value="1e-30", max_value=600, allow_nan=False, allow_infinity=False))
def test_exp_lies_between_its_bounds_and_close_to_them(x: Decimal) -> None:
    with mpmath.workdps(350):
        true = mpmath.exp(exact(x))
        assert exact(exp_below(x)) < true < exact(exp_above(x))
        assert exact(exp_above(x) - exp_below(x)) / true < mpmath.mpf("2e-58")


@given(st.fractions(min_value=1, max_value=10**40))
def test_ln_above_lies_above_and_close(x: Fraction) -> None:
    with mpmath.workdps(120):
        true = mpmath.log(exact(x))
        found = exact(ln_above(x))
        assert true <= found <= true + mpmath.mpf("1.000001e-12")


@given(st.fractions(min_value=1, max_value=10**40).filter(lambda x: x > 1))
@example(1 + Fraction(1, 3 * 10**50))
@example(Fraction(10**40 + 1, 3))
def test_ln_below_lies_below_and_close(x: Fraction) -> None:
    with mpmath.workdps(140):
        true = mpmath.log(exact(x))
        found = exact(ln_below(x))
        assert true - mpmath.mpf("1e-57") <= found < true


def test_ln_above_of_one_is_zero_and_below_one_is_refused() -> None:
    assert ln_above(Fraction(1)) == 0
    with pytest.raises(InvalidInputError):
        ln_above(Fraction(999, 1000))


@given(st.fractions(min_value=0, max_value=10**12))
def test_sqrt_is_exact_to_58_digits(x: Fraction) -> None:
    with mpmath.workdps(120):
        assert abs(exact(sqrt_of(x)) - mpmath.sqrt(exact(x))) <= mpmath.mpf("1e-50")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "NaN", "sNaN", "inf", "-Infinity", "", "one", "100.0001", "1e400"])
def test_epsilons_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a number from 1e-12 to 100"):
        parse_epsilon(text)


def test_numbers_are_what_python_shows() -> None:
    assert parse_epsilon(0.1) == Decimal("0.1")
    assert parse_epsilon(0.1 + 0.2) == Decimal("0.30000000000000004")
    assert parse_epsilon(np.float64(0.1)) == Decimal("0.1")
    assert parse_epsilon(1) == Decimal(1)
    assert parse_delta(1e-6) == Decimal("1e-6")
    for number in (True, float("nan"), 0, -1):
        with pytest.raises(InvalidInputError, match="not a number from 1e-12 to 100"):
            parse_epsilon(number)


@pytest.mark.parametrize("text", ["0", "1", "-0.1", "1.1", "nan", "sNaN", "inf", "", "one"])
def test_deltas_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a number from 1e-12 on and below 1"):
        parse_delta(text)


UPPER = [
    ("0.1", "0.100000"),
    ("0.1000001", "0.100001"),
    ("0.0001", "0.000100"),
    ("9.9991e-5", "1e-4"),
    ("1e-30", "1e-30"),
    ("12", "12.000000"),
]


@pytest.mark.parametrize(("value", "text"), UPPER)
def test_upper_bounds_are_written_rounded_up(value: str, text: str) -> None:
    assert upward(Decimal(value)) == text


@pytest.mark.parametrize("parse", [parse_epsilon, parse_delta])
def test_numbers_that_nobody_can_compute_with_are_refused(parse: Callable[[str | Decimal], Decimal]) -> None:
    assert parse("0." + "1" * 98) == Decimal("0." + "1" * 98)
    assert parse("1e-12") == Decimal("1e-12")
    for long in ("0." + "1" * 99, "0." + "1" * 900_000, "1" + "0" * 100 + "e-101"):
        with pytest.raises(InvalidInputError, match="more than 100 characters"):
            parse(long)
        with pytest.raises(InvalidInputError, match=r"more than 100 characters|no less than"):
            parse(Decimal(long))
    for small in ("0.99e-12", "1e-999999999", Decimal("1e-400")):
        with pytest.raises(InvalidInputError, match="a number from 1e-12"):
            parse(small)
