"""The order certificate: the guarantee of the secret, uniformly random order of the released rows.

Theorem A. For all neighbouring tables (substitution of one row) and every epsilon >= 0, the release of m of n rows
through the gamma-diagonal mechanism over K cells, in uniformly random order, has

    delta(epsilon) <= (1/m) E[ ( w A (h0 - e h1) - (e - 1)(w M + (1-w) m) )_+ ]

with w = m/n, A = gamma - 1, q = gamma + K - 1, e = e^epsilon, (h0, h1, hr, *) ~ Multinomial(m; 1/q, 1/q, (K-2)/q, A/q)
and M = h0 + h1 + hr. It is zero if and only if e^epsilon >= 1 + w A, so the pure guarantee of the secret sample is its
limit, and both hold at once. At w = 1 it is the privacy blanket of Balle, Bell, Gascon, Nissim (2019), Theorem 5.3,
evaluated exactly. docs/order-certificate.md has the proof.

Coins that the adversary sees. Where m = n and each row takes part with probability t alone, by independent coins that
the adversary sees and that do not depend on the table, the same holds with (h0, h1, hr, *) ~ Multinomial(m; t/q, t/q,
t (K-2)/q, rest): given the coins, the m0 rows that take part are a release of their own, and the m0 cancels in the mean
t E delta_m0(epsilon), m0 ~ 1 + Bin(m-1, t). docs/coalitions.md has the proof.

How it is computed. With t = 1 but in that case, given s = h0 + h1, h1 is Bin(s, 1/2) and hr is independently
Bin(m-s, t (K-2)/(q-2t)), so

    delta = (A/n) sum_s P(s) sum_h P(h1 = h | s) E (s - (1+e) h - c (s + hr + n - m))_+,    c = (e - 1)/A

Nothing cancels in the bracket but at the pure end itself, where it vanishes; e and c are rounded down, so it is never
too small there either. The expectation is c Psi(x), Psi(x) = E (x - hr)_+, for the few h that hr decides; below them it
is linear and the sum over h has a closed form, which is used where its terms are many. The expectation is convex in hr,
which may therefore be replaced by anything larger in convex order: one law serves a block of s, recentred. What lies
outside the windows is added at its worst value, and the sum is enlarged by more than the rounding errors can be: the
result is an upper bound of the formula.

Rounding, for samples to MAX_SAMPLE rows. Floats have u = 2^-53, and counts to 10^9 are exact. What is subtracted in the
bracket is lowered by nine u and rounded by fewer. The rest is a sum of positive terms; relative errors are at most:

    4.4e-11     binomial probabilities, for s and for hr each: the rounded means n p and n (1-p) shift the exponent of
                Loader's expansion by at most 2u |k - n p| <= u L, where a window at 75 nats of m <= 10^9 rows is at
                most L = 2 (25 + (25^2 + 150 m/4)^.5) + 2 < 4e5 numbers wide; to 1,024 trials 5e-12, from ln k!
    8.8e-11     Psi, a running sum of a running sum of the law of hr: 2 L u
    4.4e-11     the sum over s: L u
    3e-11       the closed form, a difference: z standard deviations below the mean it loses a factor of z^2 <= 150; to
                1,024 trials 1e-10

Together 2.5e-10, a quarter of the enlargement.
"""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import fsum, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.binomial import binomial_pmf, window
from veiltab.common.core.numbers.elementary import Floats, exp, log
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.order_laws import OMITTED, Memory, Rest, tails
from veiltab.common.privacy.threshold_search import largest_allowed

MAX_SAMPLE = 10**9
MAX_CELLS = 10**7
LEAST_DELTA = 1e-283
"""Least delta that is stated short of the pure guarantee."""

_ROUNDING = 1e-9
"""Relative enlargement that covers the floating-point errors of the sum of positive terms (below 3e-10)."""

_DOWN = 1 - 1e-15
"""Lowers what is subtracted by more than the few roundings up to the subtraction can raise it."""

_OUTSIDE = exp(-OMITTED)

_NEGLIGIBLE = 115.0
"""-ln of a probability that is less than a rounding beside what windows leave out."""

_REST_LOSS = 5e-7
"""Relative loss that is accepted for one law of hr serving a range of s."""

_ROWS = 4096
"""How many s are worked on at once, at most."""

_ROWS_OF_SAMPLE = 10**8
"""Rows of a sample for each _ROWS of s that one law of hr may serve: in larger samples laws cost more than s."""

_WORK = 400_000
"""How many probabilities of hr are worked on at once, about."""

_LITTLE_WORK = 3_000
"""How many probabilities of hr allow a law of its own for every s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCertificate:
    """The (epsilon, delta) guarantee of m of n rows in secret random order (substitution; against the researcher).

    Args:
        population: n, rows.
        sample: m, rows drawn uniformly without replacement.
        cells: K, at least 2.
        gamma: worst-case ratio of the mechanism that runs, above 1, exact.
        presence: t, the probability that a row takes part, by coins that the adversary sees, in (0, 1]; below 1 for
            m = n alone.
    """

    population: int
    sample: int
    cells: int
    gamma: Fraction
    presence: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not 1 <= self.sample <= self.population:
            raise InvalidInputError(f"{self.sample} rows were asked for, not 1 to n = {self.population}")
        if self.sample > MAX_SAMPLE or not 2 <= self.cells <= MAX_CELLS:
            raise InvalidInputError(
                f"the certificate is computed for samples to {MAX_SAMPLE:,} rows and 2 to {MAX_CELLS:,} cells",
                where="order certificate",
                remedy=f"Sample at most {MAX_SAMPLE:,} rows, or ask for a pure epsilon, without a delta.",
            )
        if self.gamma <= 1:
            raise InvalidInputError("gamma must be above 1", where="gamma")
        if not 0 < self.presence <= 1 or (self.presence < 1 and self.sample < self.population):
            raise InvalidInputError(
                "the presence is not above 0 and at most 1, or below 1 although m < n", where="presence"
            )

    @property
    def q(self) -> Fraction:
        """Return gamma + K - 1: a row keeps its cell with probability gamma/q, and is any other with 1/q."""
        return self.gamma + self.cells - 1

    @property
    def pure_ratio(self) -> Fraction:
        """e^epsilon of the pure guarantee: 1 + w A, exactly."""
        return 1 + Fraction(self.sample, self.population) * (self.gamma - 1)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon (nats, at least 0); zero only where the pure guarantee holds.

        It is at least LEAST_DELTA elsewhere, as floats of less have no full precision.
        """
        if not epsilon >= 0:
            raise InvalidInputError("epsilon must be a number from 0", where="epsilon")
        return self._delta(epsilon, Memory())

    def _delta(self, epsilon: float, memory: Memory) -> float:
        if epsilon > log(float(self.pure_ratio)) + 1:
            return 0.0
        e = max(Fraction(1), exp_below(Decimal(epsilon)))
        return 0.0 if e >= self.pure_ratio else min(1.0, max(LEAST_DELTA, _Sum(self, e, memory).value()))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon (nats) that the certificate grants at a delta in (0, 1), rounded up."""
        check_delta(delta)
        top = log(float(self.pure_ratio)) * (1 + 1e-15) + 1e-15
        memory = Memory()

        def excess(x: float) -> float:
            lost = self._delta(-x, memory)
            return log(lost / delta) if lost > 0 else -inf

        guess = min(top, self.sample / self.population * sqrt(2.5 * log(1 / delta) * float(self.q) / self.sample))
        return abs(largest_allowed(-top, -guess, 0.0, excess))


def check_delta(delta: float) -> None:
    """Refuse a delta outside (0, 1)."""
    if not 0 < delta < 1:
        raise InvalidInputError("delta must lie between 0 and 1, both excluded", where="delta")


class _Sum:
    """The sum above for one e, exact and below the pure ratio."""

    def __init__(self, certificate: OrderCertificate, e: Fraction, memory: Memory) -> None:
        self.memory = memory
        self.n, self.m = certificate.population, certificate.sample
        self.a = float(certificate.gamma - 1)
        present, q = certificate.presence, certificate.q
        self.p = float(2 * present / q)
        # The bracket falls with hr, so fewer of them are safe.
        self.rest_probability = float(present * (certificate.cells - 2) / (q - 2 * present)) * _DOWN
        self.step = float(1 + e) * _DOWN
        # A c so small changes nothing, but what is divided by it stays finite.
        self.c = max(float((e - 1) / (certificate.gamma - 1)) * _DOWN, 1e-13 / self.n)
        self.low, self.high = window(self.m, self.p, log_mass=OMITTED)
        first, last = window(self.m - self.low, self.rest_probability, log_mass=OMITTED)
        self.rests = last - first + 1
        self.shared = self._rows_of_one_rest(log(float(e)))

    def value(self) -> float:
        """Return the bound."""
        omitted = self._omitted()
        total = 0.0 if omitted and self._is_negligible() else fsum(self._parts())
        return self.a / self.n * (total * (1 + _ROUNDING) + omitted)

    def _is_negligible(self) -> bool:
        """Whether the sum is less than a rounding beside what is omitted.

        The bracket is at most s, and positive for h1 below s/2 - x alone, x = k s + d; P(h1 is there) <= exp(-2 x^2/s),
        which is largest at s = d/k.
        """
        least = window(self.m - self.high, self.rest_probability, log_mass=OMITTED)[0]
        k = 0.5 - (1 - self.c) / self.step
        d = self.c * (self.n - self.m + least) / self.step
        s = min(max(d / k if k > 0 else inf, self.low, 1), self.high)
        return 2 * (k * s + d) * (k * s + d) >= _NEGLIGIBLE * s

    def _parts(self) -> Iterator[float]:
        """Yield the sum in parts, by ranges of s."""
        rows = min(_ROWS, max(1, _WORK // self.rests) * self.shared)
        span = rows * max(1, min(self.m // _ROWS_OF_SAMPLE, self.shared // rows))
        for start in range(self.low, self.high + 1, span):
            stop = min(start + span, self.high + 1)
            count = (min(rows, stop - start) - 1) // self.shared + 1
            rest = self.memory.rest(self.m - start - self.shared * np.arange(count), self.rest_probability)
            for at in range(start, stop, rows):
                yield self._block(np.arange(at, min(at + rows, stop), dtype=np.int64), start, rest)

    def _omitted(self) -> float:
        """Return a bound of what lies outside the windows of s, hr and h1, where the bracket is at most s.

        low P(s < low), E[s; s > high] = m p P(Bin(m-1, p) >= high), and m p P(hr is outside), P(h1 is below)
        """
        if self.m <= min(self.high, self.rests - 1, 2 * OMITTED):
            return 0.0
        return 6 * self.m * self.p * _OUTSIDE

    def _rows_of_one_rest(self, epsilon: float) -> int:
        """Return how many s one law of hr may serve: each loses half (epsilon c/(1+e))^2 Var/m of delta, relatively."""
        if self.rests * (self.high - self.low + 1) <= _LITTLE_WORK:
            return 1
        variance = self.rest_probability * (1 - self.rest_probability)
        change = epsilon * self.c / self.step
        loss = change * change * variance / 2
        return max(1, int(min(_REST_LOSS / loss, 1e9))) if loss > 0 else 10**9

    def _block(self, s: NDArray[np.int64], start: int, rest: Rest) -> float:
        """Return the sum over some s; the first law of hr is that of `start`."""
        group = (s - start) // self.shared
        # Bin(m-s) plus a centred Bin(s-reference) is Bin(m-reference) recentred, and larger in convex order.
        centre = self.rest_probability * ((s - start) % self.shared)
        others = np.asarray(s + (self.n - self.m), np.float64)
        most = self._turn(s, others + (rest.low - float(centre.max())))
        decided = np.where(most < 1, -1, self._turn(s, others + float(rest.high)))
        # One number of h1 for all rows: one too many is still exact, as Psi covers both sides (and exact at the pure
        # end, where h1 = 0 alone counts); but below where h1 is too unlikely to matter, hr may be taken at its least.
        likely = np.ceil(s / 2 - np.sqrt(s * OMITTED / 2)).astype(np.int64)
        width = max(0, int((most - np.maximum(np.maximum(decided, -1), likely - 1)).max()))
        h = most[:, None] - np.arange(width)
        x = (s[:, None] - self.step * h) / self.c - others[:, None] + centre[:, None]
        one_by_one = (binomial_pmf(h, s[:, None], 0.5) * rest.shortfall(x, group)).sum(axis=1)
        below = most - width
        least = np.where(below <= decided, rest.means[group] - centre, rest.low - centre)
        linear = _shortfall(s, below, s - self.c * (others + least) - self.step * below, self.step, self.memory)
        return float((self.memory.law(s, self.m, self.p) * (self.c * one_by_one + linear)).sum())

    def _turn(self, s: NDArray[np.int64], others: Floats) -> NDArray[np.int64]:
        """Return the largest h1 for which the bracket is not negative."""
        return np.floor((s - self.c * others) / self.step).astype(np.int64)


def _shortfall(s: NDArray[np.int64], b: NDArray[np.int64], margin: Floats, step: float, memory: Memory) -> Floats:
    """Return the sum over h <= b of P(Bin(s, 1/2) = h) (margin + step (b - h)), for s and b that `tails` takes."""
    if b.max() < 0:
        return np.zeros(len(s))
    within = tails(s, s - b, memory)
    # E (b - h)_+, where it is not zero.
    integral = np.where(b > 0, (b - s / 2) * within + (s - b) / 2 * binomial_pmf(b, s, 0.5), 0.0)
    total: Floats = np.maximum(margin, 0.0) * within + step * np.maximum(integral, 0.0)
    return total
