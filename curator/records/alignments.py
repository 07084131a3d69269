"""Table versions, alignments, and the longest ledger that each peer has shown."""

from veiltab.common.release.messages.witness import longest_ledger, remember_ledger
from veiltab.common.storage.database import Database, value_of


class Alignments:
    """Alignments and peers' ledgers."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def table_version(self, content_digest: str, fresh: str) -> str:
        """Return the random name of a table content: `fresh` the first time, the same ever after."""
        self._connection.execute(
            "INSERT INTO table_version VALUES (?, ?) ON CONFLICT DO NOTHING", [content_digest, fresh]
        )
        query = "SELECT version FROM table_version WHERE content_digest = ?"
        return str(value_of(self._connection, query, content_digest))

    def fill_key(self, fresh: bytes) -> bytes:
        """Return the secret from which follows what people have whom a complete table lacks: `fresh` the first time."""
        self._connection.execute("INSERT INTO fill_key VALUES (1, ?) ON CONFLICT DO NOTHING", [fresh])
        return bytes(value_of(self._connection, "SELECT key FROM fill_key"))

    def forget_version(self, content_digest: str) -> None:
        """Let a table content have another name from now on, so that it is aligned under new keys."""
        self._connection.execute("DELETE FROM table_version WHERE content_digest = ?", [content_digest])

    def alignment(self, alignment_id: str) -> tuple[int, str] | None:
        """Return (rows n, digest) of a finished alignment."""
        row = self._connection.execute("SELECT * FROM alignment WHERE id = ?", [alignment_id]).fetchone()
        return None if row is None else (row["population"], row["digest"])

    def latest_alignment(self) -> tuple[int, str] | None:
        """Return (rows n, digest) of the latest alignment."""
        row = self._connection.execute("SELECT * FROM alignment ORDER BY rowid DESC LIMIT 1").fetchone()
        return None if row is None else (row["population"], row["digest"])

    def matched(self) -> int:
        """Return how many rows of the latest alignment are of people in one's own table."""
        row = self._connection.execute("SELECT * FROM alignment ORDER BY rowid DESC LIMIT 1").fetchone()
        return 0 if row is None else int(row["matched"])

    def set_alignment(self, alignment_id: str, population: int, digest: str, matched: int = 0) -> None:
        """Record a finished alignment, and how many of its rows are of people in one's own table."""
        self._connection.execute(
            "INSERT INTO alignment VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [alignment_id, population, digest, matched],
        )

    def witness(self, curator: str) -> tuple[int, bytes]:
        """Return the longest ledger (entries, head) that a peer ever showed."""
        return longest_ledger(self._connection, curator)

    def set_witness(self, curator: str, length: int, head: bytes) -> None:
        """Record a peer's ledger if it is longer than the recorded one."""
        remember_ledger(self._connection, curator, (length, head))
