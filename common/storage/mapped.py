"""Arrays mapped from disk: the system takes their memory back when it needs it."""

import mmap
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from veiltab.common.storage.files import named_in_errors

IN_MEMORY = 2**24
"""Bytes that cost more on disk than in memory, at most."""


def mapped_array(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Return what a file holds, to be read alone; numpy's own would look up every folder of its path first.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is empty.
    """
    with path.open("rb", buffering=0) as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)


def mapped_rows(pieces: Iterable[NDArray[np.int64]], folder: Path) -> NDArray[np.int64]:
    """Return row numbers that come in pieces; see `mapped_bytes`."""
    return mapped_bytes((piece.astype("<i8", copy=False) for piece in pieces), folder).view("<i8")


def mapped_bytes(pieces: Iterable[NDArray[Any]], folder: Path, size: float = float("inf")) -> NDArray[np.uint8]:
    """Return the bytes of what comes in pieces, mapped from disk; their place on it is free again when nobody has them.

    Args:
        folder: on whose disk they lie, readable for this party alone.
        size: how many they are, if that is known; up to IN_MEMORY stay in memory.

    Raises:
        OSError: the disk is full or fails.
    """
    if size <= IN_MEMORY:
        return np.frombuffer(b"".join(piece.data for piece in pieces), np.uint8)
    with named_in_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.writelines(piece.data for piece in pieces)
        file.flush()
        return np.memmap(file, np.uint8, mode="r") if file.tell() else np.empty(0, np.uint8)
