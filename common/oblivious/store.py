"""A spoke's store: a table of words in which the three slots of each of its ids add up to the code digest of the id.

A hub that has the id adds up the same three slots, whatever other ids the spoke has: one person more or less changes
the match of no other. In a cuckoo table an id lies in one of several bins, and the others decide which.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.randomness import MAX_FILL, ByteSource
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.base_transfers import WORDS
from veiltab.common.oblivious.code import WORD_BYTES, Bits
from veiltab.common.oblivious.extension import EXTRA_ROWS

Slots = NDArray[np.int64]
"""The three slots of some ids, shape (n, 3)."""

THIRD_STEP = 4096
"""A third of a store is a multiple of so many slots, so that its size tells little of the number of ids."""

LEAST_THIRD = 2**15
"""Slots of a third, at least."""


def slots_for(ids: int) -> int:
    """Return the number m of slots for so many ids: three thirds of ceil(1.3 ids / 3), rounded up, 2^15 at least."""
    third = max(-(-13 * ids // 30), LEAST_THIRD)
    return 3 * THIRD_STEP * -(-third // THIRD_STEP)


def ids_for(m: int) -> int:
    """Return the largest number of ids that have m slots."""
    return 10 * m // 13


def slots(digests: Bits, m: int) -> Slots:
    """Return the three slots of each id, one in each third of m slots: the words at bytes 24, 32, 40, modulo m / 3.

    Args:
        digests: of the ids, shape (n, 64).
        m: number of slots.

    Raises:
        IntegrityError: m, which a peer may have sent, is not three thirds of 4,096 slots each, or a multiple.
    """
    if m <= 0 or m % (3 * THIRD_STEP):
        raise IntegrityError(f"a store cannot have {m} slots", where="join")
    third = m // 3
    words = np.ascontiguousarray(digests[:, 24:48]).view("<u8")
    return (words % np.uint64(third)).astype(np.int64) + np.arange(0, m, third)


def fill(digests: Bits, m: int, source: ByteSource) -> tuple[Bits, NDArray[np.bool_]]:
    """Return the words W of a store, after 128 random ones, and which ids are left out.

    Left out are ids in a core, which is a set of ids each of whose slots is a slot of another one too: a given id is in
    one with probability about n (m / 3)^-3, below 2^-28. So are ids that come twice. No honest hub has their value, so
    they are absent. No second store may be tried: it would tell which ids fitted.

    Args:
        digests: of the spoke's ids, shape (n, 64).
        m: number of slots, from `slots_for`.
        source: of the words of all rows that no id decides; secret, uniform, fresh for each store.

    Returns:
        Words of shape (128 + m, 9), and a flag for each id.
    """
    words = np.empty((EXTRA_ROWS + m, WORD_BYTES), np.uint8)
    for chunk, start in enumerate(range(0, words.size, MAX_FILL)):
        source.fill(words.reshape(-1)[start : start + MAX_FILL].data, label=WORDS, chunk=chunk)
    places, is_left_out = slots(digests, m), np.ones(len(digests), np.bool_)
    # Of each word eight bytes and the ninth, as rows of nine are slow to gather.
    parts: tuple[tuple[NDArray[Any], NDArray[Any]], ...] = (
        (_first_eight(words[EXTRA_ROWS:]), _first_eight(digests)),
        (words[EXTRA_ROWS:, 8].copy(), digests[:, 8]),
    )
    for ids, free in reversed(_peeled(places, m)):
        first, second, third = places[ids].T
        for store, of_ids in parts:
            store[free] ^= of_ids[ids] ^ store[first] ^ store[second] ^ store[third]
        is_left_out[ids] = False
    words[EXTRA_ROWS:, :8], words[EXTRA_ROWS:, 8] = parts[0][0].view(np.uint8).reshape(m, 8), parts[1][0]
    return words, is_left_out


def _first_eight(words: Bits) -> NDArray[np.uint64]:
    return np.ascontiguousarray(words[:, :8]).view(np.uint64).ravel()


def _peeled(places: Slots, m: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return rounds of ids, each with a slot that no other id of its round or of a later one has."""
    counts = np.bincount(places.ravel(), minlength=m)
    totals, position = np.zeros(m, np.int64), np.empty(len(places), np.int64)
    # The total of a slot in which one id is left is the number of that id.
    np.add.at(totals, places.ravel(), np.arange(len(places)).repeat(3))
    rounds, free = [], np.flatnonzero(counts == 1)
    while len(free):
        ids = totals[free]
        order = np.arange(len(ids))
        position[ids] = order
        # An id may be alone in several slots, and a slot may be touched by several ids.
        once = position[ids] == order
        ids, free = ids[once], free[once]
        rounds.append((ids, free))
        touched = places[ids].ravel()
        np.subtract.at(counts, touched, 1)
        np.subtract.at(totals, touched, ids.repeat(3))
        free = touched[counts[touched] == 1]
    return rounds
