"""Decrypts the columns of a release in step, a chunk of rows at a time, and counts the noisy rows.

Perturbation commutes with the pads, so what is counted is the gamma-diagonal mechanism's output on the sampled rows.
The counts say all that the rows say, for the order of the rows is random. So no row outlives its chunk: nothing that is
decrypted is written anywhere, and only the symbols of the canaries, which are nobody's data, are shown to a test.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from hashlib import sha256
from io import BufferedIOBase, BytesIO
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import CanaryPlaces, CanaryRows, Listing, Places, in_memory, is_data
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import PAD
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK, check_symbols, fill_uniform, row_slices, subtract
from veiltab.common.core.tabulation import tabulate
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError
from veiltab.common.release.table_spec import Column
from veiltab.common.storage.files import file_digest
from veiltab.common.storage.mapped import mapped_array

Ciphertext = bytes | Path
"""The perturbed ciphertext of a column: that of a small release, or the file of another's."""

CanaryTest = Callable[[slice, Sequence[Symbols]], None]
"""Takes which of the published canaries come next, and their decrypted symbols, those of each column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedColumn:
    """A published column and what decrypts it.

    Args:
        column: its attribute and alphabet size.
        keys: of all holders, in their order: 32 bytes of a stream cipher, or the file of a one-time pad.
    """

    column: Column
    noisy: Ciphertext = field(repr=False)
    keys: tuple[bytes | Path, ...] = field(repr=False)

    @property
    def key_lengths(self) -> tuple[int, ...]:
        """Lengths of the keys in bytes."""
        return tuple(key.stat().st_size if isinstance(key, Path) else len(key) for key in self.keys)


@dataclass(frozen=True, kw_only=True)
class PublishedRows:
    """Which of the uploaded rows the server published, and which rows are canaries.

    Args:
        uploaded: rows that the curators uploaded, canaries included.
        sampled: (m,) ascending places of the published rows, or None if the server published all.
        many: keeps where the canaries stand, if they are too many for memory.

    Raises:
        IntegrityError: `sampled` are not such places.
    """

    uploaded: int
    canaries: CanaryPlaces
    sampled: Places | None = None
    many: Listing = in_memory

    def __post_init__(self) -> None:
        if self.sampled is None:
            return
        # Overlapping by one: the last of a chunk is below the first of the next.
        chunks = (self.sampled[rows.start : rows.stop + 1] for rows in row_slices(len(self.sampled)))
        rises = all(np.all(chunk[1:] > chunk[:-1]) for chunk in chunks)
        if not (len(self.sampled) and rises and self.sampled[0] >= 0 and self.sampled[-1] < self.uploaded):
            raise IntegrityError("the sampled places are not ascending places of the uploaded rows", where="places")

    @property
    def count(self) -> int:
        """Number of the published rows."""
        return self.uploaded if self.sampled is None else len(self.sampled)

    @cached_property
    def published_canaries(self) -> CanaryRows:
        """Where the canaries stand among the published rows, and which of them were published."""
        return CanaryRows.of(self.canaries, self.sampled, self.many)


def count_rows(
    columns: Sequence[EncryptedColumn],
    rows: PublishedRows,
    test: CanaryTest = lambda _, __: None,
    advance: Callable[[int], None] = lambda _: None,
) -> NDArray[np.int64]:
    """Decrypt the columns of a release and count its rows of data.

    symbol = perturbed ciphertext - pads of all holders mod K_a

    Args:
        columns: those whose keys were given, in order of the histogram.
        rows: which rows they are.
        test: is shown all published canaries, some after the others in order of their places.
        advance: called with the number of uploaded rows among which some more are counted.

    Returns:
        Counts of the noisy rows of data, shape (K,), cells in C order of the columns.

    Raises:
        IntegrityError: a file has another length, or a symbol lies outside its alphabet.
        InvalidInputError: a key has another length.

    Source: Lin, Wang, Rane, Lemma 3.1; their text adds the pad where it must subtract.
    """
    shape = tuple(one.column.size for one in columns)
    histogram = np.zeros(prod(shape), np.int64)
    with ExitStack() as files:
        readers = [_Reader(one, rows, files) for one in columns]
        for part in _parts(rows):
            symbols = [reader.decrypted(part) for reader in readers]
            tabulate([column[part.is_data] for column in symbols], shape, histogram)
            test(part.canaries, [column[~part.is_data] for column in symbols])
            advance(part.length)
    return histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The published rows of one chunk of the uploaded ones.

    Args:
        length: of the chunk, rows.
        published: where the published rows stand in the chunk; None for all of it.
        is_data: (rows,) which of the published rows are not canaries.
        canaries: which of the published canaries the others are.
    """

    number: int
    length: int
    published: NDArray[np.int64] | None
    is_data: NDArray[np.bool_]
    canaries: slice


def _parts(rows: PublishedRows) -> Iterator[_Part]:
    """Yield all published rows, by the chunks that place their pads."""
    canary_rows = rows.published_canaries.rows
    for number, chunk in enumerate(row_slices(rows.uploaded)):
        published, first, last = None, chunk.start, chunk.stop
        if rows.sampled is not None:
            first, last = np.searchsorted(rows.sampled, [chunk.start, chunk.stop]).tolist()
            published = rows.sampled[first:last] - chunk.start
        begin, end = np.searchsorted(canary_rows, [first, last]).tolist()
        yield _Part(
            number=number,
            length=chunk.stop - chunk.start,
            published=published,
            is_data=is_data(canary_rows[begin:end] - first, last - first),
            canaries=slice(begin, end),
        )


class _Reader:
    """Decrypts a column from its beginning to its end, in buffers that every chunk uses again."""

    def __init__(self, encrypted: EncryptedColumn, rows: PublishedRows, files: ExitStack) -> None:
        column = encrypted.column
        self._column = column
        self._noisy = _opened(encrypted.noisy, column, rows.count, files)
        self._symbols: Symbols = np.empty(min(rows.count, CHUNK), symbol_dtype(column.size))
        self._pad: Symbols = np.empty(min(rows.uploaded, CHUNK), symbol_dtype(column.size))
        self._fill_pads = [self._pads(key, rows, files) for key in encrypted.keys]

    def decrypted(self, part: _Part) -> Symbols:
        """Return the symbols of the published rows of the next chunk; they last until the one after it."""
        pad = self._pad[: part.length]
        symbols = self._symbols[: len(part.is_data)]
        _read(self._noisy, symbols, self._column)
        for fill_pad in self._fill_pads:
            fill_pad(pad, part.number)
            subtract(symbols, pad if part.published is None else pad[part.published], self._column.size, symbols)
        return symbols

    def _pads(self, key: bytes | Path, rows: PublishedRows, files: ExitStack) -> Callable[[Symbols, int], None]:
        """Return what writes the pads of a chunk, the chunks one after the other."""
        match key:
            case bytes():
                stream, size = CipherStream(key), self._column.size
                return lambda pad, chunk: fill_uniform(pad, size, stream, label=PAD, chunk=chunk)
            case Path():
                file = _opened(key, self._column, rows.uploaded, files)
                return lambda pad, _: _read(file, pad, self._column)


def digest_of(noisy: Ciphertext, salt: bytes) -> bytes:
    """Return the SHA-256 of a salt and a column."""
    return sha256(salt + noisy).digest() if isinstance(noisy, bytes) else file_digest(noisy, salt)


def symbols_of(noisy: Ciphertext, column: Column) -> Symbols:
    """Return the encrypted symbols of a column; those of a file are mapped from disk."""
    dtype = symbol_dtype(column.size)
    symbols: Symbols = (
        mapped_array(noisy, dtype) if isinstance(noisy, Path) else np.frombuffer(noisy, np.uint8).view(dtype)
    )
    return symbols


def _opened(symbols: Ciphertext, column: Column, rows: int, files: ExitStack) -> BufferedIOBase:
    """Open so many symbols of a column."""
    length = len(symbols) if isinstance(symbols, bytes) else symbols.stat().st_size
    if length != column.byte_length(rows):
        raise _of_another_length(column)
    return files.enter_context(BytesIO(symbols) if isinstance(symbols, bytes) else symbols.open("rb"))


def _read(file: BufferedIOBase, symbols: Symbols, column: Column) -> None:
    """Fill `symbols` with those that come next in a file."""
    if file.readinto(symbols.data) != symbols.nbytes:
        raise _of_another_length(column)
    check_symbols(symbols, column.size)


def _of_another_length(column: Column) -> IntegrityError:
    return IntegrityError("a column has another length than its release", where=f"attribute {column.attribute}")
