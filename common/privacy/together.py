"""What several releases together give each coalition.

Every view of a release has a price (see veiltab.common.privacy.price), and squares of prices and slacks add up; so do
pure epsilons, and what a row loses to who knows its person. As with the running epsilon of a ledger, the sums are those
of a plan of releases that was fixed beforehand.

Relation: substitution of one respondent's row over all releases, n public.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from math import isfinite

from veiltab.common.privacy.card import Bound, card_of
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.price import Price, price, total

_SLACK = Decimal("1e-4")
"""Part of delta that is the slack of one release: it costs two percent of epsilon, and is enough for thousands."""

_ADDED = "all these releases together"

Pricing = Callable[[ReleaseDescription, Decimal], Price]
"""Returns the price of a view at a slack; a caller may keep prices."""


def bounds_together(
    releases: Sequence[TwoSidedRelease], delta: Decimal, *, pricing: Pricing = price
) -> tuple[Bound, ...]:
    """Return what each coalition faces of all releases together.

    Args:
        releases: of the same respondents; none at all give no bounds.
        delta: of all together, in (0, 1).
        pricing: prices a view.

    Returns:
        One bound a coalition, upper bounds: by prices or pure, whichever is less.
    """
    if len(releases) <= 1:
        return tuple(bound for release in releases for bound in card_of(release, delta=delta).bounds)
    return tuple(
        _together(Coalition(bound.roles), bound, releases, delta, pricing)
        for bound in card_of(releases[0], delta=delta).bounds
    )


def _together(
    coalition: Coalition, first: Bound, releases: Sequence[TwoSidedRelease], delta: Decimal, pricing: Pricing
) -> Bound:
    """Return the bound of one coalition, given that of the first release."""
    views = [view for release in releases if (view := release.seen_by(coalition)) is not None]
    match coalition:
        case Coalition.SERVER_AND_CURATORS | Coalition.DESK_SERVER_AND_CURATOR:
            return first
        case Coalition.DESK_AND_SERVER if len(views) < len(releases):
            note = "of a release to which the curators added no noise they hold the raw rows"
            return Bound(roles=coalition.roles, note=note)
        case _ if len(views) < len(releases):
            rows = sum((release.row_epsilon for release in releases), Decimal(0))
            return Bound(roles=coalition.roles, epsilon=rows, per_row=True, note=_ADDED)
        case _:
            prices = total(pricing(view, delta * _SLACK) for view in views)
            return _sum(coalition, views, prices, delta)


def _sum(coalition: Coalition, views: Sequence[ReleaseDescription], prices: Price, delta: Decimal) -> Bound:
    """Return the bound by prices with the pure one beside it, or the pure one if it is less."""
    pure = sum((view.pure_epsilon for view in views), Decimal(0))
    priced = prices.epsilon(float(delta))
    if not isfinite(priced) or Decimal(priced) >= pure:
        return Bound(roles=coalition.roles, epsilon=pure, note=_ADDED)
    other = (pure, Decimal(0))
    return Bound(roles=coalition.roles, epsilon=Decimal(priced), delta=delta, other=other, note=_ADDED)
