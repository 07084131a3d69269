"""The profile of distinguishing N(0,1) from N(mu,1), rounded up or down: the measure of a release's price.

    delta_mu(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

It is convex in e^epsilon, with slope -Phi(-mu/2 - epsilon/mu). Phi comes from math.erfc, whose error is a few units of
the last place; the error of the argument x is magnified by about x^2, so that Phi is known to a relative
8e-15 + 1e-15 x^2. An error of epsilon/mu that both terms share leaves their difference as it is. Below 1e-307 floats
are spaced evenly, and e^epsilon magnifies the spacing.

Source: Balle, Wang 2018, Theorem 8.
"""

from dataclasses import dataclass
from math import erfc, log, sqrt

import numpy as np

from veiltab.common.core.elementary import Floats
from veiltab.common.privacy.root import largest_allowed

LARGEST = 64.0
"""The largest mu in use: its delta at epsilon = 0 is 1 to all digits."""

_SMALLEST = 1e-12
_TINY = 1e-290
_SPACING = 1e-322
"""Bounds the error of erfc where floats have no full precision any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProfile:
    """delta_mu at some epsilons and its slopes there, each with a bound of its error.

    Args:
        epsilons: nats, from 0, shape (k,).
        delta: delta_mu, shape (k,).
        slope: Phi(-mu/2 - epsilon/mu), minus the slope in e^epsilon, shape (k,).
        error: bounds the error of delta; shape (k,).
        slope_error: bounds the error of slope; shape (k,).
    """

    epsilons: Floats
    delta: Floats
    slope: Floats
    error: Floats
    slope_error: Floats

    @classmethod
    def of(cls, mu: float, epsilons: Floats) -> "GaussianProfile":
        """Return the profile of mu in (0, 64] at epsilons to 700."""
        ratio = epsilons / mu
        upper, slope = _normal(mu / 2 - ratio), _normal(-mu / 2 - ratio)
        relative = 8e-15 + 1e-15 * (mu / 2 + ratio) ** 2
        return cls(
            epsilons=epsilons,
            delta=upper - np.exp(epsilons) * slope,
            slope=slope,
            error=2 * relative * upper + np.exp(epsilons) * _SPACING + _TINY,
            slope_error=relative * slope + _TINY,
        )

    @property
    def below(self) -> Floats:
        """A lower bound of delta_mu, at least 0."""
        low: Floats = np.maximum(self.delta - self.error, 0.0)
        return low


def _normal(x: Floats) -> Floats:
    return np.array([erfc(-value / sqrt(2)) / 2 for value in x.tolist()])


def delta_above(mu: float, epsilon: float) -> float:
    """Return delta_mu(epsilon) (substitution or whatever relation mu is for), rounded up.

    Args:
        mu: in (0, 64]; 0 means no release.
        epsilon: nats, at least 0.
    """
    if mu <= 0:
        return 0.0
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
