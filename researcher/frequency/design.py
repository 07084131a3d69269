"""The public parameters of a round: the nodes, their reporting rates, and what a report says about a value."""

from fractions import Fraction

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDesign:
    """Nodes in public strata, each of which reports by its own coin through a mechanism with parameters p and q.

    A report has a support, a set of values. It holds i with probability p if the node's value is i and q if it is not.

    Args:
        populations: nodes n_s of each stratum, at least 1.
        rates: probability pi_s that a node of the stratum reports, in (0, 1], exact; a function of the stratum alone.
        p: P(support holds i | value is i), exact.
        q: P(support holds i | value is not i), exact, below p.

    Raises:
        InvalidInputError: no stratum, lengths that differ, or a number out of range.

    Source: Biswas, Cormode, Maple, Definition 2.3 (pure protocols) and Section 5 (probabilities that differ).
    """

    populations: tuple[int, ...]
    rates: tuple[Fraction, ...]
    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        if not self.populations or len(self.populations) != len(self.rates):
            raise InvalidInputError("there are no strata, or not one population and one rate for each")
        for place, (population, rate) in enumerate(zip(self.populations, self.rates, strict=True), 1):
            if population < 1:
                raise InvalidInputError(f"a stratum has {population} nodes", where=f"stratum {place}")
            if not 0 < rate <= 1:
                raise InvalidInputError(
                    f"a rate must be above 0 and at most 1, not {float(rate):g}", where=f"stratum {place}"
                )
        if not 0 <= self.q <= self.p <= 1:
            raise InvalidInputError(f"p and q must satisfy 0 <= q < p <= 1, not {float(self.p):g}, {float(self.q):g}")
        if self.p == self.q:
            raise InvalidInputError(
                "a report says nothing about the value (p = q), so nothing can be estimated",
                remedy="Ask for a larger epsilon.",
            )

    @property
    def population(self) -> int:
        """All nodes, n."""
        return sum(self.populations)

    @property
    def mean_rate(self) -> Fraction:
        """The mean probability of reporting, sum(pi_j)/n over the nodes."""
        return Fraction(sum(n * rate for n, rate in zip(self.populations, self.rates, strict=True)), self.population)

    @property
    def one_rate(self) -> bool:
        """Whether every node reports with the same probability."""
        return len(set(self.rates)) == 1
