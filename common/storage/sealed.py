"""A file of arrays that are encrypted as they are written, and decrypted and authenticated as they are read.

Each page is encrypted by itself, with AES-256-GCM under its number, so a reader of any range notices a page that was
altered, moved within its file, or taken from another one: every file has a key of its own. Nothing is ever overwritten,
so no number serves twice.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from veiltab.common.errors import IntegrityError, TransferError
from veiltab.common.storage.files import named_in_errors
from veiltab.common.storage.stored import fill

PAGE = 2**15
"""Bytes of an array that are encrypted together; every array begins with a page of its own."""

_LENGTH = 4
"""Bytes before each page that say how many of its bytes are an array's; the rest are zeros."""

_SEALED = _LENGTH + PAGE + 16
_AT_ONCE = 8
"""Pages that are encrypted and written, or read, at once: they stay in the cache."""


class SealedFile:
    """Arrays that are appended, and read from anywhere.

    Args:
        descriptor: of the file, which is open for reading, and for writing if anything is appended.
        folder: what an error of the disk names.
        key: 32 bytes, of no other file.
        header: length of what precedes the arrays.
    """

    def __init__(self, descriptor: int, folder: Path, *, key: bytes, header: int = 0) -> None:
        self.folder = folder
        """On whose disk it is."""
        self._file = descriptor
        self._cipher = AESGCM(key)
        self._header = header
        self._pages = 0

    def append(self, data: NDArray[np.generic]) -> int:
        """Write an array, and return where its bytes begin.

        Raises:
            OSError: the disk is full or fails.
        """
        plain = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        start, pages = self._pages, -(-len(plain) // PAGE)
        # Also where writing fails: no number serves two pages.
        self._pages += pages
        text, sealed = plain.data, memoryview(bytearray(min(pages, _AT_ONCE) * _SEALED))
        for first in range(0, pages, _AT_ONCE):
            last = min(first + _AT_ONCE, pages)
            for number in range(first, last):
                page = sealed[(number - first) * _SEALED : (number - first + 1) * _SEALED]
                self._seal(start + number, text[number * PAGE : (number + 1) * PAGE], page)
            with named_in_errors(self.folder):
                self._write(sealed[: (last - first) * _SEALED], (start + first) * _SEALED)
        return start * PAGE

    def read(self, start: int, length: int) -> NDArray[np.uint8]:
        """Return some bytes.

        Raises:
            TransferError: they are not there, or not as they were written; anyone who made them can make them again.
            OSError: the disk fails.
        """
        first, skip = divmod(start, PAGE)
        stop = skip + length
        pages = -(-stop // PAGE)
        plain = np.empty(pages * PAGE, np.uint8)
        text, sealed = plain.data, np.empty(min(pages, _AT_ONCE) * _SEALED, np.uint8)
        for done in range(0, pages, _AT_ONCE):
            last = min(done + _AT_ONCE, pages)
            with named_in_errors(self.folder):
                self._fill(sealed[: (last - done) * _SEALED], (first + done) * _SEALED)
            for number in range(done, last):
                page = sealed.data[(number - done) * _SEALED : (number - done + 1) * _SEALED]
                size = self._open(first + number, page, text[number * PAGE : (number + 1) * PAGE])
                if size < min(stop - number * PAGE, PAGE):
                    raise _shorter()
        return plain[skip:stop]

    def sync(self) -> None:
        """Let other machines read what was written while this one has the file open.

        Raises:
            OSError: the disk is full or fails.
        """
        with named_in_errors(self.folder):
            os.fsync(self._file)

    @contextmanager
    def opened(self) -> Iterator["SealedFile"]:
        """Return the file, which is open."""
        yield self

    def _seal(self, number: int, plain: memoryview, sealed: memoryview) -> None:
        """Encrypt a page, and authenticate its length with it."""
        length = len(plain).to_bytes(_LENGTH, "big")
        sealed[:_LENGTH] = length
        text = plain if len(plain) == PAGE else plain.tobytes().ljust(PAGE, b"\0")
        self._cipher.encrypt_into(_nonce(number), text, length, sealed[_LENGTH:])

    def _open(self, number: int, sealed: memoryview, plain: memoryview) -> int:
        """Decrypt a page, and return how many of its bytes were written."""
        length = sealed[:_LENGTH].tobytes()
        try:
            self._cipher.decrypt_into(_nonce(number), sealed[_LENGTH:], length, plain)
        except InvalidTag:
            raise TransferError("a file was altered since it was written", where="disk") from None
        return int.from_bytes(length, "big")

    def _fill(self, sealed: NDArray[np.uint8], place: int) -> None:
        try:
            fill(self._file, sealed, self._header + place)
        except IntegrityError:
            raise _shorter() from None

    def _write(self, sealed: memoryview, place: int) -> None:
        done = 0
        while done < len(sealed):
            done += os.pwrite(self._file, sealed[done:], self._header + place + done)


def _shorter() -> TransferError:
    return TransferError("a file is shorter than what was written to it", where="disk")


def _nonce(page: int) -> bytes:
    return page.to_bytes(12, "big")
