"""What the latest process serves with: policy, study file, table."""

from decimal import Decimal
from pathlib import Path

from veiltab.common.storage.database import Database, transaction
from veiltab.common.study.file import Study
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.served_files import ServedPolicy, ServedTable


class Served:
    """The files that a curator serves with."""

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def set_served_policy(
        self, path: Path | None, rules: int, budget: Decimal | None, persons: int = 1, digest: str = ""
    ) -> None:
        """Record the policy that a process serves with: its file, rules, own budget, persons, and the file's digest."""
        file, own = None if path is None else str(path.absolute()), None if budget is None else str(budget)
        with transaction(self._connection) as db:
            db.execute("DELETE FROM served_policy")
            db.execute(
                "INSERT INTO served_policy (path, rules, budget, persons, digest) VALUES (?, ?, ?, ?, ?)",
                [file, rules, own, persons, digest],
            )
            self._audit.record(Event.POLICY_LOADED, file=file, rules=rules, budget=own, persons=persons, sha256=digest)

    def served_policy(self) -> ServedPolicy:
        """Return the policy that the latest process served with; one that asks little before there was any."""
        row = self._connection.execute("SELECT * FROM served_policy").fetchone()
        if row is None:
            return ServedPolicy(path=None, rules=0, budget=None, persons=1)
        path, budget = row["path"], row["budget"]
        return ServedPolicy(
            path=None if path is None else Path(path),
            rules=row["rules"],
            budget=None if budget is None else Decimal(budget),
            persons=row["persons"],
            digest=row["digest"],
        )

    def set_served_study(self, study: Study) -> None:
        """Record the study file that a process serves with."""
        with transaction(self._connection) as db:
            db.execute("DELETE FROM served_study")
            db.execute("INSERT INTO served_study (source) VALUES (?)", [study.source])
            self._audit.record(Event.STUDY_LOADED, sha256=study.digest)

    def served_study(self) -> bytes | None:
        """Return the study file that the latest process served with; None if no process has recorded it."""
        row = self._connection.execute("SELECT source FROM served_study").fetchone()
        return None if row is None else bytes(row["source"])

    def set_served_table(self, file: ServedTable | None, rows: int, version: str) -> None:
        """Record the table that a process serves with: its file, if it is one, its respondents, and its version.

        The version is random, and the same for the same content: a digest would let an auditor test guesses of a table.
        """
        with transaction(self._connection) as db:
            db.execute("DELETE FROM served_table")
            if file is not None:
                db.execute(
                    "INSERT INTO served_table (path, size, modified) VALUES (?, ?, ?)",
                    [str(file.path), file.size, file.modified],
                )
            self._audit.record(Event.TABLE_LOADED, rows=rows, version=version)

    def served_table(self) -> ServedTable | None:
        """Return the file of the table that the latest process served with; None if it was not a single file."""
        row = self._connection.execute("SELECT path, size, modified FROM served_table").fetchone()
        if row is None:
            return None
        return ServedTable(path=Path(row["path"]), size=row["size"], modified=row["modified"])
