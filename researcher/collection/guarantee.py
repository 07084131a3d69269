"""What a round guarantees against each adversary, and the error of a trusted centre with the same guarantee."""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

from veiltab.common.collection.oracles import KaryRandomisedResponse
from veiltab.common.collection.round import RoundStatus
from veiltab.common.core.binomial import binomial_tail
from veiltab.common.core.rounding import upward
from veiltab.common.privacy.card import advised_delta
from veiltab.researcher.collection.shuffling import (
    CentralComparison,
    CentralGuarantee,
    central_guarantee,
    compare_with_gaussian,
)
from veiltab.researcher.frequency.estimation import Frequencies

DELTA_OF_COINS = Decimal("0.1")
"""Share of delta that covers unlikely outcomes of the coins."""


@lru_cache(maxsize=64)
def guarantee(status: RoundStatus, delta: Decimal | None = None) -> CentralGuarantee:
    """Return a round's guarantee against an adversary who sees only counts; neighbours: substitution of a value.

    The secret coins count only for as many nodes as the reports show to have tossed one: the least a for which S
    reports or more have probability delta/10 or more. Nodes that are away, or have no token, hide nobody.

    Args:
        status: how the round stands.
        delta: probability; by default the advised one.
    """
    oracle = status.round.randomiser
    whole = delta or advised_delta(max(sum(status.enrolled), 2))
    coins = whole * DELTA_OF_COINS
    active = [
        least_active(reports, stratum.probability, coins)
        for stratum, reports in zip(status.round.strata, status.reports, strict=True)
    ]
    return central_guarantee(
        active,
        status.reports,
        gamma=oracle.gamma,
        values=oracle.size if isinstance(oracle, KaryRandomisedResponse) else None,
        delta=whole - coins,
    )


def least_active(reports: int, rate: Fraction, probability: Decimal) -> int:
    """Return the least a for which P(Bin(a, rate) >= reports) >= probability: at least that many nodes tossed a coin.

    Fewer nodes would send this many reports with a smaller probability. At rate 1 it is the number of reports.

    Args:
        reports: S, at least 0.
        rate: probability with which a node reports, in (0, 1].
        probability: of an error.
    """
    if rate == 1 or reports == 0:
        return reports
    low, high = reports, ceil(reports / rate)
    # The tail has ten correct digits; the margin of one part in a million covers its error.
    wanted = float(probability) * (1 + 1e-6)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_tail(reports, middle, float(rate)) >= wanted else (middle + 1, high)
    return low


def card(status: RoundStatus) -> tuple[tuple[str, str], ...]:
    """Return (adversary, what it faces), one row an adversary; every row is of this round alone."""
    found, local = guarantee(status), upward(status.round.randomiser.epsilon)
    seen = (
        f"epsilon = {local} a report; it sees which token, address and time a report comes with, and keeps none of them"
    )
    own = f"epsilon = {local} a node in the worst case: reports that it knows hide nobody"
    return (
        *_rows_of_counts(found, DELTA_OF_COINS),
        ("who sees counts and sent, or knows, the other reports", own),
        ("who sees whose report is whose", f"epsilon = {local} a node (pure): its own noise alone protects"),
        ("server", seen),
        ("server with who handed out the tokens", f"epsilon = {local} a report, and which node sent it"),
    )


def _rows_of_counts(central: CentralGuarantee, of_coins: Decimal) -> tuple[tuple[str, str], ...]:
    """Return the guarantees against adversaries who see only counts, if there is a certificate."""
    if central.epsilon is None or central.known_epsilon is None:
        return (
            (
                "who sees counts",
                f"epsilon = {upward(central.local_epsilon)} (pure); no less is certified: {central.why}",
            ),
        )
    whole = central.delta / (1 - of_coins)
    known = f"(epsilon, delta) = ({upward(central.known_epsilon)}, {whole:.3g})"
    rows = [("who sees counts, and may know which nodes reported", known)]
    if central.epsilon < central.known_epsilon:
        secret = f"(epsilon, delta) = ({upward(central.epsilon)}, {whole:.3g}), if the nodes' coins are secret"
        rows.append(("who sees counts, and cannot learn which nodes reported", secret))
    return tuple(rows)


def centre(status: RoundStatus, frequencies: Frequencies) -> CentralComparison | None:
    """Return a round's errors beside those of a trusted centre's Gaussian histogram with the same (epsilon, delta)."""
    return compare_with_gaussian(frequencies.standard_errors, guarantee(status))


def centre_text(comparison: CentralComparison | None) -> str:
    """Return the comparison as one sentence; empty without a certificate."""
    if comparison is None:
        return ""
    largest = float(comparison.collected.max())
    return (
        f"At ({upward(comparison.epsilon)}, {comparison.delta:.3g}) a trusted centre that knew all values could publish"
        f" every count with a standard error of {comparison.gaussian:.3g} nodes; here the largest is {largest:.4g}."
    )
