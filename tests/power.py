"""What a failing power leaves: of a database all to the last change that waited for the disk, of files what was synced.

Of what else was written, renamed or deleted a disk may hold any part.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from veiltab.common.storage.database import Database, FetchedRows

_CHANGES = ("INSERT", "UPDATE", "DELETE", "COMMIT")
_BEGINNINGS = ("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE")
UNRAISABLE = "ignore::pytest.PytestUnraisableExceptionWarning"
"""A finalizer may want to delete a file when the power has failed."""

_STEPS = ("fsync", "replace", "rename", "unlink", "rmdir")


class Power:
    """Watches one database from now on.

    Args:
        patch: for as long as it watches.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        # What the database held before the first change that was not synced since the last one that was.
        self._synced: bytes | None = None
        execute, execute_unsynced = Database.execute, Database.execute_unsynced

        def watched(database: Database, *args: Any) -> FetchedRows:  # noqa: ANN401 - those of sqlite3
            result = execute(database, *args)
            if not database.in_transaction and str(args[0]).lstrip().startswith(_CHANGES):
                self._synced = None
            return result

        def watched_unsynced(database: Database, *args: Any) -> FetchedRows:  # noqa: ANN401 - as above
            before = self.content_after_failure(database)
            result = execute_unsynced(database, *args)
            if not database.in_transaction:
                self._synced = before
            return result

        transaction = Database.transaction

        @contextmanager
        def watched_transaction(database: Database, *, is_synced: bool = True) -> Iterator[Database]:
            with database.turn:
                is_undone = not is_synced and not database.in_transaction
                before = self.content_after_failure(database) if is_undone else None
                with transaction(database, is_synced=is_synced):
                    yield database
                if is_undone:
                    self._synced = before

        patch.setattr(Database, "execute", watched)
        patch.setattr(Database, "execute_unsynced", watched_unsynced)
        patch.setattr(Database, "transaction", watched_transaction)

    def content_after_failure(self, database: Database) -> bytes:
        """Return the bytes of the database's file if the power fails now."""
        return database.serialize() if self._synced is None else self._synced


class PowerFailure(BaseException):
    """The power fails now; nothing that catches errors goes on after it."""


class FailingPower:
    """Lets the power of a party fail at one of its steps: a sync, a new name, a deletion, a change of its database.

    A file then holds what it held when it was synced, what was written since, or the beginning of that and zeros. A
    name is there as when its folder was synced, or as it is now, each by itself. All that is there at the beginning is
    on the disk.

    Args:
        patch: for as long as it watches.
        folder: of the party.
        database: of the party, in that folder.
        at: number of the step before which the power fails.
        seed: of what the disk holds.
    """

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path, database: Database, *, at: int, seed: int = 0) -> None:
        self._power = Power(patch)
        self._folder, self._database = folder, database
        self._at, self._chance = at, Random(seed)  # noqa: S311 - of a test
        self.steps = 0
        self.left: dict[str, bytes] | None = None
        """What is left of each file, once the power has failed."""
        # By inode: the bytes of a file when it was synced, and the inodes of a folder by name.
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        # No inode is used again while it is open.
        self._open: list[int] = []
        self._sync_all()
        for name in _STEPS:
            patch.setattr(os, name, self._watched(getattr(os, name)))
        execute = Database.execute

        def watched(database: Database, *args: Any) -> FetchedRows:  # noqa: ANN401 - those of sqlite3
            if not database.in_transaction and str(args[0]).lstrip().startswith(_BEGINNINGS):
                self._step()
            return execute(database, *args)

        patch.setattr(Database, "execute", watched)

    def close(self) -> None:
        """Let go of all files."""
        for descriptor in self._open:
            os.close(descriptor)

    def restore(self, folder: Path) -> None:
        """Write what is left to a folder."""
        assert self.left is not None
        for name, content in self.left.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of any of these calls
            self._step()
            if call.__name__ == "fsync":
                self._sync(args[0])
            return call(*args, **kwargs)

        return watched

    def _step(self) -> None:
        # No thread is in a transaction meanwhile.
        with self._database.turn:
            if self.left is None and self.steps == self._at:
                self.left = dict(self._left(self._folder.stat().st_ino, self._now(self._folder)))
                self.left[self._database._path.name] = self._left_of_database()
            if self.left is not None:
                raise PowerFailure
            self.steps += 1

    def _sync_all(self) -> None:
        for folder, _, names in os.walk(self._folder):
            for path in (Path(folder), *(Path(folder, name) for name in names)):
                descriptor = os.open(path, os.O_RDONLY)
                self._sync(descriptor)
                os.close(descriptor)

    def _sync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        self._open.append(os.dup(descriptor))
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112 - a descriptor
            with os.scandir(descriptor) as entries:
                self._names[inode] = {entry.name: entry.inode() for entry in entries}
        else:
            self._bytes[inode] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def _now(self, folder: Path) -> dict[int, Path]:
        """Return where each inode is now."""
        return {os.lstat(path).st_ino: path for path in folder.rglob("*")} | {folder.stat().st_ino: folder}

    def _left(self, folder: int, now: dict[int, Path], beginning: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield the files that are left of a folder, and what is left of each."""
        synced = self._names.get(folder, {})
        current = {path.name: os.lstat(path).st_ino for path in now[folder].iterdir()} if folder in now else {}
        for name in sorted(synced.keys() | current.keys()):
            inode = self._chance.choice([synced.get(name), current.get(name)])
            if inode is None or name.startswith(self._database._path.name):
                continue
            if inode in self._names or (inode in now and now[inode].is_dir()):
                yield from self._left(inode, now, f"{beginning}{name}/")
            else:
                yield f"{beginning}{name}", self._left_of_file(inode, now)

    def _left_of_file(self, inode: int, now: dict[int, Path]) -> bytes:
        synced = self._bytes.get(inode, b"")
        current = now[inode].read_bytes() if inode in now else synced
        torn = current[: len(current) // 2].ljust(len(current), b"\0") if current != synced else synced
        return self._chance.choice([synced, current, torn])

    def _left_of_database(self) -> bytes:
        assert not self._database.in_transaction
        return self._chance.choice([self._power.content_after_failure(self._database), self._database.serialize()])
