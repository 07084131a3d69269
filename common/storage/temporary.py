"""A folder among the temporary files that ends with its process: what a kill leaves, the next one deletes."""

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

_PREFIX = "veiltab-files-"


class TemporaryFolder:
    """A folder that only its user may enter; it goes with this object, or else when another one is made.

    Its process holds a lock on it for as long as it lives. What belongs to no process is deleted.
    """

    def __init__(self) -> None:
        _delete_left_over()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            lock = _locked(self.path)
            if lock is not None and self.path.exists():  # else another process took it for left over
                break
        self._end = weakref.finalize(self, _delete, self.path, lock)

    def delete(self) -> None:
        """Delete it and what it holds."""
        self._end()


def _delete_left_over() -> None:
    """Delete the folders of processes that are no more."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if (lock := _locked(path)) is not None:
            _delete(path, lock)


def _locked(path: Path) -> int | None:
    """Return the lock of a folder; None if it is not this user's, or a process has it."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
    except BlockingIOError:
        pass
    os.close(lock)
    return None


def _delete(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
