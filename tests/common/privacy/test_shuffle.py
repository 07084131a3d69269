"""Theorem A: its sum against enumeration, and its claim against the exact law of small releases."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from math import comb, exp, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.privacy.enumeration import bracketed, enumerated, release_law
from tests.conftest import refuses
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.order_laws import Memory, tails
from veiltab.common.privacy.shuffle import LEAST_DELTA, OrderCertificate, _Sum


def certificate(n: int, m: int, cells: int, gamma: Fraction | str) -> OrderCertificate:
    return OrderCertificate(population=n, sample=m, cells=cells, gamma=Fraction(gamma))


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma"),
    [
        (3, 3, 4, Fraction(5)),
        (9, 6, 2, Fraction(3)),
        (20, 12, 3, Fraction(7, 2)),
        (14, 14, 50, Fraction(20)),
        (6, 1, 2, 2),
    ],
)
@pytest.mark.parametrize("e", [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(3)])
def test_the_sum_is_the_formula_and_never_below_it(n: int, m: int, cells: int, gamma: Fraction, e: Fraction) -> None:
    exact = enumerated(n, m, cells, Fraction(gamma), e)
    found = certificate(n, m, cells, Fraction(gamma)).delta(log(e))
    assert float(exact) <= found * (1 + 1e-15)
    assert found == pytest.approx(float(exact), rel=1e-6, abs=1e-30)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(2, 10**9),
    cells=st.integers(2, 10**4),
    gamma=st.fractions(1, 10**6, max_denominator=10**9).filter(lambda gamma: gamma > 1),
    part=st.fractions(0, 1, max_denominator=10**9).filter(lambda part: 0 < part < 1),
)
def test_what_decides_the_bracket_is_rounded_so_that_it_grows(
    n: int, cells: int, gamma: Fraction, part: Fraction
) -> None:
    one = certificate(n, min(n, 1000), cells, gamma)
    e = 1 + (one.pure_ratio - 1) * part
    found = _Sum(one, e, Memory())
    assert Fraction(found.step) <= 1 + e
    assert Fraction(found.rest_probability) <= Fraction(cells - 2) / (gamma + cells - 3)
    assert Fraction(found.c) <= max((e - 1) / (gamma - 1), Fraction(1e-13 / n))


@pytest.mark.parametrize(("m", "cells"), [(1, 2), (2, 4), (3, 3), (7, 2), (12, 24)])
@pytest.mark.parametrize("presence", [Fraction(1, 100), Fraction(2, 3), Fraction(99, 100)])
def test_with_coins_that_are_seen_it_is_the_mean_over_the_rows_that_take_part(
    m: int, cells: int, presence: Fraction
) -> None:
    gamma = Fraction(9, 2)
    bound = OrderCertificate(population=m, sample=m, cells=cells, gamma=gamma, presence=presence)
    for e in (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(4)):
        # The target takes part, and with it each of the other m - 1 rows by its own coin.
        mean = sum(
            (
                comb(m - 1, others)
                * presence**others
                * (1 - presence) ** (m - 1 - others)
                * enumerated(others + 1, others + 1, cells, gamma, e)
                for others in range(m)
            ),
            Fraction(0),
        )
        exact = presence * mean
        assert exact == enumerated(m, m, cells, gamma, e, presence)
        found = bound.delta(log(e))
        assert float(exact) <= found * (1 + 1e-15)
        assert found == pytest.approx(float(exact), rel=1e-6, abs=1e-30)


@pytest.mark.parametrize("presence", [Fraction(0), Fraction(3, 2), Fraction(1, 2)])
def test_a_presence_is_a_probability_and_below_one_for_everyone_alone(presence: Fraction) -> None:
    with refuses(InvalidInputError, where="presence"):
        OrderCertificate(population=9, sample=8, cells=2, gamma=Fraction(3), presence=presence)


@given(
    st.integers(1, 12),
    st.integers(1, 8),
    st.sampled_from([2, 3, 4, 20, 1000]),
    st.floats(-3, 69),
    st.one_of(st.floats(0, 1), st.floats(-16, -1).map(lambda x: 1 - 10**x)),
    st.one_of(st.just(1.0), st.floats(1e-3, 1)),
)
@settings(max_examples=80, deadline=None)
def test_it_is_never_below_the_formula_and_close_to_it_away_from_the_pure_end(  # noqa: PLR0913, PLR0917 - a release
    n: int, m: int, cells: int, log_a: float, place: float, presence: float
) -> None:
    bound = OrderCertificate(
        population=n if presence == 1 else min(n, m),
        sample=min(n, m),
        cells=cells,
        gamma=1 + Fraction(exp(log_a)),
        presence=Fraction(presence),
    )
    epsilon = log(bound.pure_ratio) * place
    least, most = bracketed(bound, epsilon)
    found = Fraction(bound.delta(epsilon))
    assert least <= found
    # A rounding of e is magnified by what it takes to the pure end.
    left = 1 - (exp_below(Decimal(epsilon)) - 1) / (bound.pure_ratio - 1)
    if left > 0:
        assert found <= most * (1 + Fraction(2, 10**9) + Fraction(4, 10**15) / left)


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma", "epsilon"),
    [
        (1, 1, 2, "1e15", 34.4855),
        (5, 3, 3, "1e15", 33.4226),
        (12, 4, 5, "4366486759", 20.0),
        (1, 1, 2, "22049", 10.0),
        (7, 4, 5, "1e20", 40.94),
        (5, 5, 2, "1e15", 34.5),
        (10, 10, 2, "1e12", 25.0),
        (38, 7, 2, "22998475", 13.484335781687031),
    ],
)
def test_at_a_large_epsilon_it_is_the_formula(n: int, m: int, cells: int, gamma: str, epsilon: float) -> None:
    bound = certificate(n, m, cells, gamma)
    least, _ = bracketed(bound, epsilon)
    found = Fraction(bound.delta(epsilon))
    assert least <= found
    assert float(found) == pytest.approx(float(least), rel=1e-6)


def exact_delta(n: int, m: int, cells: int, gamma: Fraction, e: Fraction) -> Fraction:
    """The largest hockey-stick divergence over all neighbouring pairs."""
    worst = Fraction(0)
    for rest in combinations_with_replacement(range(cells), n - 1):
        laws = [release_law(tuple(sorted((x, *rest))), m, cells, gamma) for x in range(min(cells, n + 1))]
        for one, other in permutations(laws, 2):
            worst = max(worst, sum((max(one[h] - e * other[h], Fraction(0)) for h in one), Fraction(0)))
    return worst


def small_releases() -> Iterator[object]:
    """Every n to 6, m to n, K to 4; the largest take a while."""
    for cells in (2, 3, 4):
        for n in range(1, 7):
            for m in range(1, n + 1):
                yield pytest.param(n, m, cells, marks=[pytest.mark.long] if (cells - 2) * n > 6 else [])


@pytest.mark.parametrize(("n", "m", "cells"), list(small_releases()))
@pytest.mark.parametrize("gamma", [Fraction(3, 2), Fraction(5)])
def test_no_neighbouring_pair_does_worse_than_the_certificate(n: int, m: int, cells: int, gamma: Fraction) -> None:
    pure = 1 + Fraction(m, n) * (gamma - 1)
    for e in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(3)):
        exact = exact_delta(n, m, cells, gamma, e)
        assert float(exact) <= certificate(n, m, cells, gamma).delta(log(e)) * (1 + 1e-12) + 1e-18
        # The pure guarantee is tight: delta vanishes exactly from there on, for the exact law and the certificate.
        assert (exact == 0) == (e >= pure)


@pytest.mark.parametrize(("n", "m", "cells"), [(3, 3, 3), (4, 2, 3), (3, 3, 4), (4, 3, 4)])
@pytest.mark.parametrize("gamma", [Fraction(3, 2), Fraction(5)])
def test_with_values_to_spare_the_certificate_is_tight(n: int, m: int, cells: int, gamma: Fraction) -> None:
    for e in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(3)):
        exact = exact_delta(n, m, cells, gamma, e)
        assert certificate(n, m, cells, gamma).delta(log(e)) == pytest.approx(float(exact), rel=1e-6, abs=1e-18)


@given(st.integers(2, 10**4), st.floats(0.01, 1), st.integers(2, 300), st.floats(1.5, 1e4), st.floats(-12, -1))
@settings(max_examples=20, deadline=None)
def test_epsilon_of_delta_is_certified_and_below_the_pure_one(
    n: int, rate: float, cells: int, gamma: float, log_delta: float
) -> None:
    bound = certificate(n, max(1, int(rate * n)), cells, Fraction(gamma))
    delta = 10**log_delta
    epsilon = bound.epsilon(delta)
    assert bound.delta(epsilon) <= delta
    assert epsilon <= log(bound.pure_ratio) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("gamma", ["1.0000001", "1.5", "9", "1e6", "1e100"])
def test_where_no_order_hides_a_row_epsilon_is_not_below_the_pure_one(gamma: str) -> None:
    bound = certificate(7, 3, 4, gamma)
    epsilon = bound.epsilon(1e-300)
    with mpmath.workdps(40):
        pure = mpmath.log(mpmath.mpf(bound.pure_ratio.numerator) / bound.pure_ratio.denominator)
    assert pure <= epsilon <= pure * (1 + 3e-15) + 3e-15


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma"),
    [
        (10, 11, 2, 2),
        (10, 0, 2, 2),
        (10, 5, 1, 2),
        (10, 5, 2, 1),
        (10, 5, 2, Fraction(1, 2)),
        (10**9 + 1, 10**9 + 1, 2, 2),
    ],
)
def test_sizes_beyond_the_numerics_are_refused(n: int, m: int, cells: int, gamma: Fraction) -> None:
    with pytest.raises(InvalidInputError):
        certificate(n, m, cells, Fraction(gamma))


@pytest.mark.parametrize("epsilon", [-0.1, float("nan")])
def test_epsilons_that_are_none_are_refused(epsilon: float) -> None:
    with refuses(InvalidInputError, where="epsilon"):
        certificate(10, 5, 2, "3").delta(epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_deltas_that_are_none_are_refused(delta: float) -> None:
    with refuses(InvalidInputError, where="delta"):
        certificate(10, 5, 2, "3").epsilon(delta)


@pytest.mark.parametrize(
    ("start", "rows", "slope"),
    [
        (5, 20, 0.7),
        (240, 200, 0.62),
        (100_000, 500, 0.5025),
        (10**6, 64, 0.503),
        (10**8, 4096, 0.5002),
        (10**9, 4096, 0.5001),
    ],
)
def test_tails_are_those_of_the_binomial(start: int, rows: int, slope: float) -> None:
    s = np.arange(start, start + rows, dtype=np.int64)
    a = np.floor(slope * s).astype(np.int64) + 1
    found = tails(s, a, Memory())
    for index in (0, rows // 2, rows - 1):
        n, k = int(s[index]), int(a[index])
        # The tail in units of its first term, in 128 binary places.
        term = total = 1 << 128
        for h in range(k, n):
            term = term * (n - h) // (h + 1)
            total += term
            if term < total >> 83:
                break
        with mpmath.workdps(40):
            exact = mpmath.binomial(n, k) / mpmath.mpf(2) ** n * total / (1 << 128)
        assert found[index] == pytest.approx(float(exact), rel=1e-10)


def test_a_delta_below_all_floats_is_not_zero() -> None:
    certificate = OrderCertificate(population=48, sample=48, cells=10**7, gamma=Fraction(3, 2))
    pure = log(1.5)
    assert certificate.delta(0.99 * pure) == LEAST_DELTA
    assert certificate.delta(1.01 * pure) == 0
