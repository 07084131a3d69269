"""Sampling with replacement."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.numbers.rounding import exp_below, ln_above
from veiltab.common.core.sampling import Gathering, Grouping, Rows, uniform_indices, uniform_pieces
from veiltab.common.dataclass import dataclass
from veiltab.common.schemes.laws import at_least_once, binomial_law
from veiltab.common.schemes.scheme import Relation, Scheme, SizeLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class WithReplacement(Scheme):
    """m independent draws."""

    name: ClassVar[str] = "wr"
    title: ClassVar[str] = "with replacement"
    relation: ClassVar[Relation] = Relation.SUBSTITUTION
    size_law: ClassVar[SizeLaw] = SizeLaw.FIXED
    is_simple_random: ClassVar[bool] = False

    def _check_sizes(self) -> None:
        """Accept any number of draws."""

    @property
    def eta(self) -> float:
        """1 - (1 - 1/n)^m."""
        return at_least_once(self.sample, 1 / self.population)

    @property
    def pool(self) -> float:
        """1."""
        return 1.0

    def multiplicities(self) -> Floats:
        """Bin(m, 1/n)."""
        return binomial_law(self.sample, 1 / self.population)

    @property
    def variance_factor(self) -> Fraction:
        """1/m."""
        return Fraction(1, self.sample)

    def draw(self, tokens: NDArray[np.uint8], key: bytes) -> Rows:
        """Return m independent rows; see Scheme."""
        del tokens
        return uniform_indices(self.population, self.sample, derive(key, "draws"))

    def draw_pieces(
        self, tokens: NDArray[np.uint8], key: bytes, grouping: Grouping, gathering: Gathering
    ) -> Iterator[Rows]:
        """Yield them piece by piece; see Scheme."""
        del tokens, grouping, gathering
        return uniform_pieces(self.population, self.sample, derive(key, "draws"))

    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """M ln(1 + (gamma - 1)/n); tight, as the draws are independent."""
        return self.sample * ln_above(1 + (gamma - 1) / self.population)

    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """1 + n (e^(epsilon/m) - 1)."""
        return self._stepped_down(self.population * (exp_below(epsilon / self.sample) - 1), epsilon)
