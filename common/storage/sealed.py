"""A file of arrays that are encrypted as they are written, and decrypted as they are read.

AES-256 in counter mode: the block of the file at which an array lies places its key stream. Nothing is ever
overwritten, so no key stream serves twice.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from veiltab.common.storage.disk import named_in_errors
from veiltab.common.storage.stored import fill

BLOCK = 16
"""Length of a block of the cipher; every array begins with a block of its own."""

_SLICE = 2**18
"""Bytes that are encrypted and written at once: they stay in the cache."""


class SealedFile:
    """Arrays that are appended, and read from anywhere.

    Args:
        descriptor: of the file, which is open for reading, and for writing if anything is appended.
        folder: what an error of the disk names.
        key: 32 bytes.
        nonce: 16 bytes, fresh for each file under a key.
        header: length of what precedes the arrays.
    """

    def __init__(self, descriptor: int, folder: Path, *, key: bytes, nonce: bytes, header: int = 0) -> None:
        self.folder = folder
        """On whose disk it is."""
        self._file = descriptor
        self._cipher = algorithms.AES256(key)
        self._first = int.from_bytes(nonce, "big")
        self._header = header
        self._end = 0

    def append(self, data: NDArray[np.generic]) -> int:
        """Write an array, and return where its bytes begin.

        Raises:
            OSError: the disk is full or fails.
        """
        plain = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        start, stream = self._end, self._stream(self._end)
        # The cipher requires space for another block, which it does not use.
        sealed = np.empty(min(len(plain), _SLICE) + BLOCK, np.uint8)
        with named_in_errors(self.folder):
            for first in range(0, len(plain), _SLICE):
                part = plain[first : first + _SLICE]
                stream.update_into(part.data, sealed.data)
                self._write(sealed[: len(part)], start + first)
        self._end += -(-len(plain) // BLOCK) * BLOCK
        return start

    def read(self, start: int, length: int) -> NDArray[np.uint8]:
        """Return some bytes.

        Raises:
            IntegrityError: they are not there.
            OSError: the disk fails.
        """
        stream, plain = self._stream(start), np.empty(length + BLOCK, np.uint8)
        sealed = np.empty(min(length, _SLICE), np.uint8)
        for first in range(0, length, _SLICE):
            part = sealed[: min(_SLICE, length - first)]
            with named_in_errors(self.folder):
                fill(self._file, part, self._header + start + first)
            stream.update_into(part.data, plain[first:].data)
        return plain[:length]

    @contextmanager
    def opened(self) -> Iterator["SealedFile"]:
        """Return the file, which is open."""
        yield self

    def _write(self, sealed: NDArray[np.uint8], place: int) -> None:
        done = 0
        while done < len(sealed):
            done += os.pwrite(self._file, sealed[done:].data, self._header + place + done)

    def _stream(self, place: int) -> CipherContext:
        """Return the key stream of a place in the file."""
        block, skipped = divmod(place, BLOCK)
        counter = (self._first + block) % 2 ** (8 * BLOCK)
        stream = Cipher(self._cipher, modes.CTR(counter.to_bytes(BLOCK, "big"))).encryptor()
        stream.update(bytes(skipped))
        return stream
