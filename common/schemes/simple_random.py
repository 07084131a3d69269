"""Simple random samples: everyone at most once, every set of one size equally likely."""

from abc import ABC
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.numbers.rounding import exp_below, ln_above
from veiltab.common.core.sampling import Gathering, Grouping, Rows, sample_by_priority, sample_pieces
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.scheme import Scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleRandom(Scheme, ABC):
    """A scheme whose sample, given its size, is a simple random one."""

    is_simple_random: ClassVar[bool] = True

    def _check_sizes(self) -> None:
        if self.sample > self.population:
            raise InvalidInputError(
                f"the sample must be 1 to n = {self.population} rows, not {self.sample}", where=f"scheme {self.name}"
            )

    @property
    def eta(self) -> float:
        """m/n."""
        return self.sample / self.population

    def multiplicities(self) -> Floats:
        """Once with probability m/n, else never."""
        return np.array([1 - self.eta, self.eta])

    @property
    def variance_factor(self) -> Fraction:
        """(n-m)/((n-1) m)."""
        n, m = self.population, self.sample
        return Fraction(n - m, (n - 1) * m) if n > 1 else Fraction(0)

    def draw(self, tokens: NDArray[np.uint8], key: bytes) -> Rows:
        """Return the m rows of least priority; see Scheme."""
        return sample_by_priority(tokens, self.sample, key)

    def draw_pieces(
        self, tokens: NDArray[np.uint8], key: bytes, grouping: Grouping, gathering: Gathering
    ) -> Iterator[Rows]:
        """Yield them piece by piece; see Scheme."""
        del gathering
        return sample_pieces(tokens, self.sample, key, grouping)

    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """ln(1 + (m/n)(gamma - 1)); tight."""
        return pure_epsilon(gamma, population=self.population, sample=self.sample)

    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """1 + (e^epsilon - 1) n/m."""
        return gamma_for_pure_epsilon(epsilon, population=self.population, sample=self.sample)

    def is_within(self, epsilon: Decimal, gamma: Fraction) -> bool:
        """Return whether 1 + (m/n)(gamma - 1) <= e^epsilon, exactly; the bound is rounded up, perhaps past it."""
        return 1 + Fraction(self.sample, self.population) * (gamma - 1) <= exp_below(epsilon)


def pure_epsilon(gamma: Fraction, *, population: int, sample: int) -> Decimal:
    """Return the pure epsilon of a release, rounded up.

    epsilon = ln(1 + (m/n)(gamma - 1))

    Args:
        gamma: worst-case ratio of the mechanism's probabilities, at least 1.
        population: n, rows of every table.
        sample: sampled rows m, drawn uniformly without replacement and secretly.

    Returns:
        An upper bound in nats, within 1e-12 of the tight value, against a researcher who knows every other row.

    Raises:
        InvalidInputError: the sample is not 1..n rows, or gamma is below 1.

    Source: Lin, Wang, Rane, Theorem 3.2 (tight by their Example 3.3).
    """
    _check_sample(population=population, sample=sample)
    return ln_above(1 + Fraction(sample, population) * (gamma - 1))


def gamma_for_pure_epsilon(epsilon: Decimal, *, population: int, sample: int) -> Fraction:
    """Return the largest gamma that keeps a release inside a pure epsilon, rounded down.

    gamma = 1 + (e^epsilon - 1) n/m

    Args:
        epsilon: the pure epsilon to keep, in nats.
        population: n, rows of every table.
        sample: sampled rows m.

    Returns:
        An exact fraction, at most the real value and within a relative 1e-55 of it.

    Raises:
        InvalidInputError: the sample is not 1..n rows.

    Source: Lin, Wang, Rane, Theorem 3.2.
    """
    _check_sample(population=population, sample=sample)
    return 1 + (exp_below(epsilon) - 1) * Fraction(population, sample)


def _check_sample(*, population: int, sample: int) -> None:
    """Refuse a sample that is empty or larger than the population."""
    if not 1 <= sample <= population:
        raise InvalidInputError(
            f"{sample} rows were asked for, not 1 to n = {population}",
            where="sample size",
            remedy="Ask for a smaller sample, or let the planner choose it.",
        )
