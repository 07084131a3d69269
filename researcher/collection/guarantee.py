"""What a round guarantees against each adversary, and the error of a trusted centre with the same guarantee."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

from veiltab.common.collection.round import RoundStatus
from veiltab.common.core.binomial import binomial_tail
from veiltab.common.core.numbers.rounding import upward
from veiltab.common.privacy.cards.card import Bound, advised_delta
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.researcher.collection.shuffling import (
    CentralComparison,
    CentralGuarantee,
    central_guarantee,
    compare_with_gaussian,
    guarantee_together,
)
from veiltab.researcher.frequency.frequencies import Frequencies

DELTA_OF_COINS = Decimal("0.1")
"""Share of delta that covers unlikely outcomes of the coins."""


@lru_cache(maxsize=64)
def guarantee(status: RoundStatus, delta: Decimal | None = None) -> CentralGuarantee:
    """Return a round's guarantee against an adversary who sees only counts; neighbours: substitution of a value.

    The secret coins count only for as many nodes as the reports show to have tossed one: the least a for which S
    reports or more have probability delta/10 or more. Nodes that are away, or have no token, hide nobody.

    Args:
        delta: probability; by default the advised one.
    """
    oracle = status.round.randomiser
    whole = delta or advised_delta(max(sum(status.enrolled), 2))
    coins = whole * DELTA_OF_COINS
    return central_guarantee(_active(status, coins), status.reports, oracle=oracle, delta=whole - coins)


def together(statuses: Sequence[RoundStatus]) -> tuple[Decimal, Decimal | None, Decimal]:
    """Return what rounds together tell of a node: a pure epsilon against everybody; epsilon and delta by counts alone.

    Neighbours: substitution of what one node answers in all of the rounds. Epsilon is None without a certificate.
    """
    pure = sum((Decimal(upward(status.round.randomiser.epsilon)) for status in statuses), Decimal(0))
    whole = max(advised_delta(max(sum(status.enrolled), 2)) for status in statuses)
    coins = whole * DELTA_OF_COINS
    rounds = [(status.round.randomiser, _active(status, coins / len(statuses)), status.reports) for status in statuses]
    return pure, guarantee_together(rounds, whole - coins), whole


def _active(status: RoundStatus, probability: Decimal) -> list[int]:
    """Return the least numbers of nodes, one a stratum, that the reports show to have tossed a coin."""
    return [
        least_active(reports, stratum.probability, probability)
        for stratum, reports in zip(status.round.strata, status.reports, strict=True)
    ]


def least_active(reports: int, rate: Fraction, probability: Decimal) -> int:
    """Return the least a for which P(Bin(a, rate) >= reports) >= probability: at least that many nodes tossed a coin.

    Fewer nodes would send this many reports with a smaller probability. At rate 1 it is the number of reports.

    Args:
        reports: S, at least 0.
        rate: probability with which a node reports, in (0, 1].
    """
    if rate == 1 or reports == 0:
        return reports
    low, high = reports, ceil(reports / rate)
    # The tail has ten correct digits; the margin of one part in a million covers its error.
    target = float(probability) * (1 + 1e-6)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_tail(reports, middle, float(rate)) >= target else (middle + 1, high)
    return low


def bounds(status: RoundStatus) -> tuple[Bound, ...]:
    """Return what every coalition faces, of this round alone; neighbours: substitution of a node's value."""
    local = Decimal(upward(status.round.randomiser.epsilon))
    alone = (
        (("researcher", "nodes"), "counts, and the other reports: those that it knows hide nobody"),
        (("server",), "each report, with its token, address and time, of which it keeps none"),
        (("server", "organiser"), "each report, and which node sent it: who hands out tokens knows whose they are"),
        (("researcher", "server", "organiser"), "everything; a node's own noise protects it, no matter who colludes"),
    )
    return (
        *_bounds_of_counts(guarantee(status), DELTA_OF_COINS),
        *(Bound(roles=roles, epsilon=local, note=note) for roles, note in alone),
    )


def _bounds_of_counts(central: CentralGuarantee, of_coins: Decimal) -> tuple[Bound, ...]:
    """Return the guarantees against those who see only counts, with the certificate if there is one."""
    alone, informed = ("researcher",), ("researcher", "organiser")
    local = Decimal(upward(central.local_epsilon))
    if central.epsilon is None or central.known_epsilon is None:
        note = f"counts; no less is certified: {central.why}"
        return tuple(Bound(roles=roles, epsilon=local, note=note) for roles in (alone, informed))
    whole, pure = central.delta / (1 - of_coins), (local, Decimal(0))
    secret = ", if it cannot learn which nodes reported" if central.epsilon < central.known_epsilon else ""
    view = "counts, and which nodes reported: it sees which tokens are spent"
    return (
        Bound(roles=alone, epsilon=central.epsilon, delta=whole, other=pure, note=f"counts{secret}"),
        Bound(roles=informed, epsilon=central.known_epsilon, delta=whole, other=pure, note=view),
    )


def centre(status: RoundStatus, frequencies: Frequencies) -> CentralComparison | None:
    """Return a round's errors beside those of a trusted centre's Gaussian histogram with the same (epsilon, delta)."""
    return compare_with_gaussian(frequencies.standard_errors, guarantee(status))


def centre_text(comparison: CentralComparison | None) -> str:
    """Return the comparison as one sentence; empty without a certificate."""
    if comparison is None:
        return ""
    largest = float(comparison.collected.max())
    return (
        f"At ({upward(comparison.epsilon)}, {delta_text(comparison.delta)}) a trusted centre that knew all values could"
        f" publish every count with a standard error of {comparison.gaussian:.3g} nodes; here the largest is"
        f" {largest:.4g}."
    )
