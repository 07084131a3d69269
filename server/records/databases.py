"""Opens a server's folder and its database: SQLite beside its columns, or a PostgreSQL that processes share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.errors import ConflictError
from veiltab.common.extras import importing
from veiltab.common.storage.database import Connection, open_database
from veiltab.common.storage.files import OwnedFolder
from veiltab.server.sharing.folders import MARK

if TYPE_CHECKING:
    from veiltab.server.sharing.shared_folder import SharedFolder


def open_state(path: Path, migrations: Sequence[str], database: str) -> Connection:
    """Open the database of one store.

    Args:
        path: its file, if it is SQLite; its stem is the store's name in PostgreSQL.
        migrations: scripts, oldest first.
        database: URL of a PostgreSQL, or empty for SQLite.

    Raises:
        InvalidInputError: the URL is wrong, or the packages for PostgreSQL are not installed.
        UnavailableError: the database cannot be reached.
        IntegrityError: the database is damaged, or a newer version of veiltab wrote it.
    """
    if not database:
        return open_database(path, migrations)
    with importing("postgres", "PostgreSQL", where="--database"):
        from veiltab.server.records.postgres import open_postgres  # noqa: PLC0415 - not where the extra is missing
    return open_postgres(database, {path.stem: migrations})


def hold_folder(path: Path, owner: str, database: str) -> "OwnedFolder | SharedFolder":
    """Hold a server's state folder: alone, or together with other processes if the state is in a database.

    Raises:
        ConflictError: a process holds it in another way, or its state is elsewhere.
    """
    if database:
        from veiltab.server.sharing.shared_folder import SharedFolder  # noqa: PLC0415 - not for SQLite

        return SharedFolder(path, owner)
    if (path / MARK).exists():
        raise ConflictError(
            "this folder's state is in a PostgreSQL",
            where=str(path),
            remedy="Name it with --database or VEILTAB_DATABASE.",
        )
    return OwnedFolder(path, owner)
