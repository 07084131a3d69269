"""Group privacy profiles of mechanisms that no release runs; see veiltab.common.privacy.profiles for what they are."""

from math import exp, expm1, inf

import numpy as np

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.profiles import ENLARGEMENT, LARGEST_BASE, GroupProfile, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(GroupProfile):
    """Any mechanism that is (epsilon0, 0)-private for one copy; j copies face j epsilon0.

    delta_j(epsilon) = (e^{j epsilon0} - e^epsilon)_+ / (e^{j epsilon0} + 1)

    It is attained by binary randomised response, the worst of all such mechanisms (Kairouz, Oh, Viswanath 2015).
    """

    epsilon0: float

    def __post_init__(self) -> None:
        check_positive(self.epsilon0, "epsilon")

    def delta(self, epsilon: float, copies: int) -> float:
        """Return delta_j(epsilon)."""
        gap = copies * self.epsilon0 - epsilon
        if gap <= 0:
            return 0.0
        # (e^x - e^y)/(e^x + 1) = (1 - e^{y-x})/(1 + e^{-x})
        return min(1.0, ENLARGEMENT * -expm1(-gap) / (1 + exp(-copies * self.epsilon0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(GroupProfile):
    """Laplace noise.

    delta_j(epsilon) = max(0, 1 - exp((epsilon - j Delta/s)/2))

    Args:
        ratio: sensitivity over scale, Delta/s, for one copy.

    Source: Balle, Barthe, Gaboardi 2018, Theorem 3.
    """

    ratio: float

    def __post_init__(self) -> None:
        check_positive(self.ratio, "ratio")

    def delta(self, epsilon: float, copies: int) -> float:
        """Return delta_j(epsilon)."""
        return max(0.0, min(1.0, ENLARGEMENT * -expm1((epsilon - copies * self.ratio) / 2)))

    def slopes(self, copies: int) -> tuple[Floats, Floats]:
        """Return minus the slopes, e^{-(epsilon + j Delta/s)/2}/2, on a grid to where delta_j is 0."""
        epsilons = np.linspace(0, min(copies * self.ratio, LARGEST_BASE), 257)[1:]
        return epsilons, np.exp(-(epsilons + copies * self.ratio) / 2) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Guaranteed(GroupProfile):
    """Any mechanism that is (epsilon_i, delta_i)-private for one copy, at one or more points i.

    For one copy, delta_1(epsilon) is at most the least over i of

        delta_i + (1 - delta_i) (e^{epsilon_i} - e^epsilon)_+ / (e^{epsilon_i} + 1)

    and at most the chord in e^epsilon between two points, as profiles are convex in it. For j copies, changed one after
    the other:

        delta_j(epsilon) <= delta_1(epsilon/j) (e^epsilon - 1)/(e^{epsilon/j} - 1)

    Args:
        points: (epsilon_i, delta_i), epsilon_i in nats from 0, delta_i in [0, 1).

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3, of one mechanism; Vadhan 2017, Lemma 2.2, for groups.
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points or not all(
            0 <= epsilon <= LARGEST_BASE and 0 <= delta < 1 for epsilon, delta in self.points
        ):
            raise InvalidInputError(
                f"an epsilon must lie between 0 and {LARGEST_BASE:g}, and a delta from 0 to below 1", where="guarantee"
            )

    def delta(self, epsilon: float, copies: int) -> float:
        """Return an upper bound of delta_j(epsilon)."""
        if copies == 1:
            return min(1.0, ENLARGEMENT * self._of_one(epsilon))
        part = epsilon / copies
        terms = copies if part == 0 else expm1(epsilon) / expm1(part) if epsilon <= LARGEST_BASE else inf
        return min(1.0, ENLARGEMENT * self._of_one(part) * terms)

    def _of_one(self, epsilon: float) -> float:
        least = 1.0
        for top, delta in self.points:
            gap = -expm1(min(epsilon - top, 0.0)) / (1 + exp(-top))
            least = min(least, delta + (1 - delta) * gap)
        for low, first in self.points:
            for high, second in self.points:
                if low <= epsilon < high:
                    least = min(least, first + (second - first) * expm1(epsilon - low) / expm1(high - low))
        return least
