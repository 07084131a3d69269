"""Made-up populations: the distributions that are asked for, whole counts, strata from a file, and clear refusals."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import refuses
from veiltab.common.collection.population import Distribution, parse_population, parse_rate, parse_strata
from veiltab.common.errors import InvalidInputError


def binomial(n: int, p: Fraction) -> list[Fraction]:
    return [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def normalised(law: list[Fraction]) -> list[float]:
    return [float(one / (1 - law[0])) for one in law[1:]]


def test_the_papers_binomial_has_a_hundred_values() -> None:
    found = parse_population("binomial:100:0.5")
    assert found.values == 100
    np.testing.assert_allclose(found.probabilities, normalised(binomial(100, Fraction(1, 2))), rtol=1e-10, atol=1e-35)


def test_zero_is_left_out() -> None:
    np.testing.assert_allclose(parse_population("binomial:2:0.5").probabilities, [2 / 3, 1 / 3])


def test_a_sum_and_a_mixture_are_not_the_same() -> None:
    parts = [binomial(5, Fraction(3, 5)), binomial(5, Fraction(2, 5))]
    total = [
        sum((parts[0][i] * parts[1][k - i] for i in range(max(0, k - 5), min(k, 5) + 1)), Fraction(0))
        for k in range(11)
    ]
    summed = parse_population("binomial:5:0.6+binomial:5:0.4")
    assert summed.values == 10
    np.testing.assert_allclose(summed.probabilities, normalised(total), rtol=1e-12)
    mixed = parse_population("binomial:5:0.6|binomial:5:0.4")
    expected = np.mean([normalised(part) for part in parts], axis=0)
    np.testing.assert_allclose(mixed.probabilities, expected, rtol=1e-12)


def test_a_mixture_of_sums_and_of_different_lengths() -> None:
    found = parse_population("uniform:2+uniform:2 | uniform:1")
    # 2, 3, 4 with 1/4, 1/2, 1/4; and 1.
    np.testing.assert_allclose(found.probabilities, [1 / 2, 1 / 8, 1 / 4, 1 / 8])


def test_uniform_and_zipf() -> None:
    np.testing.assert_allclose(parse_population("uniform:4").probabilities, 0.25)
    np.testing.assert_allclose(parse_population("zipf:3:1").probabilities, np.array([6, 3, 2]) / 11)
    np.testing.assert_allclose(parse_population("zipf:3:0").probabilities, 1 / 3)


def test_largest_remainders_by_hand() -> None:
    law = Distribution(text="", probabilities=np.array([0.05, 0.4, 0.55]))
    np.testing.assert_array_equal(law.counts(10), [1, 4, 5])  # 0.5, 4, 5.5: of equal remainders the smaller value
    np.testing.assert_array_equal(parse_population("zipf:4:1").counts(100, 6), [48, 24, 16, 12, 0, 0])


@given(st.integers(1, 10**9), st.sampled_from(["binomial:100:0.5", "uniform:7", "zipf:50:1.1", "uniform:3+uniform:3"]))
def test_counts_are_the_nearest_whole_numbers(nodes: int, text: str) -> None:
    law = parse_population(text)
    counts = law.counts(nodes, 120)
    assert counts.sum() == nodes
    assert counts.dtype == np.int64
    wanted = nodes * np.pad(law.probabilities, (0, 120 - law.values))
    assert (np.abs(counts - wanted) < 1 + 1e-6).all()


def test_rounding_errors_do_not_decide_between_equal_remainders() -> None:
    law = Distribution(text="", probabilities=np.array([0.3, 0.1 + 0.2, 0.4]))
    np.testing.assert_array_equal(law.counts(5), [2, 1, 2])
    counts = parse_population("binomial:100:0.5").counts(50_000)
    # Values k and 100 - k are equally likely; where only one of them can have a node more, it is the smaller.
    difference = counts[:49] - counts[50:99][::-1]
    assert set(difference.tolist()) <= {0, 1}
    assert np.count_nonzero(difference) <= 1


def test_a_domain_that_is_too_small_says_so() -> None:
    with pytest.raises(InvalidInputError, match=r"--domain: a domain of 99 values does not cover binomial:100:0\.5"):
        parse_population("binomial:100:0.5").counts(10, 99)


@pytest.mark.parametrize("nodes", [0, -1, 10**9 + 1])
def test_impossible_numbers_of_nodes(nodes: int) -> None:
    with pytest.raises(InvalidInputError, match="nodes"):
        parse_population("uniform:2").counts(nodes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("normal:0:1", "is not a distribution"),
        ("binomial:100", "is not a distribution"),
        ("uniform:3|", "is not a distribution"),
        ("uniform:x", "something else than numbers"),
        ("uniform:" + "9" * 5000, "something else than numbers"),
        ("uniform:0", "1 to 65536 values"),
        ("zipf:65537:1", "1 to 65536 values"),
        ("uniform:65536+uniform:1", "beyond 65536"),
        ("binomial:3:1.5", "between 0 and 1"),
        ("binomial:3:0", "only the value 0"),
        ("zipf:3:-1", "between 0 and 100"),
    ],
)
def test_other_distributions_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refusal:
        parse_population(text, where="line 3")
    assert refusal.value.where == "line 3"


def test_rates_are_exact() -> None:
    assert parse_rate(" 0.1 ") == Fraction(1, 10)
    assert parse_rate("1") == 1
    assert parse_rate("1e-3") == Fraction(1, 1000)


@pytest.mark.parametrize("text", ["", "0", "-0.1", "1.1", "nan", "inf", "a", "1e-10", "1e-999999999", "0." + "3" * 70])
def test_other_rates_are_refused(text: str) -> None:
    with refuses(InvalidInputError, where="--rate"):
        parse_rate(text)


FILE = "stratum,population,rate,distribution\nyoung,300,0.05,uniform:3\n\nold, 200 ,0.5,\n"


def test_a_file_of_strata() -> None:
    young, old = parse_strata(FILE)
    assert (young.name, young.population, young.rate) == ("young", 300, Fraction(1, 20))
    assert young.distribution is not None
    assert young.distribution.values == 3
    assert (old.name, old.population, old.rate, old.distribution) == ("old", 200, Fraction(1, 2), None)


def test_columns_in_any_order_and_as_spreadsheets_write_them() -> None:
    (only,) = parse_strata('\ufeffrate,stratum,population\r\n0.5,"north, east",7\r\n')
    assert (only.name, only.population, only.rate) == ("north, east", 7, Fraction(1, 2))


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", "f.csv line 1, column stratum", "missing"),
        ("stratum,population\na,1\n", "f.csv line 1, column rate", "missing"),
        ("stratum,population,rate,colour\na,1,1,red\n", "f.csv line 1, column colour", "not known"),
        ("stratum,population,rate,rate\na,1,1,1\n", "f.csv line 1, column rate", "twice"),
        ("stratum,population,rate\n", "f.csv", "no stratum"),
        ("stratum,population,rate\na,1\n", "f.csv line 2", "2 cells stand under 3 columns"),
        ("stratum,population,rate\n,1,1\n", "f.csv line 2, column stratum", "has no name"),
        ("stratum,population,rate\na,1,1\na,1,1\n", "f.csv line 3, column stratum", "earlier line has this stratum"),
        ("stratum,population,rate\na,0,1\n", "f.csv line 2, column population", "whole number"),
        ("stratum,population,rate\na,99999999999999999999,1\n", "f.csv line 2, column population", "whole number"),
        ("stratum,population,rate\na,1,\n", "f.csv line 2, column rate", "no probability"),
        ("stratum,population,rate\na,1,0\n", "f.csv line 2, column rate", "above 0"),
        ("stratum,population,rate,distribution\na,1,1,x\n", "f.csv line 2, column distribution", "not a distribution"),
        ("stratum,population,rate\na,1,1\n" + "b" * 200_000, "f.csv line 3", "not CSV"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(text: str, where: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refusal:
        parse_strata(text, where="f.csv")
    assert refusal.value.where == where
