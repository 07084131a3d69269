"""Opens a server's database: SQLite beside its columns, or a PostgreSQL that several processes share."""

from collections.abc import Sequence
from pathlib import Path

from veiltab.common.extras import importing
from veiltab.common.storage.database import Connection, open_database
from veiltab.server.sharing.leases import LEASES
from veiltab.server.sharing.shared_folder import DEPLOYMENT


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
    return open_postgres(database, {"lease": LEASES, "deployment": DEPLOYMENT, path.stem: migrations})
