"""Theorem A for up to a billion rows, against sums of many digits."""

from decimal import Decimal
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.privacy.enumeration import bracketed
from tests.common.privacy.precise import Half, with_few_counts, with_many_counts
from tests.common.privacy.verified_price import is_price
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy import order_laws, shuffle
from veiltab.common.privacy.calibration import calibrate
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.order_profile import OrderProfile
from veiltab.common.privacy.pricing.price import central_limit_gamma, is_certified, mechanism_at, price
from veiltab.common.privacy.shuffle import MAX_SAMPLE, OrderCertificate
from veiltab.common.schemes import scheme_of

BILLION = 10**9
EVERYBODY = scheme_of("wor", population=BILLION, sample=BILLION)


def certificate(n: int, m: int, cells: int, gamma: str, presence: str = "1") -> OrderCertificate:
    return OrderCertificate(population=n, sample=m, cells=cells, gamma=Fraction(gamma), presence=Fraction(presence))


def profile_at(bound: OrderCertificate, epsilon: float) -> Fraction:
    return Fraction(float(OrderProfile(bound, negligible=1e-12).deltas(np.array([epsilon]))[0]))


@pytest.mark.parametrize(("n", "m", "cells", "presence"), [(9, 6, 2, "1"), (12, 12, 4, "1"), (10, 10, 3, "2/3")])
def test_the_sum_over_few_counts_is_the_formula(n: int, m: int, cells: int, presence: str) -> None:
    bound = certificate(n, m, cells, "7/2", presence)
    for epsilon in (0.05, 0.4):
        least, most = bracketed(bound, epsilon)
        assert least * (1 - Fraction(1, 10**50)) <= with_few_counts(bound, epsilon, m) <= most


@pytest.mark.parametrize(("m", "cells"), [(14, 2), (30, 2), (16, 4)])
def test_the_sum_over_many_counts_is_hardly_below_the_formula(m: int, cells: int) -> None:
    bound = certificate(m, m, cells, "5")
    for epsilon in (0.05, 0.2):
        exact = bracketed(bound, epsilon)[0]
        assert exact * (1 - Fraction(cells - 2, 100) - Fraction(1, 10**50)) <= with_many_counts(bound, epsilon, 20)
        assert with_many_counts(bound, epsilon, 20) <= exact


@pytest.mark.parametrize(
    ("m", "cells", "gamma", "presence", "epsilon", "most"),
    [
        (BILLION, 2, "1e9", "1", 1.0, 25),
        (BILLION, 2, "1e9", "1", 15.0, 20),
        (BILLION, 2, "1e9", "1", 20.723, 20),
        (BILLION, 3, "5e8", "1", 2.0, 20),
        (BILLION, 4, "1e9", "1", 20.0, 15),
        (BILLION // 10, 3, "1e8", "1", 0.1, 12),
        (BILLION - 1, 2, "3e8", "1", 4.0, 20),
        (BILLION, 2, "8e8", "0.9", 3.0, 20),
    ],
)
def test_few_rows_of_a_billion_are_replaced(  # noqa: PLR0913, PLR0917 - a release and where to look
    m: int, cells: int, gamma: str, presence: str, epsilon: float, most: int
) -> None:
    bound = certificate(BILLION, m, cells, gamma, presence)
    exact, found = with_few_counts(bound, epsilon, most), Fraction(bound.delta(epsilon))
    assert exact <= found
    assert exact <= profile_at(bound, epsilon)
    # One law of hr for several s costs less than a millionth; a rounding of e is magnified near the pure end.
    left = 1 - Fraction(np.expm1(epsilon)) / (bound.pure_ratio - 1)
    assert found <= exact * (1 + Fraction(2, 10**9) + Fraction(cells > 2, 10**6) + Fraction(4, 10**15) / left)


@pytest.mark.parametrize(
    ("n", "cells", "gamma", "epsilon"),
    [
        (BILLION, 2, "1e6", 0.25),
        (BILLION, 24, "1e6", 0.23),
        (BILLION, 24, "1e5", 0.07),
        (BILLION, 10**6, "1e6", 0.12),
        (BILLION - 12345, 2, "2e7", 0.0),
        pytest.param(BILLION, 24, "2500", 8e-3, marks=pytest.mark.long),
        pytest.param(BILLION, 2, "2.5", 1.3e-4, marks=pytest.mark.long),
        pytest.param(BILLION, 3, "100", 1.5e-3, marks=pytest.mark.long),
    ],
)
def test_many_rows_of_a_billion_are_replaced(n: int, cells: int, gamma: str, epsilon: float) -> None:
    bound = certificate(n, n, cells, gamma)
    exact, found = with_many_counts(bound, epsilon), Fraction(bound.delta(epsilon))
    assert 0 < exact <= found <= exact * (1 + Fraction(2, 10**9))
    assert exact <= profile_at(bound, epsilon) <= exact * Fraction(11, 10)


@pytest.mark.parametrize("deviations", [0.5, 3.0, 8.0, 12.0])
def test_the_linear_part_keeps_ten_digits_in_the_tails(deviations: float) -> None:
    start, rows = BILLION - 11_000, 11_000
    s = np.arange(start, start + rows, dtype=np.int64)
    b = np.floor((0.5 - deviations / 2 / start**0.5) * s).astype(np.int64)
    found = shuffle._shortfall(s, b, np.zeros(rows), 1.0, order_laws.Memory())
    for index in (0, rows - 1):
        exact = Half(int(s[index]), int(b[index]))
        assert found[index] == pytest.approx(exact.shortfall / Half.ONE, rel=3e-11)


def test_one_row_more_is_refused_with_a_remedy() -> None:
    assert MAX_SAMPLE == BILLION
    assert certificate(10 * BILLION, BILLION, 2, "1e9").delta(0.1) > 0
    with pytest.raises(InvalidInputError, match="samples to 1,000,000,000 rows") as refused:
        certificate(10 * BILLION, BILLION + 1, 2, "1e9")
    assert "Sample at most 1,000,000,000 rows, or ask for a pure epsilon" in refused.value.remedy
    beyond = ReleaseDescription(
        scheme=scheme_of("wor", population=BILLION + 1, sample=BILLION + 1), cells=2, gamma=Fraction(10**9)
    )
    assert not is_certified(beyond, Decimal(1), Decimal("0.5"))


@pytest.mark.parametrize(
    ("cells", "epsilon"), [(2, "0.3"), (24, "0.3"), pytest.param(10**6, "0.25", marks=pytest.mark.long)]
)
def test_a_plan_for_a_billion_keeps_its_delta(cells: int, epsilon: str) -> None:
    delta = Decimal("1e-9")
    mechanism = calibrate(population=BILLION, sample=BILLION, cells=cells, epsilon=Decimal(epsilon), delta=delta)
    runs = OrderCertificate(population=BILLION, sample=BILLION, cells=cells, gamma=mechanism.gamma)
    assert with_many_counts(runs, float(epsilon)) <= Fraction(delta)
    noisier = certificate(BILLION, BILLION, cells, str(round(float(mechanism.gamma) * 1.00001)))
    assert with_many_counts(noisier, float(epsilon)) > Fraction(delta)


def test_a_price_for_a_billion_is_that_of_the_central_limit() -> None:
    release = ReleaseDescription(scheme=EVERYBODY, cells=24, gamma=Fraction(10**5))
    found = price(release, Decimal("1e-10"))
    limit = (10**5 - 1) * (2 / (BILLION * (10**5 + 23))) ** 0.5
    assert limit < float(found.mu) < 1.05 * limit
    assert is_price(found, release)
    mechanism = mechanism_at(EVERYBODY, 24, found)
    assert float(mechanism.gamma) == pytest.approx(1e5, rel=3e-3)
    assert central_limit_gamma(EVERYBODY, 24, float(found.mu)) > 1e5


@given(
    st.integers(300, 10**4), st.floats(0.01, 1), st.sampled_from([2, 3, 24, 1000]), st.floats(-2, 12), st.floats(0, 1)
)
@settings(max_examples=20, deadline=None)
def test_what_is_not_summed_would_change_no_digit(n: int, rate: float, cells: int, log_a: float, place: float) -> None:
    bound = OrderCertificate(
        population=n, sample=max(200, int(rate * n)), cells=cells, gamma=1 + Fraction(np.exp(log_a))
    )
    spread = (2 / (bound.sample * (float(bound.gamma) + cells - 1))) ** 0.5 * float(bound.pure_ratio - 1)
    epsilon = min(place * 20 * spread, log(bound.pure_ratio) * 0.999)
    found = bound.delta(epsilon)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle._Sum, "_is_negligible", lambda _: False)
        assert bound.delta(epsilon) == found


def test_a_law_of_the_rest_serves_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "_ROWS", 4)
    monkeypatch.setattr(shuffle, "_ROWS_OF_SAMPLE", 10)
    monkeypatch.setattr(shuffle, "_LITTLE_WORK", 10)
    served = set()
    for m in (30, 60, 200):
        for epsilon in (0.05, 0.2, 0.5):
            bound = certificate(m, m, 5, "9")
            served.add(shuffle._Sum(bound, Fraction(np.exp(epsilon)), order_laws.Memory()).shared)
            exact = with_many_counts(bound, epsilon)
            assert exact <= Fraction(bound.delta(epsilon)) <= exact * Fraction(11, 10)
    assert min(served) < 4 * 3
    assert max(served) > 4 * 3
