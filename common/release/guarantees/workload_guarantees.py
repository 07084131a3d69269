"""The guarantees of a release of several tables: of all of them together, whichever are chosen to run a second time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import chain, repeat

from veiltab.common.privacy.cards.all_releases import Slots, bounds_together
from veiltab.common.privacy.cards.card import Bound, EpsilonCard
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import Price, price, price_budget, price_within, total
from veiltab.common.release.guarantees.guarantees import epsilon_card, two_sided_release
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.workload import WorkloadSpec


def tables_keep_what_was_asked(workload: WorkloadSpec) -> bool:
    """Return whether the prices of all tables together are within that of the requested epsilon and delta.

    Seconds of work: each kind of table is priced.
    """
    budget = price_budget(workload.epsilon, workload.delta)
    together = workload_price(workload, lambda release: price_within(release, budget))
    return together.mu <= budget.mu and together.slack <= budget.slack


def workload_price(workload: WorkloadSpec, pricing: Callable[[ReleaseDescription], Price]) -> Price:
    """Return the price of all tables together, those that may run a second time each at the worst of them.

    Args:
        workload: what runs.
        pricing: prices one table; it is called once for each kind of them.
    """
    first = Counter(table.description for table in workload.each_table())
    prices = list(chain.from_iterable(repeat(pricing(kind), count) for kind, count in first.items()))
    again = {table.description for table in workload.each_repeat()}
    if again:
        prices += repeat(max(map(pricing, again), key=lambda one: one.mu), workload.repeats)
    return total(prices)


def workload_pure_epsilon(workload: WorkloadSpec) -> Decimal:
    """Return the pure epsilon of all tables together, nats, an upper bound; as `workload_price`."""
    first = sum((table.description.pure_epsilon for table in workload.each_table()), Decimal(0))
    again = (table.description.pure_epsilon for table in workload.each_repeat())
    return first + (workload.repeats * max(again) if workload.repeats else 0)


def workload_slots(workload: WorkloadSpec) -> tuple[Slots, ...]:
    """Return the tables with the noise of either side, for the bounds of coalitions."""
    first = Counter(map(two_sided_release, workload.each_table()))
    slots = tuple(Slots(candidates=(release,), count=count) for release, count in first.items())
    if not workload.repeats:
        return slots
    again = dict.fromkeys(map(two_sided_release, workload.each_repeat()))
    return (*slots, Slots(candidates=tuple(again), count=workload.repeats))


@lru_cache(maxsize=4)
def card_of_release(release: ReleaseSpec | WorkloadSpec) -> EpsilonCard:
    """Return who faces which epsilon of a release, of all its tables together; of several, some seconds of work."""
    return workload_card(release) if isinstance(release, WorkloadSpec) else epsilon_card(release)


def workload_card(workload: WorkloadSpec) -> EpsilonCard:
    """Return who faces which epsilon of all tables together, whichever are chosen to run a second time.

    Against the desk and its analysts no more is stated than what was asked for, if the tables keep it by their prices.
    """
    bounds = bounds_together(
        workload_slots(workload),
        workload.delta,
        pricing=lru_cache(maxsize=None)(price),
        one_time=workload.pad.is_one_time,
    )
    return EpsilonCard(bounds=tuple(_no_more_than_asked(bound, workload) for bound in bounds))


def _no_more_than_asked(bound: Bound, workload: WorkloadSpec) -> Bound:
    is_desk = bound.roles in {Coalition.ANALYST.roles, Coalition.DESK.roles}
    if not is_desk or bound.epsilon is None or bound.epsilon <= workload.epsilon:
        return bound
    if not tables_keep_what_was_asked(workload):
        return bound
    other = bound.other or (bound.epsilon, bound.delta)
    return replace(bound, epsilon=workload.epsilon, delta=workload.delta, other=other)
