"""Canaries: rows of known symbols that the curators hide among those that they upload, to test the server's noise.

They hold nobody's data. Their places and symbols derive from the canary key, which derives from the release's seed: the
server learns the places only after it has published, the researcher after every curator has tested. All of it is part
of the format.
"""

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.sampling import ascending_pieces, sample_indices
from veiltab.common.core.symbols import fill_uniform, row_slices

Places = NDArray[np.int64]

# So many are sorted in less time than all rows are compared.
_FEW = 2**16


def places_key(canary_key: bytes) -> bytes:
    """Return the key of the canaries' places alone, which tells nothing of their symbols."""
    return derive(canary_key, "places")


def canary_places(key: bytes, *, rows: int, canaries: int) -> Places:
    """Return the places of the canaries among the uploaded rows, uniform without replacement, ascending.

    Args:
        key: that of the places.
        rows: uploaded rows, canaries included.
        canaries: c, 0 to rows.

    Raises:
        InvalidInputError: more canaries than rows, or a key of another length.
    """
    if canaries == 0:
        return np.zeros(0, np.int64)
    if canaries <= _FEW:
        return np.sort(sample_indices(rows, canaries, key))
    places, have = np.empty(canaries, np.int64), 0
    for some in ascending_pieces(rows, canaries, key):
        places[have : have + len(some)] = some
        have += len(some)
    return places


def canary_symbols(canary_key: bytes, attribute: str, size: int, canaries: int) -> Symbols:
    """Return the symbols of an attribute's canaries in order of their places, shape (c,): independent and uniform."""
    source = CipherStream(derive(canary_key, f"symbols {attribute}"))
    symbols: Symbols = np.empty(canaries, symbol_dtype(size))
    for chunk, rows in enumerate(row_slices(canaries)):
        fill_uniform(symbols[rows], size, source, label=0, chunk=chunk)
    return symbols


def with_canaries(column: Symbols, places: Places, symbols: Symbols) -> Symbols:
    """Return a column with the canaries at their places among its rows, which keep their order.

    Args:
        column: (rows,) symbols of the data.
        places: (c,) ascending places below rows + c.
        symbols: (c,) of the canaries.
    """
    whole: Symbols = np.empty(len(column) + len(places), column.dtype)
    data = is_data(places, len(whole))
    whole[data] = column
    whole[places] = symbols
    return whole


def is_data(places: Places, rows: int) -> NDArray[np.bool_]:
    """Return which of `rows` rows are no canaries."""
    data = np.ones(rows, np.bool_)
    data[places] = False
    return data
