"""The order certificate: what the secret, uniformly random order of the released rows buys.

Theorem A. For all neighbouring tables (substitution of one row) and every epsilon >= 0, the release of m of n rows
through the gamma-diagonal mechanism over K cells, in uniformly random order, has

    delta(epsilon) <= (1/m) E[ ( w A (h0 - e h1) - (e - 1)(w M + (1-w) m) )_+ ]

with w = m/n, A = gamma - 1, q = gamma + K - 1, e = e^epsilon, (h0, h1, hr, *) ~ Multinomial(m; 1/q, 1/q, (K-2)/q, A/q)
and M = h0 + h1 + hr. It is zero if and only if e^epsilon >= 1 + w A, so the pure guarantee of the secret sample is its
limit, and both hold at once. At w = 1 it is the privacy blanket of Balle, Bell, Gascon, Nissim (2019), Theorem 5.3,
evaluated exactly. docs/order-certificate.md has the proof.

How it is computed. Given s = h0 + h1, h0 is Bin(s, 1/2) and hr is Bin(m-s, (K-2)/(q-2)), independently, so

    delta = (w A (1+e)/m) sum_s P(s) sum_k P(h0 = k | s) E (k - c1 s - c2 hr - c3)_+

The inner expectation is c2 Psi(x), Psi(x) = E (x - hr)_+, for the few k that hr decides; beyond them it is linear and
the sum over k has a closed form. The expectation is convex in hr, which may therefore be replaced by anything larger in
convex order: one law serves a block of s, recentred. What lies outside the windows is added at its worst value, and the
sum is enlarged by more than the rounding errors can be: the result is an upper bound of the formula.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, log

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.binomial import Floats, binomial_pmf, window
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.root import largest_allowed

MAX_SAMPLE = 10**8
MAX_CELLS = 10**7
_ROUNDING = 1e-9
"""Relative enlargement that covers the floating-point errors of the sum (below 1e-11) and of its parameters."""

_OMITTED = 75.0
"""-ln of the probability that a window leaves out on each side."""

_REST_LOSS = 5e-7
"""Relative loss that is accepted for one law of hr serving a range of s."""

_ROWS = 512
"""How many s are worked on at once, at the most."""

_WORK = 400_000
"""How many probabilities of hr are worked on at once, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCertificate:
    """The (epsilon, delta) guarantee of m of n rows in secret random order (substitution; against the researcher).

    Args:
        population: n, rows.
        sample: m, rows drawn uniformly without replacement.
        cells: K, at least 2.
        gamma: worst-case ratio of the mechanism that runs, above 1, exact.
    """

    population: int
    sample: int
    cells: int
    gamma: Fraction

    def __post_init__(self) -> None:
        if not 1 <= self.sample <= self.population:
            raise InvalidInputError(f"a sample has 1 to n = {self.population} rows, not {self.sample}")
        if self.sample > MAX_SAMPLE or not 2 <= self.cells <= MAX_CELLS:
            raise InvalidInputError(
                f"the certificate is computed for samples to {MAX_SAMPLE} rows and 2 to {MAX_CELLS} cells",
                where="order certificate",
            )
        if self.gamma <= 1:
            raise InvalidInputError("gamma must be above 1", where="gamma")

    @property
    def pure_ratio(self) -> Fraction:
        """e^epsilon of the pure guarantee: 1 + w A, exactly."""
        return 1 + Fraction(self.sample, self.population) * (self.gamma - 1)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon (nats, at least 0); zero where the pure guarantee holds."""
        if not epsilon >= 0:
            raise InvalidInputError("epsilon must be a number from 0", where="epsilon")
        if epsilon >= log(self.pure_ratio) * (1 + 4e-16) + 4e-16:
            return 0.0
        return min(1.0, _Sum(self, epsilon).value())

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon (nats) that the certificate grants at a delta in (0, 1), rounded up."""
        check_delta(delta)
        top = log(self.pure_ratio) * (1 + 1e-15) + 1e-15
        q = float(self.gamma) + self.cells - 1

        def excess(x: float) -> float:
            found = self.delta(-x)
            return log(found / delta) if found > 0 else -inf

        guess = min(top, self.sample / self.population * (2.5 * log(1 / delta) * q / self.sample) ** 0.5)
        return -largest_allowed(-top, -guess, 0.0, excess)


def check_delta(delta: float) -> None:
    """Refuse a delta outside (0, 1)."""
    if not 0 < delta < 1:
        raise InvalidInputError("delta must lie between 0 and 1, both excluded", where="delta")


class _Sum:
    """The sum above for one epsilon."""

    def __init__(self, certificate: OrderCertificate, epsilon: float) -> None:
        self.m = certificate.sample
        self.cells = certificate.cells
        self.w = certificate.sample / certificate.population
        self.a = float(certificate.gamma - 1)
        self.q = self.a + certificate.cells
        self.e = exp(epsilon)
        self.c2 = expm1(epsilon) / (self.a * (1 + self.e))
        self.c1 = self.e / (1 + self.e) + self.c2
        self.c3 = self.c2 * (1 / self.w - 1) * self.m

    def value(self) -> float:
        """Return the bound."""
        p = 2 / self.q
        low, high = window(self.m, p, log_mass=_OMITTED)
        first, last = window(self.m - low, self._rest_probability, log_mass=_OMITTED)
        rows = min(_ROWS, max(1, _WORK // (last - first + 1)) * self._rows_of_one_rest())
        total = sum(self._block(at, min(at + rows, high + 1)) for at in range(low, high + 1, rows))
        # Outside the windows (h0 - t)_+ <= s/(1+e), and E[s; s > high] = m p P(Bin(m-1, p) >= high).
        omitted = (low + high + self.m * p) * 2 * exp(-_OMITTED) / (1 + self.e)
        return self.w * self.a * (1 + self.e) / self.m * (total * (1 + _ROUNDING) + omitted)

    def _rows_of_one_rest(self) -> int:
        """Return how many s one law of hr may serve: each loses half epsilon^2 c2^2 Var/m of delta, relatively."""
        rest = self._rest_probability
        loss = log(self.e) ** 2 * self.c2**2 * rest * (1 - rest) / 2
        return max(1, int(min(_REST_LOSS / loss, 1e9))) if loss > 0 else 10**9

    @property
    def _rest_probability(self) -> float:
        return (self.cells - 2) / (self.q - 2)

    def _block(self, start: int, stop: int) -> float:
        """Return the sum over s = start..stop-1."""
        s = np.arange(start, stop, dtype=np.int64)
        weights = binomial_pmf(s, self.m, 2 / self.q)
        shared = self._rows_of_one_rest()
        group = (s - start) // shared
        rest = _Rest(self.m - start - shared * np.arange(int(group[-1]) + 1), self._rest_probability)
        # Bin(m-s) plus a centred Bin(s-reference) is Bin(m-reference) recentred, and larger in convex order.
        t = self.c1 * s + self.c3 - self.c2 * self._rest_probability * ((s - start) % shared)
        first = np.floor(t + self.c2 * rest.low).astype(np.int64) + 1
        beyond = np.maximum(np.ceil(t + self.c2 * rest.high).astype(np.int64), first)
        # One number of undecided k for all rows: a k too many is still exact, as Psi covers both sides; but past where
        # h0 is too unlikely to matter, hr may be taken at its least.
        enough = np.ceil(s / 2 + np.sqrt(s * _OMITTED / 2)).astype(np.int64)
        width = int(np.minimum(beyond - first, np.maximum(enough - first, 0)).max())
        mean = rest.means[group] if width >= int((beyond - first).max()) else float(rest.low)
        beyond = first + width
        linear = binomial_pmf(beyond, s, 0.5) * beyond / 2 - (t + self.c2 * mean - s / 2) * tails(s, beyond)
        k = first[:, None] + np.arange(width)
        shortfall = rest.shortfall((k - t[:, None]) / (self.c2 or 1.0), group)
        undecided = binomial_pmf(k, s[:, None], 0.5) * self.c2 * shortfall
        return float(weights @ (np.maximum(linear, 0) + undecided.sum(axis=1)))


class _Rest:
    """The laws of hr ~ Bin(trials, p) for some numbers of trials, and Psi(x) = E (x - hr)_+ of each."""

    def __init__(self, trials: NDArray[np.int64], p: float) -> None:
        self.low = window(int(trials.min()), p, log_mass=_OMITTED)[0]
        self.high = window(int(trials.max()), p, log_mass=_OMITTED)[1]
        self.means = np.asarray(trials * p, np.float64)
        points = np.arange(self.low, self.high + 1, dtype=np.int64)
        below = np.cumsum(binomial_pmf(points, trials[:, None], p), axis=1)
        self._psi = np.cumsum(below, axis=1)

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


def tails(s: NDArray[np.int64], a: NDArray[np.int64]) -> Floats:
    """Return P(Bin(s, 1/2) >= a) for consecutive ascending s and a that rises by 0 or 1 from one to the next.

    Few terms are summed directly, each the one before times (s-h)/(h+1). Where they would be many, the sum is carried
    from one s to the next over a stretch so short that no precision is lost.
    """
    steepest = float(np.max((s - a) / (a + 1.0)))
    decay = -log(steepest) if 0 < steepest < 1 else (1e9 if steepest <= 0 else 0.0)
    terms = int(min(42 / decay if decay > 0 else 1e9, 14 * s[-1] ** 0.5 + 40, max(int(np.max(s - a)), 0) + 1))
    if terms * len(s) <= 200_000:
        h = a[:, None] + np.arange(terms - 1, dtype=float)
        ratios = np.maximum(s[:, None] - h, 0) / (h + 1)
        summed: Floats = binomial_pmf(a, s, 0.5) * (1 + np.cumprod(ratios, axis=1).sum(axis=1))
        return summed
    stretch = int(max(4, min(64, s[-1] ** 0.5 / 3, 4 / max(decay, 1e-3))))
    parts = [_carried(s[at : at + stretch], a[at : at + stretch]) for at in range(0, len(s), stretch)]
    return np.concatenate(parts)


def _carried(s: NDArray[np.int64], a: NDArray[np.int64]) -> Floats:
    """Carry the tail of the last s down to the others.

    P(Bin(s) >= a) = P(Bin(s+1) >= a+1) + P(Bin(s) = a)/2 = P(Bin(s+1) >= a) - P(Bin(s) = a-1)/2
    """
    rises = np.diff(a) == 1
    here = np.where(rises, a[:-1], a[:-1] - 1)
    steps = binomial_pmf(here, s[:-1], 0.5) * np.where(rises, 0.5, -0.5)
    last, first = int(s[-1]), max(int(a[-1]), 0)
    _, high = window(last, 0.5, log_mass=2 * _OMITTED)
    tail = float(binomial_pmf(np.arange(first, max(high, first) + 1, dtype=np.int64), last, 0.5).sum())
    carried: Floats = np.maximum(np.concatenate([np.cumsum(steps[::-1])[::-1] + tail, [tail]]), 0.0)
    return carried
