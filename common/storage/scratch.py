"""Scratch space on disk for what a computation needs a while and memory cannot hold: it ends with its process.

The file has no name, so nothing finds it, and neither a kill nor a crash leaves it behind. All of it is encrypted under
a key that only this process's memory holds: what the disk keeps of it afterwards says nothing.
"""

import os
import secrets
import tempfile
import weakref
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from veiltab.common.errors import IntegrityError
from veiltab.common.storage.disk import named_in_errors

_BLOCK = 16


class Scratch:
    """Bytes that are appended, and read from anywhere; nothing is ever overwritten, so no key stream serves twice.

    Args:
        folder: on whose disk they lie; None for the system's folder of temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = Path(tempfile.gettempdir()) if folder is None else folder
        """On whose disk it is."""
        with named_in_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file, name = tempfile.mkstemp(prefix=".scratch-", dir=self.folder)
            Path(name).unlink()
        # Gives the space back when nothing refers to this object any more.
        weakref.finalize(self, os.close, self._file)
        self._cipher = algorithms.AES256(secrets.token_bytes(32))
        self._end = 0

    def append(self, data: NDArray[np.generic]) -> int:
        """Write an array, and return where its bytes begin.

        Raises:
            OSError: the disk is full or fails.
        """
        plain = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        start, sealed = self._end, self._crypted(plain, self._end)
        with named_in_errors(self.folder):
            done = 0
            while done < len(sealed):
                done += os.pwrite(self._file, sealed[done:].data, start + done)
        # Every array begins with a block of its own.
        self._end += -(-len(plain) // _BLOCK) * _BLOCK
        return start

    def read(self, start: int, length: int) -> NDArray[np.uint8]:
        """Return some bytes.

        Raises:
            IntegrityError: they are not there.
            OSError: the disk fails.
        """
        skipped = start % _BLOCK
        sealed, done = np.empty(skipped + length, np.uint8), 0
        with named_in_errors(self.folder):
            while done < len(sealed):
                got = os.preadv(self._file, [sealed[done:].data], start - skipped + done)
                if not got:
                    raise IntegrityError("scratch space is shorter than what was written to it", where="disk")
                done += got
        return self._crypted(sealed, start - skipped)[skipped:]

    def _crypted(self, data: NDArray[np.uint8], start: int) -> NDArray[np.uint8]:
        """Add the key stream of the place where the bytes lie."""
        counter = (start // _BLOCK).to_bytes(_BLOCK, "big")
        # The cipher requires space for another block, which it does not use.
        out = np.empty(len(data) + _BLOCK, np.uint8)
        Cipher(self._cipher, modes.CTR(counter)).encryptor().update_into(data.data, out.data)
        return out[: len(data)]
