"""Finding the common respondents: every curator's sorted tokens against one's own, and the table in token order.

Tokens are keyed (see curator.tokens): a curator learns which of its own ids the others have. It could also test ids it
guesses, because all curators hold the key; docs/threat-model.md says so. The server never sees a token.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.domain import Symbols
from common.errors import IntegrityError
from common.files import written_whole

TOKEN_LENGTH = 16
Tokens = NDArray[np.uint8]
"""(n, 16) tokens, one a row, in ascending order."""


def alignment_id(versions: Mapping[str, str]) -> str:
    """Return the name of an alignment: a digest of every curator's table version."""
    text = "\n".join(f"{name} {versions[name]}" for name in sorted(versions))
    return hashlib.sha256(b"veiltab alignment\n" + text.encode()).hexdigest()[:32]


def sorted_order(tokens: Tokens) -> NDArray[np.int64]:
    """Return the rows of distinct tokens in ascending order."""
    high, low = _words(tokens)
    order = np.argsort(high, kind="stable")
    ties = np.flatnonzero(high[order[1:]] == high[order[:-1]])
    if ties.size:
        # 64-bit ties among honest tokens are rare; the whole 128 bits then decide.
        order = np.lexsort((low, high))
    return order


def _words(tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    words = np.ascontiguousarray(tokens).view(">u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


class Intersection:
    """Which of one's own tokens every other curator has.

    Args:
        own: this curator's tokens, ascending.
    """

    def __init__(self, own: Tokens) -> None:
        self._high, self._low = _words(own)
        self._common = np.ones(len(own), dtype=bool)

    def keep(self, curator: str, pieces: Iterable[Tokens]) -> None:
        """Keep the tokens that a peer has, given its ascending tokens piece by piece.

        Raises:
            IntegrityError: the peer's tokens are not strictly ascending.
        """
        present = np.zeros(len(self._common), dtype=bool)
        last = (-1, -1)
        for piece in pieces:
            if not len(piece):
                continue
            high, low = _words(piece)
            first = (int(high[0]), int(low[0]))
            if first <= last or not _ascending(high, low):
                raise IntegrityError("tokens are not in ascending order", where=f"curator {curator}")
            last = (int(high[-1]), int(low[-1]))
            self._mark(high, low, present)
        self._common &= present

    def _mark(self, high: NDArray[np.uint64], low: NDArray[np.uint64], present: NDArray[np.bool_]) -> None:
        if not len(self._high):
            return
        places = np.minimum(np.searchsorted(self._high, high), len(self._high) - 1)
        hit = (self._high[places] == high) & (self._low[places] == low)
        present[places[hit]] = True
        # searchsorted finds the first of several own tokens that share 64 bits; look at the others one by one.
        for index in np.flatnonzero(~hit & (self._high[places] == high)):
            for place in range(int(places[index]) + 1, len(self._high)):
                if self._high[place] != high[index]:
                    break
                if self._low[place] == low[index]:
                    present[place] = True

    @property
    def rows(self) -> NDArray[np.int64]:
        """Positions of the common respondents among one's own ascending tokens."""
        return np.flatnonzero(self._common)


def _ascending(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> bool:
    later = high[1:] > high[:-1]
    ties = (high[1:] == high[:-1]) & (low[1:] > low[:-1])
    return bool(np.all(later | ties))


@dataclass(frozen=True, slots=True)
class AlignedTable:
    """The common respondents' rows in ascending token order, on disk: the same rows in the same order everywhere."""

    folder: Path

    def tokens(self) -> Tokens:
        """Return the (n, 16) tokens, mapped from disk."""
        return np.load(self.folder / "tokens.npy", mmap_mode="r")  # type: ignore[no-any-return]

    def column(self, attribute: str) -> Symbols:
        """Return the (n,) symbols of an attribute, mapped from disk."""
        return np.load(self.folder / f"column-{attribute}.npy", mmap_mode="r")  # type: ignore[no-any-return]

    def write(self, tokens: Tokens, columns: Mapping[str, Symbols]) -> None:
        """Write the aligned table, each file whole."""
        for name, values in (("tokens", tokens), *((f"column-{name}", c) for name, c in columns.items())):
            with written_whole(self.folder / f"{name}.npy") as file:
                np.save(file, values)


def population_digest(tokens: Tokens, key: bytes) -> str:
    """Return a keyed digest of the common respondents, equal where they are the same, telling others nothing."""
    digest = hashlib.blake2b(key=key, digest_size=16, person=b"population")
    for start in range(0, len(tokens), 65_536):
        digest.update(np.ascontiguousarray(tokens[start : start + 65_536]).data)
    return digest.hexdigest()
