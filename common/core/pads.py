"""Pads over a whole column: encryption and decryption. The server never imports this module."""

from collections.abc import Iterator

import numpy as np

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import CHUNK, add, check_symbols, fill_uniform, row_slices, subtract
from veiltab.common.errors import InvalidInputError

PAD = 0
"""Label of the pad under an attribute's key."""


def encrypt(column: Symbols, size: int, source: ByteSource, out: Symbols, *, first_chunk: int = 0) -> None:
    """Write ciphertext = (symbol + pad) mod size; chunk c of the column takes its pads from (PAD, c).

    Args:
        column: symbols 0..size-1, of symbol_dtype(size); may be memory-mapped.
        size: number of categories K_a.
        source: pads; a key encrypts one column, once. Under uniform pads the ciphertext is independent of the column.
        out: of the same type and length; may be `column` itself.
        first_chunk: position of the first chunk, where only a part of a column is encrypted.

    Raises:
        InvalidInputError: `out` has another type or length.
        IntegrityError: a symbol lies outside the alphabet.

    Source: Lin, Wang, Rane, Section 3.1.
    """
    for here, there, pad in _padded(column, size, source, out, first_chunk):
        add(here, pad, size, there)


def decrypt(column: Symbols, size: int, source: ByteSource, out: Symbols) -> None:
    """Write symbol = (ciphertext - pad) mod size; arguments as for encrypt.

    Source: Lin, Wang, Rane, Section 3.1, whose text adds where it must subtract.
    """
    for here, there, pad in _padded(column, size, source, out, 0):
        subtract(here, pad, size, there)


def _padded(
    column: Symbols, size: int, source: ByteSource, out: Symbols, first_chunk: int
) -> Iterator[tuple[Symbols, Symbols, Symbols]]:
    """Yield each chunk of a checked column, the same rows of `out`, and their pad, in a reused buffer."""
    if len(out) != len(column) or out.dtype != column.dtype:
        raise InvalidInputError(f"{len(column)} symbols of type {column.dtype} do not fit the column to write")
    buffer: Symbols = np.empty(min(len(column), CHUNK), symbol_dtype(size))
    for chunk, rows in enumerate(row_slices(len(column)), first_chunk):
        here, pad = column[rows], buffer[: rows.stop - rows.start]
        check_symbols(here, size)
        fill_uniform(pad, size, source, label=PAD, chunk=chunk)
        yield here, out[rows], pad
