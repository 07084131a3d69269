"""Plans, cards and charges, each computed once and kept under the digest of its question."""

from veiltab.common.storage.database import Database, value_of


class KeptAnswers:
    """Answers to questions about releases."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def plan(self, release_id: str, question: bytes) -> str | None:
        """Return the answer to a question of this digest, if it was ever answered."""
        query = "SELECT answer FROM plan WHERE release_id = ? AND question = ?"
        answer: str | None = value_of(self._connection, query, release_id, question)
        return answer

    def set_plan(self, release_id: str, question: bytes, answer: str) -> None:
        """Record the answer to a question; the first one counts."""
        self._connection.execute_unsynced(
            "INSERT INTO plan VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [release_id, question, answer]
        )

    def card(self, spec: bytes) -> str | None:
        """Return the epsilon card of the spec of this digest, if it was ever made."""
        rows: str | None = value_of(self._connection, "SELECT rows FROM card WHERE spec = ?", spec)
        return rows

    def set_card(self, release_id: str, spec: bytes, rows: str) -> None:
        """Record the epsilon card of a spec."""
        self._connection.execute("INSERT INTO card VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [spec, release_id, rows])

    def charge(self, question: bytes) -> str | None:
        """Return the answer to the question of this digest what a release takes, if it was ever answered."""
        answer: str | None = value_of(self._connection, "SELECT answer FROM charge WHERE question = ?", question)
        return answer

    def set_charge(self, release_id: str, question: bytes, answer: str) -> None:
        """Record what a release takes; the first answer counts."""
        values = [question, release_id, answer]
        self._connection.execute_unsynced("INSERT INTO charge VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)
