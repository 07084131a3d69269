"""Laws of privacy losses on a grid, and of their sums.

With p_j the probability of the loss j h, and b that of an infinite one,

    delta(epsilon) = b + sum_{j h > epsilon} p_j (1 - e^(epsilon - j h))

which is linear in e^epsilon between the points of the grid: values there, joined by straight lines, are a law. Sums are
composed by one Fourier transform over a window; Chernoff's inequality shows that less than e^-40 lies outside.

Source: Sommer, Meiser, Mohammadi 2019 (losses); Doroshenko et al. 2022, Algorithm 1 (straight lines); Koskela, Jaelkoe,
Honkela 2020 (Fourier transforms).
"""

from collections.abc import Sequence
from math import ceil, expm1, inf, log, log1p

import numpy as np

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.dataclass import dataclass

TRANSFORM_ERROR = 1e-13
"""What Fourier transforms and the window may take from a delta, or add to it."""

_OUTSIDE = 40.0
_RATES = 2.0 ** np.arange(-6, 5)
_LARGEST = 600.0
"""Losses from here on (nats) count as infinite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Losses:
    """A law of losses.

    Args:
        lowest: j of the first probability.
        chances: p_j, float64, shape (k,).
        interval: h, nats.
        beyond: b.
    """

    lowest: int
    chances: Floats
    interval: float
    beyond: float = 0.0

    @classmethod
    def of(cls, deltas: Floats, lowest: int, interval: float) -> "Losses":
        """Return the law whose deltas at the points of a grid are given.

        Args:
            deltas: convex in e^epsilon and falling, shape (k,), at (lowest + i) h.
        """
        falls = -np.diff(deltas)
        chances = np.append(1 - deltas[0], falls / -expm1(-interval))
        chances[:-1] -= falls / expm1(interval)
        return cls(lowest=lowest, chances=np.maximum(chances, 0.0), interval=interval, beyond=float(deltas[-1]))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon (nats, at least 0) with at most that delta; infinity if there is none."""
        losses = (self.lowest + np.arange(len(self.chances))) * self.interval
        infinite = self.beyond + float(self.chances[losses >= _LARGEST].sum())
        inner = (losses > 0) & (losses < _LARGEST)
        losses, chances = losses[inner], self.chances[inner]
        upper = infinite + np.cumsum(chances[::-1])[::-1]
        lower = np.cumsum((chances * np.exp(-losses))[::-1])[::-1]
        enough = np.flatnonzero(upper - np.exp(losses) * lower <= delta)
        if not len(enough):
            return inf if len(losses) or infinite > delta else 0.0
        excess = upper[enough[0]] - delta
        return max(0.0, log(excess / lower[enough[0]])) if excess > 0 else 0.0


def composed(parts: Sequence[tuple[Losses, int]]) -> Losses:
    """Return the law of the sum of independent losses, each as often as said.

    Args:
        parts: laws on one grid, each with a count of at least 1.
    """
    low, high = -_reach(parts, -1), _reach(parts, 1)
    size = 1 << (high - low).bit_length()
    transform = np.ones(size // 2 + 1, np.complex128)
    for law, count in parts:
        places = (law.lowest + np.arange(len(law.chances))) % size
        transform *= np.fft.rfft(np.bincount(places, law.chances, size)) ** count
    finite = sum(count * log1p(-law.beyond) for law, count in parts)
    chances: Floats = np.roll(np.fft.irfft(transform, size), -low)
    return Losses(lowest=low, chances=chances, interval=parts[0][0].interval, beyond=-expm1(finite))


def _reach(parts: Sequence[tuple[Losses, int]], sign: int) -> int:
    """Return a j that the sum of the losses, times a sign, is above with a probability of at most e^-_OUTSIDE."""
    spread, totals = 1.0, np.full(len(_RATES), _OUTSIDE)
    laws = [(law.lowest + np.flatnonzero(law.chances), law.chances[law.chances > 0], count) for law, count in parts]
    spread += sum(count * float(chances @ places.astype(float) ** 2) for places, chances, count in laws)
    rates = _RATES / spread**0.5
    for places, chances, count in laws:
        totals += count * np.logaddexp.reduce(np.outer(sign * rates, places) + np.log(chances), axis=1)
    return ceil(float((totals / rates).min())) + 1
