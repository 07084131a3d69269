"""The code of a join: 72 bits become 512, and two words differ in 172 bits at least.

BCH(511, 76) in the narrow sense, over GF(2^9) by x^9 + x^4 + 1, without its last four rows, and a parity: row i is
x^i g(x), i = 0..71, and bit 511 makes the number of ones even. Bits are numbered from the least of each byte.
"""

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


def _tables() -> NDArray[np.uint64]:
    """Return the code words of each byte in each of the nine places, shape (9, 256, 8)."""
    rows = [GENERATOR << i | (GENERATOR.bit_count() & 1) << (COLUMNS - 1) for i in range(8 * WORD_BYTES)]
    words = np.frombuffer(b"".join(row.to_bytes(ROW_BYTES, "little") for row in rows), "<u8").reshape(WORD_BYTES, 8, -1)
    tables = np.zeros((WORD_BYTES, 256, ROW_BYTES // 8), "<u8")
    for bit in range(8):
        tables[:, 1 << bit : 2 << bit] = tables[:, : 1 << bit] ^ words[:, bit, None]
    return tables


_TABLES = _tables()


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
