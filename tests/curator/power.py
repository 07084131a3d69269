"""What a failing power leaves of a database: all up to the last change that waited for the disk."""

from typing import Any

import pytest

from veiltab.common.storage.database import Database, FetchedRows

_CHANGES = ("INSERT", "UPDATE", "DELETE", "COMMIT")


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

        patch.setattr(Database, "execute", watched)
        patch.setattr(Database, "execute_unsynced", watched_unsynced)

    def content_after_failure(self, database: Database) -> bytes:
        """Return the bytes of the database's file if the power fails now."""
        return database.serialize() if self._synced is None else self._synced
