"""What receipts accept and how many canaries are planned, beside exact rational sums."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import comb

import pytest

from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.common.release.receipt import accepted, planned_canaries, receipt_of, shown_share
from veiltab.common.release.spec import ReleaseSpec

Make = Callable[..., ReleaseSpec]
LEVEL = Decimal("1e-9") / 3


def exactly_at_most(k: int, n: int, p: Fraction) -> Fraction:
    return sum((comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)), Fraction(0))


@pytest.mark.parametrize("p", [Fraction(1, 50), Fraction(1, 2), Fraction(9, 10), Fraction(1, UNIT), Fraction(1)])
@pytest.mark.parametrize("n", [0, 1, 30, 400])
def test_the_bounds_are_those_of_the_exact_law(n: int, p: Fraction) -> None:
    low, high = accepted(n, p, LEVEL)
    half = Fraction(LEVEL) / 2
    below = exactly_at_most(low - 1, n, p) if low else Fraction(0)
    above = 1 - exactly_at_most(high, n, p)
    assert below <= half * (1 + Fraction(1, 10**12))
    assert above <= half * (1 + Fraction(1, 10**12))
    # One more on either side would be too many.
    assert exactly_at_most(low, n, p) > half * (1 - Fraction(1, 10**12))
    assert high == 0 or 1 - exactly_at_most(high - 1, n, p) > half * (1 - Fraction(1, 10**12))


def test_the_planned_canaries_are_the_least_that_show_half_of_the_noise() -> None:
    server, cells = GammaDiagonal(cells=24, replacement=UNIT // 20), (4, 6)
    planned = planned_canaries(server, cells, 10**6)
    p = Fraction(1, 20) * Fraction(3, 4)
    low, _ = accepted(planned, p, LEVEL)
    assert exactly_at_most(low - 1, planned, p / 2) >= Fraction(999, 1000)
    fewer = planned - planned // 100
    low, _ = accepted(fewer, p, LEVEL)
    assert exactly_at_most(low - 1, fewer, p / 2) < Fraction(999, 1000)
    assert 250 < planned * p < 300


def test_canaries_that_show_less_say_what_they_show() -> None:
    server = GammaDiagonal(cells=24, replacement=UNIT // 20)
    planned = planned_canaries(server, (4, 6), 10**6)
    assert shown_share(server, (4, 6), planned) >= 0.5
    assert 0 < shown_share(server, (4, 6), planned // 3) < 0.5
    assert shown_share(server, (4, 6), 10) == 0
    assert planned_canaries(GammaDiagonal(cells=24, replacement=1), (4, 6), 100) == 1024


def test_large_plans_take_no_time_and_are_the_same_everywhere() -> None:
    assert planned_canaries(GammaDiagonal(cells=24, replacement=UNIT // 10**4), (4, 6), 10**8) == 3568228


def test_a_receipt_says_what_was_expected(make_spec: Make) -> None:
    spec = make_spec(server_replacement=2**63, canaries=1000)
    receipt = receipt_of(spec, "bob", canaries=1000, changed=251)
    assert (receipt.expected, receipt.sd) == (Decimal("250.000"), Decimal("13.693"))
    assert receipt.passed
    assert not receipt_of(spec, "bob", canaries=1000, changed=0).passed
    assert not receipt_of(spec, "bob", canaries=1000, changed=125).passed
    assert not receipt_of(spec, "bob", canaries=1000, changed=500).passed
    assert receipt_of(spec, "", canaries=1000, changed=375).passed
