"""The profile of distinguishing N(0,1) from N(mu,1), rounded up or down: the measure of a release's price.

    delta_mu(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

It is convex in e^epsilon, with slope -Phi(-mu/2 - epsilon/mu). Phi has the same digits on every machine: Phi(-x) is
e^(-x^2/2) R(x) / sqrt(2 pi), and Mills' ratio R comes from its Taylor series about many points, whose coefficients
follow from R' = x R - 1. Its error is a few units of the last place; the error of the argument x is magnified by about
x^2, so that Phi is known to a relative 8e-15 + 1e-15 x^2. An error of epsilon/mu that both terms share leaves their
difference as it is. Below 1e-307 floats are spaced evenly, and e^epsilon magnifies the spacing.

Source: Balle, Wang 2018, Theorem 8.
"""

from functools import cache
from math import pi, sqrt

import numpy as np

from veiltab.common.core.numbers.elementary import Floats, exp_each, log
from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.threshold_search import largest_allowed

LARGEST = 64.0
"""The largest mu in use: its delta at epsilon = 0 is 1 to all digits."""

LARGEST_EPSILON = 700.0
"""Beyond, e^epsilon is not a float."""

_SMALLEST = 1e-12
_TINY = 1e-290
_SPACING = 1e-322
"""Bounds the error of Phi where floats have no full precision any more."""

_FARTHEST = 40
"""Phi(-40) is below the smallest float."""

_POINTS = 8
"""Points of each unit about which R has a series; it is used to half their distance."""

_TERMS = 11
_ONE = 2**240
"""Integers count in units of 1 / _ONE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProfile:
    """delta_mu at some epsilons and its slopes there, each with a bound of its error.

    Args:
        epsilons: nats, from 0, shape (k,).
        grown: e^epsilon, shape (k,).
        delta: delta_mu, shape (k,).
        slope: Phi(-mu/2 - epsilon/mu), minus the slope in e^epsilon, shape (k,).
        error: bounds the error of delta; shape (k,).
        slope_error: bounds the error of slope; shape (k,).
    """

    epsilons: Floats
    grown: Floats
    delta: Floats
    slope: Floats
    error: Floats
    slope_error: Floats

    @classmethod
    def of(cls, mu: float, epsilons: Floats) -> "GaussianProfile":
        """Return the profile of mu in (0, 64] at epsilons to 700."""
        ratio = epsilons / mu
        upper, slope = normal(np.stack([mu / 2 - ratio, -mu / 2 - ratio]))
        grown = exp_each(epsilons)
        relative = 8e-15 + 1e-15 * (mu / 2 + ratio) ** 2
        return cls(
            epsilons=epsilons,
            grown=grown,
            delta=upper - grown * slope,
            slope=slope,
            error=2 * relative * upper + grown * _SPACING + _TINY,
            slope_error=relative * slope + _TINY,
        )

    @property
    def below(self) -> Floats:
        """A lower bound of delta_mu, at least 0."""
        low: Floats = np.maximum(self.delta - self.error, 0.0)
        return low


def normal(x: Floats) -> Floats:
    """Return Phi(x) element by element; see above for its error."""
    size = np.minimum(np.abs(x), _FARTHEST)
    place = np.rint(size * _POINTS)
    beside = size - place / _POINTS
    terms = _mills_series().take(place.astype(np.int64), axis=1)
    tail = terms[-1]
    for term in terms[-2::-1]:
        tail *= beside
        tail += term
    tail *= exp_each(size * size * -0.5)
    tail *= 1 / sqrt(2 * pi)
    result: Floats = np.where(x > 0, 1 - tail, tail)
    return result


@cache
def _mills_series() -> Floats:
    """Return the Taylor coefficients of R about 0, 1/8, ..., 40, shape (terms, points); some 4 ms, once.

    With R(x + t) = sum a_k t^k, (k+1) a_(k+1) = x a_k + a_(k-1), and a_1 = x a_0 - 1. R(40) is its continued fraction;
    the others follow one from the other downwards, where errors shrink.
    """
    value = _FARTHEST * _ONE
    for k in range(60, 0, -1):
        value = _FARTHEST * _ONE + k * _ONE**2 // value
    value = _ONE**2 // value
    rows = []
    for place in range(_FARTHEST * _POINTS, -1, -1):
        series = [value, place * value // _POINTS - _ONE]
        for k in range(1, 3 * _TERMS):
            series.append((place * series[k] // _POINTS + series[k - 1]) // (k + 1))
        rows.append([one / _ONE for one in series[:_TERMS]])
        value = 0
        for one in reversed(series):
            value = one - value // _POINTS
    return np.array(rows[::-1]).T.copy()


def delta_above(mu: float, epsilon: float) -> float:
    """Return delta_mu(epsilon) (substitution or whatever relation mu is for), rounded up.

    Args:
        mu: in (0, 64]; 0 means no release.
        epsilon: nats, at least 0.
    """
    if mu <= 0:
        return 0.0
    if epsilon > LARGEST_EPSILON:
        # Without what is subtracted.
        x = mu / 2 - epsilon / mu
        return min(1.0, float(normal(np.array([x]))[0]) * (1 + 1e-14 + 2e-15 * x * x) + _TINY)
    curve = GaussianProfile.of(mu, np.array([epsilon]))
    return min(1.0, max(0.0, float(curve.delta[0])) + float(curve.error[0]))


def epsilon_above(mu: float, delta: float) -> float:
    """Return the least epsilon with delta_mu(epsilon) <= delta, nats, rounded up.

    Args:
        mu: in [0, 64].
        delta: in (0, 1).
    """
    # Phi(-x) <= e^{-x^2/2} / 2, so that at this epsilon delta is kept.
    top = mu * (mu / 2 + sqrt(2 * log(1 / delta))) * (1 + 1e-12)
    return abs(largest_allowed(-top, -top / 2, 0.0, lambda x: log(delta_above(mu, -x) / delta) if mu > 0 else -1.0))


def mu_below(epsilon: float, delta: float) -> float:
    """Return the largest mu with delta_mu(epsilon) <= delta, rounded down; at most 64.

    Args:
        epsilon: nats, above 0.
        delta: in (0, 1).
    """
    return largest_allowed(_SMALLEST, epsilon / 4, LARGEST, lambda mu: log(delta_above(mu, epsilon) / delta))
