"""Finds the rows of the hub whose people are in a table, by sorted tokens, and writes them in token order.

The server never sees a token.
"""

import hashlib
import hmac
import io
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from veiltab.common.core.block_order import leading, ordered_rows, shared_bits, write_words
from veiltab.common.core.domain import Symbols
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError
from veiltab.common.storage.files import named_in_errors, sync_folder, written_whole
from veiltab.common.storage.mapped import mapped_array
from veiltab.curator.table.tokens import TOKEN_LENGTH

SymbolType = np.dtype[np.unsignedinteger]

PIECE = 2**16
"""Tokens that are processed at once: as many as fit the cache."""

Tokens = NDArray[np.uint8]
"""(n, 16) tokens, one a row, in ascending order."""

HubRows = tuple[Tokens, Mapping[str, Symbols]]
"""Some rows of the hub: their tokens, and one's own symbols of each attribute."""

_OTHER = np.uint64(1)
"""Last bit of a word that is another curator's, while words of two curators are compared."""

_Words = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""The first and the second 64 bits of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What an attribute has for people of the hub who are not in the table.

    Args:
        categories: of the owner's coding: "absent" is the one after them.
        parts: of a step, where the column has positions on a grid; 1 of symbols.
        key: where everybody is publicly known to be there, 32 secret bytes: one of the other categories stands at
            random, so that no refusal says who was missing, and the same again, so that no second upload does. None
            where "absent" is a category.
    """

    categories: int
    parts: int
    key: bytes | None = field(default=None, repr=False)

    def values(self, rows: Tokens, type_: SymbolType) -> NDArray[np.unsignedinteger]:
        """Return what the people of some rows have, (n,).

        Args:
            rows: (n, 16) distinct bytes, one a row.
        """
        if self.key is None:
            return np.full(len(rows), self.categories * self.parts, type_)
        cipher = Cipher(algorithms.AES(self.key), modes.ECB())  # noqa: S305 - single blocks: a permutation
        blocks = cipher.encryptor().update(np.ascontiguousarray(rows).data)
        numbers = np.frombuffer(blocks, "<u8")[::2] % np.uint64(self.categories)
        return (numbers * np.uint64(self.parts)).astype(type_)


@dataclass(slots=True)
class Joined:
    """How many rows of the hub are of people who are here, for the owner of the table alone."""

    matched: int = 0


def alignment_id(versions: Mapping[str, str]) -> str:
    """Return the name of an alignment: a digest of every curator's table version."""
    text = "\n".join(f"{name} {versions[name]}" for name in sorted(versions))
    return hashlib.sha256(b"veiltab alignment\n" + text.encode()).hexdigest()[:32]


def sorted_order(tokens: Tokens) -> NDArray[np.int64]:
    """Return the rows of distinct tokens in ascending order."""
    words = leading(tokens)
    shared = shared_bits(words)
    for piece in slices(len(tokens)):
        write_words(words[piece], np.arange(piece.start, piece.stop), words[piece], shared=shared)
    return ordered_rows(words, tokens.__getitem__)


def slices(rows: int) -> Iterator[slice]:
    """Cut rows into pieces that are worked on at once."""
    return (slice(start, min(start + PIECE, rows)) for start in range(0, rows, PIECE))


def matches(own: Iterable[Tokens], hub: Iterable[Tokens]) -> tuple[list[NDArray[np.bool_]], list[NDArray[np.bool_]]]:
    """Say of ascending tokens which of them are on both sides; only the compared pieces are in memory.

    Returns:
        For each of one's own pieces, which of its tokens the hub has, and for each piece of the hub, which are here.

    Raises:
        IntegrityError: the tokens of either are not strictly ascending.
    """
    sides = _Ascending("own table", own), _Ascending("hub", hub)
    while all(side.has_more() for side in sides):
        last = min(side.last for side in sides)
        (here, own_mask), (there, hub_mask) = (side.up_to(last) for side in sides)
        _mark(here, own_mask, there, hub_mask)
    for side in sides:
        while side.has_more():
            side.up_to(side.last)
    return sides[0].masks, sides[1].masks


class _Ascending:
    """Ascending tokens, read once, and for each piece which of its tokens the other side has."""

    def __init__(self, who: str, pieces: Iterable[Tokens]) -> None:
        self._who = who
        self._pieces = iter(pieces)
        self._piece: Tokens = np.empty((0, TOKEN_LENGTH), np.uint8)
        self._words = _words(self._piece)
        self._next = 0
        self.last = b""
        self.masks: list[NDArray[np.bool_]] = []

    def has_more(self) -> bool:
        """Return whether there are more tokens; read the next piece where one is used up."""
        while self._next == len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                return False
            words = _words(piece)
            if len(piece):
                if piece[0].tobytes() <= self.last or not _ascending(*words):
                    raise IntegrityError("tokens are not in ascending order", where=self._who)
                self.last = piece[-1].tobytes()
            self._piece, self._words, self._next = piece, words, 0
            self.masks.append(np.zeros(len(piece), np.bool_))
        return True

    def up_to(self, last: bytes) -> tuple[_Words, NDArray[np.bool_]]:
        """Take the tokens of the piece up to one; return their words, and their part of the mask."""
        # As bytes, which compare like tokens.
        stop = bisect_right(self._piece, last, lo=self._next, key=bytes)
        part = slice(self._next, stop)
        self._next = stop
        return (self._words[0][part], self._words[1][part]), self.masks[-1][part]


def _words(tokens: Tokens) -> _Words:
    words = np.ascontiguousarray(tokens).view(">u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def _mark(own: _Words, own_mask: NDArray[np.bool_], hub: _Words, hub_mask: NDArray[np.bool_]) -> None:
    """Mark which tokens of either side the other has, both ascending."""
    # The first words of both in one order, the last bit of each replaced: it says whose the token is.
    merged = np.concatenate([own[0] & ~_OTHER, hub[0] | _OTHER])
    merged.sort(kind="stable")  # which merges ascending runs
    steps = merged[1:] ^ merged[:-1]
    if not steps.all():  # tokens of one curator share 63 bits: rare, so they are compared one by one
        sides = [list(zip(*(words.tolist() for words in side), strict=True)) for side in (own, hub)]
        common = set(sides[0]) & set(sides[1])
        for mask, tokens in zip((own_mask, hub_mask), sides, strict=True):
            mask[:] = [token in common for token in tokens]
        return
    met = np.flatnonzero(steps == _OTHER)
    there = np.cumsum(merged & _OTHER).view(np.int64).take(met)
    here = met - there
    are_equal = (own[0].take(here) == hub[0].take(there)) & (own[1].take(here) == hub[1].take(there))
    own_mask[here], hub_mask[there] = are_equal, are_equal


def _ascending(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> bool:
    later = high[1:] > high[:-1]
    return bool(later.all()) or bool(np.all(later | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))))


@dataclass(frozen=True, slots=True)
class AlignedTable:
    """The rows of the hub in ascending order of their tokens, on disk: the same rows in the same order everywhere."""

    folder: Path
    column_start: ClassVar[int] = 128
    """Where the symbols begin in a column's file, whatever their type and number."""

    def has(self, attributes: Iterable[str]) -> bool:
        """Whether the files of the respondents and of some attributes are there."""
        return all(path.exists() for path in (self.tokens_file, *map(self.column_file, attributes)))

    def tokens(self) -> Tokens:
        """Return the (n, 16) tokens, mapped from disk."""
        return tokens_of(self.tokens_file)

    def column(self, attribute: str) -> Symbols:
        """Return the (n,) symbols of an attribute, mapped from disk."""
        data = mapped_array(self.column_file(attribute), np.uint8)
        shape, type_ = _layout(data[: self.column_start].tobytes())
        return data[self.column_start :].view(type_).reshape(shape)

    def write(self, rows: Iterable[HubRows], types: Mapping[str, SymbolType], tokens: Path) -> int:
        """Write the table piece by piece, and return its rows; every file is there whole or not at all.

        Args:
            rows: tokens and symbols of each piece.
            types: attribute -> type of its symbols.
            tokens: durable file of the tokens of all rows; the table's is a link to it, where the disk has links.
        """
        count = 0
        with ExitStack() as files:
            columns = {name: files.enter_context(written_whole(self.column_file(name))) for name in types}
            for name, file in columns.items():
                _write_header(file, types[name], 0)
            for piece, symbols in rows:
                count += len(piece)
                for name, file in columns.items():
                    file.write(symbols[name].data)
            for name, file in columns.items():
                file.seek(0)
                _write_header(file, types[name], count)
        with named_in_errors(self.tokens_file):
            self.tokens_file.unlink(missing_ok=True)
            try:
                self.tokens_file.hardlink_to(tokens)
                sync_folder(self.folder)
            except OSError:
                with tokens.open("rb") as source, written_whole(self.tokens_file) as file:
                    shutil.copyfileobj(source, file)
        return count

    @property
    def tokens_file(self) -> Path:
        """The file of the tokens."""
        return self.folder / "tokens.bin"

    def column_file(self, attribute: str) -> Path:
        """Return the file of an attribute."""
        return self.folder / f"column-{attribute}.npy"


@lru_cache(maxsize=256)
def _layout(header: bytes) -> tuple[tuple[int, ...], SymbolType]:
    """Return the shape and the type that a column's header says, which numpy would parse as Python each time."""
    shape, _, type_ = np.lib.format.read_array_header_1_0(io.BytesIO(header[np.lib.format.MAGIC_LEN :]))
    return shape, type_


def _write_header(file: BinaryIO, type_: SymbolType, rows: int) -> None:
    """Write the header of a column's file; its length does not depend on the rows."""
    header = {"descr": np.lib.format.dtype_to_descr(type_), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(file, header)


def tokens_of(path: Path) -> Tokens:
    """Return the tokens of a file, mapped from disk."""
    if path.stat().st_size == 0:
        return np.empty((0, TOKEN_LENGTH), np.uint8)
    return mapped_array(path, np.uint8).reshape(-1, TOKEN_LENGTH)


class PopulationDigest:
    """A keyed digest of the tokens of the hub's rows: it depends on nobody's matches."""

    def __init__(self, key: bytes, bound: bytes = b"") -> None:
        self._digest = hmac.new(key, bound, "sha256")

    def of(self, rows: Iterable[HubRows]) -> Iterator[HubRows]:
        """Yield pieces of the rows, each when it is digested."""
        for tokens, symbols in rows:
            self._digest.update(np.ascontiguousarray(tokens).data)
            yield tokens, symbols

    def __str__(self) -> str:
        """Return what curators compare."""
        return self._digest.hexdigest()[:32]
