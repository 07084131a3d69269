"""Exact draws: events of a probability in units of 2^-64, and distinct values in random order.

Every event takes a whole 64-bit word. Looking at a word's first byte alone mostly decides too, and is faster; but then
the time would tell which events were close, and of one report that says something of the value.
"""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from common.domain import Symbols, symbol_dtype
from common.errors import InvalidInputError
from common.randomness import ByteSource
from common.symbols import CHUNK, fill_uniform


def draw_events(count: int, units: int, source: ByteSource, *, label: int, chunk: int) -> NDArray[np.bool_]:
    """Draw independent events of probability units/2^64: a 64-bit word is below `units`.

    Args:
        count: number of events, at most CHUNK.
        units: 0..2^64-1.
        source: where the words come from.
        label: purpose.
        chunk: which report or block of reports; (label, chunk) of a cipher stream serves one call, ever.

    Returns:
        (count,) whether each happened.
    """
    words = np.empty(count, "<u8")
    source.fill(words.view(np.uint8), label=label, chunk=chunk)
    return np.less(words, np.uint64(units))


def draw_symbol(size: int, source: ByteSource, *, label: int, chunk: int) -> int:
    """Draw one exactly uniform symbol 0..size-1."""
    symbol: Symbols = np.empty(1, symbol_dtype(size))
    fill_uniform(symbol, size, source, label=label, chunk=chunk)
    return int(symbol[0])


def draw_distinct(size: int, count: int, source: ByteSource, *, label: int, chunk: int) -> NDArray[np.int64]:
    """Draw `count` distinct values of 0..size-1, exactly uniform among all sequences of distinct values.

    Uniform values are drawn and repeats passed over. How many repeats there are does not depend on which values come,
    so the time tells nothing of them.

    Args:
        size: values to draw from, 1..65536.
        count: values to draw, 0..size.
        source: where randomness comes from.
        label: purpose; the t-th batch takes label + t.
        chunk: which report; (label.., chunk) of a cipher stream serves one call, ever.

    Returns:
        (count,) values in the order in which they came.

    Raises:
        InvalidInputError: there are not that many values.
    """
    if not 0 <= count <= size:
        raise InvalidInputError(f"cannot draw {count} distinct values of {size}")
    batch: Symbols = np.empty(min(CHUNK, _likely_enough(size, count)), symbol_dtype(size))
    drawn = np.empty(0, np.int64)
    for turn in range(2**16):
        fill_uniform(batch, size, source, label=label + turn, chunk=chunk)
        drawn = _first_comes(np.append(drawn, batch), size)
        if drawn.size >= count:
            break
    return drawn[:count]


def _first_comes(drawn: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Keep the first of each value, in order."""
    places = np.arange(drawn.size)
    first = np.full(size, drawn.size)
    np.minimum.at(first, drawn, places)
    kept: NDArray[np.int64] = drawn[first[drawn] == places]
    return kept


def _likely_enough(size: int, count: int) -> int:
    """Return how many draws mostly hold `count` distinct values: their mean and some standard deviations."""
    return int(size * log(size / (size - count + 0.5)) + 4 * sqrt(count)) + 8 if count else 0
