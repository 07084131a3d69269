"""Files that survive a crash complete or not at all, and a state folder with one owner."""

import fcntl
import grp
import hashlib
import os
import pwd
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self, TextIO

from veiltab.common.errors import ConflictError, InvalidInputError


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Let an error of the disk say which file it is about; neither a failed write nor SQLite says so by itself."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        error.add_note(str(path))
        raise


@contextmanager
def written_whole(path: Path, *, is_durable: bool = True, is_folder_synced: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, which its name says; when the block ends, sync it and rename it into place.

    Args:
        is_durable: whether a failing power leaves it whole too, and not only a kill; else nothing is synced.
        is_folder_synced: whether its name is durable too; else anyone who writes several files syncs their folder once.
    """
    temporary = path.with_name(path.name + ".tmp")
    with named_in_errors(path):
        make_folder(path.parent)
        try:
            with open(temporary, "wb", opener=created_private) as file:
                yield file
                if is_durable:
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        temporary.replace(path)
        if is_durable and is_folder_synced:
            sync_folder(path.parent)


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Write a file that its owner alone may read; see `written_whole`."""
    with written_whole(path) as file:
        file.write(data)


def created_private(path: str, flags: int) -> int:
    """Create a file that nobody else may read."""
    return os.open(path, flags, 0o600)


def make_folder(folder: Path) -> None:
    """Make a folder, and those around it, if it is not there; no file outlives a failing power without their names."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the directory entries of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writers(path: Path) -> None:
    """Refuse a file, or a folder of files, that others than this user and root may write, or put another in its place.

    A file system that is mounted read-only is taken as it is, and root may use everybody's files.

    Raises:
        InvalidInputError: others may; says what to run.
        OSError: it is not there.
    """
    path.stat()  # a circle of links has no end
    for place in dict.fromkeys((path, *_on_the_way(path.absolute()))):
        status, user = place.stat(), os.geteuid()
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            continue
        if user and status.st_uid not in {0, user}:
            raise InvalidInputError(
                "this belongs to another user, who may change it",
                where=str(place),
                remedy="Look whether it is right, and use a copy of your own.",
            )
        # In a folder with the sticky bit, such as /tmp, nobody replaces what is another's.
        if not (place != path and status.st_mode & stat.S_ISVTX) and _has_other_writers(status):
            raise InvalidInputError(
                "others than its owner may write this",
                where=str(place),
                remedy=f"Look whether it is still right, and run: chmod go-w {place}",
            )


def _on_the_way(path: Path) -> Iterator[Path]:
    """Yield each folder and link through which a path leads, and what the links lead through."""
    for place in (path, *path.parents):
        if place != path or place.is_symlink():
            yield place
        if place.is_symlink():
            yield from _on_the_way(place.parent / place.readlink())


def _has_other_writers(status: os.stat_result) -> bool:
    """Whether others than its owner may write a file; the owner's own group, as many systems have it, is none."""
    if not status.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    try:
        owner, group = pwd.getpwuid(status.st_uid).pw_name, grp.getgrgid(status.st_gid)
    except KeyError:
        return True
    return group.gr_name != owner or not {owner}.issuperset(group.gr_mem)


def file_digest(path: Path, salt: bytes = b"") -> bytes:
    """Return the SHA-256 of a salt and a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.sha256(salt)).digest()


_OWNER = "party"


def owner_of(folder: Path) -> str:
    """Return the URI of the party whose state folder it is; "" if nothing says so."""
    path = folder / _OWNER
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def check_owner(folder: Path, owner: str) -> None:
    """Refuse a state folder that belongs to another party.

    Raises:
        ConflictError: it does; says whose it is.
    """
    if (who := owner_of(folder)) not in {"", owner}:
        raise ConflictError(
            f"this folder holds the state of {who[:200]!r}, not of {owner!r}",
            where=str(folder),
            remedy="Give each party a folder of its own.",
        )


def make_private(folder: Path) -> None:
    """Make a state folder that nobody else may enter, or close one that is there to others.

    Raises:
        InvalidInputError: that cannot be done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise InvalidInputError(
            f"this folder cannot be made for its owner alone ({error.strerror})",
            where=str(folder),
            remedy="Name another, or change the rights of the folder around it.",
        ) from None


def open_lock(folder: Path) -> TextIO:
    """Open the file whose lock says that a state folder is held."""
    path = folder / "lock"
    lock = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a")
    path.chmod(0o600)
    return lock


class OwnedFolder:
    """A state folder held by one process of one party; another is refused instead of sharing pads and releases.

    Args:
        path: the folder; made if missing.
        owner: the party, as its certificate names it; the first one to use the folder keeps it.
    """

    def __init__(self, path: Path, owner: str) -> None:
        make_private(path)
        self.path = path
        check_owner(path, owner)
        self._lock = open_lock(path)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise ConflictError(
                "another process already runs on this folder",
                where=str(path),
                remedy="Stop it first, or give this one a folder of its own.",
            ) from None
        if not (path / _OWNER).exists():
            write_whole(path / _OWNER, owner.encode())

    def __enter__(self) -> Self:
        """Return the folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        self.release()

    def release(self) -> None:
        """Let another process take the folder."""
        self._lock.close()
