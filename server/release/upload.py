"""Receives one encrypted column: resumable, idempotent, and complete only with the right digest."""

import os
from pathlib import Path
from typing import BinaryIO

from veiltab.common.errors import ConflictError, InvalidInputError, TransferError
from veiltab.common.storage.files import file_digest, make_folder


class ColumnUpload:
    """One column's file while its chunks arrive; of one call, at most twice its length, as some may be held already.

    Args:
        path: where the column grows.
        length: bytes of the whole column.
    """

    def __init__(self, path: Path, length: int) -> None:
        make_folder(path.parent)
        self.path = path
        self._length = length
        self._came = 0
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")

    @property
    def received(self) -> int:
        """Bytes held."""
        return os.fstat(self._file.fileno()).st_size

    def write(self, offset: int, data: bytes) -> None:
        """Take a verified chunk; bytes already held must be the same ones.

        Raises:
            InvalidInputError: a gap before the chunk, bytes past the end of the column, or more than twice its length.
            ConflictError: other bytes are held at this place.
        """
        length = self.received
        self._came += len(data)
        if self._came > 2 * self._length:
            raise InvalidInputError("the same bytes of the column come again and again", where="column upload")
        if offset > length:
            raise InvalidInputError(f"a chunk at byte {offset} leaves a gap after byte {length}", where="column upload")
        if offset + len(data) > self._length:
            raise InvalidInputError(f"the column has {self._length} bytes, and more came", where="column upload")
        repeated = data[: length - offset]
        self._file.seek(offset)
        if self._file.read(len(repeated)) != repeated:
            raise ConflictError("other bytes are held at this place of the column", where="column upload")
        self._file.seek(length)
        self._file.write(data[len(repeated) :])
        self._file.flush()

    def finish(self, digest: bytes) -> bool:
        """Make the received bytes durable, but not the file's name; return whether the column is complete.

        Raises:
            TransferError: it has its length but not its digest; it is deleted, and may be sent again from its start.
        """
        os.fsync(self._file.fileno())
        if self.received < self._length:
            return False
        if file_digest(self.path) != digest:
            self.path.unlink()
            raise TransferError("the column does not have its digest", where="column upload", remedy="Send it again.")
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
