"""Group privacy profiles: delta_j(epsilon) when j copies of one respondent are in the data, exact for each mechanism.

delta_j(epsilon) is the hockey-stick divergence of order e^epsilon between the outputs on data with j copies of one
value and with j copies of another. Relation: substitution of the respondent (all its copies change together).
"""

from collections.abc import Hashable
from functools import lru_cache
from math import erfc, exp, log, sqrt
from typing import Protocol

import numpy as np

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

LARGEST_BASE = 700.0
"""Largest epsilon (nats) whose e^epsilon is looked at as a float."""

ENLARGEMENT = 1 + 1e-11
"""Relative enlargement that covers the rounding errors."""

_SLOPES, _REACH = 256, 40.0
"""Points of a grid of slopes, to where a normal tail is below all floats."""


class GroupProfile(Protocol):
    """The privacy profile of a mechanism for groups of copies."""

    def delta(self, epsilon: float, copies: int) -> float:
        """Return an upper bound of delta_j(epsilon), j = copies >= 1."""

    def mean_delta(self, epsilon: float, law: Floats) -> float:
        """Return an upper bound of sum_{j>=1} P(j) delta_j(epsilon) for a law P of copies, shape (most + 1,)."""
        return float(law[1:] @ np.array([self.delta(epsilon, copies) for copies in range(1, len(law))]))


class SlopedProfile(GroupProfile, Hashable, Protocol):
    """A profile whose slopes are known: delta_j falls, and is convex, as e^epsilon rises."""

    def slopes(self, copies: int) -> tuple[Floats, Floats]:
        """Return (epsilons above 0, ascending; minus the slope of delta_j in e^epsilon before each), about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(GroupProfile):
    """Gaussian noise.

    delta_j(epsilon) = Phi(j r/2 - epsilon/(j r)) - e^epsilon Phi(-j r/2 - epsilon/(j r)),    r = Delta/sigma

    Args:
        ratio: r, for one copy.

    Source: Balle, Wang 2018, Theorem 8.
    """

    ratio: float

    def __post_init__(self) -> None:
        check_positive(self.ratio, "ratio")

    def delta(self, epsilon: float, copies: int) -> float:
        """Return delta_j(epsilon)."""
        shift = copies * self.ratio
        upper = _normal_below(shift / 2 - epsilon / shift)
        lower = _normal_below(-shift / 2 - epsilon / shift)
        # The error of the difference is that of its terms, not of the result.
        return min(1.0, max(0.0, upper - exp(epsilon) * lower) + 4e-15 * upper)

    def slopes(self, copies: int) -> tuple[Floats, Floats]:
        """Return minus the slopes, Phi(-j r/2 - epsilon/(j r)), on a grid as far as there are floats."""
        shift = copies * self.ratio
        epsilons = np.linspace(0, min(_REACH * shift, LARGEST_BASE), _SLOPES + 1)[1:]
        return epsilons, np.array([_normal_below(-shift / 2 - float(epsilon) / shift) for epsilon in epsilons])


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDiagonalProfile(GroupProfile):
    """Gamma-diagonal PRAM, each copy perturbed independently: exact from the counts of the two values among j outputs.

    delta_j(epsilon) = E_x0 [ (1 - e^epsilon gamma^{-(h0-h1)})_+ ],    (h0, h1, *) ~ Multinomial(j; gamma/q, 1/q, ...)

    Args:
        gamma: worst-case ratio, above 1.
        cells: K.
    """

    gamma: float
    cells: int

    def __post_init__(self) -> None:
        if not (self.gamma > 1 and np.isfinite(self.gamma)):
            raise InvalidInputError("gamma must be a number above 1", where="gamma")
        if self.cells < 2:
            raise InvalidInputError("there must be at least 2 cells", where="cells")

    def delta(self, epsilon: float, copies: int) -> float:
        """Return delta_j(epsilon)."""
        return self.mean_delta(epsilon, np.eye(1, copies + 1, copies)[0])

    def mean_delta(self, epsilon: float, law: Floats) -> float:
        """Return sum_{j>=1} P(j) delta_j(epsilon): all counts of copies share one law of h0 - h1."""
        most = len(law) - 1
        gain = -np.expm1(np.minimum(epsilon - np.arange(-most, most + 1) * log(self.gamma), 0.0))
        return min(1.0, ENLARGEMENT * float(_difference_law(self.gamma, self.cells, law.tobytes()) @ gain))

    def slopes(self, copies: int) -> tuple[Floats, Floats]:
        """Return minus the slopes before gamma^d, P_x1(h0 - h1 >= d), d = 1, ..., j: it bends nowhere else."""
        below = np.cumsum(_difference_law(self.gamma, self.cells, np.eye(1, copies + 1, copies).tobytes()))
        return np.arange(1.0, copies + 1) * log(self.gamma), below[copies - 1 :: -1]


@lru_cache(maxsize=128)
def _difference_law(gamma: float, cells: int, copies: bytes) -> Floats:
    """Return sum_{j>=1} P(j) L^(*j), the law of h0 - h1 from -most to most; each epsilon needs it.

    L is the law of one copy: 1/q at -1, (K-2)/q at 0, gamma/q at 1. Its powers add up by Horner's rule.

    Args:
        cells: K.
        copies: P(j), j = 0, ..., most, as the bytes of float64.
    """
    q = gamma + cells - 1
    step = np.array([1 / q, (cells - 2) / q, gamma / q])
    law = np.zeros(1)
    for weight in np.frombuffer(copies)[:0:-1]:
        law[len(law) // 2] += weight
        law = np.convolve(law, step)
    return law


def _normal_below(x: float) -> float:
    return erfc(-x / sqrt(2)) / 2


def check_positive(value: float, name: str) -> None:
    """Refuse what is not a number above 0."""
    if not (value > 0 and np.isfinite(value)):
        raise InvalidInputError(f"{name} must be a number above 0", where=name)
