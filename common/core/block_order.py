"""Rows in ascending order of 16-byte blocks (tokens, priorities), sorted in one word a row.

A word is 32 bits of a row's block, then the row's number: it takes half the memory of a block, and the few rows whose
words begin alike are then ordered by their blocks. The 32 bits are the leading ones, or those after some leading bits
that the blocks of all rows share. Of n rows, some n/2^32 begin like another one: a quarter of 10^9. So more rows than
fit the cache are grouped by leading bits first, and words are made of the bits that follow.
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

Leads = NDArray[np.uint64]
"""(n,) the leading 64 bits of blocks."""

_ROW = np.uint64(2**32 - 1)


def leading(blocks: Blocks, out: Leads | None = None) -> Leads:
    """Return the leading 64 bits of each block, shape (n,), perhaps in an array that is there."""
    words = np.empty(len(blocks), np.uint64) if out is None else out
    words[:] = np.ascontiguousarray(blocks).view(">u8")[:, 0]
    return words


def shared_bits(leads: Leads) -> int:
    """Return how many leading bits all blocks share, of at most 32."""
    return min(64 - int(leads.min() ^ leads.max()).bit_length(), 32) if len(leads) else 0


def write_words(leads: Leads, rows: NDArray[np.int64], out: NDArray[np.uint64], *, shared: int = 0) -> None:
    """Write the words of some rows, whose blocks all begin with the same `shared` bits, 0 to 32."""
    np.left_shift(leads, np.uint64(shared), out=out)
    out &= ~_ROW
    out |= rows.view(np.uint64)


def renumber(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Give words the numbers 0, 1, 2 and so on in the place of their rows, which are returned."""
    rows = (words & _ROW).view(np.int64)
    words &= ~_ROW
    words |= np.arange(len(words), dtype=np.uint64)
    return rows


def ordered_rows(words: NDArray[np.uint64], blocks_of: Callable[[NDArray[np.int64]], Blocks]) -> NDArray[np.int64]:
    """Return the rows of some words in ascending order of their blocks.

    Args:
        words: words of different rows, by row, that share the same bits; overwritten.
        blocks_of: returns the blocks of some rows; called for the rows whose words begin alike.

    Returns:
        Row numbers, shape (n,); rows of equal blocks stay in order.
    """
    words.sort()
    leads = words.view("<u4")[1::2]
    same = leads[1:] == leads[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    words &= _ROW
    rows = words.view(np.int64)
    rows[tied] = _ordered_wholly(rows[tied], blocks_of)
    return rows


def _ordered_wholly(rows: NDArray[np.int64], blocks_of: Callable[[NDArray[np.int64]], Blocks]) -> NDArray[np.int64]:
    """Sort rows by all 128 bits of their blocks."""
    blocks = np.ascontiguousarray(blocks_of(rows)).view(">u8").astype(np.uint64)
    return rows[np.lexsort((blocks[:, 1], blocks[:, 0]))]
