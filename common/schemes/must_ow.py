"""MUST.OW: without, then with replacement."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.numbers.rounding import exp_below, ln_above, ln_below
from veiltab.common.core.sampling import Grouping, Rows, sample_pieces
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.laws import at_least_once, binomial_law
from veiltab.common.schemes.two_stage import TwoStage


@dataclass(frozen=True, slots=True, kw_only=True)
class MustOW(TwoStage):
    """MUST.OW: b without replacement, then m of them with replacement."""

    name: ClassVar[str] = "must.ow"
    title: ClassVar[str] = "MUST.OW (two stages)"

    def _check_sizes(self) -> None:
        if self.stage > self.population:
            raise InvalidInputError(
                f"the first stage draws without replacement: 1 to n = {self.population} rows, not {self.stage}",
                where=f"scheme {self.name}",
            )

    @property
    def eta(self) -> float:
        """(b/n) (1 - (1 - 1/b)^m)."""
        return self.stage / self.population * at_least_once(self.sample, 1 / self.stage)

    @property
    def pool(self) -> float:
        """b/n."""
        return self.stage / self.population

    def multiplicities(self) -> Floats:
        """With probability b/n: Bin(m, 1/b); else 0."""
        law = self.stage / self.population * binomial_law(self.sample, 1 / self.stage)
        law[0] += 1 - self.stage / self.population
        return law

    @property
    def variance_factor(self) -> Fraction:
        """Return f + (1-f)/m with f = (n-b)/((n-1) b)."""
        n, b = self.population, self.stage
        first = Fraction(n - b, (n - 1) * b) if n > 1 else Fraction(0)
        return first + (1 - first) / self.sample

    def _first_rows(self, tokens: NDArray[np.uint8], key: bytes, grouping: Grouping) -> Iterator[Rows]:
        return sample_pieces(tokens, self.stage, key, grouping)

    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """ln(1 + (b/n)((1 + (gamma - 1)/b)^m - 1)); tight.

        Source: sampling without replacement amplifies what follows it (Balle, Barthe, Gaboardi 2018).
        """
        second, grown = self._second_stage(gamma)
        return second if grown is None else ln_above(1 + Fraction(self.stage, self.population) * grown)

    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """1 + b ((1 + (e^epsilon - 1) n/b)^(1/m) - 1)."""
        n, m, b = self.population, self.sample, self.stage
        excess = b * (exp_below(ln_below(1 + (exp_below(epsilon) - 1) * Fraction(n, b)) / m) - 1)
        return self._stepped_down(excess, epsilon)
