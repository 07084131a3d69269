"""The crowd certificate: what the reports of any oracle tell in random order.

A report y of a node with value v has two levels of likelihood, P(y | v) = gamma c(y) if y supports v, else c(y). So it
is drawn, with probability beta = sum_y c(y), from the blanket c/beta whatever v is.

Theorem B (a stand-in). Let m of n nodes report, a uniformly random set of them in uniformly random order, w = m/n. For
all values of the nodes, substitution of one node's value, 0 by 1, and e = e^epsilon >= 1,

    delta(epsilon) <= sum_g beta (1-beta)^(g-1) D(m-g) + (1-beta)^(m-1) w (P(y | 0) - e P(y | 1))_+    g = 1..m-1
    D(j) = max over values v_1..v_j of (w/j) E( sum_i Z_i - (1/w - 1) j (e-1) )_+
    Z_i = ( P(y_i | 0) - e P(y_i | 1) ) / P(y_i | v_i),  y_i ~ P(. | v_i), independent; the last term is summed over y

In words: among the others, in random order, the g-th is the first whose report is of the blanket. That report tells
nothing of its node, so the target takes the node's place, and the adversary may learn under whose name each of the m-g
reports that are left was sent. docs/order-certificate.md has the proof.

How it is computed. Z has one law where v is neither 0 nor 1, so a sum of B terms has one of the laws of a few
compositions of (0, 1, other). Each Z is spread to two points of a lattice with the same mean, which is larger in convex
order; E(Z - t)_+ of the sum, maximal over the compositions at each t, is that of a law which is larger in convex order
than all of them. D(j) is at most that of j/B independent terms of it, rounded down; their sum is a power of a discrete
Fourier transform, of the law tilted by e^(lambda z), so that what is added up is relative to delta. What wraps around,
and what the transform may be wrong by, is added.
"""

from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, exp, floor, inf, isqrt, log, sqrt
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.shuffle import LEAST_DELTA, MAX_SAMPLE, check_delta
from veiltab.common.privacy.threshold_search import largest_allowed

_POINTS = 16
"""Points of a lattice in a standard deviation; the variance rises by less than a thousandth."""

_MOST_POINTS = 16_384
"""Points of the lattice of a block, at most, where a block is more than one term."""

_LARGEST_BLOCK = {2: 64, 3: 16}
"""Terms of a block, at most, by the laws that a term may have: the more terms, the nearer is the bound to the worst."""

_REPORTS_A_TERM = 40
"""Reports for each term of a block, at least: those that fill no block at the end hide nobody."""

_MOST_TOGETHER, _BLOCKS = 64, 1000
"""Blocks that are added up to a larger one, at most, and how many of those there are, at least."""

_STEEPEST = 500.0
"""Largest lambda z of a block: what is tilted stays a float."""

_FORGOTTEN = 40.0
"""A value so many 1/lambda below the mean is raised to there: its tilted mass is next to nothing."""

_WRAPPED = 45.0
"""-ln of the tilted mass beyond the window."""

_LARGEST_WINDOW = 3e5
"""Points of a window; beyond, next to the pure guarantee, E X_+ <= E e^(lambda X)/(e lambda), by Chernoff, stands."""

_SLOPES = (1.0, 2.0, 3.0, 5.0)
"""Slopes of Chernoff's bound that are tried, a standard deviation."""

_FOURIER = 2e-14
"""More than the error of a transform of probabilities, each."""

_PREFERENCE = 1 + 1e-12
"""Raises one composition, so that rounding errors decide nowhere which one is the largest."""

_ROUNDING = 1e-6
"""Relative enlargement that covers the errors of sums of positive terms."""

_LITTLE = 1e-6
"""Share of delta below which the last term may stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blanket:
    """The two levels of a report's likelihood, and what a report of the blanket supports.

    Args:
        gamma: ratio of the levels, above 1.
        one: probability that a report of the blanket supports a given value, in (0, 1).
        two: that it supports two given values.
        three: that it supports three; None where there are two values.
    """

    gamma: Fraction
    one: Fraction
    two: Fraction
    three: Fraction | None

    def __post_init__(self) -> None:
        if self.gamma <= 1 or not self.one > self.two or min(self.supports.values()) < 0:
            raise InvalidInputError("the probabilities of a report do not fit one another", where="blanket")

    @property
    def probability(self) -> Fraction:
        """Beta = 1/(1 + one (gamma - 1)), the probability that a report is of the blanket."""
        return 1 / (1 + self.one * (self.gamma - 1))

    @property
    def supports(self) -> dict[tuple[int, ...], Fraction]:
        """Probability that a report of the blanket supports 0, 1 and another value, or not: 1 or 0 for each."""
        by_count = [1 - 2 * self.one + self.two, self.one - self.two, self.two]
        if self.three is not None:
            both = self.two - self.three
            by_count = [by_count[0] - (self.one - self.two) + both, self.one - self.two - both, both, self.three]
        values = len(by_count) - 1
        return {support: by_count[sum(support)] for support in product((0, 1), repeat=values)}


@dataclass(frozen=True, kw_only=True)
class CrowdCertificate:
    """The (epsilon, delta) guarantee of m of n nodes' reports in random order (substitution of one node's value).

    Args:
        population: n, nodes; a lower bound is safe.
        sample: m, reports; which nodes sent them is secret, or m = n.
    """

    population: int
    sample: int
    blanket: Blanket

    def __post_init__(self) -> None:
        if not 1 <= self.sample <= min(self.population, MAX_SAMPLE):
            raise InvalidInputError(
                f"{self.sample} reports are not from 1 to the {self.population} nodes, or above {MAX_SAMPLE:,}",
                where="crowd certificate",
            )

    @cached_property
    def pure_ratio(self) -> Fraction:
        """e^epsilon of the pure guarantee: 1 + w (gamma - 1), exactly."""
        return 1 + Fraction(self.sample, self.population) * (self.blanket.gamma - 1)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon (nats, at least 0); zero only where the pure guarantee holds."""
        if not epsilon >= 0:
            raise InvalidInputError("epsilon must be a number from 0", where="epsilon")
        if epsilon > log(float(self.pure_ratio)) + 1:
            return 0.0
        e = max(Fraction(1), exp_below(Decimal(epsilon)))
        return 0.0 if e >= self.pure_ratio else min(1.0, max(LEAST_DELTA, self._bound(e)))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon (nats) that the certificate grants at a delta in (0, 1), rounded up."""
        check_delta(delta)
        top = log(float(self.pure_ratio)) * (1 + 1e-15) + 1e-15

        def excess(x: float) -> float:
            reached = self.delta(-x)
            return log(reached / delta) if reached > 0 else -inf

        blanket, w = self.blanket, self.sample / self.population
        apart = float(blanket.probability * (blanket.one - blanket.two))
        guess = min(top, w * sqrt(2.5 * log(1 / delta) / apart / self.sample))
        return abs(largest_allowed(-top, -guess, 0.0, excess))

    def _bound(self, e: Fraction) -> float:
        """Return the bound of Theorem B."""
        n, m, blanket = self.population, self.sample, self.blanket
        beta, apart = blanket.probability, blanket.one - blanket.two
        alone = float(Fraction(m, n) * beta * apart * (blanket.gamma - e))
        missing, rest = 1 - float(beta), 1.0
        total = 0.0
        law = _BlockLaw(blanket, e, float(Fraction(n - m, m) * (e - 1)), reports=m)
        blocks, step = (m - 1) // law.terms, 1
        while blocks > 0 and rest * alone > _LITTLE * total:
            # All reports but these blocks were before the first of the blanket.
            after = missing ** (m - law.terms * blocks)
            total += (rest - after) * law.mean_excess(blocks) * m / n
            rest, blocks, step = after, blocks - step, 2 * step
        return (total + rest * alone) * (1 + _ROUNDING)


class _BlockLaw:
    """A law on a lattice that is larger in convex order than the sum of some Z, whatever their values.

    Args:
        e: e^epsilon.
        target: what is taken from each term, (1/w - 1)(e - 1).
        reports: m; a block has at most a part of them.
    """

    def __init__(self, blanket: Blanket, e: Fraction, target: float, *, reports: int) -> None:
        laws = _laws(blanket, e)
        self.terms = max(1, min(_LARGEST_BLOCK[len(laws)], reports // _REPORTS_A_TERM))
        everything = np.concatenate([z for z, _ in laws]), np.concatenate([one for _, one in laws]) / len(laws)
        self._tilt = _tilt(*everything, target, self.terms)
        laws = [(np.maximum(z, target - _FORGOTTEN / max(self._tilt, 1e-300)), chances) for z, chances in laws]
        low, high = (float(side([side(z) for z, _ in laws])) for side in (np.min, np.max))
        values, masses = laws[-1]
        leaning = masses * np.exp(self._tilt * (values - high))
        deviation = min(_deviation(values, masses), _deviation(values, leaning / leaning.sum()))
        step = max(deviation / _POINTS, (high - low) / _MOST_POINTS)
        self.terms = max(1, min(self.terms, int(_MOST_POINTS * step / (high - low))))
        lattice = _lattice(step, low, high)
        units = np.array([_spread(*law, step, lattice) for law in laws])
        sums, several = self._sums(units, step * lattice, self.terms)
        self._keep(sums, _largest(several), step * max(1, isqrt(self.terms)))
        steep = self._tilt * (high - low) * self.terms
        together = int(min(_MOST_TOGETHER, reports // self.terms / _BLOCKS, _STEEPEST / max(steep, 1e-300)))
        if together > 1:
            sums, several = self._sums(self._masses[None], self._values, together)
            self._keep(sums, several[0], self._step * isqrt(together))
            self.terms *= together
        self._target = target * self.terms

    def _sums(self, units: Floats, points: NDArray[np.floating], terms: int) -> tuple[Floats, Floats]:
        """Return the points of sums of so many units, and their laws, a row for each composition."""
        tilted = units * np.exp(self._tilt * (points - points[-1]))
        scale = float(tilted.sum(axis=1).max())
        laws = _compositions(tilted / scale, terms)
        sums: Floats = terms * points[0] + (points[1] - points[0]) * np.arange(laws.shape[1])
        return sums, laws * np.exp(self._tilt * (terms * points[-1] - sums) + terms * log(scale))

    def _keep(self, sums: Floats, law: Floats, step: float) -> None:
        """Spread a law to a coarser lattice: a sum needs fewer points than its terms."""
        self._step, self._lattice = step, _lattice(step, float(sums[0]), float(sums[-1]))
        self._values = step * self._lattice
        self._masses = _spread(sums, law, step, self._lattice)

    def mean_excess(self, blocks: int) -> float:
        """Return E (mean of the terms of so many blocks, less the target)_+."""
        weights: Floats = self._masses * np.exp(self._tilt * (self._values - self._target))
        mass = float(weights.sum())
        weights /= mass
        deviation = max(_deviation(self._values, weights), self._step) * sqrt(blocks)
        # With X the sum less its target, E X 1{X > half} <= E e^(2 t X - t half)/(e t), as x <= e^(t x)/(e t).
        half, t = min((self._half(weights, steep / deviation, blocks), steep / deviation) for steep in _SLOPES)
        # A number so large is more than 1 in any case.
        scale = exp(min(blocks * log(mass), _STEEPEST)) / (blocks * self.terms)
        if half > _LARGEST_WINDOW * self._step:
            return scale * exp(-1) / max(self._tilt, 1e-300)
        size = 1 << ceil(2 * half / self._step + 2).bit_length()
        folded = np.bincount(self._lattice % size, weights, size)
        chances = np.maximum(np.fft.irfft(np.fft.rfft(folded) ** blocks, size), 0.0)
        chances += _FOURIER + _FOURIER * blocks * float(chances.max())
        over = ceil(blocks * self._target / self._step) + np.arange(size // 2)
        excess = np.maximum(self._step * over - blocks * self._target, 0.0)
        total = float((excess * np.exp(-self._tilt * excess)) @ chances[over % size]) + exp(-_WRAPPED) / t
        return scale * total

    def _half(self, weights: Floats, t: float, blocks: int) -> float:
        """Return how far above its target the sum of so many blocks has next to no tilted mass, by Chernoff's bound."""
        most = self._values[-1]
        grown = log(float(weights @ np.exp(2 * t * (self._values - most)))) + 2 * t * (most - self._target)
        return float(max(blocks * grown, 0.0) + _WRAPPED) / t


def _laws(blanket: Blanket, e: Fraction) -> list[tuple[Floats, Floats]]:
    """Return the values of Z, hardly above the exact ones, and their probabilities, for each v: 0, 1, another."""
    gamma, beta, supports = blanket.gamma, blanket.probability, blanket.supports
    laws = []
    for v in range(len(next(iter(supports)))):
        values = [(gamma ** support[0] - e * gamma ** support[1]) / gamma ** support[v] for support in supports]
        exact = np.array([float(value) for value in values])
        masses = np.array([float(beta * gamma ** support[v] * chance) for support, chance in supports.items()])
        laws.append((exact + 2e-16 * np.abs(exact), masses))
    return laws


def _deviation(values: NDArray[np.floating], masses: NDArray[np.floating]) -> float:
    """Return the standard deviation of a law."""
    return sqrt(float((values - values @ masses) ** 2 @ masses))


def _lattice(step: float, low: float, high: float) -> NDArray[np.int64]:
    """Return the multiples of a step about low to high, as whole numbers."""
    return np.arange(floor(low / step), floor(high / step) + 2, dtype=np.int64)


def _spread(values: Floats, masses: Floats, step: float, lattice: NDArray[np.int64]) -> Floats:
    """Return a law on a lattice: each value goes to the two multiples of the step about it, with the same mean."""
    below = np.floor(values / step)
    share, index = values / step - below, below.astype(np.int64) - lattice[0]
    spread: Floats = np.bincount(index, masses * (1 - share), len(lattice)).astype(np.float64)
    return spread + np.bincount(index + 1, masses * share, len(lattice))


def _tilt(values: Floats, masses: Floats, target: float, terms: int) -> float:
    """Return a lambda with which the tilted mean is about the target, unless it would be too large for floats."""
    above, room = float(values.max()) - target, _STEEPEST / terms
    low, high = 0.0, max(room / float(np.ptp(values)), (room - _FORGOTTEN) / above)
    for _ in range(40):
        middle = (low + high) / 2
        weights = masses * np.exp(middle * (values - values.max()))
        low, high = (middle, high) if weights @ values < target * weights.sum() else (low, middle)
    return low


def _compositions(units: Floats, terms: int) -> Floats:
    """Return the laws of sums of so many terms, one for each composition of the units' laws; of the last alone last."""
    points = terms * (units.shape[1] - 1) + 1
    size = 1 << points.bit_length()
    powers = [[one**power for power in range(terms + 1)] for one in np.fft.rfft(units, size)]
    counts = [one for one in product(range(terms + 1), repeat=len(units)) if sum(one) == terms]
    counts.sort(key=itemgetter(-1))
    spectra = np.array([np.prod([powers[v][k] for v, k in enumerate(one)], axis=0) for one in counts])
    laws: Floats = np.maximum(np.fft.irfft(spectra, size)[:, :points], 0.0) + _FOURIER
    return laws


def _largest(laws: Floats) -> Floats:
    """Return the least law on a lattice that is larger in convex order than all, but for the preference of the last.

    E(Z - t)_+ of it is at each point t the largest of those of the laws; its second difference is the law.
    """
    laws[-1] *= _PREFERENCE
    above = np.cumsum(laws[:, ::-1], axis=1)[:, ::-1]
    excess = np.zeros_like(laws)
    excess[:, :-1] = np.cumsum(above[:, :0:-1], axis=1)[:, ::-1]
    which = len(laws) - 1 - np.argmax(excess[::-1], axis=0)
    places = np.arange(laws.shape[1])
    largest: Floats = excess[which, places]
    law: Floats = laws[which, places]
    # Elsewhere the second difference is the law's own, without cancellation.
    same = which[1:] == which[:-1]
    turns = np.flatnonzero(~(np.append(False, same) & np.append(same, False)))
    around = np.concatenate([[largest[0] + laws.sum(axis=1).max()], largest, [0.0]])
    law[turns] = np.maximum(around[turns] - 2 * around[turns + 1] + around[turns + 2], 0.0)
    return law
