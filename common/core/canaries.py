"""Canaries: rows of known symbols that the curators hide among those that they upload, to test the server's noise.

They hold nobody's data. Their places and symbols derive from the canary key, which derives from the release's seed: the
server learns the places only after it has published, the researcher after every curator has tested. All of it is part
of the format.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.sampling import LeastRows, sample_indices
from veiltab.common.core.symbols import CHUNK, fill_uniform, row_slices
from veiltab.common.dataclass import dataclass, field

Places = NDArray[np.int64]

Listing = Callable[[Iterator[Places]], Places]
"""Takes numbers in pieces, and gives them all, one piece after the other, from where it keeps them."""

# So many are sorted in less time than all rows are compared.
_FEW = 2**16


def places_key(canary_key: bytes) -> bytes:
    """Return the key of the canaries' places alone, which tells nothing of their symbols."""
    return derive(canary_key, "places")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPlaces:
    """The places of the canaries among the uploaded rows, uniform without replacement: a chunk of rows at a time.

    A few are kept. Of many it is kept how many stand before each chunk; which they are is found anew, from the key.

    Args:
        rows: uploaded rows, canaries included.
        canaries: c.
        source: all places, ascending, or what finds them.
        counts: of what is found, the canaries before each chunk of rows, and all of them.
    """

    rows: int
    canaries: int
    source: Places | LeastRows = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, key: bytes, *, rows: int, canaries: int) -> "CanaryPlaces":
        """Find the canaries.

        Args:
            rows: uploaded rows, canaries included.
            canaries: c, 0 to rows.

        Raises:
            InvalidInputError: more canaries than rows, or a key of another length.
        """
        nothing = np.zeros(0, np.int64)
        if canaries <= _FEW:
            places = np.sort(sample_indices(rows, canaries, key)) if canaries else nothing
            return cls(rows=rows, canaries=canaries, source=places, counts=nothing)
        least = LeastRows.of(rows, canaries, key)
        within = (len(least.between(part.start, part.stop)) for part in row_slices(rows))
        return cls(rows=rows, canaries=canaries, source=least, counts=np.cumsum([0, *within]))

    def __len__(self) -> int:
        """Number of canaries."""
        return self.canaries

    def before(self, row: int) -> int:
        """Return how many canaries stand before a row at which a chunk begins, or before the end."""
        if isinstance(self.source, LeastRows):
            return int(self.counts[-(-row // CHUNK)])
        return int(np.searchsorted(self.source, row))

    def within(self, part: slice) -> Places:
        """Return the places in a chunk of rows, ascending."""
        if isinstance(self.source, LeastRows):
            return self.source.between(part.start, part.stop)
        return self.source[self.before(part.start) : self.before(part.stop)]

    def pieces(self) -> Iterator[Places]:
        """Yield all places, ascending."""
        return iter([self.source]) if isinstance(self.source, np.ndarray) else map(self.within, row_slices(self.rows))

    @property
    def are_few(self) -> bool:
        """Whether they are kept."""
        return not isinstance(self.source, LeastRows)

    def all(self) -> Places:
        """Return all places, ascending, shape (c,)."""
        return in_memory(self.pieces())

    def listed(self, numbers: Places | None, many: "Listing") -> Places:
        """Return the places of all canaries, or of some of them.

        Args:
            numbers: (s,) which, by order of their places, ascending; None for all.
            many: keeps what memory should not.
        """
        listing = in_memory if self.are_few else many
        whole = listing(self.pieces())
        return whole if numbers is None else listing(whole[numbers[part]] for part in row_slices(len(numbers)))


def in_memory(pieces: Iterator[Places]) -> Places:
    """Return numbers that come in pieces as an array; a Listing."""
    return np.concatenate([np.empty(0, np.int64), *pieces])


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class CanaryRows:
    """Where a release's canaries stand in its published columns.

    Args:
        rows: (s,) rows of the published columns, ascending; s = c, or fewer where the server samples.
        sampled: (s,) where the server samples: which of the c canaries these are, by order of their places; else None.
    """

    rows: Places
    sampled: Places | None = None

    @classmethod
    def of(cls, places: CanaryPlaces, sample: Places | None, many: Listing = in_memory) -> "CanaryRows":
        """Find the canaries among the published rows.

        Args:
            places: of the canaries among the uploaded rows.
            sample: (m,) ascending places of the rows that the server sampled, m > 0; None if it published all.
            many: keeps what memory should not.
        """
        listing = in_memory if places.are_few else many
        if sample is None:
            return cls(rows=listing(places.pieces()))
        pairs = listing(_drawn_canaries(places, sample)).reshape(-1, 2)
        return cls(rows=pairs[:, 0], sampled=pairs[:, 1])


def _drawn_canaries(places: CanaryPlaces, sample: Places) -> Iterator[Places]:
    """Yield of each canary that was drawn its place among what was, then its number among the canaries."""
    before = 0
    for some in places.pieces():
        rows = np.searchsorted(sample, some)
        is_drawn = sample.take(rows, mode="clip") == some
        yield np.stack((rows[is_drawn], np.flatnonzero(is_drawn) + before), axis=1).reshape(-1)
        before += len(some)


def canary_symbols(canary_key: bytes, attribute: str, size: int, canaries: int, part: slice = slice(None)) -> Symbols:
    """Return symbols of an attribute's canaries in order of their places: independent and uniform.

    Args:
        part: which are wanted, consecutive ones.
    """
    source, (first, last, _) = CipherStream(derive(canary_key, f"symbols {attribute}")), part.indices(canaries)
    begin, end = first // CHUNK * CHUNK, min(-(-last // CHUNK) * CHUNK, canaries)
    symbols: Symbols = np.empty(end - begin, symbol_dtype(size))
    for rows in row_slices(len(symbols)):
        fill_uniform(symbols[rows], size, source, label=0, chunk=(begin + rows.start) // CHUNK)
    return symbols[first - begin : last - begin]


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
    """Return which of `rows` rows are not canaries."""
    data = np.ones(rows, np.bool_)
    data[places] = False
    return data
