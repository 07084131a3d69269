"""A verifier of prices, on a finer grid than the product's."""

from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.domination import dominates
from veiltab.common.privacy.pricing.price import _POINTS, Price, _beyond, certified_profile, price_of_pure_epsilon


def is_price(of: Price, release: ReleaseDescription) -> bool:
    """Show that a release has a price; False where this cannot be shown."""
    if of.mu >= price_of_pure_epsilon(release.pure_epsilon).mu:
        return True
    profile = certified_profile(release, float(of.slack) or 1e-15, points=4 * _POINTS)
    if profile is None or of.mu == 0:
        return False
    return dominates(float(of.mu), float(of.slack), profile, pure_epsilon=_beyond(release.pure_epsilon))
