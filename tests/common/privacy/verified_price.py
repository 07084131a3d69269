"""A verifier of prices, on a finer grid than the product's."""

import numpy as np

from veiltab.common.privacy import domination
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.gaussian import LARGEST_EPSILON, GaussianProfile
from veiltab.common.privacy.pricing.price import _POINTS, Price, _beyond, certified_profile, price_of_pure_epsilon


def is_price(of: Price, release: ReleaseDescription) -> bool:
    """Show that a release has a price; False where this cannot be shown."""
    if of.mu >= price_of_pure_epsilon(release.pure_epsilon).mu:
        return True
    profile = certified_profile(release, float(of.slack) or 1e-15, points=4 * _POINTS)
    if profile is None or of.mu == 0:
        return False
    return dominates(float(of.mu), float(of.slack), profile, pure_epsilon=_beyond(release.pure_epsilon))


def dominates(mu: float, slack: float, profile: domination.Profile, *, pure_epsilon: float) -> bool:
    """Show (*) on a grid finer than that of `least_mu`; False if it cannot be shown there."""
    if not domination._is_within_floats(profile, slack, pure_epsilon):
        return False
    epsilons = np.linspace(
        0, domination._top(profile, slack, mu, min(pure_epsilon, LARGEST_EPSILON)), 4 * domination._INTERVALS + 1
    )
    deltas = domination._convex(epsilons, profile(epsilons))
    for _ in range(domination._ROUNDS):
        curve = GaussianProfile.of(mu, epsilons)
        if not domination._holds_at(curve, deltas, slack) or domination._holds_between(curve, deltas, slack).all():
            break
        epsilons, deltas = domination._refined(profile, epsilons, deltas, mu, slack)
    return domination.holds(epsilons, deltas, mu, slack)
