"""The code of a join: 72 bits become 512, and two words differ in 172 bits at least.

BCH(511, 76) in the narrow sense, over GF(2^9) by x^9 + x^4 + 1, without its last four rows, and a parity: row i is
x^i g(x), i = 0..71, and bit 511 makes the number of ones even. Bits are numbered from the least of each byte.
"""

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
"""A matrix of bits, eight a byte: rows of bytes."""

WORD_BYTES = 9
"""Length of what is encoded."""

COLUMNS = 512
"""Bits of a code word, which are the columns of a matrix of them."""

ROW_BYTES = COLUMNS // 8
"""Length of a code word."""

GENERATOR = (
    0xAD98BF9547F24B8A971BBA5F0C3B524C0F6F91DBE79D89B207848FFAD3B37791732AC9184A83A6E7CF2E2C8AAAAE28D8C59A7E1153E45
)
"""g(x), of degree 435: the least common multiple of the minimal polynomials of a, a^2, .., a^170; bit k is x^k."""


_PIECE = 512  # bytes of columns that are encoded at once, whose sums the cache holds


def _sums(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of each set of eight rows, shape (256, ..): bit k of its number says whether row k is in it."""
    sums = np.zeros((256, *rows.shape[1:]), rows.dtype)
    for k, row in enumerate(rows):
        np.bitwise_xor(sums[: 1 << k], row, out=sums[1 << k : 2 << k])
    return sums


_WORDS = [GENERATOR << i | (GENERATOR.bit_count() & 1) << (COLUMNS - 1) for i in range(8 * WORD_BYTES)]
_ROWS = np.frombuffer(b"".join(row.to_bytes(ROW_BYTES, "little") for row in _WORDS), "<u8").reshape(WORD_BYTES, 8, -1)
"""The code word of each bit of each byte of a word."""

_TABLES = [_sums(rows) for rows in _ROWS]
"""The code words of each byte in each of the nine places, nine times shape (256, 8)."""

_SETS = np.packbits(np.unpackbits(_ROWS.view(np.uint8), axis=2, bitorder="little"), axis=1, bitorder="little")[:, 0]
"""Of each column of a code word which bits of each byte add up to it, shape (9, 512)."""


def encode(words: Bits) -> Bits:
    """Return the code words C(w).

    Args:
        words: shape (n, 9).

    Returns:
        Shape (n, 64).
    """
    encoded: NDArray[np.uint64] = _TABLES[0].take(words[:, 0], axis=0)
    for table, place in zip(_TABLES[1:], words.T[1:], strict=True):
        encoded ^= table.take(place, axis=0)
    return encoded.view(np.uint8)


def encoded_columns(columns: Bits) -> Bits:
    """Return the columns of C(W).

    Args:
        columns: of W, shape (72, b).

    Returns:
        Shape (512, b).
    """
    encoded = np.empty((COLUMNS, columns.shape[1]), np.uint8)
    for start in range(0, columns.shape[1], _PIECE):
        piece = np.s_[:, start : start + _PIECE]
        parts = zip(columns[piece].reshape(WORD_BYTES, 8, -1), _SETS, strict=True)
        encoded[piece] = reduce(np.bitwise_xor, (_sums(rows).take(sets, axis=0) for rows, sets in parts))
    return encoded
