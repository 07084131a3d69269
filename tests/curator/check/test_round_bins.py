from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veiltab.curator.check.round_bins import MOST_BINS, quantile_edges, round_edges, year_edges

NUMBERS = st.decimals(-(10**15), 10**15, allow_nan=False, places=4)
EDGES = st.sampled_from([round_edges, quantile_edges])


@given(st.lists(NUMBERS, min_size=2, max_size=30, unique=True))
@example([Decimal("0.0001"), Decimal(10**15)])
@example([Decimal(-1), Decimal(0)])
def test_edges_are_round_and_hold_every_number(numbers: list[Decimal]) -> None:
    low, high = min(numbers), max(numbers)
    edges = round_edges(low, high, np.array([float(number) for number in numbers]))
    assert edges[0] <= low < high <= edges[-1]
    assert 2 <= len(edges) <= MOST_BINS + 1
    assert all(one < other for one, other in pairwise(edges))
    assert not any("E" in str(edge) for edge in edges)
    assert low < edges[1]
    steps = {other - one for one, other in pairwise(edges)}
    if len(steps) == 1:
        assert steps.pop().normalize().as_tuple().digits in {(1,), (2,), (5,)}
    else:
        assert {edge.normalize().as_tuple().digits for edge in edges} <= {(0,), (1,), (2,), (5,)}


@pytest.mark.parametrize(
    ("numbers", "edges"),
    [
        (range(17, 91), "0 20 40 60 80 100"),
        (range(1972, 2011), "1970 1980 1990 2000 2010"),
        ([-0.03, 96], "-20 0 20 40 60 80 100"),
        ([0, 0.004], "0 0.001 0.002 0.003 0.004"),
        ([*[0] * 5, *range(100), 10_000], "0 50 100 200 500 1000 2000 5000 10000"),
        ([*range(1, 10), 50], "1 2 5 10 20 50"),
        ([*range(10), *[5] * 90, 10_000_000], "0 1 10 100 1000 10000 100000 1000000 10000000"),
    ],
)
def test_edges_of_some_numbers(numbers: list[float], edges: str) -> None:
    found = round_edges(Decimal(str(min(numbers))), Decimal(str(max(numbers))), np.array(numbers, float))
    assert " ".join(map(str, found)) == edges


@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=30, unique=True), EDGES)
@example([0, 1], round_edges)
@example([0, 1], quantile_edges)
@example([0, 1, 2, 3, 50], round_edges)
@example([0, 1, 2, 3, 13], quantile_edges)
def test_edges_of_whole_numbers_are_whole(numbers: list[int], edges_of: Callable[..., tuple[Decimal, ...]]) -> None:
    low, high, sample = Decimal(min(numbers)), Decimal(max(numbers)), np.array(numbers, float)
    edges = edges_of(low, high, sample, are_whole=True)
    assert all(edge == edge.to_integral_value() for edge in edges)
    assert all(one < other for one, other in pairwise(edges))
    assert edges[0] <= low < high <= edges[-1]
    assert 3 <= len(edges) <= MOST_BINS + 1


def test_small_whole_numbers_that_crowd_get_no_edge_between_two_of_them() -> None:
    numbers = np.array([*[0, 1, 2, 3] * 30, 50.0])
    found = round_edges(Decimal(0), Decimal(50), numbers, are_whole=True)
    assert " ".join(map(str, found)) == "0 1 2 5 10 20 50"


def test_quantiles_have_two_digits_and_lie_within_round_edges() -> None:
    sample = np.linspace(0, 1, 1001) ** 2 * 98_765
    found = quantile_edges(Decimal(0), Decimal(98_765), sample)
    assert [str(edge) for edge in found] == ["0", "6200", "25000", "56000", "100000"]


def test_quantiles_that_all_are_the_smallest_number_make_no_edges() -> None:
    sample = np.array([0.0] * 90 + [50.0, 100.0])
    low, high = Decimal(0), Decimal(100)
    assert quantile_edges(low, high, sample) == round_edges(low, high, sample)


@given(st.integers(1, 5000), st.integers(0, 2990))
def test_years_lie_between_the_edges_and_these_are_few(low: int, span: int) -> None:
    high = low + span
    edges = [int(edge) for edge in year_edges(low, high)]
    assert edges[0] <= low
    assert high < edges[-1]
    assert len(edges) <= 9
