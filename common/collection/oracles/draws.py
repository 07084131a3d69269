"""Exact draws: events of a probability in units of 2^-64, and distinct values in random order.

Every event takes a whole 64-bit word. A word's first byte usually decides, and reading it alone is faster; but then the
time would show which events were close, which reveals something about the value of a single report.
"""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import CHUNK, MAX_LABEL, fill_uniform, word_type
from veiltab.common.errors import IntegrityError, InvalidInputError


def draw_events(count: int, units: int, source: ByteSource, *, label: int, chunk: int) -> NDArray[np.bool_]:
    """Draw independent events of probability units/2^64: a 64-bit word is below `units`.

    Args:
        count: number of events, at most CHUNK.
        units: 0..2^64-1.
        chunk: which report or block of reports; a pair (label, chunk) of a cipher stream may be used in one call only.

    Returns:
        (count,) whether each happened.
    """
    words = np.empty(count, "<u8")
    source.fill(words.view(np.uint8), label=label, chunk=chunk)
    return np.less(words, np.uint64(units))


def draw_symbol(size: int, source: ByteSource, *, label: int, chunk: int) -> int:
    """Draw one exactly uniform symbol 0..size-1: the one that fill_uniform writes to an array of one."""
    dtype, span = word_type(size)
    for turn in range(256):
        symbol = draw_word(dtype.itemsize, source, label=label + turn * MAX_LABEL, chunk=chunk) // (span // size)
        if symbol < size:
            return symbol
    raise IntegrityError("the source of randomness gave rejected words only", remedy="Do not use this machine's output")


def draw_word(size: int, source: ByteSource, *, label: int, chunk: int) -> int:
    """Draw one uniform word of `size` bytes."""
    word = np.empty(size, np.uint8)
    source.fill(word, label=label, chunk=chunk)
    return int.from_bytes(word.tobytes(), "little")


def draw_distinct(  # noqa: PLR0913 - what is drawn, and from where
    size: int, count: int, rows: int, source: ByteSource, *, label: int, chunk: int
) -> NDArray[np.int64]:
    """Draw rows of distinct values of 0..size-1, each exactly uniform among all sequences of that many distinct ones.

    Uniform values are drawn in batches and repeats passed over; a row whose batch holds too few is drawn anew. How many
    repeats there are does not depend on which values come: the rows stay uniform, and the time tells nothing of them.

    Args:
        size: values to draw from, 1..65536.
        count: values a row, at least 1 and at most half of them, rounded up.
        rows: number of rows, at most distinct_rows(size, count).
        label: purpose; drawing anew for the t-th time takes label + t.
        chunk: which report or block of reports; (label.., chunk) of a cipher stream serves one call, ever.

    Returns:
        (rows, count) values in the order in which they came.

    Raises:
        InvalidInputError: there are not that many values.
        IntegrityError: the source is stuck on repeats.
    """
    if not 1 <= count <= (size + 1) // 2:
        raise InvalidInputError(f"cannot draw {count} distinct values of {size}")
    rest, distinct = np.arange(rows), np.empty((rows, count), np.int64)
    for turn in range(256):
        drawn: Symbols = np.empty(rest.size * _likely_enough(size, count), symbol_dtype(size))
        fill_uniform(drawn, size, source, label=label + turn, chunk=chunk)
        batches = drawn.reshape(rest.size, -1)
        ranks = _ranks(batches, size)
        enough = ranks.max(axis=1) >= count
        distinct[rest[enough]] = batches[(ranks > 0) & (ranks <= count) & enough[:, None]].reshape(-1, count)
        rest = rest[~enough]
        if not rest.size:
            return distinct
    raise IntegrityError("the source of randomness gave repeats only", remedy="Do not use this machine's output")


def distinct_rows(size: int, count: int) -> int:
    """Return how many rows draw_distinct takes at once: as many as keep its tables within a chunk, at least 1."""
    return max(1, CHUNK // max(size, _likely_enough(size, count)))


def _ranks(batches: Symbols, size: int) -> NDArray[np.int64]:
    """Number the values of each row as they first come, from 1 on; a repeat has 0."""
    rows, length = batches.shape
    keys = (batches + size * np.arange(rows)[:, None]).ravel()
    places = np.arange(keys.size)
    first = np.full(rows * size, keys.size)
    np.minimum.at(first, keys, places)
    comes = (first[keys] == places).reshape(rows, length)
    ranks: NDArray[np.int64] = np.cumsum(comes, axis=1) * comes
    return ranks


def _likely_enough(size: int, count: int) -> int:
    """Return how many draws mostly hold `count` distinct values: at least their mean and 4 standard deviations.

    With c = count/size, at most 1/2 but for rounding, the mean is -size ln(1 - c), at most size (c + c^2), and the
    standard deviation is below sqrt(count). Whole numbers alone, so that every client draws as many:
    docs/report-protocol.md.
    """
    return count + count * count // size + 4 * isqrt(count) + 8
