"""The least mu whose Gaussian, with a slack, dominates a release: the condition (*) of a price.

    delta_A(epsilon) <= (1 - delta0) delta_mu(epsilon) + delta0    for all epsilon >= 0                            (*)

Both profiles are convex in a = e^epsilon. Between two points delta_A lies below the chord of its upper bounds there,
and delta_mu above each of its tangents there, hence above every mean of the two. The chord minus such a mean is affine,
so (*) holds between the points if it holds for it at both; the mean whose slope is the chord's is the best. Beyond a
point with delta_A <= delta0, (*) holds trivially.

A profile here bounds delta_A from above, for both directions of every neighbouring pair.
"""

from collections.abc import Callable
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats, exp_each, expm1_each, log
from veiltab.common.privacy.gaussian import LARGEST, LARGEST_EPSILON, GaussianProfile

Profile = Callable[[Floats], Floats]
"""Upper bounds of delta_A at epsilons from 0."""

Slack = Callable[[float], float]
"""delta0 of a mu; it does not fall as mu rises."""

_INTERVALS = 24
_ROUNDS = 4
_GAP = 3e-4
"""Accepted relative loss between the points."""

_MARGIN = 5e-5
"""Increases a price, so that a check on another grid succeeds."""

_CLOSE = 1e-5
_SMALLEST = 1e-12
_ROUNDING = 1e-15
_STEEPEST = 0.39894228040143276
"""delta_mu(0) = 2 Phi(mu/2) - 1 is at most mu times this, 1/sqrt(2 pi) rounded up."""


def least_mu(profile: Profile, *, slack: Slack, pure_epsilon: float) -> float:
    """Return a mu for which (*) holds, close to the least; infinity if there is none to 64.

    Args:
        slack: delta0 as a function of mu.
        pure_epsilon: nats; the profile is 0 from there on.
    """
    at_zero = float(profile(np.zeros(1))[0])
    low = _least(lambda mu: _STEEPEST * mu + slack(mu) >= at_zero, _SMALLEST)
    if not _is_within_floats(profile, slack(low), pure_epsilon):
        return inf
    epsilons = np.linspace(0, _top(profile, slack(low), low, min(pure_epsilon, LARGEST_EPSILON)), _INTERVALS + 1)
    deltas = _convex(epsilons, profile(epsilons))
    for rounds in range(_ROUNDS, -1, -1):
        low = _least(lambda mu: _holds_at(GaussianProfile.of(mu, epsilons), deltas, slack(mu)), low)  # noqa: B023 - called here
        mu = _least(lambda mu: holds(epsilons, deltas, mu, slack(mu)), low)  # noqa: B023 - called here
        if mu <= low * (1 + _GAP) or low == inf or not rounds:
            break
        epsilons, deltas = _refined(profile, epsilons, deltas, low, slack(low))
    return mu * (1 + _MARGIN)


def _refined(profile: Profile, epsilons: Floats, deltas: Floats, mu: float, slack: float) -> tuple[Floats, Floats]:
    """Quarter the intervals in which (*) could not be shown."""
    loose = np.flatnonzero(~_holds_between(GaussianProfile.of(mu, epsilons), deltas, slack))
    added = (epsilons[loose, None] + np.outer(np.diff(epsilons)[loose], [0.25, 0.5, 0.75])).ravel()
    joined, bounds = np.concatenate([epsilons, added]), np.concatenate([deltas, profile(added)])
    order = np.argsort(joined, kind="stable")
    return joined[order], _convex(joined[order], bounds[order])


def _convex(epsilons: Floats, deltas: Floats) -> Floats:
    """Lower bounds that stand above the convex minorant of all, as the true profile is convex in e^epsilon."""
    lowered: Floats = convex_minorant(exp_each(epsilons), deltas) + _ROUNDING * deltas[0]
    return np.minimum(deltas, lowered)


def holds(epsilons: Floats, deltas: Floats, mu: float, slack: float) -> bool:
    """Return whether (*) holds from the first to the last epsilon.

    Args:
        epsilons: ascending, nats, shape (k,).
        deltas: upper bounds of delta_A there.
        mu: in (0, 64].
        slack: delta0.
    """
    curve = GaussianProfile.of(mu, epsilons)
    return bool(_holds_at(curve, deltas, slack) and _holds_between(curve, deltas, slack).all())


def _holds_at(curve: GaussianProfile, deltas: Floats, slack: float) -> bool:
    allowed = (1 - slack) * curve.below + slack
    return bool((deltas <= allowed * (1 - _ROUNDING)).all())


def _holds_between(curve: GaussianProfile, deltas: Floats, slack: float) -> NDArray[np.bool_]:
    """Return for each interval whether (*) can be shown in it."""
    one, two = curve.below[:-1], curve.below[1:]
    # Between the points a tangent is lowest with the steeper slope from the left, and with the gentler from the right.
    steep, gentle = (curve.slope + curve.slope_error)[:-1], np.maximum(curve.slope - curve.slope_error, 0.0)[1:]
    length = curve.grown[:-1] * expm1_each(np.diff(curve.epsilons))
    with np.errstate(invalid="ignore", divide="ignore"):
        secant = (deltas[:-1] - deltas[1:]) / length / (1 - slack)
        share = np.nan_to_num(np.clip((secant - gentle) / (steep - gentle), 0.0, 1.0))
    # In full where a tangent lies below 0, as delta_mu does not.
    left = share * one + (1 - share) * (two + gentle * length)
    right = share * (one - steep * length) + (1 - share) * two
    allowed = np.array([(1 - slack) * left + slack, (1 - slack) * right + slack])
    covered: NDArray[np.bool_] = (np.array([deltas[:-1], deltas[1:]]) <= allowed - _ROUNDING * np.abs(allowed)).all(
        axis=0
    )
    return np.logical_or(covered, deltas[:-1] <= slack * (1 - _ROUNDING))


def _is_within_floats(profile: Profile, slack: float, pure_epsilon: float) -> bool:
    """Return whether (*) is trivial from the largest epsilon on whose e^epsilon is a float."""
    beyond = pure_epsilon > LARGEST_EPSILON
    return not beyond or bool(profile(np.array([LARGEST_EPSILON]))[0] <= slack * (1 - _ROUNDING))


def _top(profile: Profile, slack: float, mu: float, pure_epsilon: float) -> float:
    """Return an epsilon from which on the profile is at most the slack, and not much above the least."""
    if slack <= 0:
        return pure_epsilon
    begin, beyond = 0.0, min(mu * (mu / 2 + sqrt(2 * log(2 / slack))) / 4, pure_epsilon)
    while beyond < pure_epsilon and profile(np.array([beyond]))[0] > slack * (1 - _ROUNDING):
        begin, beyond = beyond, min(1.5 * beyond, pure_epsilon)
    inside = np.linspace(begin, beyond, 9)[1:-1]
    small = profile(inside) <= slack * (1 - _ROUNDING)
    return float(inside[np.argmax(small)]) if small.any() else beyond


def _least(holds_for: Callable[[float], bool], low: float) -> float:
    """Return a mu that fits, hardly above the least that is at least `low`; infinity if none to 64 does."""
    if low == inf:
        return inf
    high = low
    while not holds_for(high):
        if high >= LARGEST:
            return inf
        low, high = high, min(2 * high, LARGEST)
    while high > low * (1 + _CLOSE):
        middle = sqrt(low * high)
        low, high = (low, middle) if holds_for(middle) else (middle, high)
    return high


def convex_minorant(x: Floats, y: Floats) -> Floats:
    """Return the largest convex function of x that lies nowhere above the points, at the points."""
    corners: list[int] = []
    for index in range(len(x)):
        while len(corners) >= 2:
            a, b = corners[-2], corners[-1]
            if (y[b] - y[a]) * (x[index] - x[a]) < (y[index] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(index)
    places = np.array(corners)
    left = np.searchsorted(places, np.arange(len(x)), side="right") - 1
    before, after = places[left], places[np.minimum(left + 1, len(places) - 1)]
    slope = (y[after] - y[before]) / np.where(after > before, x[after] - x[before], 1.0)
    result: Floats = np.minimum(y[before] + slope * (x - x[before]), y)
    return result
