"""The epsilon card: the guarantee against each adversary. It is shown before any approval and beside every result."""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from veiltab.common.core.rounding import upward
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.shuffle import MAX_CELLS, MAX_SAMPLE


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonCard:
    """The guarantees of a release by adversary (neighbours: substitution of one respondent's row).

    Args:
        epsilon: pure epsilon against the researcher, nats, an upper bound.
        order: (epsilon, delta) against the researcher from the secret order, upper bounds; None where there is no
            certificate for the scheme. It holds beside the pure one, and is shown where its epsilon is less.
        local_epsilon: ln gamma against an adversary who knows the sample and its order, nats per row, an upper bound.
        one_time: whether the pads are one-time pads.
    """

    epsilon: Decimal
    order: tuple[Decimal, Decimal] | None
    local_epsilon: Decimal
    one_time: bool = False

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Return (adversary, what it faces), one row an adversary."""
        both = ""
        if self.order is not None and Decimal(upward(self.order[0])) < Decimal(upward(self.epsilon)):
            both = f", and (epsilon, delta) = ({upward(self.order[0])}, {self.order[1]:.3g}) (both hold)"
        return (
            ("researcher", f"epsilon = {upward(self.epsilon)} (pure){both}"),
            (
                "researcher with a curator",
                f"epsilon = {upward(self.local_epsilon)} per row (it knows the sample: the noise alone protects)",
            ),
            (
                "server alone",
                "nothing: the ciphertext does not depend on the data"
                if self.one_time
                else "nothing, as far as ChaCha20 cannot be told from random: the ciphertext is pseudorandom",
            ),
            ("server with the researcher", "no protection: together they hold the raw sample"),
            ("a curator, about another's columns", "nothing beyond which respondents they share"),
        )


def advised_delta(population: int) -> Decimal:
    """Return min(1e-6, n^-1.1), to two digits downward: small beside the chance of naming one respondent."""
    return min(Decimal("1e-6"), Decimal(f"{population**-1.1 * 0.95:.1e}"))


def delta_warning(delta: Decimal, population: int) -> str:
    """Return a sentence where a delta is not small beside one respondent; else nothing."""
    if delta * population < 1:
        return ""
    return (
        f"Delta {delta:.3g} is not below 1/n = {1 / population:.3g}: who publishes the row of one respondent keeps it"
        f" too. Advised: {advised_delta(population):.2g} or less."
    )


@lru_cache(maxsize=256)
def card_of(release: ReleaseDescription, *, delta: Decimal | None = None, one_time: bool = False) -> EpsilonCard:
    """Return the card of a release.

    Args:
        release: what runs.
        delta: for the guarantee of the secret order; by default the advised one.
        one_time: whether the pads are one-time pads.
    """
    scheme = release.scheme
    order = None
    computable = release.gamma > 1 and scheme.sample <= MAX_SAMPLE and release.cells <= MAX_CELLS
    if computable and (certificate := release.order_certificate) is not None:
        at = delta or advised_delta(scheme.population)
        order = (Decimal(certificate.epsilon(float(at))), at)
    return EpsilonCard(
        epsilon=release.pure_epsilon, order=order, local_epsilon=release.local_epsilon, one_time=one_time
    )
