"""What the curators of a release do to its rows before the pad: their noise, and the canaries.

Both derive from the release's seed, so they are the same at every curator; that is part of the format. Where the coin
of a row shows noise, every curator replaces its own symbol by a uniform one from its own secret randomness: together
they replace the row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import Places, canary_places, canary_symbols, places_key, with_canaries
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, replace_symbols, replaced_rows
from veiltab.common.core.pieces import Pieces
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import row_slices
from veiltab.common.release.spec import ReleaseSpec

_REPLACEMENT = 0
"""Label of the symbols under a replacement key."""


class Column(Protocol):
    """The symbols of a column, an array or what gathers them when they are read."""

    def __len__(self) -> int:
        """Number of rows."""

    def __getitem__(self, part: slice, /) -> Symbols:
        """Return the symbols of some consecutive rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorsNoise:
    """The coins and the canaries of one release.

    Args:
        mechanism: replaces a row with probability r_c; None if the curators add no noise.
        coin_key: key of the coins; each is tossed for one row of one release, ever.
        canary_key: key of the canaries' places and symbols.
        places: of the canaries among the uploaded rows, ascending.
    """

    mechanism: GammaDiagonal | None
    coin_key: bytes = field(repr=False)
    canary_key: bytes = field(repr=False)
    places: Places = field(repr=False)

    def coins(self, rows: int) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield the chunks of the data rows, and which of their rows every curator replaces."""
        if self.mechanism is None:
            return
        source = CipherStream(self.coin_key)
        for chunk, part in enumerate(row_slices(rows)):
            yield part, replaced_rows(part.stop - part.start, self.mechanism, source, chunk=chunk)

    def applied(self, attribute: str, column: Column, size: int, key: bytes) -> Iterator[Symbols]:
        """Yield a column with this curator's noise, then with the canaries among its rows, which keep their order.

        It comes in the chunks that place its pads.

        Args:
            attribute: the column's name.
            column: (data rows,) symbols 0..size-1.
            size: alphabet size K_a.
            key: 32 bytes of this curator's own, fresh for this call: the replaced symbols come from it.

        Raises:
            IntegrityError: a symbol lies outside the alphabet.
        """
        data = Pieces(self._with_noise(column, size, key))
        symbols = canary_symbols(self.canary_key, attribute, size, len(self.places))
        for part in row_slices(len(column) + len(self.places)):
            first, last = np.searchsorted(self.places, [part.start, part.stop])
            rows = data.take(part.stop - part.start - (last - first))
            yield with_canaries(rows, self.places[first:last] - part.start, symbols[first:last])

    def _with_noise(self, column: Column, size: int, key: bytes) -> Iterator[Symbols]:
        if self.mechanism is None:
            yield from (column[part] for part in row_slices(len(column)))
            return
        source = CipherStream(key)
        for chunk, (part, coins) in enumerate(self.coins(len(column))):
            kept = column[part]
            noisy: Symbols = np.empty_like(kept)
            replace_symbols(kept, size, coins, source, noisy, label=_REPLACEMENT, chunk=chunk)
            yield noisy


def coin_key(seed: bytes) -> bytes:
    """Return the key of the coins of the curators' noise."""
    return derive(seed, "noise coins")


def canary_key(seed: bytes) -> bytes:
    """Return the key of the canaries."""
    return derive(seed, "canaries")


def curators_noise(spec: ReleaseSpec, seed: bytes) -> CuratorsNoise:
    """Return the noise and the canaries of a release.

    Args:
        spec: of the release.
        seed: 32 bytes that its curators tossed.
    """
    canaries = canary_key(seed)
    return CuratorsNoise(
        mechanism=spec.mechanism.curators,
        coin_key=coin_key(seed),
        canary_key=canaries,
        places=canary_places(places_key(canaries), rows=spec.uploaded_rows, canaries=spec.canaries),
    )
