"""What a round guarantees against whom, and what a trusted centre could do with the same guarantee."""

from decimal import Decimal

from common.collection.oracles import KaryRandomisedResponse
from common.collection.round import RoundStatus
from common.privacy.card import advised_delta
from common.privacy.rounding import upward
from researcher.collection.shuffling import (
    CentralComparison,
    CentralGuarantee,
    central_guarantee,
    compare_with_gaussian,
)
from researcher.frequency.estimation import Frequencies


def guarantee(status: RoundStatus, delta: Decimal | None = None) -> CentralGuarantee:
    """Return what a round guarantees against who sees counts alone; neighbours: substitution of one node's value.

    Args:
        status: how the round stands; the tokens handed out count as its nodes.
        delta: probability; by default the advised one.
    """
    oracle = status.round.randomiser
    nodes = max(sum(status.enrolled), 2)
    return central_guarantee(
        status.enrolled,
        status.reports,
        gamma=oracle.gamma,
        values=oracle.size if isinstance(oracle, KaryRandomisedResponse) else None,
        delta=delta or advised_delta(nodes),
    )


def card(status: RoundStatus) -> tuple[tuple[str, str], ...]:
    """Return (adversary, what it faces), one row an adversary."""
    local = upward(status.round.randomiser.epsilon)
    seen = (
        f"epsilon = {local} a report; it sees which token, address and time a report comes with, and keeps none of them"
    )
    return (
        *guarantee(status).rows(),
        ("server", seen),
        ("server with who handed out the tokens", f"epsilon = {local} a report, and which node sent it"),
    )


def centre(status: RoundStatus, found: Frequencies) -> CentralComparison | None:
    """Return a round's errors beside those of a trusted centre's Gaussian histogram with the same (epsilon, delta)."""
    return compare_with_gaussian(found.standard_errors, guarantee(status))


def centre_text(comparison: CentralComparison | None) -> str:
    """Say it in one sentence; nothing if there is no certificate to compare at."""
    if comparison is None:
        return ""
    largest = float(comparison.collected.max())
    return (
        f"At ({upward(comparison.epsilon)}, {comparison.delta:.3g}) a trusted centre that knew all values could publish"
        f" every count with a standard error of {comparison.gaussian:.3g} nodes; here the largest is {largest:.4g}."
    )
