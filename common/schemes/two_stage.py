"""The common base of MUST's two-stage schemes."""

from abc import ABC
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import expm1, inf, nextafter
from typing import ClassVar

from veiltab.common.core.rounding import ln_above
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.scheme import Relation, Scheme, SizeLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStage(Scheme, ABC):
    """Stage one draws b of n respondents, stage two m of those b.

    Args:
        stage: b, rows after stage one.
    """

    relation: ClassVar[Relation] = Relation.SUBSTITUTION
    size_law: ClassVar[SizeLaw] = SizeLaw.FIXED
    is_simple_random: ClassVar[bool] = False

    stage: int

    def _check_stage(self) -> None:
        if self.stage < 1:
            raise InvalidInputError("the first stage must take at least 1 row", where=f"scheme {self.name}")

    def _second_stage(self, gamma: Fraction) -> tuple[Decimal, Fraction | None]:
        """Return epsilon_2 = m ln(1 + (gamma - 1)/b) of draws with replacement, and e^epsilon_2 - 1; both rounded up.

        None stands for an exponential beyond a float's range.
        """
        epsilon = self.sample * ln_above(1 + (gamma - 1) / self.stage)
        return epsilon, Fraction(expm1(nextafter(float(epsilon), inf)) * (1 + 1e-14)) if epsilon < 600 else None
