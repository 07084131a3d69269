"""Sources of random bytes: a keyed cipher stream, which can be repeated, and the operating system, which cannot."""

import os
from typing import Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from veiltab.common.errors import InvalidInputError

KEY_BYTES = 32
"""Length of a key, in bytes."""

MAX_FILL = 2**21
"""Longest fill in bytes: 2^15 blocks of 64, so the 32-bit block counter neither wraps nor carries into the label."""

ZEROS = memoryview(bytes(MAX_FILL))
"""What a cipher encrypts to give its key stream."""


class ByteSource(Protocol):
    """Uniform bytes, addressed by (label, chunk): their purpose, and the part of the table that they cover."""

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        """Overwrite all of `out`, at most MAX_FILL bytes, with uniform ones."""


class CipherStream:
    """ChaCha20 key stream: the same (key, label, chunk) gives the same bytes, a different one shares no block.

    Block i of (label, chunk) is ChaCha20(key, counter = i, nonce = label | chunk), all little-endian: 4, 4 and 8 bytes.
    A prefix of a fill is the fill of the prefix, so one (label, chunk) must serve one purpose only.

    Args:
        key: 32 secret uniform bytes.

    Raises:
        InvalidInputError: the key has another length.

    Source: RFC 8439, section 2.3 (block function), with the first nonce word as the label.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = check_key(key)

    def __repr__(self) -> str:
        """Name the class and nothing secret."""
        return "CipherStream(key=<hidden>)"

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        """Overwrite `out` with the key stream of (label, chunk).

        Args:
            out: at most MAX_FILL bytes.
            label: purpose, 0 <= label < 2^32.
            chunk: position, 0 <= chunk < 2^64.

        Raises:
            InvalidInputError: a label, chunk or length out of range.
        """
        if len(out) > MAX_FILL:
            raise InvalidInputError(f"{len(out)} bytes were asked for at once, more than {MAX_FILL}")
        if not (0 <= label < 2**32 and 0 <= chunk < 2**64):
            raise InvalidInputError(f"label {label} or chunk {chunk} is outside what a stream counts")
        nonce = bytes(4) + label.to_bytes(4, "little") + chunk.to_bytes(8, "little")
        cipher = Cipher(algorithms.ChaCha20(self._key, nonce), mode=None)
        cipher.encryptor().update_into(ZEROS[: len(out)], out)


class SystemSource:
    """The operating system's generator: every fill is fresh, whatever its label and chunk."""

    __slots__ = ()

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:  # noqa: ARG002 - the protocol's names
        """Overwrite `out` with fresh bytes that nobody can repeat."""
        out[:] = os.urandom(len(out))


def check_key(key: bytes) -> bytes:
    """Return the key, or raise InvalidInputError unless it has 32 bytes (the message contains only the length)."""
    if len(key) != KEY_BYTES:
        raise InvalidInputError(f"the key has {len(key)} bytes, not {KEY_BYTES}")
    return key
