"""SQLite as veiltab keeps what it has acknowledged: WAL, synchronous FULL, one writer at a time."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.errors import IntegrityError


def open_database(path: Path, migrations: Sequence[str]) -> sqlite3.Connection:
    """Open a party's database, bringing it up to date.

    Args:
        path: the file; made if missing.
        migrations: scripts, oldest first; the database remembers how many it has seen.

    Raises:
        IntegrityError: the file is not a database, is damaged, or was written by a newer version.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL can lose an acknowledged commit when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        _migrate(connection, path, migrations)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise IntegrityError(
            "this is not a sound veiltab database",
            where=str(path),
            remedy="Restore it as docs/operations.md says; a new one would forget what was spent.",
        ) from error
    path.chmod(0o600)
    return connection


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    with transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(migrations):
            raise IntegrityError("a newer version of veiltab wrote this database", where=str(path))
        for script in migrations[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run a block as one durable transaction, taking the write lock first; undone when the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
