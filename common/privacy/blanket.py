"""How a report hides among others: the part of its law that does not depend on the value.

A report y of a node with value x has two levels of likelihood, P(y | x) = gamma c(y) if y supports x, else c(y). So it
is drawn, with probability beta = sum_y c(y), from the blanket c/beta whatever x is. For two values,

    apart = P(blanket, y supports the first alone),   both = P(blanket, it supports both),   neither = P(blanket, none)

and, with p = P(y supports x | x) and `both_given` = P(supports both | blanket),

    beta = p/gamma + 1 - p,    both = beta both_given,    apart = p/gamma - both,    neither = beta - 2 apart - both

k-ary randomised response over K values has apart 1/q, both 0 and neither (K-2)/q, q = gamma + K - 1.

Source: Balle, Bell, Gascon, Nissim 2019, Section 3.1: the blanket is the largest part that all values share.
"""

from dataclasses import dataclass
from fractions import Fraction

from veiltab.common.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Blanket:
    """Probabilities that a report is of the blanket, and which of two values it supports.

    Args:
        apart: it supports the first alone; the same for the second alone.
        both: it supports both.
        neither: it supports none.
    """

    apart: Fraction
    both: Fraction
    neither: Fraction

    def __post_init__(self) -> None:
        if not (self.apart > 0 and self.both >= 0 and self.neither >= 0):
            raise InvalidInputError("a blanket report supports one of two values at times", where="blanket")
        if 2 * self.apart + self.both + self.neither > 1:
            raise InvalidInputError("the probabilities of a blanket add up to more than 1", where="blanket")

    @classmethod
    def of_cells(cls, cells: int, gamma: Fraction) -> "Blanket":
        """Return the blanket of k-ary randomised response over K cells."""
        q = gamma + cells - 1
        return cls(apart=1 / q, both=Fraction(0), neither=(cells - 2) / q)

    @classmethod
    def of_supports(cls, *, gamma: Fraction, own: Fraction, both_given: Fraction) -> "Blanket":
        """Return the blanket of reports with two levels of likelihood.

        Args:
            gamma: the ratio of the levels, above 1.
            own: p, the probability that a report supports its node's value.
            both_given: the probability that a blanket report supports two given values.
        """
        whole = own / gamma + 1 - own
        both = whole * both_given
        apart = own / gamma - both
        return cls(apart=apart, both=both, neither=whole - 2 * apart - both)
