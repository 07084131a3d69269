"""A disk that takes no more: what its party says to others, and what it says to its operator."""

import errno
import sqlite3
from contextlib import AbstractContextManager
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


class _NamedInErrors:
    """See `named_in_errors`; every statement of a database runs in one, which a generator would double the time of."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Add the name."""
        if isinstance(error, OSError | sqlite3.OperationalError):
            error.add_note(str(self._path))


def named_in_errors(path: Path) -> AbstractContextManager[None]:
    """Let an error of the disk say which file it is about; neither a failed write nor SQLite says so by itself."""
    return _NamedInErrors(path)


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
