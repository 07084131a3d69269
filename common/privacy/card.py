"""The epsilon card: who faces which guarantee. Shown before any approval and beside every result."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonCard:
    """What a release guarantees against whom (neighbours: substitution of one respondent's row).

    Args:
        epsilon: pure epsilon against the researcher, nats, an upper bound.
        local_epsilon: ln gamma against who knows the sample and its order, nats per row, an upper bound.
    """

    epsilon: Decimal
    local_epsilon: Decimal

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Return (adversary, what it faces), one row an adversary."""
        return (
            ("researcher", f"epsilon = {upward(self.epsilon)} (pure, tight: the sample is secret)"),
            (
                "researcher with a curator",
                f"epsilon = {upward(self.local_epsilon)} per row (it knows the sample: the noise alone protects)",
            ),
            ("server alone", "nothing: the ciphertext does not depend on the data"),
            ("server with the researcher", "no protection: together they hold the raw sample"),
            ("a curator, about another's columns", "nothing beyond which respondents they share"),
        )


def upward(value: Decimal) -> str:
    """Write an upper bound with six decimals, rounded up."""
    return f"{value.quantize(Decimal('1e-6'), rounding='ROUND_CEILING'):f}"
