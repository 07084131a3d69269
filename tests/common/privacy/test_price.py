"""Prices: (*) in exact rationals, between the points as at them, the published numbers, and what budgets promise."""

from decimal import Decimal
from fractions import Fraction
from math import inf, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.privacy.enumeration import enumerated
from tests.common.privacy.verified_price import is_price
from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.domination import holds
from veiltab.common.privacy.gaussian import delta_above
from veiltab.common.privacy.pricing.price import (
    Price,
    composed_price,
    mechanism_at,
    price,
    price_budget,
    price_of_pure_epsilon,
    price_within,
    share,
)
from veiltab.common.schemes import scheme_of


def release(  # noqa: PLR0913, PLR0917 - a release
    n: int, m: int, cells: int, gamma: str, scheme: str = "wor", stage: int | None = None
) -> ReleaseDescription:
    drawn = scheme_of(scheme, population=n, sample=m, stage=stage)
    return ReleaseDescription(scheme=drawn, cells=cells, gamma=Fraction(gamma))


@given(
    mu=st.decimals("1e-3", 20, places=8),
    slack=st.decimals("1e-12", "0.9", places=12),
    epsilon=st.floats(0, 5),
    delta=st.floats(1e-6, 0.5),
)
@settings(max_examples=100, deadline=None)
def test_the_exception_is_added_exactly_or_above(mu: Decimal, slack: Decimal, epsilon: float, delta: float) -> None:
    both, part = Price(mu=mu, slack=slack), Fraction(slack)
    found = Fraction(both.delta(epsilon))
    assert found >= min(Fraction(1), (1 - part) * Fraction(delta_above(float(mu), epsilon)) + part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("veiltab.common.privacy.pricing.price.epsilon_above", lambda _, left: left)
        left = both.epsilon(delta)
    assert left == inf or Fraction(left) <= (Fraction(delta) - part) / (1 - part)


def exact_gaussian(mu: Decimal, e: Fraction) -> mpmath.mpf:
    a, x = mpmath.mpf(e.numerator) / e.denominator, mpmath.mpf(str(mu))
    return mpmath.ncdf(x / 2 - mpmath.log(a) / x) - a * mpmath.ncdf(-x / 2 - mpmath.log(a) / x)


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma"),
    [
        (1, 1, 2, "3"),
        (4, 4, 2, "2"),
        (7, 3, 4, "10"),
        (9, 9, 3, "5/2"),
        (12, 5, 50, "40"),
        (8, 8, 2, "1000"),
        (6, 6, 1000, "4"),
    ],
)
@pytest.mark.parametrize("slack", ["1e-3", "1e-7"])
def test_a_price_is_worse_than_the_release_in_exact_rationals(
    n: int, m: int, cells: int, gamma: str, slack: str
) -> None:
    found = price(release(n, m, cells, gamma), Decimal(slack))
    part, gain = mpmath.mpf(slack), Fraction(m, n) * (Fraction(gamma) - 1)
    with mpmath.workdps(40):
        for step in range(31):
            e = 1 + gain * Fraction(step, 30) ** 2
            exact = enumerated(n, m, cells, Fraction(gamma), e)
            allowed = (1 - part) * exact_gaussian(found.mu, e) + part
            assert mpmath.mpf(exact.numerator) / exact.denominator <= allowed


ADULT = release(45222, 45222, 24, "356.8")


@pytest.mark.parametrize(("slack", "mu"), [("1e-7", 0.12377), ("1e-9", 0.12538), ("1e-12", 0.12794)])
def test_the_price_of_adult(slack: str, mu: float) -> None:
    found = price(ADULT, Decimal(slack))
    assert float(found.mu) == pytest.approx(mu, rel=3e-3)
    assert found.mu <= Decimal(mu)
    # The certificate's own profile is the least that could be priced.
    certificate = ADULT.order_certificate
    assert certificate is not None
    for epsilon in np.linspace(0, 0.6, 60):
        allowed = (1 - float(slack)) * delta_above(float(found.mu), epsilon) + float(slack)
        assert certificate.delta(float(epsilon)) <= allowed


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma", "scheme", "stage"),
    [
        (300, 300, 4, "4", "wor", None),
        (300, 30, 4, "30", "wor", None),
        (1000, 1000, 700, "1000", "poisson", None),
        (10**6, 10**5, 80, "20000", "wor", None),
        (200, 100, 6, "8", "wr", None),
        (200, 60, 6, "8", "must.ow", 80),
        (200, 60, 6, "8", "must.wo", 80),
        (200, 20, 6, "8", "must.ww", 80),
    ],
)
def test_a_verifier_on_a_finer_grid_agrees(  # noqa: PLR0913, PLR0917 - a release
    n: int, m: int, cells: int, gamma: str, scheme: str, stage: int | None
) -> None:
    what = release(n, m, cells, gamma, scheme, stage)
    found = price(what, Decimal("1e-7"))
    assert is_price(found, what)
    assert not is_price(Price(mu=found.mu * Decimal("0.97"), slack=found.slack), what)
    assert found.mu <= price_of_pure_epsilon(what.pure_epsilon).mu


@pytest.mark.parametrize("scheme", ["wr", "must.wo"])
def test_without_a_certificate_the_pure_price_is_the_last_resort(scheme: str) -> None:
    # At n = 1 every draw is of the one respondent: nothing but the noise protects.
    what = release(1, 1, 2, "3", scheme, 1 if scheme == "must.wo" else None)
    assert price(what, Decimal("1e-7")).mu <= price_of_pure_epsilon(what.pure_epsilon).mu


def test_a_release_without_any_effect_is_free() -> None:
    what = release(10, 5, 3, "1")
    assert price(what, Decimal("1e-7")).mu == 0
    assert is_price(Price(mu=Decimal(0), slack=Decimal("1e-7")), what)


def test_a_release_beyond_the_certificate_has_its_pure_price() -> None:
    what = release(10**9 + 1, 10**9 + 1, 2, "1.5")
    assert price(what, Decimal("1e-7")).mu == price_of_pure_epsilon(what.pure_epsilon).mu
    assert is_price(price(what, Decimal("1e-7")), what)


@given(st.decimals("1e-6", "200", places=6))
@settings(max_examples=100, deadline=None)
def test_the_pure_price_reaches_the_vertex_of_randomised_response(epsilon: Decimal) -> None:
    found = price_of_pure_epsilon(epsilon)
    with mpmath.workdps(120):
        vertex = 1 / (1 + mpmath.exp(mpmath.mpf(str(epsilon))))
        assert mpmath.ncdf(-mpmath.mpf(str(found.mu)) / 2) <= vertex
        assert mpmath.ncdf(-mpmath.mpf(str(found.mu - Decimal("3e-8"))) / 2) > vertex


@pytest.mark.parametrize(
    ("epsilon", "ratio"), [("0.0001", 1.2534), ("0.5", 1.248), ("1", 1.232), ("3", 1.114), ("0", None), ("601", 0.1154)]
)
def test_the_pure_price_is_a_little_above_epsilon(epsilon: str, ratio: float | None) -> None:
    found = price_of_pure_epsilon(Decimal(epsilon))
    assert found.slack == 0
    assert float(found.mu) == pytest.approx(0 if ratio is None else float(epsilon) * ratio, rel=1e-3)


def test_rho_is_rounded_up() -> None:
    of = Price(mu=Decimal("0.23550001"), slack=Decimal("1e-7"))
    assert of.rho >= of.mu * of.mu / 2
    assert of.rho - of.mu * of.mu / 2 <= Decimal("1e-12")
    assert of.statements() == {"gdp": {"mu": of.mu, "delta": of.slack}, "zcdp": {"rho": of.rho, "delta": of.slack}}


def test_all_epsilons_count_not_the_one_of_interest() -> None:
    # A leak of probability 1/1000 is worse at a large epsilon than a Gaussian that covers it at epsilon 0.
    epsilons = np.linspace(0, 3, 200)
    leak = np.full(200, 1e-3)
    assert holds(epsilons[:2] * 1e-3, leak[:2], 0.01, 1e-7)
    assert not holds(epsilons, leak, 0.01, 1e-7)
    assert holds(epsilons, leak, 0.01, 1.001e-3)


def test_between_two_points_the_chord_counts() -> None:
    ends, fine = np.array([0.1, 2.0]), np.linspace(0.1, 2.0, 400)
    below = np.array([0.999 * delta_above(1.0, epsilon) for epsilon in fine])
    # The Gaussian lies above both ends, but below their chord; above those of a fine grid it lies.
    assert holds(ends[:1], below[:1], 1.0, 1e-9)
    assert holds(ends[1:], below[-1:], 1.0, 1e-9)
    assert not holds(ends, below[[0, -1]], 1.0, 1e-9)
    assert holds(fine, below, 1.0, 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"), [("0.1", "1e-6", 0.02736), ("1", "1e-6", 0.23550), ("3", "1e-9", 0.51301)]
)
def test_budgets(epsilon: str, delta: str, mu: float) -> None:
    budget = price_budget(Decimal(epsilon), Decimal(delta))
    assert float(budget.mu) == pytest.approx(mu, abs=6e-6)
    assert budget.slack == Decimal(delta) / 10
    assert budget.delta(float(epsilon)) <= float(delta)
    assert budget.epsilon(float(delta)) == pytest.approx(float(epsilon), rel=1e-4)
    assert Price(mu=budget.mu * Decimal("1.0001"), slack=budget.slack).delta(float(epsilon)) > float(delta)


def test_an_epsilon_is_never_stated_below_the_slack() -> None:
    what = Price(mu=Decimal("0.1"), slack=Decimal("1e-7"))
    assert what.epsilon(1e-7) == inf
    assert what.epsilon(2e-7) < inf
    assert what.delta(100.0) >= 1e-7
    assert Price(mu=Decimal(65), slack=Decimal(0)).epsilon(0.5) == inf
    assert Price(mu=Decimal(65), slack=Decimal(0)).delta(1.0) == 1


@given(st.floats(0, 3), st.floats(-6, -2))
@settings(max_examples=60, deadline=None)
def test_delta_and_epsilon_of_a_price_are_inverse(log_ratio: float, log_delta: float) -> None:
    what = Price(mu=Decimal(str(round(0.01 * 10**log_ratio, 4))), slack=Decimal("1e-8"))
    epsilon = what.epsilon(10**log_delta)
    assert what.delta(epsilon) <= 10**log_delta * (1 + 1e-12)
    assert epsilon == 0 or what.delta(epsilon * (1 - 1e-4)) > 10**log_delta


def test_in_one_currency_the_share_is_that_of_the_squares() -> None:
    budget = price_budget(Decimal(1), Decimal("1e-6"))
    found = price_within(ADULT, budget)
    assert is_price(found, ADULT)
    part = (found.mu / budget.mu) ** 2
    assert float(found.slack / budget.slack) == pytest.approx(float(part), rel=1e-12)
    assert float(share(found, budget)) == pytest.approx(float(part), rel=1e-10)
    assert share(found, budget) >= part
    # It is a little more than with the whole slack, and less than with a hundredth of it.
    assert price(ADULT, budget.slack).mu < found.mu < price(ADULT, budget.slack / 100).mu


def test_a_price_above_the_budget_takes_more_than_all_of_it() -> None:
    budget = price_budget(Decimal("0.1"), Decimal("1e-6"))
    found = price_within(ADULT, budget)
    assert found.slack == budget.slack
    assert share(found, budget) > 20
    assert share(Price(mu=Decimal(0), slack=2 * budget.slack), budget) == 2


def test_squares_add_up_and_are_rounded_up() -> None:
    parts = [Price(mu=Decimal("0.3"), slack=Decimal("1e-7")), Price(mu=Decimal("0.4"), slack=Decimal("2e-7"))]
    assert composed_price(parts) == Price(mu=Decimal("0.5"), slack=Decimal("3e-7"))
    three = composed_price([Price(mu=Decimal("0.1"), slack=Decimal(0))] * 3)
    assert three.mu**2 >= Decimal("0.03") > (three.mu - Decimal("1e-8")) ** 2
    assert composed_price([]) == Price(mu=Decimal(0), slack=Decimal(0))


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma", "scheme"),
    [
        (45222, 45222, 24, "356.8", "wor"),
        (300, 100, 4, "20", "wor"),
        (10**6, 10**6, 700, "3000", "poisson"),
        (500, 100, 6, "20", "wr"),
    ],
)
def test_a_mechanism_at_a_price_uses_it_up(n: int, m: int, cells: int, gamma: str, scheme: str) -> None:
    what = release(n, m, cells, gamma, scheme)
    limit = price(what, Decimal("1e-7"))
    mechanism = mechanism_at(what.scheme, cells, limit)
    kept = price(ReleaseDescription(scheme=what.scheme, cells=cells, gamma=mechanism.gamma), limit.slack)
    assert limit.mu * Decimal("0.998") <= kept.mu <= limit.mu
    assert float(mechanism.gamma) == pytest.approx(float(gamma), rel=5e-3)


def test_a_mechanism_with_little_noise_ends_where_the_noise_is_none() -> None:
    limit = Price(mu=Decimal(60), slack=Decimal("1e-7"))
    mechanism = mechanism_at(ADULT.scheme, 24, limit)
    assert log(mechanism.gamma) == pytest.approx(log(24 * 2**64), rel=0.3)


@pytest.mark.parametrize("slack", ["0", "1", "-1"])
def test_slacks_that_are_none_are_refused(slack: str) -> None:
    with pytest.raises(InvalidInputError):
        price(ADULT, Decimal(slack))


@pytest.mark.parametrize(("mu", "slack"), [("-1", "0"), ("1", "1"), ("NaN", "0"), ("1", "-1e-9"), ("Infinity", "0")])
def test_prices_that_are_none_are_refused(mu: str, slack: str) -> None:
    with refuses(InvalidInputError, where="price"):
        Price(mu=Decimal(mu), slack=Decimal(slack))


def test_a_budget_that_buys_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no price"):
        price_budget(Decimal("1e-9"), Decimal("1e-9"))
    with refuses(InvalidInputError, where="delta"):
        price_budget(Decimal(1), Decimal(1))
    with pytest.raises(InvalidInputError, match="every mechanism costs more than that"):
        mechanism_at(ADULT.scheme, 24, Price(mu=Decimal("1e-8"), slack=Decimal("1e-7")))


@pytest.mark.filterwarnings("error")
def test_a_budget_of_a_huge_epsilon_has_a_huge_price() -> None:
    assert price_budget(Decimal(10**6), Decimal("1e-6")).mu == 64
    assert price_budget(Decimal(700), Decimal("1e-6")).mu < price_budget(Decimal(701), Decimal("1e-6")).mu < 64


@pytest.mark.parametrize("epsilon", ["0", "-1"])
def test_a_budget_without_an_epsilon_is_refused(epsilon: str) -> None:
    with pytest.raises(InvalidInputError, match="the epsilon must be above 0"):
        price_budget(Decimal(epsilon), Decimal("1e-6"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scheme", ["wr", "must.ww"])
def test_a_release_whose_pure_epsilon_is_huge_has_a_price(scheme: str) -> None:
    stage = 100 if scheme == "must.ww" else None
    what = release(9, 1000, 4, "1000000", scheme, stage)
    assert what.pure_epsilon > 700
    assert is_price(price(what, Decimal("1e-7")), what)
