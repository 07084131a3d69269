"""A party's database: the interface that its stores use, and SQLite with durable transactions.

SQLite runs with WAL, synchronous FULL, one writer at a time.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from veiltab.common.errors import IntegrityError
from veiltab.common.storage.disk import disk_refusal
from veiltab.common.storage.files import check_writers, make_private, named_in_errors


class Rows(Protocol):
    """The rows of a statement's result; a row is read by column name or by position."""

    @property
    def rowcount(self) -> int:
        """Rows that the statement changed."""

    def fetchone(self) -> Any:  # noqa: ANN401 - a row, or None after the last
        """Return the next row, or None."""

    def fetchall(self) -> Sequence[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows that are left."""


class Connection(Protocol):
    """The interface of a store's database; threads share it, and each has its own transaction."""

    shared: ClassVar[bool]
    """Whether other processes may work on the same state."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Run a statement whose parameters are question marks: in this thread's transaction, or durable by itself."""

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> Rows:
        """Run a statement once for each of some parameters; the rows changed are those of all."""

    def transaction(self, *, is_synced: bool = True) -> AbstractContextManager[Self]:
        """Run a block as one transaction, the only one that writes; undone when the block raises.

        Args:
            is_synced: whether it waits for the disk; else a failing power may undo it until the next durable change.
        """

    def erase_traces(self) -> bool:
        """Erase deleted rows from the database's log too; return whether none is left."""

    def close(self) -> None:
        """Close it."""


AnyConnection = TypeVar("AnyConnection", bound=Connection)


class FetchedRows(list[Any]):
    """The rows of a statement's result that are left, all in memory; see Rows."""

    __slots__ = ("rowcount",)
    rowcount: int

    def fetchone(self) -> Any:  # noqa: ANN401 - a row, or None after the last
        """Return the next row, or None."""
        return self.pop(0) if self else None

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return self


class Database(sqlite3.Connection):
    """A connection that threads share: no statement of one falls into a transaction of another.

    Rows are read before another thread has its turn: threads that run the same statement share its prepared form, and
    one of them would reset it under the other.
    """

    shared: ClassVar[bool] = False

    def __init__(self, path: Path, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of sqlite3
        super().__init__(path, *args, **kwargs)
        self.turn = threading.RLock()
        self._is_writing = self._is_synced = False
        # Whether the next change is to wait for the disk, and whether SQLite is set to that: each setting costs.
        self._is_durable = self._is_set_durable = True
        self._path = path

    def execute(self, *args: Any) -> FetchedRows:  # type: ignore[override]  # noqa: ANN401 - as above
        """Run a statement once no other thread is in a transaction."""
        with self.turn:
            # As named_in_errors does, which would take as long as a short statement itself.
            try:
                if self._is_set_durable is not self._is_durable:
                    self._set_durability(args[0])
                rows = FetchedRows(cursor := super().execute(*args))
            except (OSError, sqlite3.OperationalError) as error:
                error.add_note(str(self._path))
                raise
            rows.rowcount = cursor.rowcount
            return rows

    def executemany(self, *args: Any) -> FetchedRows:  # type: ignore[override]  # noqa: ANN401 - as above
        """Run a statement many times once no other thread is in a transaction."""
        with self.turn, named_in_errors(self._path):
            if self._is_set_durable is not self._is_durable:
                self._set_durability(args[0])
            rows = FetchedRows(cursor := super().executemany(*args))
            rows.rowcount = cursor.rowcount
            return rows

    def _set_durability(self, statement: str) -> None:
        """Have SQLite wait for the disk, or not, as the change has to that a statement may be."""
        if not (self.in_transaction or statement.startswith("SELECT ")):
            super().execute(f"PRAGMA synchronous = {'FULL' if self._is_durable else 'NORMAL'}").fetchall()
            self._is_set_durable = self._is_durable  # and not where it was refused

    def execute_unsynced(self, statement: str, parameters: Sequence[Any] = ()) -> FetchedRows:
        """Run a statement that does not wait for the disk: a failing power may undo it until the next durable change.

        A process that is killed undoes nothing, and no later change is kept without it. It is for what follows from
        other records, or is shown to people alone. In a transaction it is durable with it.
        """
        with self.turn:
            before, self._is_durable = self._is_durable, False
            try:
                return self.execute(statement, parameters)
            finally:
                self._is_durable = before

    @contextmanager
    def transaction(self, *, is_synced: bool = True) -> Iterator[Self]:
        """Run a block as one transaction, taking the write lock first; undone when the block raises.

        A block within the block of another, in the same thread, is a part of that one's transaction.

        Args:
            is_synced: whether it is durable when the block ends; else as `execute_unsynced` says.
        """
        with self.turn:
            if self._is_writing:
                if is_synced and not self._is_synced:
                    raise AssertionError("what has to be durable is part of what does not wait for the disk")
                yield self
                return
            self._is_durable = is_synced
            try:
                self.execute("BEGIN IMMEDIATE")
            finally:
                self._is_durable = True
            self._is_writing, self._is_synced = True, is_synced
            try:
                yield self
                self.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back after some errors, such as a full disk.
                if self.in_transaction:
                    self.execute("ROLLBACK")
                raise
            finally:
                self._is_writing = False

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Read in a block what the database held at its first statement, while other processes write."""
        with self.turn:
            self.execute("BEGIN")
            try:
                yield self
            finally:
                # SQLite has already rolled back after some errors, such as a failing disk.
                if self.in_transaction:
                    self.execute("ROLLBACK")

    def close(self) -> None:
        """Close the database once no other thread is in a transaction."""
        with self.turn:
            super().close()

    def erase_traces(self) -> bool:
        """Empty the write-ahead log, which still holds deleted rows.

        A reader in another process may block this for the moment; a later call, or the end, then empties the log.
        """
        with self.turn, suppress(sqlite3.OperationalError):
            self.execute("PRAGMA busy_timeout = 500")
            try:
                (busy, _, _) = self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self.execute("PRAGMA busy_timeout = 30000")
            return not busy
        return False


def open_database(path: Path, migrations: Sequence[str]) -> Database:
    """Open a party's database, bringing it up to date.

    Args:
        path: the file; made if missing.
        migrations: scripts, oldest first; the database remembers how many it has seen.

    Raises:
        IntegrityError: the file is not a database, is damaged, or was written by a newer version.
        UnavailableError: its disk is full or fails.
    """
    try:
        return _opened(path, migrations)
    except (OSError, sqlite3.OperationalError) as error:
        refusal = disk_refusal(error)
        if refusal is None:
            raise
        refusal.where = str(path)
        raise refusal from None


def _opened(path: Path, migrations: Sequence[str]) -> Database:
    make_private(path.parent)
    if path.exists():
        check_writers(path)
    # The log beside the database gets the mode that the database has when it is opened.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
    connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False, factory=Database)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL can lose an acknowledged commit when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        _migrate(connection, path, migrations)
        _check_sound(connection, tuple(migrations))
    except sqlite3.DatabaseError as error:
        connection.close()
        if disk_refusal(error) is not None:
            raise
        raise IntegrityError(
            "this is not a sound veiltab database",
            where=str(path),
            remedy="Restore it as docs/operations/back-up.md says; a new one would forget what was spent.",
        ) from error
    except IntegrityError:
        connection.close()
        raise
    return connection


def _migrate(connection: Database, path: Path, migrations: Sequence[str]) -> None:
    with transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(migrations):
            raise IntegrityError("a newer version of veiltab wrote this database", where=str(path))
        for script in migrations[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _statements(script: str) -> Iterator[str]:
    """Split a script where a statement ends, which is not at the semicolons inside a trigger."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _check_sound(connection: Database, migrations: tuple[str, ...]) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok" or not _schema_after(migrations) <= _columns(connection):
        raise sqlite3.DatabaseError


@cache
def _schema_after(migrations: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Return every (table, column) of a database that has seen these migrations and nothing else."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(";".join(migrations))
        return _columns(fresh)


def _columns(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    rows = connection.execute(
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
    )
    return frozenset((table, column) for table, column in rows.fetchall())


def value_of(database: Database, query: str, *parameters: object) -> Any:  # noqa: ANN401 - as the column has it
    """Return the first column of the first row; None if there is no row."""
    rows = database.execute(query, parameters)
    return rows[0][0] if rows else None


def transaction(connection: AnyConnection, *, is_synced: bool = True) -> AbstractContextManager[AnyConnection]:
    """Run a block as one transaction, durable unless it waits for no disk; undone when the block raises."""
    return connection.transaction(is_synced=is_synced)


def erase_traces(connection: Connection) -> bool:
    """Erase deleted rows from the database's log too; return whether none is left."""
    return connection.erase_traces()
