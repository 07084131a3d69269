"""Finds the common respondents by every curator's sorted tokens, and writes the table in token order.

Tokens are keyed (see veiltab.curator.tokens): a curator learns which of its own ids the others have. It could also test
ids it guesses, because all curators hold the key; docs/threat-model.md says so. The server never sees a token.
"""

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.block_order import leading, ordered_rows, write_words
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import IntegrityError
from veiltab.common.storage.files import written_whole

TOKEN_LENGTH = 16

MAX_RESPONDENTS = 2**27
"""Most respondents of a peer's table: its tokens take 2 GiB here while the tables are aligned."""

PIECE = 2**16
"""Tokens that are processed at once: as many as fit the cache."""

Tokens = NDArray[np.uint8]
"""(n, 16) tokens, one a row, in ascending order."""


def alignment_id(versions: Mapping[str, str]) -> str:
    """Return the name of an alignment: a digest of every curator's table version."""
    text = "\n".join(f"{name} {versions[name]}" for name in sorted(versions))
    return hashlib.sha256(b"veiltab alignment\n" + text.encode()).hexdigest()[:32]


def sorted_order(tokens: Tokens) -> NDArray[np.int64]:
    """Return the rows of distinct tokens in ascending order."""
    words = np.empty(len(tokens), np.uint64)
    for piece in slices(len(tokens)):
        write_words(leading(tokens[piece]), np.arange(piece.start, piece.stop), words[piece])
    return ordered_rows(words, tokens.__getitem__)


def slices(rows: int) -> Iterator[slice]:
    """Cut rows into pieces that are worked on at once."""
    return (slice(start, min(start + PIECE, rows)) for start in range(0, rows, PIECE))


class Intersection:
    """One's own tokens that every other curator has; only the compared pieces are in memory.

    Args:
        own: this curator's tokens, ascending; may be mapped from disk.
    """

    def __init__(self, own: Tokens) -> None:
        self._own = own
        self._common = np.ones(len(own), dtype=bool)

    def keep(self, curator: str, pieces: Iterable[Tokens]) -> None:
        """Keep the tokens that a peer has, given its ascending tokens piece by piece.

        Raises:
            IntegrityError: the peer's tokens are not strictly ascending.
        """
        present = np.zeros(len(self._common), dtype=bool)
        last, start = b"", 0
        for piece in pieces:
            if not len(piece):
                continue
            words = _words(piece)
            if piece[0].tobytes() <= last or not _ascending(*words):
                raise IntegrityError("tokens are not in ascending order", where=f"curator {curator}")
            last = piece[-1].tobytes()
            # One's own tokens up to the peer's last, as bytes, which compare like tokens.
            stop = bisect_right(self._own, last, lo=start, key=bytes)
            _mark(_words(self._own[start:stop]), words, present[start:stop])
            start = stop
        self._common &= present

    @property
    def rows(self) -> NDArray[np.int64]:
        """Positions of the common respondents among one's own ascending tokens."""
        return np.flatnonzero(self._common)


_Words = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""The first and the second 64 bits of tokens."""


def _words(tokens: Tokens) -> _Words:
    words = np.ascontiguousarray(tokens).view(">u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def _mark(own: _Words, other: _Words, present: NDArray[np.bool_]) -> None:
    """Mark which of one's own tokens are among others, both ascending."""
    high, low = own
    if not len(high):
        return
    places = np.minimum(np.searchsorted(high, other[0]), len(high) - 1)
    alike = high[places] == other[0]
    hit = alike & (low[places] == other[1])
    present[places[hit]] = True
    # searchsorted finds the first of several own tokens that share 64 bits; look at the others one by one.
    for index in np.flatnonzero(~hit & alike):
        for place in range(int(places[index]) + 1, len(high)):
            if high[place] != other[0][index]:
                break
            if low[place] == other[1][index]:
                present[place] = True


def _ascending(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> bool:
    later = high[1:] > high[:-1]
    return bool(later.all()) or bool(np.all(later | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))))


@dataclass(frozen=True, slots=True)
class AlignedTable:
    """The common respondents' rows in ascending token order, on disk: the same rows in the same order everywhere."""

    folder: Path

    def has(self, attributes: Iterable[str]) -> bool:
        """Whether the files of the respondents and of some attributes are there."""
        return all(path.exists() for path in (self._tokens_file, *map(self._column_file, attributes)))

    def tokens(self) -> Tokens:
        """Return the (n, 16) tokens, mapped from disk."""
        return tokens_of(self._tokens_file)

    def column(self, attribute: str) -> Symbols:
        """Return the (n,) symbols of an attribute, mapped from disk."""
        return np.load(self._column_file(attribute), mmap_mode="r")  # type: ignore[no-any-return]

    def write_tokens(self, pieces: Iterable[Tokens]) -> None:
        """Write the tokens, given piece by piece; the file is there whole or not at all."""
        with written_whole(self._tokens_file) as file:
            for piece in pieces:
                file.write(piece.data)

    def write_columns(self, columns: Mapping[str, Symbols]) -> None:
        """Write the columns, each file whole."""
        for name, column in columns.items():
            with written_whole(self._column_file(name)) as file:
                np.save(file, column)

    @property
    def _tokens_file(self) -> Path:
        return self.folder / "tokens.bin"

    def _column_file(self, attribute: str) -> Path:
        return self.folder / f"column-{attribute}.npy"


def tokens_of(path: Path) -> Tokens:
    """Return the tokens of a file, mapped from disk."""
    if path.stat().st_size == 0:
        return np.empty((0, TOKEN_LENGTH), np.uint8)
    return np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, TOKEN_LENGTH)


def population_digest(tokens: Tokens, key: bytes) -> str:
    """Return a keyed digest of the common respondents, equal for equal respondents, and meaningless without the key."""
    digest = hmac.new(key, digestmod="sha256")
    for piece in slices(len(tokens)):
        digest.update(np.ascontiguousarray(tokens[piece]).data)
    return digest.hexdigest()[:32]
