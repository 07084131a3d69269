"""A disk that takes no more, or too little for what is to come: what its party says to others, and to its operator."""

import errno
import logging
import os
import sqlite3
import time
from pathlib import Path

from veiltab.common.errors import UnavailableError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FAILING = frozenset({errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE})
_FAILING_SQLITE = frozenset(
    {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
)
_PRIMARY = 0xFF
"""Bits of an error code of SQLite that say its kind."""

LEAST_RESERVE = 2**20
"""Bytes that stay free beside whatever is written: databases and logs grow too."""

RESERVE_PART = 8
"""Of as many parts of what is written, one more stays free."""

_LOG_SECONDS = 60.0
_log = logging.getLogger(__name__)


class DiskReservations:
    """The room on the disk of a folder: whatever is long is begun only if it can be written to its end.

    A quota of the file system is not seen: it shows when it is reached, as a disk that is full.

    Args:
        folder: on whose disk it is.
        who: the party, for those whom it refuses.
        beside: another folder, whose disk gets some of what is written, nobody counts how much; it must have as much.
    """

    def __init__(self, folder: Path, who: str = "", beside: Path | None = None) -> None:
        self._folders = [folder] if beside is None else [folder, beside]
        self._who = who
        self._promises: dict[str, int] = {}
        self._logged = -_LOG_SECONDS

    def keep(self, name: str, size: int) -> None:
        """Keep room for a work until `give_back`; again for the same work, it is checked anew.

        Args:
            size: bytes that it still has to write.

        Raises:
            UnavailableError: as `check`.
        """
        self.check(size, promised=sum(room for other, room in self._promises.items() if other != name))
        self._promises[name] = size

    def give_back(self, name: str) -> None:
        """Keep no more room for a work: it is written, or over."""
        self._promises.pop(name, None)

    def holds(self, size: int, *, promised: int = 0) -> bool:
        """Return whether so many bytes fit the disk with their reserve, beside those that others still write."""
        return min(map(free_bytes, self._folders)) - promised >= size + _reserve(size)

    def check(self, size: int, *, promised: int = 0) -> None:
        """Refuse what does not fit the disk with its reserve; the log names the folder, and the refusal does not.

        Args:
            size: bytes to write.
            promised: bytes that others have still to write.

        Raises:
            UnavailableError: says what is needed and what there is.
        """
        if self.holds(size, promised=promised):
            return
        fullest = min(self._folders, key=free_bytes)
        free = free_bytes(fullest) - promised
        error = UnavailableError(
            f"this party's disk is full but for {_amount(max(free, 0))}, and this takes {_amount(size)} with"
            f" {_amount(_reserve(size))} in reserve",
            where=self._who,
            remedy="It goes on once its operator has made room.",
        )
        if time.monotonic() - self._logged >= _LOG_SECONDS:
            self._logged = time.monotonic()
            _log.error("too little room: %s: %s", fullest, error.problem)
        raise error


def free_bytes(folder: Path) -> int:
    """Return the bytes that a party may still write to the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _reserve(size: int) -> int:
    return LEAST_RESERVE + size // RESERVE_PART


def _amount(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"


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
