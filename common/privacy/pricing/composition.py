"""Mechanisms together, by their privacy loss distributions.

A certified profile delta(epsilon), valid in both directions, is read on a grid and replaced by its convex minorant. The
exact profile is convex, so the minorant still lies above it. Linear interpolation between the points makes it a loss
distribution.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from veiltab.common.privacy.domination import Profile, convex_minorant
from veiltab.common.privacy.pricing.losses import TRANSFORM_ERROR, Losses, composed

_LEAST_POINTS = 256
"""Intervals up to the largest loss of a mechanism whose losses are the smallest, among others."""

NEGLIGIBLE = 1e-16
"""A delta that counts as none, in a grid of losses."""

LARGEST_GRID = 60.0
"""The largest loss of a grid, nats."""


def composed_epsilon(parts: Sequence[tuple[Profile, float, int]], delta: float, *, points: int) -> float:
    """Return an epsilon of independent mechanisms together, nats, rounded up.

    Args:
        parts: a profile that holds in both directions, its pure epsilon (above 0), and how often it runs.
        delta: of all together, in (0, 1).
        points: intervals up to the largest loss.
    """
    tops = [top_loss(profile, pure) for profile, pure, _ in parts]
    interval = max(max(tops) / points, min(tops) / _LEAST_POINTS)
    laws = [
        (loss_distribution(profile, interval, ceil(top / interval)), count)
        for (profile, _, count), top in zip(parts, tops, strict=True)
    ]
    return composed(laws).epsilon(delta * (1 - 1e-9) - TRANSFORM_ERROR) * (1 + 1e-9)


def top_loss(profile: Profile, pure: float) -> float:
    """Return an epsilon from which on delta is negligible, at most a little beyond it."""
    low, high = 0.0, min(pure, LARGEST_GRID)
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if profile(np.array([middle]))[0] <= NEGLIGIBLE else (middle, high)
    return high


def loss_distribution(profile: Profile, interval: float, points: int) -> Losses:
    """Return a pessimistic law of the losses of a profile of both directions that is negligible beyond its points."""
    rounded = np.arange(points + 1, dtype=np.int64)
    epsilons = np.asarray(rounded * interval, np.float64)
    deltas = np.minimum.accumulate(profile(epsilons))
    values = np.concatenate([mirrored(epsilons, deltas)[:0:-1], deltas])
    support = np.concatenate([-rounded[:0:-1], rounded])
    hull = convex_minorant(np.exp(support * interval), values)
    return Losses.of(hull, -points, interval)


def mirrored(epsilons: NDArray[np.float64], deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon)), as the other direction has the same profile."""
    result: NDArray[np.float64] = 1 - np.exp(-epsilons) * (1 - deltas)
    return result
