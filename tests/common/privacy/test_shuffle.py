"""Theorem A: its sum against enumeration, and its claim against the exact law of small releases."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations
from math import comb, exp, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.privacy.enumeration import bracketed, enumerated
from veiltab.common.core.binomial import binomial_pmf
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.calibration import calibrate
from veiltab.common.privacy.order_laws import Memory, tails
from veiltab.common.privacy.shuffle import LEAST_DELTA, OrderCertificate, _Sum

VECTORS = [
    (0.5, 45222, 24, "356.78", 45222, 9.98105e-7),
    (0.5, 4522, 24, "3661", 45222, 9.99727e-7),
    (0.3, 50, 3, "4", 60, 7.437801e-3),
    (log(3), 3, 4, "5", 3, 0.1054687),
]


def certificate(n: int, m: int, cells: int, gamma: Fraction | str) -> OrderCertificate:
    return OrderCertificate(population=n, sample=m, cells=cells, gamma=Fraction(gamma))


@pytest.mark.parametrize(("epsilon", "m", "cells", "gamma", "n", "delta"), VECTORS)
def test_vectors(  # noqa: PLR0913, PLR0917 - a vector
    epsilon: float, m: int, cells: int, gamma: str, n: int, delta: float
) -> None:
    assert certificate(n, m, cells, gamma).delta(epsilon) == pytest.approx(delta, rel=1.5e-6)


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
    with pytest.raises(InvalidInputError, match="presence is not above 0"):
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


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 5.0, 20.0, 40.0, 60.0])
@pytest.mark.parametrize("log_gamma", [8.0, 30.0, 61.0, 69.0])
def test_one_row_is_randomised_response(epsilon: float, log_gamma: float) -> None:
    gamma = Fraction(exp(log_gamma))
    exact = max(Fraction(0), (gamma - exp_below(Decimal(epsilon))) / (gamma + 1))
    found = Fraction(certificate(1, 1, 2, gamma).delta(epsilon))
    assert exact * (1 - Fraction(1, 10**50)) <= found <= exact * (1 + Fraction(2, 10**9))


@pytest.mark.parametrize(
    ("n", "m", "cells", "gamma", "delta", "epsilon"),
    [
        # The rows without noise: all others in a third cell, h0 = 1, h1 = 0 has likelihood ratio gamma.
        (10**8, 10**8, 2, "1e30", 1e-6, log(1e30)),
        (1, 1, 2, "1e15", 1e-9, log(1e15 - 1e-9 * (1e15 + 1))),
        (5, 3, 3, "1e15", 1e-9, 33.44016),
    ],
)
def test_a_large_epsilon_is_right(  # noqa: PLR0913, PLR0917 - a vector
    n: int, m: int, cells: int, gamma: str, delta: float, epsilon: float
) -> None:
    assert certificate(n, m, cells, gamma).epsilon(delta) == pytest.approx(epsilon, abs=1e-5)


@pytest.mark.parametrize(
    ("n", "cells", "epsilon", "delta"),
    [(45222, 24, "30", "1e-6"), (45222, 24, "34", "1e-6"), (45222, 24, "22", "1e-9"), (10, 2, "25", "1e-9")],
)
def test_a_plan_at_a_large_epsilon_keeps_delta(n: int, cells: int, epsilon: str, delta: str) -> None:
    mechanism = calibrate(population=n, sample=n, cells=cells, epsilon=Decimal(epsilon), delta=Decimal(delta))
    # With all other rows elsewhere, the event of one row in the first cell and none in the second.
    assert 1 - exp_below(Decimal(epsilon)) / mechanism.gamma <= Fraction(delta)


def test_with_fewer_rows_than_cells_it_stays_close_to_the_formula() -> None:
    # The rows that hr decides differ in number from one s to the next.
    bound = certificate(392, 39, 80, "126.5")
    assert bound.delta(0.6694) == pytest.approx(5.87315763e-5, rel=2e-9)


def histograms(cells: int, m: int) -> Iterator[tuple[int, ...]]:
    for chosen in combinations_with_replacement(range(cells), m):
        yield tuple(chosen.count(x) for x in range(cells))


@cache
def output_law(truth: tuple[int, ...], cells: int, gamma: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The law of the histogram of independent gamma-diagonal outputs on given rows."""
    law = {(0,) * cells: Fraction(1)}
    q = gamma + cells - 1
    for x in truth:
        grown: dict[tuple[int, ...], Fraction] = {}
        for counts, p in law.items():
            for y in range(cells):
                after = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                grown[after] = grown.get(after, Fraction(0)) + p * (gamma if x == y else 1) / q
        law = grown
    return law


@cache
def release_law(table: tuple[int, ...], m: int, cells: int, gamma: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The law of what a researcher learns of a secret sample in secret order: the histogram."""
    total: dict[tuple[int, ...], Fraction] = {}
    for rows in combinations(range(len(table)), m):
        for counts, p in output_law(tuple(sorted(table[i] for i in rows)), cells, gamma).items():
            total[counts] = total.get(counts, Fraction(0)) + p / comb(len(table), m)
    return total


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


def test_the_two_cell_clone_formula_would_under_report() -> None:
    exact = exact_delta(3, 3, 4, Fraction(5), Fraction(3))
    assert exact == Fraction(27, 256)
    assert exact > Fraction(23, 256)
    assert certificate(3, 3, 4, "5").delta(log(3)) == pytest.approx(float(exact), rel=1e-6)


@given(
    st.integers(2, 10**4),
    st.floats(0.001, 1),
    st.integers(2, 10**3),
    st.floats(1.01, 1e6),
    st.lists(st.floats(0, 12), min_size=3, max_size=3, unique=True),
)
@settings(max_examples=40, deadline=None)
def test_delta_falls_and_is_convex_in_e_to_epsilon(
    n: int, rate: float, cells: int, gamma: float, epsilons: list[float]
) -> None:
    bound = certificate(n, max(1, int(rate * n)), cells, Fraction(gamma))
    low, middle, high = sorted(epsilons)
    d_low, d_middle, d_high = map(bound.delta, (low, middle, high))
    slack = 1 + 1e-6
    assert 1 >= d_low * slack >= d_middle
    assert d_middle * slack >= d_high >= 0
    share = (exp(middle) - exp(low)) / (exp(high) - exp(low)) if exp(high) > exp(low) else 0
    assert d_middle <= ((1 - share) * d_low + share * d_high) * slack + 1e-30


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


def test_at_the_largest_sizes_it_answers() -> None:
    assert 0 < certificate(10**7, 10**7, 10**5, "101956").delta(0.5) < 1.1e-8
    assert certificate(10**7, 10**7, 2, "2").delta(0.05) < 1e-30
    # Tails of 10^5 numbers of rows, of 10^4 terms each.
    assert 0 < certificate(10**8, 10**8, 2, "1.16945").delta(1e-4) < 1.01e-15


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
    with pytest.raises(InvalidInputError, match="epsilon"):
        certificate(10, 5, 2, "3").delta(epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_deltas_that_are_none_are_refused(delta: float) -> None:
    with pytest.raises(InvalidInputError, match="delta"):
        certificate(10, 5, 2, "3").epsilon(delta)


@given(st.integers(1, 10**7), st.floats(1e-6, 1 - 1e-6), st.floats(-8, 8))
@settings(max_examples=80)
def test_binomial_probabilities_are_right_to_ten_digits(n: int, p: float, z: float) -> None:
    x = min(n, max(0, round(n * p + z * (n * p * (1 - p)) ** 0.5)))
    with mpmath.workdps(50):
        exact = mpmath.binomial(n, x) * mpmath.mpf(p) ** x * (1 - mpmath.mpf(p)) ** (n - x)
        found = float(binomial_pmf(np.array([x]), n, p)[0])
        assert found == pytest.approx(float(exact), rel=2e-11, abs=1e-300)


def test_binomial_probabilities_at_the_edges() -> None:
    assert binomial_pmf(np.arange(-1, 5), 3, 0.0).tolist() == [0, 1, 0, 0, 0, 0]
    assert binomial_pmf(np.arange(-1, 5), 3, 1.0).tolist() == [0, 0, 0, 0, 1, 0]
    assert binomial_pmf(np.arange(0, 4), 3, 0.5) == pytest.approx([1 / 8, 3 / 8, 3 / 8, 1 / 8], rel=1e-14)


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


def test_the_enumeration_itself_sums_to_one() -> None:
    law = release_law((0, 1, 1, 2), 3, 3, Fraction(5))
    assert sum(law.values()) == 1
    assert set(law) == set(histograms(3, 3))


def test_a_delta_below_all_floats_is_not_zero() -> None:
    certificate = OrderCertificate(population=48, sample=48, cells=10**7, gamma=Fraction(3, 2))
    pure = log(1.5)
    assert certificate.delta(0.99 * pure) == LEAST_DELTA
    assert certificate.delta(1.01 * pure) == 0
