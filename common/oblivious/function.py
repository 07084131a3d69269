"""F: the value of an id, which the hub computes of any and the spoke of its own; elsewhere they are unrelated."""

import hashlib
from collections.abc import Iterable

import numpy as np

from veiltab.common.oblivious.code import WORD_BYTES, Bits, encode
from veiltab.common.oblivious.extension import EXTRA_ROWS
from veiltab.common.oblivious.store import slots

DIGEST_BYTES = 64
"""Length of the digest of an id."""

VALUE_BYTES = 16
"""Length of F."""

_PERSON_BYTES = 16


def digests(ids: Iterable[bytes], key: bytes) -> Bits:
    """Return d(id) = BLAKE2b-512(id; key) of each id, shape (n, 64).

    Bytes 0 to 8 are the code digest c(id), the words at bytes 24, 32 and 40 name its slots.

    Args:
        ids: UTF-8 bytes of normalised ids.
        key: h, 32 bytes, which hub and spoke tossed.
    """
    copy = hashlib.blake2b(key=key).copy
    data = bytearray()
    for each in ids:
        state = copy()
        state.update(each)
        data += state.digest()
    return np.frombuffer(data, np.uint8).reshape(-1, DIGEST_BYTES)


def values(rows: Bits, digests: Bits, session: bytes, choices: Bits | None = None) -> Bits:
    """Return F of each id, shape (n, 16): BLAKE2b-128 of the sum of its slots' rows, and its digest.

    Sums are xor. At the hub (C(c(id)) and s) is added too: then both sides have t_a xor t_b xor t_c for an id in the
    store. For another id the sums differ by a code word and s, so by 172 bits at least that the spoke does not know.

    Args:
        rows: all rows of the side, the 128 extra ones too, shape (128 + m, 64); may be memory-mapped.
        digests: of the ids, shape (n, 64).
        session: the session's name, or that of its pass, of which the first 16 bytes count.
        choices: the hub's s, shape (64,); none at the spoke.
    """
    first, second, third = (slots(digests, len(rows) - EXTRA_ROWS) + EXTRA_ROWS).T
    blocks = np.empty((len(digests), 2, DIGEST_BYTES), np.uint8)
    added, blocks[:, 1] = blocks[:, 0], digests
    added[:] = rows[first] ^ rows[second] ^ rows[third]
    if choices is not None:
        added ^= encode(digests[:, :WORD_BYTES]) & choices
    copy = hashlib.blake2b(digest_size=VALUE_BYTES, person=session[:_PERSON_BYTES]).copy
    data, text = bytearray(), blocks.tobytes()
    for start in range(0, len(text), 2 * DIGEST_BYTES):
        state = copy()
        state.update(text[start : start + 2 * DIGEST_BYTES])
        data += state.digest()
    return np.frombuffer(data, np.uint8).reshape(-1, VALUE_BYTES)
