"""A scheme of one file: one respondent, all m rows of the sample."""

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.numbers.rounding import exp_below, ln_above, ln_below
from veiltab.common.core.sampling import uniform_indices
from veiltab.common.dataclass import dataclass
from veiltab.common.schemes import Relation, Rows, Scheme, SizeLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRespondent(Scheme):
    """One respondent, m times."""

    name: ClassVar[str] = "one"
    title: ClassVar[str] = "one respondent, repeated"
    relation: ClassVar[Relation] = Relation.SUBSTITUTION
    size_law: ClassVar[SizeLaw] = SizeLaw.FIXED
    is_simple_random: ClassVar[bool] = False

    def _check_sizes(self) -> None:
        """Any number of copies will do."""

    @property
    def eta(self) -> float:
        return 1 / self.population

    def multiplicities(self) -> Floats:
        law = np.zeros(self.sample + 1)
        law[0], law[-1] = 1 - self.eta, self.eta
        return law

    @property
    def variance_factor(self) -> Fraction:
        return Fraction(1)

    def draw(self, tokens: NDArray[np.uint8], key: bytes) -> Rows:
        del tokens
        return np.repeat(uniform_indices(self.population, 1, derive(key, "draws")), self.sample)

    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """ln(1 + (gamma^m - 1)/n); tight."""
        return ln_above(1 + (gamma**self.sample - 1) / self.population)

    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """(1 + n (e^epsilon - 1))^(1/m)."""
        root = ln_below(1 + self.population * (exp_below(epsilon) - 1)) / self.sample
        return self._stepped_down(exp_below(root) - 1, epsilon)
