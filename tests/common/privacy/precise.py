"""Theorem A for samples too large to enumerate, to tens of digits: below the formula, and hardly below it."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, product
from math import ceil, floor, isqrt

import mpmath

from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.privacy.cards.card import card_of
from veiltab.common.privacy.coalitions import PAIRS, Coalition, TwoSidedRelease
from veiltab.common.privacy.shuffle import OrderCertificate

_BITS = 320
_ABOVE = 1 + Fraction(1, 10**57)


def with_few_counts(bound: OrderCertificate, epsilon: float, most: int) -> Fraction:
    """The formula as it stands, term by term, but for the terms in which a count exceeds `most`."""
    m, w, a = bound.sample, Fraction(bound.sample, bound.population), bound.gamma - 1
    e = exp_below(Decimal(epsilon)) * _ABOVE
    with mpmath.workdps(60):
        one = mpmath.mpf(_real(bound.presence / (a + bound.cells)))
        first, second, third = (_real(each) for each in (w * a - (e - 1) * w, w * a * e + (e - 1) * w, (e - 1) * w))
        missing = _real((e - 1) * (1 - w) * m)
        alone = [one**k / mpmath.factorial(k) for k in range(most + 1)]
        rest = [((bound.cells - 2) * one) ** k / mpmath.factorial(k) for k in range(most + 1 if bound.cells > 2 else 1)]
        elsewhere = [mpmath.ff(m, k) * (1 - bound.cells * one) ** (m - k) for k in range(min(3 * most, m) + 1)]
        total = mpmath.mpf(0)
        for h0, h1, hr in product(range(len(alone)), range(len(alone)), range(len(rest))):
            gain = first * h0 - second * h1 - third * hr - missing
            if gain > 0 and h0 + h1 + hr <= m:
                total += alone[h0] * alone[h1] * rest[hr] * elsewhere[h0 + h1 + hr] * gain
        return _rational(total / m)


def with_many_counts(bound: OrderCertificate, epsilon: float, deviations: int = 8) -> Fraction:
    """The formula for everybody, all present, in whole numbers: 2^-320 is their unit.

    Counts beyond some standard deviations are left out, and hr given s is replaced by something smaller in convex
    order, so the result is not above the formula: one law serves all s, that of the largest, recentred.
    """
    m, a, cells = bound.sample, bound.gamma - 1, bound.cells
    e = exp_below(Decimal(epsilon)) * _ABOVE
    c, p, r = (e - 1) / a, 2 / (a + cells), Fraction(cells - 2, 1) / (a + cells - 2)
    low, high = _within(m, p, deviations)
    rest = _Rest(m - high, r, deviations)
    total = 0
    half = Half(low, low // 2)
    for s, weight in zip(range(low, high + 1), _law(m, p, low, high), strict=True):
        centre = r * (high - s)
        # The bracket is c (x - hr), hr = Y + centre.
        most = floor((s - c * (s + centre + rest.low)) / (1 + e))
        decided = max(-1, floor((s - c * (s + centre + rest.high)) / (1 + e)))
        half.move(s, decided)
        margin = s - (1 + e) * decided - c * (s + centre + rest.mean)
        inner = _times(margin, half.below) + _times(1 + e, half.shortfall)
        likely = half.at
        for h in range(decided + 1, most + 1):
            likely = _next(s, likely, h)
            inner += _times(c, likely * rest.shortfall((s - (1 + e) * h) / c - s - centre) >> _BITS)
        total += weight * inner >> _BITS
    return Fraction(total, Half.ONE) * a / m


class Half:
    """Bin(s, 1/2) at b and below it, carried from one s and b to others by the recurrences of Pascal's triangle."""

    ONE = 1 << _BITS

    def __init__(self, s: int, b: int) -> None:
        self._s, self._b = s, b
        with mpmath.workdps(110):
            self.at = int(mpmath.binomial(s, b) * mpmath.mpf(2) ** (_BITS - s))
        self.below = (
            sum(accumulate(range(b, b - 10 * isqrt(s) - 10, -1), self._before, initial=self.at)) if b else self.at
        )

    def _before(self, likely: int, h: int) -> int:
        """Return P(h - 1) from P(h)."""
        return likely * h // (self._s - h + 1) if h > 0 else 0

    def move(self, s: int, b: int) -> None:
        """Go to another s, one larger at the most, and another b."""
        if s > self._s and self._b >= 0:
            self.below -= self.at // 2
            self.at = self.at * s // (2 * (s - self._b))
        self._s = s
        while self._b < b:
            self._b += 1
            self.at = _next(s, self.at, self._b)
            self.below += self.at
        while self._b > b:
            self.below -= self.at
            self.at = self._before(self.at, self._b)
            self._b -= 1

    @property
    def shortfall(self) -> int:
        """E (b - h)_+."""
        return ((2 * self._b - self._s) * self.below + (self._s - self._b) * self.at) // 2


def _next(s: int, likely: int, h: int) -> int:
    """Return P(Bin(s, 1/2) = h) from that of h - 1."""
    return likely * (s - h + 1) // h if h else Half.ONE >> s


class _Rest:
    """Bin(trials, p) within some deviations, and E (x - Y)_+ for rational x."""

    def __init__(self, trials: int, p: Fraction, deviations: int) -> None:
        self.low, self.high = _within(trials, p, deviations) if p else (0, 0)
        self.mean = trials * p
        law = list(_law(trials, p, self.low, self.high)) if p else [Half.ONE]
        self._below = list(accumulate(law))
        self._psi = list(accumulate(self._below, initial=0))

    def shortfall(self, x: Fraction) -> int:
        """Return E (x - Y)_+ without what lies outside."""
        place = floor(x)
        if place < self.low:
            return 0
        if place >= self.high:
            return _times(x - self.mean, Half.ONE)
        return self._psi[place - self.low] + _times(x - place, self._below[place - self.low])


def _within(trials: int, p: Fraction, deviations: int) -> tuple[int, int]:
    reach = deviations * isqrt(ceil(trials * p * (1 - p))) + deviations
    return max(0, floor(trials * p) - reach), min(trials, ceil(trials * p) + reach)


def _law(trials: int, p: Fraction, low: int, high: int) -> Iterator[int]:
    """Yield P(Bin(trials, p) = k), k = low..high."""
    with mpmath.workdps(110):
        likely = int(mpmath.ldexp(_pmf(trials, p, low), _BITS))
    odds = p / (1 - p)
    for k in range(low, high + 1):
        yield likely
        likely = likely * (trials - k) * odds.numerator // ((k + 1) * odds.denominator)


def _pmf(trials: int, p: Fraction, k: int) -> mpmath.mpf:
    return mpmath.binomial(trials, k) * _real(p) ** k * _real(1 - p) ** (trials - k)


def _times(factor: Fraction, number: int) -> int:
    return factor.numerator * number // factor.denominator


def _real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def _rational(x: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = x._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size


def pairs_of(release: TwoSidedRelease, delta: Decimal) -> dict[Coalition, Decimal | None]:
    """What the card of a release says that each pair faces at a delta, nats."""
    card = card_of(release, delta=delta)
    return {pair: card.bound(pair).epsilon for pair in PAIRS}
