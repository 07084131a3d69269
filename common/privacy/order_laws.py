"""The binomial laws that the sum of an order certificate needs, and tails of Bin(s, 1/2) for many s at once."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.binomial import PIECE, binomial_pmf, window
from veiltab.common.core.numbers.elementary import Floats, log

OMITTED = 75.0
"""-ln of the probability that a window leaves out on each side."""

_ONE_SUM = 128
"""Most numbers that NumPy sums at once; of more it adds the sums of two halves, the first a multiple of 8 long."""

_MOST_KEPT = 4_000_000
"""How many numbers of laws are kept for the next epsilon: 32 MB."""


class Rest:
    """The laws of hr ~ Bin(trials, p) for some numbers of trials, and Psi(x) = E (x - hr)_+ of each."""

    def __init__(self, trials: NDArray[np.int64], p: float) -> None:
        self.low = window(int(trials.min()), p, log_mass=OMITTED)[0]
        self.high = window(int(trials.max()), p, log_mass=OMITTED)[1]
        self.means = np.asarray(trials * p, np.float64)
        points = np.arange(self.low, self.high + 1, dtype=np.int64)
        psi = binomial_pmf(points, trials[:, None], p)
        np.cumsum(psi, axis=1, out=psi)
        self._psi = np.cumsum(psi, axis=1, out=psi)

    @property
    def size(self) -> int:
        """How many numbers it keeps."""
        return self._psi.size

    def shortfall(self, x: Floats, which: NDArray[np.int64]) -> Floats:
        """Return Psi(x) of law which[i] for row i of x; it is linear between integers."""
        place = np.clip(np.floor(x), self.low, self.high)
        index = (place - self.low).astype(np.int64)
        law = which[:, None]
        # Psi(low) is 0, and Psi(low + i) the i-th sum of the distribution function.
        before = np.where(index > 0, self._psi[law, np.maximum(index - 1, 0)], 0.0)
        inside = before + (x - place) * (self._psi[law, index] - before)
        beyond = x - self.means[which][:, None]
        return np.where(x >= self.high, beyond, np.where(x <= self.low, 0.0, inside))


class Memory:
    """What the sums for one certificate at several epsilons have in common: a search for its epsilon needs it again."""

    def __init__(self) -> None:
        self._laws: dict[tuple[int, int], Floats] = {}
        self._rests: dict[tuple[int, ...], Rest] = {}
        self._room = _MOST_KEPT
        self._ratios: dict[tuple[int, int], tuple[int, NDArray[np.int64], Floats]] = {}
        self._tails: dict[tuple[int, int], float] = {}

    def law(self, s: NDArray[np.int64], m: int, p: float) -> Floats:
        """Return P(Bin(m, p) = s) for consecutive s; m and p are always the same."""
        key = (int(s[0]), len(s))
        if (law := self._laws.get(key)) is None:
            law = binomial_pmf(s, m, p)
            if law.size <= self._room:
                self._laws[key] = law
                self._room -= law.size
        return law

    def rest(self, trials: NDArray[np.int64], p: float) -> Rest:
        """Return the laws of hr for some numbers of trials, evenly spaced; p is always the same."""
        key = (int(trials[0]), int(trials[-1]), len(trials))
        if (rest := self._rests.get(key)) is None:
            rest = Rest(trials, p)
            if rest.size <= self._room:
                self._rests[key] = rest
                self._room -= rest.size
        return rest

    def tail_ratios(self, s: NDArray[np.int64], a: NDArray[np.int64], terms: int) -> Floats:
        """Return `_tail_ratios` for consecutive s; it is computed for each a that is not as it was the last time."""
        key = (int(s[0]), len(s))
        last_terms, last, ratios = self._ratios.get(key, (-1, a, np.empty(len(s))))
        others = np.flatnonzero(a != last) if terms == last_terms else np.arange(len(s))
        size = max(1, PIECE // max(1, terms))
        for some in (others[at : at + size] for at in range(0, len(others), size)):
            ratios[some] = _tail_ratios(s[some], a[some], terms)
        self._ratios[key] = terms, a, ratios
        return ratios

    def tails(self, s: NDArray[np.int64], a: NDArray[np.int64]) -> list[float]:
        """Return `_summed` for some s and a; it is computed once for each pair of them."""
        pairs = list(zip(s.tolist(), a.tolist(), strict=True))
        others = [i for i, pair in enumerate(pairs) if pair not in self._tails]
        if others:
            self._tails.update(zip((pairs[i] for i in others), _summed(s[others], a[others]), strict=True))
        return [self._tails[pair] for pair in pairs]


def tails(s: NDArray[np.int64], a: NDArray[np.int64], memory: Memory) -> Floats:
    """Return P(Bin(s, 1/2) >= a) for consecutive ascending s and a that rises by 0 or 1 from one to the next.

    Few terms are summed directly, each the one before times (s-h)/(h+1). Where they would be many, the sum is carried
    from one s to the next over a stretch so short that no precision is lost.
    """
    steepest = float(np.max((s - a) / (a + 1.0)))
    decay = -log(steepest) if 0 < steepest < 1 else (1e9 if steepest <= 0 else 0.0)
    terms = int(min(42 / decay if decay > 0 else 1e9, 14 * sqrt(s[-1]) + 40, max(int(np.max(s - a)), 0) + 1))
    if terms * len(s) <= 1_600_000:
        return binomial_pmf(a, s, 0.5) * memory.tail_ratios(s, a, terms)
    return _carried(s, a, memory, stretch=int(max(4, min(sqrt(s[-1]) / 3, 4 / max(decay, 1e-9)))))


def _tail_ratios(s: NDArray[np.int64], a: NDArray[np.int64], terms: int) -> Floats:
    """Return P(Bin(s, 1/2) >= a) / P(Bin(s, 1/2) = a), by so many terms."""
    h = a[:, None] + np.arange(terms - 1, dtype=float)
    ratios = np.maximum(s[:, None] - h, 0)
    ratios /= h + 1
    total: Floats = 1 + np.cumprod(ratios, axis=1, out=ratios).sum(axis=1)
    return total


def _carried(s: NDArray[np.int64], a: NDArray[np.int64], memory: Memory, *, stretch: int) -> Floats:
    """Sum the tail of the last s of each stretch, and carry it down to the others.

    P(Bin(s) >= a) = P(Bin(s+1) >= a+1) + P(Bin(s) = a)/2 = P(Bin(s+1) >= a) - P(Bin(s) = a-1)/2
    """
    rises = np.diff(a) == 1
    here = np.where(rises, a[:-1], a[:-1] - 1)
    steps = binomial_pmf(here, s[:-1], 0.5) * np.where(rises, 0.5, -0.5)
    starts = range(0, len(s), stretch)
    lasts = np.minimum(np.array(starts) + stretch, len(s)) - 1
    carried = np.empty(len(s))
    for start, last, tail in zip(starts, lasts.tolist(), memory.tails(s[lasts], a[lasts]), strict=True):
        carried[start:last] = np.cumsum(steps[start:last][::-1])[::-1] + tail
        carried[last] = tail
    return np.maximum(carried, 0.0)


def _summed(s: NDArray[np.int64], a: NDArray[np.int64]) -> list[float]:
    """Return P(Bin(s, 1/2) >= a), summed to where nothing is left.

    Many terms are summed in two halves. The second one is not computed where even a geometric series above it is less
    than half a unit in the last place of the first: adding it would change nothing.
    """
    first = np.maximum(a, 0)
    ends = np.array([window(n, 0.5, log_mass=2 * OMITTED)[1] for n in s.tolist()])
    counts = np.maximum(ends - first, 0) + 1
    halves = np.where(counts > _ONE_SUM, counts // 2 // 8 * 8, counts)
    pmf = binomial_pmf(first[:, None] + np.arange(halves.max() + 1), s[:, None], 0.5)
    sums = []
    for row, n, low, middle, stop in zip(pmf, s.tolist(), first, first + halves, first + counts, strict=True):
        total = float(row[: middle - low].sum())
        if middle < stop and row[middle - low] * (middle + 1) > 2.0**-55 * total * (2 * middle + 1 - n):
            total += float(binomial_pmf(np.arange(middle, stop), n, 0.5).sum())
        sums.append(total)
    return sums
