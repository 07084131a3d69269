"""Bin edges that are round numbers: they tell a column's order of magnitude, and nothing of single values.

Edges at quantiles would be numbers of the data, and public; `quantile_edges` is for those who may publish them.
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 8

_EQUAL_BINS = 6
_CROWDED = 0.8
"""Part of the numbers that one bin may hold before edges farther apart at the top are tried."""

_QUANTILES = (0.25, 0.5, 0.75)
_YEARS_APART = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def round_edges(
    low: Decimal, high: Decimal, sample: NDArray[np.float64], *, are_whole: bool = False
) -> tuple[Decimal, ...]:
    """Return round edges around some numbers: equally far apart, or growing in steps 1, 2, 5, 10 where most are small.

    Args:
        low: the smallest number.
        high: the largest one, above `low`.
        sample: numbers between them, which decide only between equal and growing steps.
        are_whole: whether all numbers are whole; all edges are then whole too, so that each bin can hold a number.

    Returns:
        At most MOST_BINS + 1 increasing edges; all numbers lie between the first and the last.
    """
    choices = [_equal_edges(low, high, are_whole=are_whole)]
    if low >= 0:
        choices += [_growing_edges(low, high, digits, are_whole=are_whole) for digits in ("125", "1")]
    shares = [_fullest(edges, sample) for edges in choices]
    first = next((place for place, share in enumerate(shares) if share <= _CROWDED), shares.index(min(shares)))
    return choices[first]


def quantile_edges(
    low: Decimal, high: Decimal, sample: NDArray[np.float64], *, are_whole: bool = False
) -> tuple[Decimal, ...]:
    """Return edges at the quartiles, rounded to two digits, or to whole numbers, between outer ones that are round.

    Where no quartile lies between these, the edges are those of `round_edges`.
    """
    outer = _equal_edges(low, high, are_whole=are_whole)
    rounded = [Decimal(f"{quantile:.1e}") for quantile in np.quantile(sample, _QUANTILES)]
    inner = sorted({_plain(edge.to_integral_value() if are_whole else edge) for edge in rounded})
    between = [edge for edge in inner if outer[0] < edge < outer[-1]]
    return (outer[0], *between, outer[-1]) if between else round_edges(low, high, sample, are_whole=are_whole)


def year_edges(low: int, high: int) -> tuple[str, ...]:
    """Return edges that are years, a round number of them apart: from none above `low` to one above `high`."""
    bins = ((step, low // step * step, (high // step + 1) * step) for step in _YEARS_APART)
    step, first, last = next(one for one in bins if (one[2] - one[1]) // one[0] <= MOST_BINS)
    return tuple(f"{max(year, 1):04}" for year in range(first, last + 1, step))


def _equal_edges(low: Decimal, high: Decimal, *, are_whole: bool) -> tuple[Decimal, ...]:
    """Return multiples of the smallest step among 1, 2, 5, 10, ... that makes few enough bins."""
    if are_whole and high - low == 1:
        # With both its edges, a last bin up to the higher number would hold the lower one too.
        high += 1
    exponent = (high - low).adjusted() - 2
    steps = _ladder("125", max(0, exponent) if are_whole else exponent)
    places = (_places(low, high, step) for step in steps)
    return next(edges for edges in places if len(edges) <= _EQUAL_BINS + 1)


def _places(low: Decimal, high: Decimal, step: Decimal) -> tuple[Decimal, ...]:
    """Return the multiples of a step from the last one not above `low` to the first one not below `high`."""
    first = int((low / step).to_integral_value(ROUND_FLOOR))
    last = int((high / step).to_integral_value(ROUND_CEILING))
    return tuple(_plain(step * place) for place in range(first, last + 1))


def _growing_edges(low: Decimal, high: Decimal, digits: str, *, are_whole: bool) -> tuple[Decimal, ...]:
    """Return the last ones of 0 and the numbers of a ladder, from one not above `low` to the first not below `high`."""
    least = high.adjusted() - MOST_BINS
    below = list(takewhile(lambda edge: edge < high, _ladder(digits, max(0, least) if are_whole else least)))
    last = next(edge for edge in _ladder(digits, high.adjusted() - 1) if edge >= high)
    edges = (Decimal(0), *(_plain(edge) for edge in (*below, last)[-MOST_BINS:]))
    return edges[sum(edge <= low for edge in edges) - 1 :]


def _ladder(digits: str, exponent: int) -> Iterator[Decimal]:
    """Yield 1, 2, 5, 10, 20, ..., or 1, 10, ..., from a power of ten on."""
    while True:
        yield from (Decimal(digit).scaleb(exponent) for digit in digits)
        exponent += 1


def _fullest(edges: tuple[Decimal, ...], sample: NDArray[np.float64]) -> float:
    """Return the part of the numbers in the fullest bin."""
    counts, _ = np.histogram(sample, np.array([float(edge) for edge in edges]))
    return float(counts.max() / max(1, len(sample)))


def _plain(number: Decimal) -> Decimal:
    """Return a number that is written without an exponent and without trailing zeros."""
    return Decimal(format(number.normalize(), "f"))
