from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.privacy.domination import convex_minorant
from veiltab.common.privacy.pricing.composition import composed_epsilon, mirrored
from veiltab.common.privacy.pricing.losses import Losses, composed


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_runs_of_k_rr_are_hardly_above_their_exact_sum(delta: float) -> None:
    gamma, count = 1.5, 30
    chances = binom.pmf(np.arange(count + 1), count, gamma / (gamma + 1))

    def once(epsilons: Floats) -> Floats:
        return np.maximum(gamma - np.exp(epsilons), 0) / (gamma + 1)

    def exact(epsilon: float) -> float:
        return float(np.maximum(chances - exp(epsilon) * chances[::-1], 0).sum())

    least = float(brentq(lambda epsilon: exact(epsilon) - delta, 0, 12))
    found = composed_epsilon([(once, float(np.log(gamma)), 10), (once, float(np.log(gamma)), 20)], delta, points=1024)
    assert least <= found <= least * (1 + 1e-6)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=12))
def test_the_convex_minorant_is_convex_and_below(heights: list[float]) -> None:
    x = np.cumsum(np.arange(1.0, len(heights) + 1))
    y = np.array(heights)
    hull = convex_minorant(x, y)
    assert np.all(hull <= y + 1e-12)
    slopes = np.diff(hull) / np.diff(x)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert hull[0] == y[0]
    assert hull[-1] == y[-1]


@given(st.lists(st.floats(0, 1), min_size=3, max_size=9))
@settings(max_examples=40, deadline=None)
def test_the_convex_minorant_is_the_largest_but_for_roundings(heights: list[float]) -> None:
    x = np.cumsum(np.arange(1.0, len(heights) + 1))
    y = np.sort(heights)[::-1]
    exact = [Fraction(one) for one in y.tolist()]
    at = [Fraction(one) for one in x.tolist()]
    for i, found in enumerate(convex_minorant(x, y).tolist()):
        chords = [
            (exact[a] * (at[b] - at[i]) + exact[b] * (at[i] - at[a])) / (at[b] - at[a])
            for a in range(i)
            for b in range(i + 1, len(at))
        ]
        assert abs(found - min([exact[i], *chords])) <= 1e-15 * y[0]


def test_the_mirrored_profile_is_that_of_the_other_direction() -> None:
    # Binary randomised response, whose two directions are alike: delta(-x) read off the exact definition.
    gamma = 3.0
    p, q = gamma / (gamma + 1), 1 / (gamma + 1)
    epsilons = np.array([0.1, 0.7, 1.5])
    direct = np.maximum(p - np.exp(epsilons) * q, 0) + np.maximum(q - np.exp(epsilons) * p, 0)
    negative = np.maximum(p - np.exp(-epsilons) * q, 0) + np.maximum(q - np.exp(-epsilons) * p, 0)
    assert mirrored(epsilons, direct) == pytest.approx(negative)


def test_a_sum_is_infinite_where_a_part_is() -> None:
    law = Losses(lowest=0, chances=np.array([0.5, 0.25]), interval=0.1, beyond=0.25)
    assert composed([(law, 2)]).beyond == pytest.approx(1 - 0.75**2)
