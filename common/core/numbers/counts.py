"""Exact laws of counts, and the counts that a test of such a law accepts.

The bounds come from decimal arithmetic, so every party and every verifier computes the same. A float may show that a
count is likely, with room to spare; it never shows that one is not.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import exp, factorial, isfinite, lgamma, log, log1p, sqrt

from veiltab.common.dataclass import dataclass

_PRECISION = 30
_NEGLIGIBLE = Decimal("1e-25")
_NEGLIGIBLE_FLOAT = 1e-9

_ROOM = 1.001
"""A float of a probability is right to this factor: its logarithm errs by less than 1e-4 for counts below 2^32."""

_MOST_OF_FLOAT = 2**32
_SMALLEST_FLOAT = 5e-324

_TILTS = 40
"""Steps of the search for the sharpest of the bounds that hold."""


class _Law(ABC):
    """The law of a count, whose probabilities rise to its mean and fall after it."""

    @property
    @abstractmethod
    def moments(self) -> tuple[int, int, int]:
        """Mean, variance and unit: the expected count is mean / unit, and its variance is variance / unit^2."""

    @property
    def mean(self) -> Fraction:
        """The expected count."""
        mean, _, unit = self.moments
        return Fraction(mean, unit)

    @property
    def variance(self) -> Fraction:
        """The variance of the count."""
        _, variance, unit = self.moments
        return Fraction(variance, unit**2)


@dataclass(frozen=True)
class Binomial(_Law):
    """Bin(n, p): n trials, each with the probability p = hits / unit, a reduced fraction."""

    trials: int
    hits: int
    unit: int

    @classmethod
    def of(cls, trials: int, p: Fraction) -> "Binomial":
        """Return the law of so many trials with this probability."""
        return cls(trials, *p.as_integer_ratio())

    @cached_property
    def least(self) -> int:
        """The least count that can be."""
        return self.trials if self.hits == self.unit else 0

    @cached_property
    def most(self) -> int:
        """The greatest count that can be."""
        return self.trials if self.hits else 0

    @cached_property
    def moments(self) -> tuple[int, int, int]:
        """Those of n p and n p (1 - p)."""
        return binomial_moments(self.trials, self.hits, self.unit)

    def ln(self, count: int) -> Decimal:
        """Return ln P(X = count)."""
        with localcontext(prec=_PRECISION):
            logarithm, (other, own) = _ln_choose(self.trials, count), _shares(self)
            if self.trials - count:
                logarithm += (self.trials - count) * other.ln()
            return logarithm + count * own.ln() if count else logarithm

    def ln_float(self, count: int) -> float:
        """Return ln P(X = count) as a float."""
        if self.trials > _MOST_OF_FLOAT:
            return float(self.ln(count))
        hits, unit = self.hits, self.unit
        rest, p = self.trials - count, hits / unit
        logarithm = _ln_choose_float(self.trials, count) + (count * log(p) if count else 0.0)
        # 1 - p has digits of its own where p is near 1.
        return logarithm + (rest * (log1p(-p) if p < 0.5 else log((unit - hits) / unit)) if rest else 0.0)

    def ratio(self, count: int) -> tuple[int, int]:
        """Return P(X = count - 1) / P(X = count), numerator and denominator."""
        return count * (self.unit - self.hits), (self.trials - count + 1) * self.hits


def binomial_moments(trials: int, hits: int, unit: int) -> tuple[int, int, int]:
    """Return the moments of Bin(n, hits / unit)."""
    return trials * hits, trials * hits * (unit - hits), unit


@dataclass(frozen=True)
class Runs(_Law):
    """The number of runs that k marks among c places make, if every set of k places is equally likely.

    P(R = j) = C(k - 1, j - 1) C(c - k + 1, j) / C(c, k), a hypergeometric law.

    Args:
        places: c, in a row.
        marks: k.

    Source: Wald and Wolfowitz 1940 (runs of one kind).
    """

    places: int
    marks: int

    @cached_property
    def least(self) -> int:
        """The least count that can be."""
        return min(1, self.marks)

    @cached_property
    def most(self) -> int:
        """The greatest count that can be."""
        return min(self.marks, self.places - self.marks + 1)

    @cached_property
    def moments(self) -> tuple[int, int, int]:
        """Those of k (c - k + 1) / c and k (k - 1) (c - k) (c - k + 1) / (c^2 (c - 1))."""
        return runs_moments(self.places, self.marks)

    def ln(self, count: int) -> Decimal:
        """Return ln P(R = count)."""
        if not self.marks:
            return Decimal(0)
        with localcontext(prec=_PRECISION):
            c, k = self.places, self.marks
            return _ln_choose(k - 1, count - 1) + _ln_choose(c - k + 1, count) - _ln_choose(c, k)

    def ln_float(self, count: int) -> float:
        """Return ln P(R = count) as a float."""
        c, k = self.places, self.marks
        if not k:
            return 0.0
        return _ln_choose_float(k - 1, count - 1) + _ln_choose_float(c - k + 1, count) - _ln_choose_float(c, k)

    def ratio(self, count: int) -> tuple[int, int]:
        """Return P(R = count - 1) / P(R = count), numerator and denominator."""
        c, k = self.places, self.marks
        return (count - 1) * count, (k - count + 1) * (c - k - count + 2)


def runs_moments(c: int, k: int) -> tuple[int, int, int]:
    """Return the moments of the runs of k marks among c places."""
    others = max(c - 1, 1)
    return k * (c - k + 1) * others, k * (k - 1) * (c - k) * (c - k + 1) * others, max(c, 1) * others


CountLaw = Binomial | Runs


def at_most(law: CountLaw, count: int) -> Decimal:
    """Return P(X <= count)."""
    if count < law.least:
        return Decimal(0)
    if count >= law.most:
        return Decimal(1)
    return 1 - _tail(law, count + 1, 1) if count > law.mean else _tail(law, count, -1)


def at_least(law: CountLaw, count: int) -> Decimal:
    """Return P(X >= count)."""
    if count <= law.least:
        return Decimal(1)
    if count > law.most:
        return Decimal(0)
    return 1 - _tail(law, count - 1, -1) if count < law.mean else _tail(law, count, 1)


def _tail(law: CountLaw, count: int, step: int) -> Decimal:
    """Return P(X <= count) for a step of -1, P(X >= count) for 1: terms until they no longer matter."""
    with localcontext(prec=_PRECISION):
        total = term = Decimal(1)
        for j in range(count, law.least if step < 0 else law.most, step):
            numerator, denominator = law.ratio(j) if step < 0 else reversed(law.ratio(j + 1))
            term *= Decimal(numerator) / denominator
            total += term
            if term < _NEGLIGIBLE * total:
                break
        return total * law.ln(count).exp()


@lru_cache(maxsize=1024)
def accepted(law: CountLaw, below: Decimal, above: Decimal) -> tuple[int, int]:
    """Return the fewest and the most that a test of a law accepts.

    Args:
        below: most probability of a count below the fewest; 0 accepts every low count.
        above: most probability of a count above the most; 0 accepts every high count.
    """
    return _bound(law, below, -1), _bound(law, above, 1)


def is_accepted(law: CountLaw, count: int, below: Decimal, above: Decimal) -> bool:
    """Return whether a count lies within `accepted`, without computing that where the count itself is likely."""
    if not law.least <= count <= law.most:
        return False
    if exp(law.ln_float(count)) > _ROOM * float(max(below, above)):
        return True
    fewest, most = accepted(law, below, above)
    return fewest <= count <= most


def likely_distance(trials: int, bound: Decimal) -> float:
    """Return a squared distance from the mean, in standard deviations, up to which a count is likelier than a bound.

    P(X = x) >= e^(-d N / (N - 1)) / (2 N) at a distance of d, as e^(n H(k/n)) / sqrt(2 n) <= C(n, k) <= e^(n H(k/n))
    with the entropy H, and a relative entropy is at most the chi-squared statistic: d, or of runs d N / (N - 1).

    Args:
        trials: N, at least 1: the places of runs; of binomial laws at least the trials.
    """
    return (1 - 1 / trials) * -log(_ROOM * 2 * trials * float(bound))


def is_tail_within(law: CountLaw, count: int, bound: Decimal, outwards: int) -> bool:
    """Return whether P(X <= count), or P(X >= count) for 1, is <= bound; a float says so if far from that."""
    is_below, tail = _is_below(law, count, bound, outwards), at_most if outwards < 0 else at_least
    return tail(law, count) <= bound if is_below is None else is_below


def _is_below(law: CountLaw, count: int, bound: Decimal, step: int) -> bool | None:
    """Return whether the tail that begins with a count is below a bound; None where a float is too close to it."""
    least, most = law.least, law.most
    if not (least <= count < most if step < 0 else least < count <= most):
        return None
    first, limit = exp(law.ln_float(count)), float(bound)
    total = term = 1.0
    for j in range(count, least if step < 0 else most, step):
        if first * total > limit * _ROOM:
            return False
        numerator, denominator = law.ratio(j) if step < 0 else reversed(law.ratio(j + 1))
        share = numerator / denominator
        # Every further term is at most this share of the one before it.
        if share < 1 and first * (total + term * share / (1 - share)) < limit / _ROOM:
            return True
        term *= share
        total += term
        if term < _NEGLIGIBLE_FLOAT * total:
            break
    tail = total * first
    return None if not isfinite(total) or limit / _ROOM < tail < limit * _ROOM else tail < limit


def _bound(law: CountLaw, bound: Decimal, outwards: int) -> int:
    """Return the last count outwards that is more likely than a bound, together with all beyond it; -1 is downwards."""
    mean, _, unit = law.moments
    edge, middle = law.least, min(law.most, mean // unit + 1)
    if outwards > 0:
        edge, middle = law.most, max(law.least, mean // unit)
    if bound == 0:
        return edge
    guess, is_within = _about(law, bound, outwards), partial(is_tail_within, law, bound=bound, outwards=outwards)
    return _first_beyond(is_within, edge + outwards, middle, guess)


def _about(law: CountLaw, bound: Decimal, outwards: int) -> int:
    """Return about which count has a tail of this probability: a normal law's, then two steps of Newton's method."""
    logarithm = log(float(bound) or _SMALLEST_FLOAT)
    mean, variance, unit = law.moments
    count = int((mean + outwards * sqrt(variance * max(0.0, -2 * logarithm))) / unit)
    for _ in range(2):
        if law.least < count < law.most:
            inwards, here = law.ratio(count) if outwards < 0 else reversed(law.ratio(count + 1))
            share = inwards / here
            if share < 1:
                # The tail is about that of a geometric law, whose terms fall by this share.
                count += outwards * round((logarithm - law.ln_float(count) + log1p(-share)) / log(share))
    return count


def _first_beyond(is_within: Callable[[int], bool], within: int, beyond: int, guess: int) -> int:
    """Return the count next to the last one that is within, which is found soon from a good guess.

    Args:
        within: one that is, as are all on its side.
        beyond: one that is not, as are all on its side.
    """
    outwards, step = (1 if beyond > within else -1), 1
    while abs(beyond - within) > 1:
        if not min(within, beyond) < guess < max(within, beyond):
            guess = (within + beyond) // 2
        if is_within(guess):
            within, guess = guess, guess + outwards * step
        else:
            beyond, guess = guess, guess - outwards * step
        step *= 2
    return beyond


def accepted_sum(laws: Sequence[Binomial], below: Decimal, above: Decimal) -> tuple[int, int]:
    """Return the fewest and the most that a test accepts of the sum of independent binomial counts.

    P(S <= x) <= e^(t x) E[e^(-t S)] for every t > 0, and so for the sharpest t that is tried (Chernoff 1952). What is
    accepted is never less than the exact law accepts.

    Args:
        laws: of the counts; at least one.
        below: most probability of a sum below the fewest.
        above: most probability of a sum above the most.
    """
    trials = sum(law.trials for law in laws)
    mirrored = [Binomial(law.trials, law.unit - law.hits, law.unit) for law in laws]
    return _fewest_sum(laws, below), trials - _fewest_sum(mirrored, above)


def _fewest_sum(laws: Sequence[Binomial], below: Decimal) -> int:
    variance = sum((law.variance for law in laws), Fraction(0))
    if variance == 0:
        return sum(law.least for law in laws)
    with localcontext(prec=_PRECISION):
        first = (-2 * below.ln() / (Decimal(variance.numerator) / variance.denominator)).sqrt() / 4
        tilts = (first * Decimal(2) ** (Decimal(step) / 10) for step in range(_TILTS))
        return max(0, *(int(_refused(laws, tilt, below).to_integral_value(ROUND_FLOOR)) + 1 for tilt in tilts))


def _refused(laws: Sequence[Binomial], tilt: Decimal, below: Decimal) -> Decimal:
    """Return the greatest x with t x + ln E[e^(-t S)] <= ln below."""
    factor = (-tilt).exp()
    shares = zip((law.trials for law in laws), map(_shares, laws), strict=True)
    logarithms = (trials * (other + own * factor).ln() for trials, (other, own) in shares)
    return (below.ln() - sum(logarithms, Decimal(0))) / tilt


def _shares(law: Binomial) -> tuple[Decimal, Decimal]:
    """Return 1 - p and p."""
    return Decimal(law.unit - law.hits) / law.unit, Decimal(law.hits) / law.unit


def _ln_choose_float(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _ln_choose(n: int, k: int) -> Decimal:
    return _ln_factorial(n) - _ln_factorial(k) - _ln_factorial(n - k)


@lru_cache(maxsize=4096)
def _ln_factorial(n: int) -> Decimal:
    """Return ln n!: the product itself, or Stirling's series, whose error is below its last term (1e-27)."""
    with localcontext(prec=_PRECISION + 10):
        if n < 200:
            return Decimal(factorial(n)).ln()
        x = Decimal(n)
        series = sum(
            (Decimal(b.numerator) / (Decimal(b.denominator) * x ** (2 * i + 1)) for i, b in enumerate(_STIRLING)),
            Decimal(0),
        )
        return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series


_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
_STIRLING = (
    Fraction(1, 12),
    Fraction(-1, 360),
    Fraction(1, 1260),
    Fraction(-1, 1680),
    Fraction(1, 1188),
    Fraction(-691, 360360),
)
"""Coefficients of 1/n, 1/n^3, ... of ln n! - (n + 1/2) ln n + n - ln(2 pi)/2."""
