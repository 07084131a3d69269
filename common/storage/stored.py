"""Files as tasks have them: plain data that says where bytes are, and how to read them in any process."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError
from veiltab.common.storage.files import named_in_errors


class Readable(Protocol):
    """A file from which arrays are read."""

    def read(self, start: int, length: int) -> NDArray[np.uint8]:
        """Return some bytes.

        Raises:
            IntegrityError: they are not there.
            OSError: the disk fails.
        """


class StoredFile(Protocol):
    """A file that can be opened."""

    def opened(self) -> AbstractContextManager[Readable]:
        """Open it to read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFile:
    """A file that is not encrypted."""

    path: Path

    @contextmanager
    def opened(self) -> Iterator[Readable]:
        """Open the file to read it."""
        with named_in_errors(self.path):
            descriptor = os.open(self.path, os.O_RDONLY)
        try:
            yield _Plain(descriptor, self.path)
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Plain:
    descriptor: int
    path: Path

    def read(self, start: int, length: int) -> NDArray[np.uint8]:
        data = np.empty(length, np.uint8)
        with named_in_errors(self.path):
            fill(self.descriptor, data, start)
        return data


def fill(descriptor: int, data: NDArray[np.uint8], place: int) -> None:
    """Read what stands at a place of a file, as long as `data` is.

    Raises:
        IntegrityError: the file is shorter.
    """
    done = 0
    while done < len(data):
        got = os.preadv(descriptor, [data[done:].data], place + done)
        if not got:
            raise IntegrityError("a file is shorter than what was written to it", where="disk")
        done += got
