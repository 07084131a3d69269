"""MUST.WO: with, then without replacement."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.sampling import Grouping, Rows, index_pieces
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.two_stage import TwoStage
from veiltab.common.schemes.with_replacement import WithReplacement


@dataclass(frozen=True, slots=True, kw_only=True)
class MustWO(TwoStage):
    """MUST.WO: b with replacement, then m of those without replacement; the same law as m with replacement."""

    name: ClassVar[str] = "must.wo"
    title: ClassVar[str] = "MUST.WO (two stages)"

    def _check_sizes(self) -> None:
        if self.sample > self.stage:
            raise InvalidInputError(
                f"the second stage draws without replacement: 1 to b = {self.stage} rows, not {self.sample}",
                where=f"scheme {self.name}",
            )

    @property
    def _same_law(self) -> WithReplacement:
        return WithReplacement(population=self.population, sample=self.sample)

    @property
    def eta(self) -> float:
        """1 - (1 - 1/n)^m."""
        return self._same_law.eta

    @property
    def pool(self) -> float:
        """1, as with replacement."""
        return 1.0

    def multiplicities(self) -> Floats:
        """Bin(m, 1/n)."""
        return self._same_law.multiplicities()

    @property
    def variance_factor(self) -> Fraction:
        """1/m."""
        return self._same_law.variance_factor

    def _second_places(self, key: bytes, grouping: Grouping) -> Iterator[Rows]:
        return index_pieces(self.stage, self.sample, key, grouping)

    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """M ln(1 + (gamma - 1)/n); tight."""
        return self._same_law.pure_epsilon(gamma)

    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """1 + n (e^(epsilon/m) - 1)."""
        return self._same_law.gamma_for(epsilon)
