"""The one pass of Theorem A at many epsilons: above the rational formula, and hardly above the certificate."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.privacy.enumeration import bracketed
from veiltab.common.privacy.order_profile import OrderProfile
from veiltab.common.privacy.shuffle import OrderCertificate


@given(
    st.integers(1, 12),
    st.integers(1, 8),
    st.sampled_from([2, 3, 4, 20, 1000]),
    st.floats(-3, 40),
    st.lists(st.one_of(st.floats(0, 1), st.floats(-15, -1).map(lambda x: 1 - 10**x)), min_size=2, max_size=4),
    st.floats(-12, -1),
    st.one_of(st.just(1.0), st.floats(1e-3, 1)),
)
@settings(max_examples=50, deadline=None)
def test_it_is_never_below_the_formula(  # noqa: PLR0913, PLR0917 - a release and where to look
    n: int, m: int, cells: int, log_a: float, places: list[float], log_negligible: float, presence: float
) -> None:
    bound = OrderCertificate(
        population=n if presence == 1 else min(n, m),
        sample=min(n, m),
        cells=cells,
        gamma=1 + Fraction(exp(log_a)),
        presence=Fraction(presence),
    )
    profile = OrderProfile(bound, negligible=10**log_negligible)
    epsilons = profile.pure_epsilon * np.array([0.0, *places, 1.0])
    for epsilon, found in zip(epsilons, profile.deltas(epsilons), strict=True):
        assert bracketed(bound, float(epsilon))[0] <= Fraction(float(found))


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma", "presence", "epsilons", "loss"),
    [
        (45222, 45222, 24, "356.8", "1", (0.0, 0.1, 0.3, 0.5), 5e-3),
        (45222, 4522, 24, "3661", "1", (0.0, 0.1, 0.3, 0.5), 5e-3),
        (300, 300, 4, "4", "1", (0.0, 0.1, 0.2), 5e-3),
        (392, 39, 80, "126.5", "1", (0.0, 0.2, 0.6694), 1e-6),
        (1000, 1000, 700, "1000", "1", (0.0, 0.5, 1.0), 1e-3),
        (10**8, 10**8, 10**4, "10000", "1", (0.0, 0.005, 0.02), 5e-3),
        (1, 1, 2, "5", "1", (0.0, 1.0, 1.5), 1e-8),
        (45222, 45222, 24, "724.5", "0.9679", (0.0, 0.1, 0.4, 0.8), 5e-3),
        (1000, 1000, 700, "1000", "0.5", (0.0, 0.5, 1.0), 2e-3),
        (1, 1, 2, "5", "0.3", (0.0, 1.0, 1.5), 1e-8),
    ],
)
def test_it_lies_hardly_above_the_certificate(  # noqa: PLR0913, PLR0917 - a release and where to look
    n: int, m: int, cells: int, gamma: str, presence: str, epsilons: tuple[float, ...], loss: float
) -> None:
    certificate = OrderCertificate(
        population=n, sample=m, cells=cells, gamma=Fraction(gamma), presence=Fraction(presence)
    )
    deltas = OrderProfile(certificate, negligible=1e-7).deltas(np.array(epsilons))
    for epsilon, found in zip(epsilons, deltas, strict=True):
        # The certificate itself lies above the formula, by less than a millionth.
        assert certificate.delta(epsilon) * (1 - 1e-6) <= found <= certificate.delta(epsilon) * (1 + loss)


def test_it_vanishes_from_the_pure_epsilon_on() -> None:
    profile = OrderProfile(OrderCertificate(population=10, sample=5, cells=3, gamma=Fraction(4)), negligible=1e-9)
    assert profile.deltas(np.array([profile.pure_epsilon, 50.0])).tolist() == [0, 0]
    assert profile.deltas(np.array([profile.pure_epsilon * 0.9]))[0] > 0


def test_what_the_windows_leave_out_is_added() -> None:
    certificate = OrderCertificate(population=10**6, sample=10**6, cells=2, gamma=Fraction(10))
    profile = OrderProfile(certificate, negligible=0.5)
    for epsilon in (0.03, 0.05):
        assert profile.deltas(np.array([epsilon]))[0] >= certificate.delta(epsilon)
