"""Rows in ascending order of 16-byte blocks (tokens, priorities), sorted in one word a row.

A word is the leading 32 bits of a row's block, then the row's number: it takes half the memory of a block, and the few
rows whose leading bits are equal are then ordered by their blocks.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 16
"""Length of a block."""

MAX_ROWS = 2**32
"""Largest number of rows: a row number is half a word."""

Blocks = NDArray[np.uint8]
"""(n, 16) bytes, one block a row, compared as big-endian numbers."""

# Most rows for a radix sort: what fits the cache.
_RADIX = 2**20


def leading(blocks: Blocks) -> NDArray[np.uint32]:
    """Return the leading 32 bits of each block, shape (n,)."""
    return np.ascontiguousarray(blocks).view(">u4")[:, 0].astype(np.uint32)


def write_words(leads: NDArray[np.uint32], rows: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """Write the words of some rows: leading bits | row number."""
    np.left_shift(leads, np.uint64(32), out=out, dtype=np.uint64)
    out |= rows.view(np.uint64)


def ordered_rows(words: NDArray[np.uint64], blocks_of: Callable[[NDArray[np.int64]], Blocks]) -> NDArray[np.int64]:
    """Return the rows of some words in ascending order of their blocks.

    Args:
        words: words of different rows, by row; overwritten.
        blocks_of: returns the blocks of some rows; called for the rows whose leading bits are equal.

    Returns:
        Row numbers, shape (n,); rows of equal blocks stay in order.
    """
    words = _sorted(words)
    leads = words.view("<u4")[1::2]
    same = leads[1:] == leads[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    words &= np.uint64(2**32 - 1)
    rows = words.view(np.int64)
    rows[tied] = _ordered_wholly(rows[tied], blocks_of)
    return rows


def _ordered_wholly(rows: NDArray[np.int64], blocks_of: Callable[[NDArray[np.int64]], Blocks]) -> NDArray[np.int64]:
    """Sort rows by all 128 bits of their blocks."""
    blocks = np.ascontiguousarray(blocks_of(rows)).view(">u8").astype(np.uint64)
    return rows[np.lexsort((blocks[:, 1], blocks[:, 0]))]


def _sorted(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sort words that come in the order of their lower halves, perhaps in place."""
    # Outside the cache a radix sort is no faster than a comparison sort, which needs no extra memory.
    if words.size > _RADIX:
        words.sort()
        return words
    for half in (2, 3):
        words = words.take(np.argsort(words.view("<u2")[half::4], kind="stable"))
    return words
