"""A disk that takes no more: what its party says to others, and what it says to its operator."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veiltab.common.errors import UnavailableError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FAILING = frozenset({errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE})
_FAILING_SQLITE = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    }
)
_PRIMARY = 0xFF
"""Bits of an error code of SQLite that say its kind."""


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Let an error of the disk say which file it is about; neither a failed write nor SQLite says so by itself."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        error.add_note(str(path))
        raise


def files_of(error: BaseException) -> str:
    """Return the files that an error of the disk is about, for the log of this party alone."""
    names = [*getattr(error, "__notes__", ()), *filter(None, [getattr(error, "filename", None)])]
    return ", ".join(dict.fromkeys(map(str, names)))


def disk_refusal(error: BaseException) -> UnavailableError | None:
    """Return what a party says while its disk is full or fails, or None if the error is another.

    Args:
        error: an exception of the operating system, or of SQLite.

    Returns:
        A refusal that is worth asking again after; it names no file.
    """
    full, failing = _kind(error)
    if full:
        return UnavailableError("this party's disk is full", remedy="It goes on once its operator has made room.")
    if failing:
        return UnavailableError("this party's disk fails", remedy="Its operator finds which in its log.")
    return None


def _kind(error: BaseException) -> tuple[bool, bool]:
    """Return whether an error says that a disk is full, and whether it says that one fails."""
    match error:
        case OSError():
            return error.errno in _FULL, error.errno in _FAILING
        case sqlite3.OperationalError():
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
            return code == sqlite3.SQLITE_FULL, code in _FAILING_SQLITE
        case _:
            return False, False
