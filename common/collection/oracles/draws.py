"""Exact draws: events of a probability in units of 2^-64, and distinct values in random order.

Every event takes a whole 64-bit word. A word's first byte usually decides, and reading it alone is faster; but then the
time would show which events were close, which reveals something about the value of a single report.
"""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import MAX_LABEL, fill_uniform, word_type
from veiltab.common.errors import IntegrityError, InvalidInputError


def draw_events(count: int, units: int, source: ByteSource, *, label: int) -> NDArray[np.bool_]:
    """Draw independent events of probability units/2^64: a 64-bit word is below `units`.

    Args:
        count: number of events, at most CHUNK.
        units: 0..2^64-1.
        label: a label of a cipher stream may be used in one call only.

    Returns:
        (count,) whether each happened.
    """
    words = np.empty(count, "<u8")
    source.fill(words.view(np.uint8).data, label=label, chunk=0)
    return np.less(words, np.uint64(units))


def draw_symbol(size: int, source: ByteSource, *, label: int) -> int:
    """Draw one exactly uniform symbol 0..size-1: the one that fill_uniform writes to an array of one."""
    dtype, span = word_type(size)
    for turn in range(256):
        symbol = draw_word(dtype.itemsize, source, label=label + turn * MAX_LABEL) // (span // size)
        if symbol < size:
            return symbol
    raise IntegrityError("the source of randomness gave rejected words only", remedy="Do not use this machine's output")


def draw_word(size: int, source: ByteSource, *, label: int) -> int:
    """Draw one uniform word of `size` bytes."""
    word = bytearray(size)
    source.fill(memoryview(word), label=label, chunk=0)
    return int.from_bytes(word, "little")


def draw_distinct(size: int, count: int, source: ByteSource, *, label: int) -> NDArray[np.int64]:
    """Draw distinct values of 0..size-1, exactly uniform among all sequences of that many distinct ones.

    Uniform values are drawn in a batch and repeats passed over; a batch that holds too few is drawn anew. How many
    repeats there are does not depend on which values come: they stay uniform, and the time tells nothing of them.

    Args:
        size: values to draw from, 1..65536.
        count: at least 1 and at most half of the values, rounded up.
        label: purpose; drawing anew for the t-th time takes label + t.

    Returns:
        The values in the order in which they came.

    Raises:
        InvalidInputError: there are not that many values.
        IntegrityError: the source is stuck on repeats.
    """
    if not 1 <= count <= (size + 1) // 2:
        raise InvalidInputError(f"cannot draw {count} distinct values of {size}")
    for turn in range(256):
        batch: Symbols = np.empty(_likely_enough(size, count), symbol_dtype(size))
        fill_uniform(batch, size, source, label=label + turn, chunk=0)
        ranks = _ranks(batch, size)
        if ranks.max() >= count:
            return batch[(ranks > 0) & (ranks <= count)].astype(np.int64)
    raise IntegrityError("the source of randomness gave repeats only", remedy="Do not use this machine's output")


def _ranks(batch: Symbols, size: int) -> NDArray[np.int64]:
    """Number the values as they first come, from 1 on; a repeat has 0."""
    places = np.arange(batch.size)
    first = np.full(size, batch.size)
    np.minimum.at(first, batch, places)
    comes = first[batch] == places
    ranks: NDArray[np.int64] = np.cumsum(comes) * comes
    return ranks


def _likely_enough(size: int, count: int) -> int:
    """Return how many draws mostly hold `count` distinct values: at least their mean and 4 standard deviations.

    With c = count/size, at most 1/2 but for rounding, the mean is -size ln(1 - c), at most size (c + c^2), and the
    standard deviation is below sqrt(count). Whole numbers alone, so that every client draws as many:
    docs/report-protocol.md.
    """
    return count + count * count // size + 4 * isqrt(count) + 8
