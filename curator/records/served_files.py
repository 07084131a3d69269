"""The files that a curator serves with, as its latest process read them, so that a later change of one is noticed."""

from decimal import Decimal
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.common.storage.files import file_digest
from veiltab.common.study.file import Study
from veiltab.curator.audit.log import AuditLog, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTable:
    """A table's file, as it was when the latest process read it.

    Args:
        size: bytes.
        modified: when it was last written, nanoseconds.
    """

    path: Path
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> "ServedTable":
        """Return a file as it is now.

        Raises:
            OSError: it cannot be looked at.
        """
        now = path.stat()
        return cls(path=path.absolute(), size=now.st_size, modified=now.st_mtime_ns)

    @property
    def note(self) -> str:
        """What is to be said of a file that was changed since; empty if it was not."""
        try:
            if ServedTable.of(self.path) == self:
                return ""
        except OSError:
            return f"{self.path} cannot be read any more; the running curator goes on with the table that it read."
        return (
            f"{self.path} was changed since the running curator read it: it goes on with the rows that it read. Restart"
            " `veiltab curator serve` to serve the new ones."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPolicy:
    """The policy that the latest process served with.

    Args:
        path: its file, if it had one.
        rules: how many it has.
        budget: the curator's own, nats; None for the study's.
        persons: so many different persons must approve what is held.
        digest: SHA-256 of the file as it was read, hexadecimal; empty where it is not known.
    """

    path: Path | None
    rules: int
    budget: Decimal | None
    persons: int
    digest: str = ""

    @property
    def note(self) -> str:
        """What is to be said of a file that is another now than it was read; empty if it is the same."""
        if self.path is None or not self.digest:
            return ""
        try:
            if file_digest(self.path).hex() == self.digest:
                return ""
        except OSError:
            return f"{self.path} cannot be read any more; the running curator goes on with the rules that it read."
        return f"{self.path} was edited since the running curator read it. Send the curator SIGHUP to apply the edit."


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
        source: bytes | None = value_of(self._connection, "SELECT source FROM served_study")
        return source

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
        return None if row is None else ServedTable(path=Path(row["path"]), size=row["size"], modified=row["modified"])
