"""What tests of counts accept, beside exact rational sums, enumerations and slow sums of forty digits."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, groupby, product
from math import comb, floor

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.common.core.numbers.counts import (
    Binomial,
    Runs,
    accepted,
    accepted_sum,
    at_least,
    at_most,
    is_accepted,
    is_tail_within,
    likely_distance,
)

Law = dict[int, Fraction]

TINY = Fraction(1, 2**64)
SHARES = [Fraction(0), TINY, Fraction(1, 50), Fraction(1, 2), Fraction(14, 23), Fraction(9, 10), 1 - TINY, Fraction(1)]
LEVELS = [Decimal("1e-12"), Decimal("2.5e-10"), Decimal("1e-3"), Decimal("0.05"), Decimal("0.49")]
RIGHT = Fraction(1, 10**18)
"""A decimal of a probability is right to this factor."""


@cache
def binomial_law(n: int, p: Fraction) -> "Exact":
    law = {j: comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)}
    return Exact({j: share for j, share in law.items() if share})


@cache
def runs_law(places: int, marks: int) -> "Exact":
    """By the sets of places one after the other."""
    found = Counter(
        sum(1 for marked, _ in groupby(range(places), set(chosen).__contains__) if marked)
        for chosen in combinations(range(places), marks)
    )
    return Exact({runs: Fraction(number, found.total()) for runs, number in found.items()})


class Exact:
    """An exact law, and its sums from either end.

    Args:
        law: the probability of each count that can be.
    """

    def __init__(self, law: Law) -> None:
        self.law, counts = law, sorted(law)
        self.least, self.most = counts[0], counts[-1]
        self._below = dict(zip(counts, accumulate(law[j] for j in counts), strict=True))
        self._above = dict(zip(counts[::-1], accumulate(law[j] for j in counts[::-1]), strict=True))

    def below(self, count: int) -> Fraction:
        """P(X <= count)."""
        return Fraction(0) if count < self.least else self._below[min(count, self.most)]

    def above(self, count: int) -> Fraction:
        """P(X >= count)."""
        return Fraction(0) if count > self.most else self._above[max(count, self.least)]

    def accepted(self, lower: Decimal, upper: Decimal) -> tuple[int, int]:
        """The least count whose lower tail exceeds a level, and the greatest whose upper tail does."""
        return (
            min(j for j, tail in self._below.items() if tail > Fraction(lower)),
            max(j for j, tail in self._above.items() if tail > Fraction(upper)),
        )


BINOMIALS = [(Binomial.of(n, p), binomial_law(n, p)) for n in (0, 1, 2, 30) for p in SHARES]
RUNS = [(Runs(c, k), runs_law(c, k)) for c in range(13) for k in range(c + 1)]
ALL: tuple[tuple[Binomial | Runs, Exact], ...] = (*BINOMIALS, *RUNS)


def test_moments_and_ends_are_those_of_the_exact_law() -> None:
    for law, exact in ALL:
        mean = sum((j * share for j, share in exact.law.items()), Fraction(0))
        assert (law.least, law.most) == (exact.least, exact.most)
        assert law.mean == mean
        assert law.variance == sum(((j - mean) ** 2 * share for j, share in exact.law.items()), Fraction(0))
        assert sorted(exact.law) == list(range(law.least, law.most + 1))


def test_probabilities_and_tails_are_those_of_the_exact_law() -> None:
    for law, exact in ALL:
        for count in range(-1, exact.most + 3):
            assert abs(Fraction(at_most(law, count)) - exact.below(count)) <= RIGHT * exact.below(count)
            assert abs(Fraction(at_least(law, count)) - exact.above(count)) <= RIGHT * exact.above(count)
        for count, share in exact.law.items():
            assert abs(Fraction(law.ln(count).exp()) - share) <= RIGHT * share
            assert law.ln_float(count) == pytest.approx(float(law.ln(count)), abs=1e-9)
            if count - 1 in exact.law:
                assert Fraction(*law.ratio(count)) == exact.law[count - 1] / share


def test_a_test_accepts_what_the_exact_law_has_it_accept() -> None:
    for law, exact in ALL:
        zero = Decimal(0)
        for sides in (
            (zero, zero),
            *(pair for one in LEVELS for pair in ((one, one), (one, zero), (zero, one), (one, one / 1000))),
        ):
            fewest, most = exact.accepted(*sides)
            assert accepted(law, *sides) == (fewest, most)
            for count in range(-1, exact.most + 3):
                assert is_accepted(law, count, *sides) == (fewest <= count <= most)


def test_no_count_within_a_likely_distance_is_as_unlikely_as_the_bound() -> None:
    for law, exact in (*ALL, *SOME):
        trials = max(law.trials if isinstance(law, Binomial) else law.places, 1)
        for level, (count, share) in product(LEVELS, exact.law.items()):
            within = law.variance * Fraction(likely_distance(trials, level))
            assert share > Fraction(level) or (count - law.mean) ** 2 > within
    assert 18 < likely_distance(60, LEVELS[0]) < likely_distance(30, LEVELS[0])


@pytest.mark.parametrize("p", [TINY, Fraction(1, 500), Fraction(123, 1000), Fraction(1, 2), Fraction(99, 100)], ids=str)
@pytest.mark.parametrize("n", [100, 500])
def test_of_many_trials_it_accepts_what_the_exact_law_has_it_accept(n: int, p: Fraction) -> None:
    exact = binomial_law(n, p)
    for level in LEVELS:
        assert accepted(Binomial.of(n, p), level, level / 2) == exact.accepted(level, level / 2)


def hypergeometric(c: int, k: int) -> Exact:
    ways = {j: comb(k - 1, j - 1) * comb(c - k + 1, j) for j in range(1, min(k, c - k + 1) + 1)}
    return Exact({j: Fraction(number, comb(c, k)) for j, number in ways.items()})


@pytest.mark.parametrize(("c", "k"), [(1000, 300), (1024, 81), (500, 490)])
def test_of_many_places_it_accepts_what_the_exact_law_has_it_accept(c: int, k: int) -> None:
    exact = hypergeometric(c, k)
    assert exact.below(exact.most) == 1
    for level in LEVELS:
        assert accepted(Runs(c, k), level, level / 2) == exact.accepted(level, level / 2)


def slow_lower_tail(law: Binomial, count: int) -> mpmath.mpf:
    """P(X <= count), from the count downwards until twenty digits no longer change."""
    n, p = law.trials, mpmath.mpf(law.hits) / law.unit
    logarithm = mpmath.loggamma(n + 1) - mpmath.loggamma(count + 1) - mpmath.loggamma(n - count + 1)
    term = mpmath.exp(logarithm + count * mpmath.log(p) + (n - count) * mpmath.log1p(-p))
    total = term
    for j in range(count, 0, -1):
        term *= j * (1 - p) / ((n - j + 1) * p)
        total += term
        if term < total * mpmath.mpf(10) ** -25:
            break
    return total


LARGE = [
    Binomial.of(10_021, Fraction(321, 10_000) * Fraction(23, 24)),
    Binomial.of(10**7, Fraction(1, 3)),
    Binomial.of(50_124_311, Fraction(58, 10**7) * Fraction(15, 16)),
    pytest.param(Binomial.of(2**32, Fraction(1, 2)), marks=pytest.mark.long),
    Binomial.of(2**32, TINY),
    Binomial.of(2**32, 1 - TINY),
    Binomial.of(10**22, TINY),
    Binomial.of(10**9, 1 - Fraction(1, 10**8)),
]


@pytest.mark.long
@pytest.mark.parametrize("law", LARGE, ids=str)
def test_of_very_many_trials_neither_end_is_one_off(law: Binomial) -> None:
    mirrored = Binomial(law.trials, law.unit - law.hits, law.unit)
    for level in (Decimal("6e-13"), Decimal("1.25e-10")):
        fewest, most = accepted(law, level, level)
        assert accepted(mirrored, level, level) == (law.trials - most, law.trials - fewest)
        with mpmath.workdps(40):
            for one, end in ((law, fewest), (mirrored, law.trials - most)):
                assert slow_lower_tail(one, end) > mpmath.mpf(str(level))
                assert end == 0 or slow_lower_tail(one, end - 1) <= mpmath.mpf(str(level))


NEAR = [Decimal(f"1e-{digits}") for digits in (2, 3, 4, 6, 9, 12, 16)]
SMALLEST = Decimal("1e-40")
SHARES_OF = {40: Fraction(1, 3), 100: Fraction(1, 50), 90: 1 - TINY}
SOME: list[tuple[Binomial | Runs, Exact]] = [(Binomial.of(n, p), binomial_law(n, p)) for n, p in SHARES_OF.items()]
SOME += [(Runs(c, k), hypergeometric(c, k)) for c, k in ((12, 5), (60, 30))]


def near(share: Fraction) -> Iterator[Decimal]:
    """Levels close to a probability, on either side of it; none smaller than any that is used."""
    level = Decimal(share.numerator) / share.denominator
    if level > SMALLEST:
        yield from (level * (1 + sign * change) for change in NEAR for sign in (-1, 1))


def test_a_float_decides_nothing_otherwise_however_near_the_level_is() -> None:
    for (law, exact), count in ((one, count) for one in SOME for count in one[1].law):
        for level in near(exact.below(count)):
            assert is_tail_within(law, count, level, -1) == (exact.below(count) <= Fraction(level))
        for level in near(exact.above(count)):
            assert is_tail_within(law, count, level, 1) == (exact.above(count) <= Fraction(level))


LARGE_COUNT = st.tuples(st.integers(10**6, 2**32), st.fractions(0, 1, max_denominator=10**9), st.floats(-7, 0))


@settings(max_examples=25, deadline=None)
@given(LARGE_COUNT, st.sampled_from(NEAR), st.sampled_from([-1, 1]))
def test_a_float_decides_nothing_otherwise_of_large_counts(
    case: tuple[int, Fraction, float], change: Decimal, sign: int
) -> None:
    n, p, deviations = case
    law = Binomial.of(n, p)
    count = min(max(floor(law.mean + Fraction(deviations) * Fraction(float(law.variance) ** 0.5)), law.least), law.most)
    tail = at_most(law, count)
    assert is_tail_within(law, count, tail * (1 + sign * change), -1) == (sign > 0)


def convolved(laws: list[Binomial]) -> Exact:
    total = {0: Fraction(1)}
    for law in laws:
        after: Law = {}
        for already, share in total.items():
            for j, more in binomial_law(law.trials, Fraction(law.hits, law.unit)).law.items():
                after[already + j] = after.get(already + j, Fraction(0)) + share * more
        total = after
    return Exact(total)


SUMS = [
    [Binomial.of(30, Fraction(1, 3))],
    [Binomial.of(n, Fraction(1, n)) for n in range(5, 25)],
    [Binomial.of(40, Fraction(1, 10)), Binomial.of(5, Fraction(99, 100)), Binomial.of(0, Fraction(1, 2))],
    [Binomial.of(25, Fraction(14, 23)), Binomial.of(25, Fraction(21, 23)), Binomial.of(25, Fraction(1, 2))],
    [Binomial.of(1, TINY)],
    [Binomial.of(3, Fraction(1)), Binomial.of(20, Fraction(1, 2)), Binomial.of(4, Fraction(0))],
    [Binomial.of(8, Fraction(1)), Binomial.of(4, Fraction(0))],
]


@pytest.mark.parametrize("laws", SUMS, ids=lambda laws: f"{len(laws)} of {laws[0]}")
def test_of_a_sum_it_refuses_no_more_than_the_level_and_little_less(laws: list[Binomial]) -> None:
    exact = convolved(laws)
    # A bound by an exponential is a few counts from the exact one, never a standard deviation and a half.
    spread = 1.5 * float(sum(law.variance for law in laws)) ** 0.5 + 1
    for level in LEVELS[:-1]:
        fewest, most = accepted_sum(laws, level, level / 4)
        assert exact.below(fewest - 1) <= Fraction(level)
        assert exact.above(most + 1) <= Fraction(level / 4)
        least, greatest = exact.accepted(level, level / 4)
        assert fewest <= least
        assert greatest <= most
        assert max(fewest, exact.least) >= least - spread
        assert min(most, exact.most) <= greatest + spread
