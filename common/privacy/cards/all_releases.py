"""What several releases together give each coalition.

Every view of a release has a price (pricing/price.py), and squares of prices and slacks add up; so do pure epsilons,
and what a row loses to who knows its person. As with the running epsilon of a ledger, the sums are those
of a plan of releases that was fixed beforehand; where releases are chosen among candidates on the way, each counts as
the worst of them, and the sums hold whatever is chosen.

Relation: substitution of one respondent's row over all releases, n public.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain, repeat
from math import isfinite
from operator import attrgetter

from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.cards.card import EVERYTHING, Bound, bound_of_ciphertext, card_of
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import Price, composed_price, price

_SLACK = Decimal("1e-4")
"""Part of delta that is the slack of one release: it costs two percent of epsilon, and is enough for thousands."""

_ADDED = "all these releases together"

Pricing = Callable[[ReleaseDescription, Decimal], Price]
"""Returns the price of a view at a slack; a caller may keep prices."""

Views = tuple[int, Sequence[ReleaseDescription]]
"""How many releases, and what a coalition sees of each candidate for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Several releases, each of them one of some candidates, whichever is chosen.

    Args:
        candidates: at least one.
        count: how many releases, at least one.
    """

    candidates: tuple[TwoSidedRelease, ...]
    count: int = 1


def bounds_together(
    releases: Sequence[TwoSidedRelease | Slots], delta: Decimal, *, pricing: Pricing = price, one_time: bool = False
) -> tuple[Bound, ...]:
    """Return what each coalition faces of all releases together.

    Args:
        releases: of the same respondents; none at all give no bounds.
        delta: of all together, in (0, 1).
        one_time: whether all pads are one-time pads.

    Returns:
        One bound a coalition, upper bounds: by prices or pure, whichever is less.
    """
    if not releases:
        return ()
    slots = _slots(releases)
    first, *more = slots[0].candidates
    if len(slots) == slots[0].count == 1 and not more and type(first) is TwoSidedRelease:
        return card_of(first, delta=delta, one_time=one_time).bounds
    return tuple(_together(coalition, slots, delta, pricing, one_time=one_time) for coalition in Coalition)


def _together(
    coalition: Coalition, slots: Sequence[Slots], delta: Decimal, pricing: Pricing, *, one_time: bool
) -> Bound:
    bounded = _bounded(coalition, slots)
    match coalition:
        case Coalition.SERVER_AND_CURATORS:
            return bound_of_ciphertext(one_time=one_time)
        case Coalition.DESK_SERVER_AND_CURATOR:
            return EVERYTHING
        case Coalition.DESK_AND_SERVER if len(bounded) < len(slots):
            note = "they hold the raw rows of a release to which the curators added no noise"
            return Bound(roles=coalition.roles, note=note)
        case _ if len(bounded) < len(slots):
            rows = sum((slot.count * max(each.row_epsilon for each in slot.candidates) for slot in slots), Decimal(0))
            several = not all(each.scheme.is_simple_random for slot in slots for each in slot.candidates)
            return Bound(roles=coalition.roles, epsilon=rows, per_row=True, has_several=several, note=_ADDED)
        case _:
            return _sum(coalition, bounded, delta, pricing)


def _slots(releases: Sequence[TwoSidedRelease | Slots]) -> list[Slots]:
    return [each if isinstance(each, Slots) else Slots(candidates=(each,)) for each in releases]


def _bounded(coalition: Coalition, slots: Sequence[Slots]) -> list[Views]:
    """Return what a coalition sees of each slot, without the slots in which a candidate has no bound."""
    views = [(slot.count, [each.seen_by(coalition) for each in slot.candidates]) for slot in slots]
    return [(count, [view for view in some if view is not None]) for count, some in views if None not in some]


def _sum(coalition: Coalition, slots: Sequence[Views], delta: Decimal, pricing: Pricing) -> Bound:
    """Return the bound by prices with the pure one beside it, or the pure one if it is less."""
    pure = sum((count * max(view.pure_epsilon for view in views) for count, views in slots), Decimal(0))
    priced = _price(slots, delta, pricing).epsilon(float(delta))
    if not isfinite(priced) or Decimal(priced) >= pure:
        return Bound(roles=coalition.roles, epsilon=pure, note=_ADDED)
    other = (pure, Decimal(0))
    return Bound(roles=coalition.roles, epsilon=Decimal(priced), delta=delta, other=other, note=_ADDED)


def price_for_desk(releases: Sequence[TwoSidedRelease | Slots], delta: Decimal, pricing: Pricing) -> Price:
    """Return the price of releases together to the desk; their slack is small beside a delta of all together."""
    return _price(_bounded(Coalition.DESK, _slots(releases)), delta, pricing)


def _price(slots: Sequence[Views], delta: Decimal, pricing: Pricing) -> Price:
    worst = [
        (count, max((pricing(view, delta * _SLACK) for view in views), key=attrgetter("mu"))) for count, views in slots
    ]
    return composed_price(chain.from_iterable(repeat(price, count) for count, price in worst))
