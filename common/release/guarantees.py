"""The guarantees of a release's spec. The spec itself is plain data: reading one computes none of them.

A party checks a spec once, when it plans or receives it, and computes the card when it shows it. Those of several
tables are of all of them together, whichever are chosen to run a second time.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, cast

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import Bound, EpsilonCard, card_of
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import Price, composed_price, price, price_budget, price_within
from veiltab.common.release.receipts.canary_plan import ServerTest, server_test
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec

if TYPE_CHECKING:
    from veiltab.common.privacy.cards.all_releases import Slots

_ROUNDING = 1 + 1e-10
"""What another version's delta may be lower by: a certificate is enlarged by 1e-9, its errors are below 3e-10."""


def check_keeps_what_was_asked(spec: TableSpec) -> None:
    """Refuse a spec whose mechanism does not keep the requested epsilon, or epsilon and delta.

    One of several tables keeps it together with the others alone; see `keeps_what_was_asked`.

    Raises:
        InvalidInputError: it does not.
    """
    if not spec.part_of and not _table_keeps_it(spec):
        raise InvalidInputError("the replacement probability is too small for the epsilon", where="replacement")


def guaranteed_epsilon(spec: TableSpec) -> Decimal:
    """Return the pure epsilon of the mechanism that runs (nats, upper bound; never above a pure epsilon asked for)."""
    bound, is_kept = _pure(spec.description, spec.epsilon)
    return min(bound, spec.epsilon) if spec.delta is None and is_kept else bound


def epsilon_card(spec: TableSpec) -> EpsilonCard:
    """Return who faces which epsilon."""
    test = server_test(spec)
    card = card_of(
        two_sided_release(spec),
        delta=spec.delta,
        pure=guaranteed_epsilon(spec),
        one_time=spec.pad.is_one_time,
        least_noise=test.share,
    )
    return _with_test(card, test)


@lru_cache(maxsize=256)
def _with_test(card: EpsilonCard, test: ServerTest) -> EpsilonCard:
    """Return a card that says of its first reader how well the server is tested."""
    reader, *others = card.bounds
    return EpsilonCard(bounds=(replace(reader, note=f"{reader.note}; {test.sentence}"), *others))


@lru_cache(maxsize=4)
def release_test(release: ReleaseSpec) -> ServerTest:
    """Return what the canaries of a release show: of several tables, those of the table with the weakest test."""
    tests = {server_test(table) for table in (*release.each_table(), *release.each_repeat())}
    return min(tests, key=lambda test: (test.canaries > 0, test.share))


def two_sided_release(spec: TableSpec) -> TwoSidedRelease:
    """Return the release of a spec with the noise of either side, for the bounds of coalitions."""
    return TwoSidedRelease(
        scheme=spec.description.scheme, noise=spec.mechanism, is_sampled_by_server=spec.sampling.is_by_server
    )


def release_facts(spec: TableSpec) -> dict[str, object]:
    """Return the figures of a release and its epsilon card, as plain data for JSON."""
    return {
        "n": spec.population,
        "m": spec.sample,
        **same_fields(spec, ("cells", "canaries", "delta", "scheme")),
        "gamma": spec.mechanism.gamma,
        "replacement_probability": float(1 - spec.mechanism.retention),
        "server_replacement_probability": spec.server_replacement / 2**64,
        "curator_replacement_probability": spec.curator_replacement / 2**64,
        "server_test": server_test(spec).facts(),
        "sampling": spec.sampling.value,
        "pad": spec.pad.value,
        "card": [bound.as_dict() for bound in epsilon_card(spec).bounds],
    }


def _table_keeps_it(spec: TableSpec) -> bool:
    if spec.delta is None:
        return guaranteed_epsilon(spec) <= spec.epsilon
    return _certified(spec.description, spec.epsilon, spec.delta)


@lru_cache(maxsize=256)
def _pure(release: ReleaseDescription, epsilon: Decimal) -> tuple[Decimal, bool]:
    """Return the bound of the pure epsilon, and whether a given one is kept; the bound is rounded up, perhaps past."""
    return release.pure_epsilon, release.scheme.is_within(epsilon, release.gamma)


@lru_cache(maxsize=256)
def _certified(release: ReleaseDescription, epsilon: Decimal, delta: Decimal) -> bool:
    return release.delta(float(epsilon)) <= float(delta) * _ROUNDING


def keeps_what_was_asked(release: ReleaseSpec) -> bool:
    """Return whether the tables of a release together keep the requested epsilon, or epsilon and delta.

    Of several, the prices together must be within that of what was asked for: seconds of work, each kind is priced.
    """
    if release.only_table is not None:
        return _table_keeps_it(release.only_table)
    budget = asked_price(release)
    together = release_price(release, lambda kind: price_within(kind, budget))
    return together.mu <= budget.mu and together.slack <= budget.slack


def asked_price(release: ReleaseSpec) -> Price:
    """Return the price of the epsilon and delta that were asked for several tables."""
    return price_budget(release.epsilon, cast("Decimal", release.delta))


def release_price(release: ReleaseSpec, pricing: Callable[[ReleaseDescription], Price]) -> Price:
    """Return the price of all tables together, those that may run a second time each at the worst of them.

    Args:
        pricing: prices one table; it is called once for each kind of them.
    """
    first = Counter(table.description for table in release.each_table())
    prices = list(chain.from_iterable(repeat(pricing(kind), count) for kind, count in first.items()))
    again = {table.description for table in release.each_repeat()}
    if again:
        prices += repeat(max(map(pricing, again), key=lambda one: one.mu), release.repeats)
    return composed_price(prices)


def release_pure_epsilon(release: ReleaseSpec) -> Decimal:
    """Return the pure epsilon of all tables together, nats, an upper bound; as `release_price`."""
    first = sum((table.description.pure_epsilon for table in release.each_table()), Decimal(0))
    again = (table.description.pure_epsilon for table in release.each_repeat())
    return first + (release.repeats * max(again) if release.repeats else 0)


def _slots_of(release: ReleaseSpec) -> "tuple[Slots, ...]":
    """Return the tables with the noise of either side, for the bounds of coalitions."""
    from veiltab.common.privacy.cards.all_releases import Slots  # noqa: PLC0415 - not for releases of one table

    first = Counter(map(two_sided_release, release.each_table()))
    slots = tuple(Slots(candidates=(kind,), count=count) for kind, count in first.items())
    if not release.repeats:
        return slots
    again = dict.fromkeys(map(two_sided_release, release.each_repeat()))
    return (*slots, Slots(candidates=tuple(again), count=release.repeats))


@lru_cache(maxsize=4)
def release_card(release: ReleaseSpec) -> EpsilonCard:
    """Return who faces which epsilon of a release, of all its tables together; of several, some seconds of work.

    Of several, no more is stated against the desk and its analysts than what was asked for, if the tables keep it by
    their prices.
    """
    if release.only_table is not None or release.delta is None:
        return epsilon_card(release.table(0))
    from veiltab.common.privacy.cards.all_releases import bounds_together  # noqa: PLC0415 - not for releases of one table

    bounds = bounds_together(
        _slots_of(release), release.delta, pricing=lru_cache(maxsize=None)(price), one_time=release.pad.is_one_time
    )
    card = EpsilonCard(bounds=tuple(_no_more_than_asked(bound, release, release.delta) for bound in bounds))
    return _with_test(card, release_test(release))


def _no_more_than_asked(bound: Bound, release: ReleaseSpec, delta: Decimal) -> Bound:
    is_desk = bound.roles in {Coalition.ANALYST.roles, Coalition.DESK.roles}
    if not is_desk or bound.epsilon is None or bound.epsilon <= release.epsilon:
        return bound
    if not keeps_what_was_asked(release):
        return bound
    other = bound.other or (bound.epsilon, bound.delta)
    return replace(bound, epsilon=release.epsilon, delta=delta, other=other)
