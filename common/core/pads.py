"""Pads over a whole column: encryption and decryption. The server never imports this module."""

from collections.abc import Iterator

import numpy as np

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource, CipherStream
from veiltab.common.core.symbols import CHUNK, add, check_symbols, fill_uniform, row_slices, subtract
from veiltab.common.dataclass import dataclass, field
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


def decrypt(column: Symbols, size: int, source: ByteSource, out: Symbols, *, first_chunk: int = 0) -> None:
    """Write symbol = (ciphertext - pad) mod size; arguments as for encrypt.

    Source: Lin, Wang, Rane, Section 3.1, whose text adds where it must subtract.
    """
    for here, there, pad in _padded(column, size, source, out, first_chunk):
        subtract(here, pad, size, there)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShare:
    """One holder's share of 0 in each row of a column of several holders.

    Each two of them have a key. The earlier one adds its stream and the later one takes it off, so the shares of all
    add up to 0, and a part whose pad is known is uniform to all who lack a key of its holder's.

    Args:
        plus: keys shared with later holders, 32 bytes each, for this column alone.
        minus: keys shared with earlier ones.
    """

    plus: tuple[bytes, ...] = field(default=(), repr=False)
    minus: tuple[bytes, ...] = field(default=(), repr=False)

    def add_to(self, column: Symbols, size: int, *, first_chunk: int = 0) -> None:
        """Add the share to a part of a column; arguments as for encrypt."""
        for key in self.plus:
            encrypt(column, size, CipherStream(key), column, first_chunk=first_chunk)
        for key in self.minus:
            decrypt(column, size, CipherStream(key), column, first_chunk=first_chunk)


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
