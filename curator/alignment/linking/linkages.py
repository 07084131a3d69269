"""What a curator keeps of its linkages: the key of the hub's handles, and the report."""

from veiltab.common.storage.database import Database, transaction


class Linkages:
    """The linkages of one curator, one for each alignment.

    Args:
        connection: the curator's database.
    """

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def handle_key(self, alignment_id: str, fresh: bytes) -> bytes:
        """Return the key of an alignment's handles: `fresh` the first time, the same ever after."""
        with transaction(self._connection) as db:
            db.execute(
                "INSERT INTO linkage (alignment_id, handle_key) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [alignment_id, fresh],
            )
            row = db.execute("SELECT handle_key FROM linkage WHERE alignment_id = ?", [alignment_id]).fetchone()
        return bytes(row["handle_key"])

    def set_report(self, alignment_id: str, report: str) -> bool:
        """Record what this curator knows of a linkage, unless it is recorded; return whether it was not."""
        done = self._connection.execute(
            "UPDATE linkage SET report = ? WHERE alignment_id = ? AND report = ''", [report, alignment_id]
        )
        return bool(done.rowcount)

    def latest_report(self) -> str:
        """Return the report of the latest linkage; empty if there is none."""
        row = self._connection.execute(
            "SELECT report FROM linkage WHERE report <> '' ORDER BY rowid DESC LIMIT 1"
        ).fetchone()
        return "" if row is None else str(row["report"])
