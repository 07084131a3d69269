"""What the curators of a release do to its rows before the pad: their noise, and the canaries.

Both derive from the release's seed, so they are the same at every curator; that is part of the format. Where the coin
of a row shows noise, every curator replaces its own symbol by a uniform one from its own secret randomness: together
they replace the row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import Places, canary_places, canary_symbols, places_key, with_canaries
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, replace_symbols, replaced_rows
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import row_slices
from veiltab.common.release.spec import ReleaseSpec

_REPLACEMENT = 0
"""Label of the symbols under a replacement key."""


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

    def applied(self, attribute: str, column: Symbols, size: int, key: bytes) -> Symbols:
        """Return a column with this curator's noise, then with the canaries among its rows, which keep their order.

        Args:
            attribute: the column's name.
            column: (data rows,) symbols 0..size-1.
            size: alphabet size K_a.
            key: 32 bytes of this curator's own, fresh for this call: the replaced symbols come from it.

        Raises:
            IntegrityError: a symbol lies outside the alphabet.
        """
        return with_canaries(
            self._with_noise(column, size, key),
            self.places,
            canary_symbols(self.canary_key, attribute, size, len(self.places)),
        )

    def _with_noise(self, column: Symbols, size: int, key: bytes) -> Symbols:
        if self.mechanism is None:
            return column
        source, noisy = CipherStream(key), np.empty_like(column)
        for chunk, (part, coins) in enumerate(self.coins(len(column))):
            replace_symbols(column[part], size, coins, source, noisy[part], label=_REPLACEMENT, chunk=chunk)
        return noisy


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
