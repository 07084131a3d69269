"""What the curators of a release do to its rows before the pad: their noise, and the canaries.

Both derive from the release's seed, so they are the same at every curator; that is part of the format. Where the coin
of a row shows noise, every curator replaces its own symbol by a uniform one from its own secret randomness: together
they replace the row.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import CanaryPlaces, canary_symbols, places_key, with_canaries
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, replace_symbols, replaced_rows
from veiltab.common.core.numbers.pieces import Pieces
from veiltab.common.core.pads import ZeroShare
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK, row_slices
from veiltab.common.dataclass import dataclass, field
from veiltab.common.release.table_spec import TableSpec

_REPLACEMENT = 0
"""Label of the symbols under a replacement key."""


class Column(Protocol):
    """The symbols of a column, an array or what gathers them when they are read."""

    def __len__(self) -> int:
        """Number of rows."""

    def __getitem__(self, part: slice, /) -> Symbols:
        """Return the symbols of some consecutive rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainColumn:
    """A column to encrypt.

    Args:
        symbols: (m,) symbols 0..size-1 in sample order.
        share: of zero, if several curators hold it.
        has_canaries: whether the canaries have their symbols; else "absent", which adds nothing to those of the first
            holder.
    """

    attribute: str
    symbols: Column = field(repr=False)
    size: int
    share: ZeroShare = field(default=ZeroShare(), repr=False)
    has_canaries: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorsNoise:
    """The coins and the canaries of one release.

    Args:
        mechanism: replaces a row with probability r_c; None if the curators add no noise.
        coin_key: key of the coins; each is tossed for one row of one release, ever.
        canary_key: key of the canaries' places and symbols.
        places: of the canaries among the uploaded rows.
    """

    mechanism: GammaDiagonal | None
    coin_key: bytes = field(repr=False)
    canary_key: bytes = field(repr=False)
    places: CanaryPlaces = field(repr=False)

    def coins(self, rows: int, *, first: int = 0) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield the chunks of the data rows from a first one on, and which of their rows every curator replaces."""
        if self.mechanism is None:
            return
        source = CipherStream(self.coin_key)
        for chunk, part in enumerate(row_slices(rows, slice(first, None)), first):
            yield part, replaced_rows(part.stop - part.start, self.mechanism, source, chunk=chunk)

    def with_noise_and_canaries(
        self, plain: PlainColumn, key: bytes, *, chunks: slice = slice(None)
    ) -> Iterator[Symbols]:
        """Yield a column with this curator's noise, then with the canaries among its rows, which keep their order.

        It comes in the chunks that place its pads.

        Args:
            key: 32 bytes of this curator's own, fresh for this column: the replaced symbols come from it.
            chunks: which of the chunks; those of a column may be made by several calls.

        Raises:
            IntegrityError: a symbol lies outside the alphabet.
        """
        column, size = plain.symbols, plain.size
        parts = list(row_slices(len(column) + len(self.places), chunks))
        before = parts[0].start - self.places.before(parts[0].start) if parts else 0
        # If only canaries are left, the rows before them are taken and lost.
        first = max(min(before, len(column) - 1), 0) // CHUNK
        data = Pieces(self._with_noise(column, size, key, first))
        if before > first * CHUNK:
            data.take(before - first * CHUNK)
        for part in parts:
            places, earlier = self.places.within(part), self.places.before(part.start)
            canaries = slice(earlier, earlier + len(places))
            symbols = canary_symbols(self.canary_key, plain.attribute, size, len(self.places), canaries)
            if not plain.has_canaries:
                symbols = np.full_like(symbols, size - 1)
            rows = data.take(part.stop - part.start - len(places))
            yield with_canaries(rows, places - part.start, symbols)

    def _with_noise(self, column: Column, size: int, key: bytes, first: int) -> Iterator[Symbols]:
        """Yield the chunks of the data rows from a first one on, with noise."""
        if self.mechanism is None:
            yield from (column[part] for part in row_slices(len(column), slice(first, None)))
            return
        source = CipherStream(key)
        for chunk, (part, coins) in enumerate(self.coins(len(column), first=first), first):
            plain = column[part]
            noisy: Symbols = np.empty_like(plain)
            replace_symbols(plain, size, coins, source, noisy, label=_REPLACEMENT, chunk=chunk)
            yield noisy


def coin_key(seed: bytes) -> bytes:
    """Return the key of the coins of the curators' noise."""
    return derive(seed, "noise coins")


def canary_key(seed: bytes) -> bytes:
    """Return the key of the canaries."""
    return derive(seed, "canaries")


def curators_noise(spec: TableSpec, seed: bytes) -> CuratorsNoise:
    """Return the noise and the canaries of a release.

    Args:
        seed: 32 bytes that its curators tossed.
    """
    canaries = canary_key(seed)
    return CuratorsNoise(
        mechanism=spec.mechanism.curators,
        coin_key=coin_key(seed),
        canary_key=canaries,
        places=CanaryPlaces.of(places_key(canaries), rows=spec.uploaded_rows, canaries=spec.canaries),
    )
