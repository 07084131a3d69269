"""Guarantees in words: two digits, rounded up, and the factor of the odds."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.privacy.cards.guarantee_text import delta_text, epsilon_text, guarantee_text, odds_text

EPSILONS = st.decimals("0.000001", "13", places=6)


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        ("0.5", "0.50"),
        ("0.500000000001", "0.51"),
        ("0.994", "1.0"),
        ("1", "1.0"),
        ("1.61", "1.7"),
        ("9.91", "10"),
        ("12.01", "13"),
        ("487.01", "490"),
        ("0.00123", "0.0013"),
    ],
)
def test_an_epsilon_has_two_digits_and_is_rounded_up(epsilon: str, text: str) -> None:
    assert epsilon_text(Decimal(epsilon)) == text


@given(epsilon=EPSILONS)
def test_no_epsilon_is_written_below_what_it_is_nor_far_above(epsilon: Decimal) -> None:
    assert epsilon <= Decimal(epsilon_text(epsilon)) < epsilon * Decimal("1.1001")


@given(epsilon=EPSILONS)
def test_the_factor_of_the_odds_is_rounded_up_to_three_digits(epsilon: Decimal) -> None:
    factor = Decimal(odds_text(epsilon).rpartition(" ")[2].replace(",", ""))
    exact = Fraction(math.exp(epsilon))
    assert exact * Fraction(999_999, 1_000_000) < Fraction(factor) < exact * Fraction(1011, 1000)
    assert Fraction(factor) >= Fraction(epsilon.exp()) * Fraction(10**20 - 1, 10**20)


def test_a_factor_of_half_an_epsilon_is_that_of_the_books_and_a_huge_one_is_said_to_be_huge() -> None:
    assert odds_text(Decimal("0.5")) == "changes anyone's odds by at most the factor 1.65"
    assert odds_text(Decimal(50)) == "the factor of anyone's odds is above a million"


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        ("0.000001", "1e-6"),
        ("1E-7", "1e-7"),
        ("1e-7", "1e-7"),
        ("0.00000025", "2.5e-7"),
        ("0.001", "1e-3"),
        ("0.01", "0.01"),
    ],
)
def test_a_delta_has_one_spelling(delta: str, text: str) -> None:
    assert delta_text(Decimal(delta)) == text
    assert Decimal(text) == Decimal(delta)


def test_a_guarantee_without_a_delta_is_its_epsilon() -> None:
    assert guarantee_text(Decimal("0.5"), None) == guarantee_text(Decimal("0.5"), Decimal(0)) == "epsilon 0.50"
    assert guarantee_text(Decimal("0.5"), Decimal("1e-6")) == "epsilon 0.50 at delta 1e-6"
