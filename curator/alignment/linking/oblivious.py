"""The function that hub and spoke compute together on a key: the hub does not see it, the spoke learns one value.

For pass i, the digest d of a key (32 bytes) and the hub's scalar s,

    F(i, d) = first 32 bytes of SHA-512("veiltab linkage value" | i | d | s H(i, d)),

H hashing to ristretto255 (RFC 9496). The spoke sends rho H(i, d), the hub returns s rho H(i, d), and the spoke
multiplies by 1/rho. Without s, F looks random to those who have not asked. That is the protocol "2HashDH" of Jarecki,
Kiayias and Krawczyk (ASIACRYPT 2014), for curators that follow it, but with one rho for all keys of a pass: that the
hub cannot tell rho H(i, d) from uniform elements is the decisional Diffie-Hellman assumption here.

By tokens F(i, d) is AES-256-CMAC of d under two keys that all curators have.
"""

from collections.abc import Iterable
from hashlib import sha256, sha512

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.ristretto import load
from veiltab.common.storage.sorted_records import Bytes
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES, hashed, masked
from veiltab.curator.table.tokens import tokens

DIGEST_BYTES = 32
"""Length of the digest of a key."""

VALUE_BYTES = 32
"""Length of F: a tag, and a mask of a handle."""

HANDLE_BYTES = 16
"""Length of a handle, of a tag and of a mask."""

_KEY, _VALUE = b"veiltab linkage key\n", b"veiltab linkage value\n"
_BLOCK = np.dtype([("row", "<u8"), ("zeros", "<u8")])


def digests(keys: Iterable[bytes], alignment: str) -> bytes:
    """Return SHA-256("veiltab linkage key" | alignment | key) of each key: an alignment's digests serve no other."""
    head = sha256(_KEY + alignment.encode() + b"\n")

    def digest(key: bytes) -> bytes:
        one = head.copy()
        one.update(key)
        return one.digest()

    return b"".join(map(digest, keys))


def scalar_of(secret: bytes, label: str) -> bytes:
    """Return a scalar that only the owner of a uniform secret knows, for one purpose; 0 with probability 2^-252."""
    wide = derive(secret, f"{label} low") + derive(secret, f"{label} high")
    scalar: bytes = load().crypto_core_ristretto255_scalar_reduce(wide)
    return scalar


def inverse(scalar: bytes) -> bytes:
    """Return 1/scalar modulo the order of the group."""
    inverted: bytes = load().crypto_core_ristretto255_scalar_invert(scalar)
    return inverted


def elements(number: int, digests_: bytes) -> bytes:
    """Return H(i, d) of digests that lie one after the other."""
    head = _KEY + bytes([number])
    return hashed((digests_[at : at + DIGEST_BYTES] for at in range(0, len(digests_), DIGEST_BYTES)), head)


def values(number: int, digests_: bytes, multiplied: bytes) -> bytes:
    """Return F(i, d), given s H(i, d)."""
    head, steps = sha512(_VALUE + bytes([number])), range(0, len(digests_), DIGEST_BYTES)

    def value(at: int) -> bytes:
        one = head.copy()
        one.update(digests_[at : at + DIGEST_BYTES] + multiplied[at : at + ELEMENT_BYTES])
        return one.digest()[:VALUE_BYTES]

    return b"".join(map(value, steps))


def direct_values(number: int, digests_: bytes, scalar: bytes) -> bytes:
    """Return F(i, d) as the hub computes it."""
    return values(number, digests_, masked(elements(number, digests_), scalar))


def unblinded_values(number: int, digests_: bytes, answered: bytes, blind: bytes) -> bytes:
    """Return F(i, d), given s rho H(i, d) and 1/rho.

    Raises:
        IntegrityError: what was answered is no element of the group, or the identity.
    """
    return values(number, digests_, masked(answered, blind))


def token_values(number: int, digests_: bytes, key: bytes) -> bytes:
    """Return F(i, d) by tokens: AES-256-CMAC of d under a key of tags, and under a key of masks."""
    rows = len(digests_) // DIGEST_BYTES
    ends = np.arange(rows + 1, dtype=np.int64) * DIGEST_BYTES
    # Digests are bytes, not texts; nothing here reads them as texts.
    texts = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(digests_))
    parts = [tokens(texts, derive(key, f"linkage {what} {number}")) for what in ("tag", "mask")]
    return np.concatenate(parts, axis=1).tobytes() if rows else b""


class Handles:
    """The hub's names of its rows: AES-256 of the row's number, so nobody else can name one that it was not given.

    Args:
        key: 32 secret bytes, of one spoke in one session or of one alignment.
    """

    def __init__(self, key: bytes) -> None:
        # One block a row, each number once: a permutation is all that is asked of the cipher.
        self._cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - single blocks: a permutation

    def of(self, rows: NDArray[np.int64]) -> Bytes:
        """Return the handle of each row, (n, 16)."""
        blocks = np.zeros(len(rows), _BLOCK)
        blocks["row"] = rows
        return np.frombuffer(self._cipher.encryptor().update(blocks.view(np.uint8).data), np.uint8).reshape(
            -1, HANDLE_BYTES
        )

    def rows(self, handles: bytes, count: int) -> NDArray[np.int64]:
        """Return the row of each handle, given how many rows there are.

        Raises:
            IntegrityError: one of them is nobody's handle.
        """
        blocks = np.frombuffer(self._cipher.decryptor().update(handles), _BLOCK)
        if np.any(blocks["zeros"]) or np.any(blocks["row"] >= count):
            raise IntegrityError("a handle is not one that was given", where="linkage")
        return blocks["row"].astype(np.int64)
