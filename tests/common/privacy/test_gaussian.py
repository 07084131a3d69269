"""The profile of N(0,1) and N(mu,1) against mpmath, and its inverses on the safe side."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from veiltab.common.privacy.gaussian import LARGEST, GaussianProfile, delta_above, epsilon_above, mu_below, normal


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        x, y = mpmath.mpf(mu) / 2, mpmath.mpf(epsilon) / mpmath.mpf(mu)
        return mpmath.ncdf(x - y) - mpmath.exp(epsilon) * mpmath.ncdf(-x - y)


def test_every_series_gives_the_normal_distribution() -> None:
    x = np.arange(0, 37 * 16) / -16
    beside = np.concatenate([x, x[1:] * (1 + 2**-40)])
    with mpmath.workdps(40):
        errors = [
            abs(float(one / mpmath.ncdf(mpmath.mpf(at)) - 1))
            for one, at in zip(normal(beside).tolist(), beside.tolist(), strict=True)
        ]
    assert (np.array(errors) < 8e-15 + 1e-15 * beside**2).all()


@given(st.floats(-9, 1.7), st.floats(0, 12))
@example(1.5, 7.0)  # Phi is below the smallest normal float
@settings(max_examples=300, deadline=None)
def test_the_bounds_enclose_the_profile_and_its_slope(log_mu: float, spread: float) -> None:
    mu = 10**log_mu
    epsilon = min(700.0, mu * (mu / 2 + spread))
    curve = GaussianProfile.of(mu, np.array([epsilon]))
    exact = exact_delta(mu, epsilon)
    assert curve.below[0] <= exact <= delta_above(mu, epsilon)
    with mpmath.workdps(60):
        slope = mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu))
    assert abs(curve.slope[0] - slope) <= curve.slope_error[0]
    assert curve.error[0] <= 1e-11 * max(float(exact), 1e-2)


@given(st.floats(0.001, 20), st.floats(-15, -1))
@settings(max_examples=60, deadline=None)
def test_epsilon_is_the_least_that_keeps_delta(mu: float, log_delta: float) -> None:
    delta = 10**log_delta
    epsilon = epsilon_above(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert epsilon == 0 or exact_delta(mu, epsilon * (1 - 1e-5)) > delta


@given(st.floats(0.001, 20), st.floats(-15, -1))
@settings(max_examples=60, deadline=None)
def test_mu_is_the_largest_that_keeps_delta(epsilon: float, log_delta: float) -> None:
    delta = 10**log_delta
    mu = mu_below(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta < exact_delta(mu * (1 + 1e-5), epsilon)


def test_without_a_price_there_is_no_loss() -> None:
    assert delta_above(0.0, 0.0) == 0
    assert epsilon_above(0.0, 1e-6) == 0
    assert epsilon_above(1.0, 0.999) == pytest.approx(0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 701.0), (30.0, 701.0), (40.0, 900.0), (64.0, 3000.0), (64.0, 1e6)])
def test_beyond_the_largest_float_there_is_a_bound_all_the_same(mu: float, epsilon: float) -> None:
    bound, exact = delta_above(mu, epsilon), exact_delta(mu, epsilon)
    assert exact <= bound <= max(2 * float(exact), 1e-280)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mu", [38.0, 50.0, 64.0])
def test_a_large_mu_has_an_epsilon(mu: float) -> None:
    epsilon = epsilon_above(mu, 1e-6)
    assert epsilon > 700
    assert exact_delta(mu, epsilon) <= 1e-6 < exact_delta(mu, epsilon * 0.99)


@pytest.mark.filterwarnings("error")
def test_a_large_epsilon_has_a_large_mu() -> None:
    assert mu_below(1e6, 1e-6) == LARGEST
    mu = mu_below(800.0, 1e-6)
    assert exact_delta(mu, 800.0) <= 1e-6 < exact_delta(mu * 1.01, 800.0)
