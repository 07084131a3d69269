"""Draws rows under a secret key, the same on every machine.

Without replacement: the m rows whose tokens a keyed permutation puts first, in the order in which it puts them. With
replacement: independent uniform numbers from a keyed stream.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import isqrt

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from veiltab.common.core.block_order import BLOCK_BYTES, MAX_ROWS, Blocks, Leads, leading, ordered_rows, write_words
from veiltab.common.core.randomness import MAX_FILL, CipherStream, check_key
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

TOKEN_BYTES = BLOCK_BYTES
"""Length of a token: one AES block."""

# Rows encrypted at once: as many as fit the cache.
_CHUNK = 2**16

_WORDS = MAX_FILL // 8

# The number of rows whose priority is below a bound is binomial: but for once in 10^14 it is within so many standard
# deviations of its mean.
_DEVIATIONS = 8

TokensOf = Callable[[slice | NDArray[np.int64]], Blocks]
"""Returns the tokens of some rows."""

Early = tuple[Leads, NDArray[np.int64]]
"""Rows that may be drawn: the leading bits of their priorities, and their numbers, in ascending order."""

Words = NDArray[np.uint64]
"""One for each of some rows; see veiltab.common.core.block_order."""

Grouping = Callable[[int, Iterable[Early]], Iterable[Words]]
"""Takes the number n of all rows, and those that may be drawn; gives the words of these in groups.

Each group has larger leading bits than the one before, and its rows are in ascending order.
"""


Rows = NDArray[np.int64]
"""Row numbers."""

Gathering = Callable[[Iterable[Rows], int, Iterable[Rows], int], Iterator[Rows]]
"""Takes rows and how many they are, then places among them and how many these are; gives the row at each place.

Both come in pieces, and so does what it gives, in the order of the places.
"""


def held_in_memory(rows: Iterable[Rows], _length: int, places: Iterable[Rows], _count: int) -> Iterator[Rows]:
    """Yield the rows at some places of a list that is in memory; a Gathering."""
    array = np.concatenate(list(rows))
    for some in places:
        yield array[some]


def in_memory(_n: int, early: Iterable[Early]) -> Iterable[Words]:
    """Return all rows as one group; a Grouping."""
    return [np.concatenate([np.empty(0, np.uint64), *(words_of(some) for some in early)])]


def words_of(early: Early, *, shared: int = 0) -> Words:
    """Return the words of some rows, in groups of which the leading `shared` bits are the same; overwrites the bits."""
    leads, rows = early
    write_words(leads, rows, leads, shared=shared)
    return leads


def sample_by_priority(tokens: Blocks, m: int, key: bytes) -> NDArray[np.int64]:
    """Draw m rows without replacement: those of least priority, in order of priority.

    priority = AES-256_key(token) as a 128-bit big-endian number. AES permutes the blocks, so distinct tokens never tie,
    and anyone who holds the same tokens and key draws the same rows in the same order; to others both are uniform.

    Args:
        tokens: distinct tokens, uint8 of shape (n, 16); may be memory-mapped.
        m: number of rows, 1..n.
        key: 32 bytes, fresh for each sample.

    Returns:
        Row numbers, shape (m,).

    Raises:
        InvalidInputError: m, the tokens or the key out of range.

    Source: Lin, Wang, Rane, Section 3.1 (sampling by the curators, unknown to the server).
    """
    return np.concatenate(list(sample_pieces(tokens, m, key, in_memory)))


def sample_pieces(tokens: Blocks, m: int, key: bytes, grouping: Grouping) -> Iterator[NDArray[np.int64]]:
    """Draw as `sample_by_priority`, and yield the rows piece by piece; all words are where the grouping puts them."""
    if tokens.ndim != 2 or tokens.shape[1] != TOKEN_BYTES or tokens.dtype != np.uint8:
        raise InvalidInputError(f"tokens of shape {tokens.shape} and type {tokens.dtype} are not rows of 16 bytes")
    return _first(len(tokens), m, key, tokens.__getitem__, grouping)


def sample_indices(n: int, m: int, key: bytes) -> NDArray[np.int64]:
    """Draw m of n row numbers without replacement, for curators who share them: the token of row i is i, big-endian.

    Args:
        n: number of rows.
        m: number of rows to draw, 1..n.
        key: 32 bytes, fresh for each sample.

    Returns:
        Row numbers in order of priority, shape (m,).

    Raises:
        InvalidInputError: m, n or the key out of range.
    """
    return np.concatenate(list(index_pieces(n, m, key, in_memory)))


def index_pieces(n: int, m: int, key: bytes, grouping: Grouping) -> Iterator[Rows]:
    """Draw as `sample_indices`, and yield the numbers piece by piece; all words are where the grouping puts them."""
    return _first(n, m, key, _index_tokens, grouping)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastRows:
    """The row numbers that `sample_indices` draws, found again in any range: those whose priority is not too large.

    Args:
        last: the halves of the largest priority that is drawn.
    """

    key: bytes = field(repr=False)
    last: tuple[int, int] = field(repr=False)

    @classmethod
    def of(cls, n: int, m: int, key: bytes) -> "LeastRows":
        """Find the largest priority, among those near the one that is expected: in the memory of some sqrt(m) rows.

        Args:
            n: number of rows.
            m: number of rows to draw, 1..n.
            key: 32 bytes, fresh for each sample.

        Raises:
            InvalidInputError: m, n or the key out of range.
        """
        _check_draw(n, m)
        return cls(key=key, last=_mth_priority(Priorities(key, _index_tokens), n, m))

    def between(self, start: int, stop: int) -> Rows:
        """Return those from one row number up to another, in ascending order."""
        pieces = [np.empty(0, np.int64)]
        for first, blocks in Priorities(self.key, _index_tokens).in_chunks(start, stop):
            pieces.append(np.flatnonzero(_up_to(blocks, self.last)) + first)
        return np.concatenate(pieces)


def ascending_pieces(n: int, m: int, key: bytes) -> Iterator[Rows]:
    """Draw as `sample_indices`, and yield the row numbers in ascending order, piece by piece."""
    rows = LeastRows.of(n, m, key)
    return (rows.between(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK))


def _up_to(blocks: Blocks, last: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which blocks are at most another one, given by its halves."""
    leads, (high, low) = leading(blocks), last
    is_within: NDArray[np.bool_] = leads <= np.uint64(high)
    alike = np.flatnonzero(leads == np.uint64(high))
    is_within[alike] = blocks[alike].view(">u8")[:, 1] <= low
    return is_within


def _mth_priority(priorities: "Priorities", n: int, m: int) -> tuple[int, int]:
    """Return the halves of the m-th of n priorities."""
    deviations = _DEVIATIONS
    while True:
        expected, slack = m * 2**64 // n, (deviations * (isqrt(m) + 1) * 2**64) // n
        low, high = (min(max(bound, 0), 2**64 - 1) for bound in (expected - slack, expected + slack))
        before, near = 0, list[NDArray[np.uint64]]()
        for _, blocks in priorities.in_chunks(0, n):
            leads = leading(blocks)
            before += int(np.count_nonzero(leads < np.uint64(low)))
            is_near = (leads >= np.uint64(low)) & (leads <= np.uint64(high))
            near.append(blocks[is_near].view(">u8").astype(np.uint64))
        nearest = np.concatenate(near)
        if before < m <= before + len(nearest):
            place = np.lexsort((nearest[:, 1], nearest[:, 0]))[m - before - 1]
            return int(nearest[place, 0]), int(nearest[place, 1])
        deviations = 8 * deviations + 1


def uniform_indices(n: int, count: int, key: bytes) -> NDArray[np.int64]:
    """Return independent, exactly uniform numbers 0..n-1 from a ChaCha20 stream under a key of its own.

    A 64-bit word w gives floor(w / floor(2^64/n)); the few words that would give n or more are skipped.

    Args:
        n: at least 1.
        count: how many numbers.
        key: 32 bytes, fresh for each call.
    """
    return np.concatenate([np.empty(0, np.int64), *uniform_pieces(n, count, key)])


def uniform_pieces(n: int, count: int, key: bytes) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of `uniform_indices` piece by piece."""
    if n == 1:
        yield from (np.zeros(min(_WORDS, count - start), np.int64) for start in range(0, count, _WORDS))
        return
    stream, width = CipherStream(key), 2**64 // n
    have = chunk = 0
    while have < count:
        words = np.empty(min(_WORDS, count - have + 16), "<u8")
        stream.fill(words.view(np.uint8).data, label=0, chunk=chunk)
        numbers = words // np.uint64(width)
        indices = numbers[numbers < np.uint64(n)].astype(np.int64)[: count - have]
        yield indices
        have += len(indices)
        chunk += 1


def _index_tokens(rows: slice | NDArray[np.int64]) -> Blocks:
    """Write row numbers as 16-byte big-endian tokens."""
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    tokens = np.zeros((len(numbers), 2), ">u8")
    tokens[:, 1] = numbers
    return tokens.view(np.uint8)


def _first(n: int, m: int, key: bytes, tokens_of: TokensOf, grouping: Grouping) -> Iterator[NDArray[np.int64]]:
    """Yield the m rows of least priority among n, in order."""
    _check_draw(n, m)
    priorities = Priorities(key, tokens_of)
    for threshold in thresholds(n, m):
        groups, candidates = _grouped(priorities, n, threshold, grouping)
        if candidates >= m:
            break
    remaining = m
    for words in groups:
        rows = ordered_rows(words, priorities.of)[:remaining]
        yield rows
        remaining -= len(rows)
        if not remaining:
            return


def thresholds(n: int, m: int) -> list[int]:
    """Return leading bits of priorities that m of n rows do not exceed: such that all but surely suffice, then all."""
    expected = m + _DEVIATIONS * isqrt(m) + 64
    return [expected * 2**64 // n, 2**64 - 1] if expected < n else [2**64 - 1]


def _check_draw(n: int, m: int) -> None:
    if not 1 <= m <= n <= MAX_ROWS:
        raise InvalidInputError(f"cannot draw {m} of {n} rows", remedy=f"Draw 1 to n rows of at most {MAX_ROWS}.")


def _grouped(priorities: "Priorities", n: int, threshold: int, grouping: Grouping) -> tuple[Iterator[Words], int]:
    """Return the words of all rows to a threshold, in groups, and how many they are."""
    count = 0

    def counted() -> Iterator[Early]:
        nonlocal count
        for early in priorities.up_to(threshold, 0, n):
            count += len(early[1])
            yield early

    groups = iter(grouping(n, counted()))
    first = next(groups, np.empty(0, np.uint64))
    return chain([first], groups), count


class Priorities:
    """Priorities under one key, and the rows that come early."""

    def __init__(self, key: bytes, tokens_of: TokensOf) -> None:
        # ECB is the bare permutation, as needed here: a token is one block, and tokens are not secret from holders of
        # the key.
        cipher = Cipher(algorithms.AES(check_key(key)), modes.ECB())  # noqa: S305 - single blocks: a permutation
        self._encrypt = cipher.encryptor().update_into
        self._tokens_of = tokens_of
        # The cipher requires space for another block, which it does not use.
        self._room = np.empty((_CHUNK + 1) * TOKEN_BYTES, np.uint8)
        # The system takes an array of this size back as soon as it is free, and clears it each time.
        self._leads = np.empty(_CHUNK, np.uint64)

    def of(self, rows: slice | NDArray[np.int64]) -> Blocks:
        """Return the priorities of some rows, as 16 bytes each; they last until the next call."""
        tokens = np.ascontiguousarray(self._tokens_of(rows))
        if tokens.size + TOKEN_BYTES > self._room.size:
            self._room = np.empty(tokens.size + TOKEN_BYTES, np.uint8)
        self._encrypt(tokens.data, self._room.data)
        return self._room[: tokens.size].reshape(-1, TOKEN_BYTES)

    def in_chunks(self, start: int, stop: int) -> Iterator[tuple[int, Blocks]]:
        """Yield the priorities of the rows from `start` to `stop`, each time with the number of the first one."""
        for first in range(start, stop, _CHUNK):
            yield first, self.of(slice(first, min(first + _CHUNK, stop)))

    def up_to(self, threshold: int, start: int, stop: int) -> Iterator[Early]:
        """Yield the rows from `start` to `stop` whose leading 64 bits are at most `threshold`, by row."""
        for first in range(start, stop, _CHUNK):
            last = min(first + _CHUNK, stop)
            leads = leading(self.of(slice(first, last)), self._leads[: last - first])
            rows = np.flatnonzero(leads <= np.uint64(threshold))
            yield leads[rows], rows + first
