"""What a hub shows of its keys in a pass, and how a spoke reads it: of each key a tag, and the masked number of a row.

F is a value of 16 bytes that hub and spoke compute of the digest of a key: obliviously (veiltab.common.oblivious), or
by tokens as AES-256-CMAC under a key that all curators have. 10 bytes are the tag, 6 the mask of the number, least
first.
"""

import hashlib
from collections.abc import Iterable, Iterator
from secrets import token_bytes

import numpy as np
import pyarrow as pa

from veiltab.common.core.derivation import derive
from veiltab.common.core.randomness import KEY_BYTES, CipherStream
from veiltab.common.oblivious import function
from veiltab.common.oblivious.code import Bits
from veiltab.common.storage.sorted_records import Bytes, RecordFile
from veiltab.curator.alignment.joining.join_spoke import first_rows
from veiltab.curator.alignment.joining.row_numbers import NOBODY, Numbers
from veiltab.curator.table.tokens import tokens

DIGEST_BYTES = 32
"""Length of the digest of a key."""

ENTRY_BYTES = 16
"""Length of F, and of what is shown of a key."""

MANY = 2**48 - 1
"""In the place of a row's number: several rows of the hub have the key."""

BATCH = 2**14
"""Keys of which F is computed at once."""

_TAG_BYTES = 10
_NUMBER_BYTES = ENTRY_BYTES - _TAG_BYTES


def digests(keys: Iterable[bytes], alignment: str) -> Bits:
    """Return the first 32 bytes of BLAKE2b-512 of each key, (n, 32), under SHA-256("veiltab linkage key" | alignment).

    An alignment's digests serve no other.
    """
    key = hashlib.sha256(b"veiltab linkage key\n" + alignment.encode()).digest()
    return function.digests(keys, key)[:, :DIGEST_BYTES]


class DigestedKeys:
    """What a spoke asks about in a pass: its keys, and as many random digests as bring them to a fixed number.

    Args:
        keys: digests of 32 bytes.
        key: h of the link, which hub and spoke tossed.
        count: how many it asks about; by default the keys alone.
    """

    def __init__(self, keys: RecordFile, key: bytes, count: int | None = None) -> None:
        self._keys, self._key = keys, key
        self._count = keys.count if count is None else count

    def __len__(self) -> int:
        """Number of digests."""
        return self._count

    def pieces(self) -> Iterator[Bits]:
        """Yield them, (rows, 64)."""
        for start in range(0, self._keys.count, BATCH):
            yield link_digests(self._keys.read(start), self._key)
        source = CipherStream(token_bytes(KEY_BYTES))
        for start in range(self._keys.count, self._count, BATCH):
            fill = np.empty((min(BATCH, self._count - start), function.DIGEST_BYTES), np.uint8)
            source.fill(fill.data.cast("B"), label=0, chunk=start)
            yield fill


def link_digests(keys: bytes, key: bytes) -> Bits:
    """Return the digests d, (n, 64), under the key of a link, of digests of 32 bytes that lie one after the other."""
    return function.digests((keys[at : at + DIGEST_BYTES] for at in range(0, len(keys), DIGEST_BYTES)), key)


def token_values(keys: bytes, key: bytes, number: int) -> Bytes:
    """Return F by tokens, (n, 16), of digests of 32 bytes in a pass."""
    rows = len(keys) // DIGEST_BYTES
    ends = np.arange(rows + 1, dtype=np.int64) * DIGEST_BYTES
    # Digests are bytes, not texts; nothing here reads them as texts.
    texts = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(keys))
    return tokens(texts, derive(key, f"linkage pass {number}"))


def entries(values: Bytes, numbers: Numbers) -> Bytes:
    """Return what is shown of keys: the tag, and the number of the row, or MANY, under the mask.

    Args:
        values: F of each.
        numbers: below 2^48.
    """
    result = values.copy()
    result[:, _TAG_BYTES:] ^= numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :_NUMBER_BYTES]
    return result


def numbers_in(hub_entries: Bytes, values: Bytes) -> Numbers:
    """Return what a hub says of each key: a number or MANY, or NOBODY if it does not show it.

    Of a tag that stands twice the first entry counts. What is said of a key depends on no other one.

    Args:
        hub_entries: the hub's entries, (k, 16).
        values: F of each key, (m, 16).
    """
    places = first_rows(values[:, :_TAG_BYTES], hub_entries[:, :_TAG_BYTES])
    places_here = np.flatnonzero(places != NOBODY)
    words = np.zeros((len(places_here), 8), np.uint8)
    words[:, :_NUMBER_BYTES] = values[places_here, _TAG_BYTES:] ^ hub_entries[places[places_here], _TAG_BYTES:]
    numbers = np.full(len(values), NOBODY)
    numbers[places_here] = words.view("<i8").ravel()
    return numbers
