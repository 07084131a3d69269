"""MUST.WW: with, then again with replacement."""

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.numbers.rounding import exp_below, ln_above, ln_below
from veiltab.common.dataclass import dataclass
from veiltab.common.schemes.laws import at_least_once, binomial_law
from veiltab.common.schemes.two_stage import TwoStage


@dataclass(frozen=True, slots=True, kw_only=True)
class MustWW(TwoStage):
    """MUST.WW: b with replacement, then m of those with replacement."""

    name: ClassVar[str] = "must.ww"
    title: ClassVar[str] = "MUST.WW (two stages)"

    def _check_sizes(self) -> None:
        """Accept any sizes."""

    @property
    def eta(self) -> float:
        """sum_u Bin(u; b, 1/n) (1 - (1 - u/b)^m)."""
        first = binomial_law(self.stage, 1 / self.population)
        hit = [at_least_once(self.sample, u / self.stage) for u in range(len(first))]
        return float(first @ np.array(hit))

    def multiplicities(self) -> Floats:
        """Return the law of Bin(m, u/b) with u ~ Bin(b, 1/n)."""
        first = binomial_law(self.stage, 1 / self.population)
        laws = [binomial_law(self.sample, min(1.0, u / self.stage)) for u in range(len(first))]
        total = np.zeros(max(map(len, laws)))
        for weight, law in zip(first, laws, strict=True):
            total[: len(law)] += weight * law
        return total

    @property
    def variance_factor(self) -> Fraction:
        """1/b + (1 - 1/b)/m."""
        return Fraction(1, self.stage) + Fraction(self.stage - 1, self.stage * self.sample)

    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """Return the lesser of two bounds: b independent draws for stage two, and m rows whatever the draw.

        b ln(1 + ((1 + (gamma - 1)/b)^m - 1)/n),    m ln(gamma)
        """
        second, grown = self._second_stage(gamma)
        draws = self.stage * (second if grown is None else ln_above(1 + grown / self.population))
        return min(draws, self.sample * ln_above(gamma))

    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """1 + b ((1 + n (e^(epsilon/b) - 1))^(1/m) - 1), or e^(epsilon/m) if that is more."""
        n, m, b = self.population, self.sample, self.stage
        excess = b * (exp_below(ln_below(1 + n * (exp_below(epsilon / b) - 1)) / m) - 1)
        return self._stepped_down(max(excess, exp_below(epsilon / m) - 1), epsilon)
