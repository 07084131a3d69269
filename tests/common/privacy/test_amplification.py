"""What sampling makes of a mechanism of rows: its pure epsilon, and its delta over copies by every output."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import refuses
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import amplified_delta, base_epsilon, sampled_delta
from veiltab.common.privacy.profiles import GammaDiagonalProfile, Gaussian
from veiltab.common.schemes import scheme_of
from veiltab.common.schemes.must_ow import MustOW
from veiltab.common.schemes.scheme import Scheme
from veiltab.common.schemes.simple_random import gamma_for_pure_epsilon, pure_epsilon

Law = dict[tuple[int, ...], Fraction]


@given(
    st.decimals(min_value="1e-6", max_value=20, allow_nan=False, allow_infinity=False),
    st.integers(1, 10**7),
    st.integers(1, 10**7),
    st.integers(2, 10**5),
)
def test_the_mechanism_that_runs_keeps_the_epsilon_that_was_asked(epsilon: Decimal, n: int, m: int, cells: int) -> None:
    m = min(n, m)
    gamma = gamma_for_pure_epsilon(epsilon, population=n, sample=m)
    mechanism = GammaDiagonal.from_gamma(cells, gamma)
    assert mechanism.gamma <= gamma
    kept = pure_epsilon(mechanism.gamma, population=n, sample=m)
    assert kept <= epsilon + Decimal("1e-12")
    # Nothing is given away either: the next larger gamma that 64 bits can say is above what was asked.
    assert float(kept) >= float(epsilon) * (1 - 1e-6) or mechanism.replacement > 2**64 - 2**20


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.fractions(min_value=1, max_value=10**6))
def test_sampling_never_raises_epsilon(n: int, m: int, gamma: Fraction) -> None:
    m = min(n, m)
    assert float(pure_epsilon(gamma, population=n, sample=m)) <= log(gamma) + 2e-12


def test_a_known_value() -> None:
    assert float(pure_epsilon(Fraction(25), population=100, sample=10)) == pytest.approx(log(3.4), abs=1e-11)
    assert float(gamma_for_pure_epsilon(Decimal(1), population=100, sample=10)) == pytest.approx(1 + 10 * (exp(1) - 1))


@pytest.mark.parametrize(("n", "m"), [(10, 11), (10, 0), (10, -1), (0, 0)])
def test_a_sample_that_is_none_is_refused(n: int, m: int) -> None:
    with refuses(InvalidInputError, where="sample size"):
        pure_epsilon(Fraction(2), population=n, sample=m)
    with refuses(InvalidInputError, where="sample size"):
        gamma_for_pure_epsilon(Decimal(1), population=n, sample=m)


def _delta_of_copies(gamma: Fraction, cells: int, copies: int, e: Fraction) -> Fraction:
    """Return delta of so many copies: the positive part of P - e Q, added up over every output of every copy."""
    q = gamma + cells - 1
    laws = [[(gamma if cell == value else 1) / q for cell in range(cells)] for value in (0, 1)]
    total = Fraction(0)
    for output in product(range(cells), repeat=copies):
        p = q_ = Fraction(1)
        for cell in output:
            p, q_ = p * laws[0][cell], q_ * laws[1][cell]
        total += max(p - e * q_, Fraction(0))
    return total


@pytest.mark.parametrize(("gamma", "cells"), [(Fraction(2), 2), (Fraction(7, 2), 3), (Fraction(40), 4)])
def test_the_mean_over_the_law_of_copies_is_that_of_every_output(gamma: Fraction, cells: int) -> None:
    law = [Fraction(1, 2), Fraction(1, 5), Fraction(1, 5), Fraction(0), Fraction(1, 10)]
    profile = GammaDiagonalProfile(gamma=float(gamma), cells=cells)
    for e in (Fraction(1), Fraction(3, 2), Fraction(5)):
        exact = sum(weight * _delta_of_copies(gamma, cells, j, e) for j, weight in enumerate(law) if j)
        found = profile.mean_delta(log(float(e)), np.array(law, dtype=float))
        assert float(exact) * (1 - 1e-12) <= found <= float(exact) * (1 + 1e-9)


@pytest.mark.parametrize(("gamma", "cells"), [(1.0, 2), (2.0, 1)])
def test_a_profile_needs_noise_and_two_cells(gamma: float, cells: int) -> None:
    with pytest.raises(InvalidInputError):
        GammaDiagonalProfile(gamma=gamma, cells=cells)


def _sampled_law(table: tuple[int, ...], scheme: Scheme, cells: int, gamma: Fraction) -> Law:
    """Return the law of the histogram of rows that the last stage draws each anew, whichever rows the first took."""
    q = gamma + cells - 1
    groups = list(combinations(table, scheme.stage)) if isinstance(scheme, MustOW) else [table]
    result: Law = {}
    for group in groups:
        row = [sum(gamma if value == cell else 1 for value in group) / q / len(group) for cell in range(cells)]
        for output in product(range(cells), repeat=scheme.sample):
            key = tuple(sorted(output))
            chance = Fraction(1, len(groups))
            for cell in output:
                chance *= row[cell]
            result[key] = result.get(key, Fraction(0)) + chance
    return result


@pytest.mark.parametrize(
    ("name", "sizes"), [("wr", {}), ("must.wo", {"stage": 5}), *(("must.ow", {"stage": stage}) for stage in (1, 2))]
)
@pytest.mark.parametrize(("n", "m", "cells"), [(2, 3, 3), (3, 4, 2), (4, 3, 3)])
def test_a_sample_with_repeats_keeps_its_delta_for_every_pair_of_tables(
    name: str, sizes: dict[str, int], n: int, m: int, cells: int
) -> None:
    scheme = scheme_of(name, population=n, sample=m, **sizes)
    for gamma in (Fraction(3), Fraction(30)):
        profile = GammaDiagonalProfile(gamma=float(gamma), cells=cells)
        pairs = [
            (one, other)
            for rest in combinations_with_replacement(range(cells), n - 1)
            for one, other in permutations([_sampled_law((x, *rest), scheme, cells, gamma) for x in range(cells)], 2)
        ]
        for e in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(10), Fraction(20)):
            exact = max(sum(max(one[y] - e * other[y], Fraction(0)) for y in one) for one, other in pairs)
            found = sampled_delta(scheme, profile, log(float(e)))
            assert float(exact) * (1 - 1e-12) <= found
            alike = amplified_delta(scheme, profile, base_epsilon(scheme, log(float(e))))
            assert found <= alike * (1 + 1e-9) + 1e-14


def test_copies_that_are_rare_do_not_decide_the_delta_of_a_sample() -> None:
    profile = Gaussian(ratio=0.5)
    without = sampled_delta(scheme_of("wor", population=6000, sample=60), profile, 0.1)
    scheme = scheme_of("wr", population=6000, sample=60)
    assert without < sampled_delta(scheme, profile, 0.1) < 2 * without
    assert amplified_delta(scheme, profile, base_epsilon(scheme, 0.1)) > 200 * without
