"""The audit log: every decision and every access at a curator, append-only, each entry in the transaction of its event.

What cannot be recorded does not happen: an entry that cannot be written undoes its event.

An entry is a line of JSON with sorted keys, without white space, in ASCII. The digest of entry n is SHA-256 of the
digest of entry n - 1 (32 bytes) and of the line; that before the first is SHA-256 of "veiltab audit log". Each charge
of the ledger covers the head that the log had then, and the other curators remember the head of the ledger: what was
recorded before a charge cannot be changed or cut off unnoticed afterwards. See docs/evidence.md.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from enum import Enum

from veiltab.common.core.texts.canonical import canonical_json
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError
from veiltab.common.storage.database import Database, value_of

_READ_AT_ONCE = 10_000

Fact = str | int | None


class Event(Enum):
    """What is recorded."""

    STUDY_LOADED = "study loaded"
    POLICY_LOADED = "policy loaded"
    TABLE_LOADED = "table loaded"
    REQUEST = "request received"
    DECISION = "decision"
    APPROVAL = "approval"
    REFUSAL = "request refused"
    END = "release ended"
    CHARGE = "charge"
    KEY = "key given"
    TOSSES_CLEARED = "tosses cleared"
    ALIGNMENT_BEGUN = "alignment begun"
    ALIGNMENT_FAILED = "alignment failed"
    ALIGNMENT_ALLOWED = "alignment allowed"
    LINKED = "linked"
    WITNESS_CLEARED = "witness set aside"
    EVIDENCE = "evidence exported"
    SESSION_BEGUN = "session begun"
    SESSION_ENDED = "session ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """Where an audit log stands."""

    length: int
    digest: bytes

    def after(self, line: str) -> "AuditHead":
        """Return the head of a log with one line more."""
        return AuditHead(length=self.length + 1, digest=hashlib.sha256(self.digest + line.encode()).digest())


EMPTY = AuditHead(length=0, digest=hashlib.sha256(b"veiltab audit log").digest())
"""The head of a log without entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One entry.

    Args:
        number: its place, from 1.
        time: Unix seconds.
        event: the value of an Event.
        person: who decided, or looked; empty for the curator's own process and for other parties.
        release: id of the release that it is about; else empty.
        facts: what else is recorded, by name.
    """

    number: int
    time: int
    event: str
    person: str = ""
    release: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The canonical text."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return canonical_json(plain)

    @classmethod
    def from_line(cls, line: str) -> "AuditEntry":
        """Read a line.

        Raises:
            IntegrityError: it is none of an audit log.
        """
        try:
            entry = cls(**json.loads(line))
            if entry.line == line:
                return entry
        except (ValueError, TypeError, RecursionError):
            pass
        raise IntegrityError("this is not a line of an audit log", where="audit log")


class AuditLog:
    """The audit log of one curator."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    @property
    def head(self) -> AuditHead:
        """Where the log stands."""
        row = self._connection.execute("SELECT number, digest FROM audit ORDER BY number DESC LIMIT 1").fetchone()
        return EMPTY if row is None else AuditHead(length=row["number"], digest=bytes(row["digest"]))

    def record(self, event: Event, *, person: str = "", release: str = "", **facts: Fact) -> None:
        """Append an entry, in the transaction of what it records.

        Args:
            release: id of the release that it is about.
            facts: what else is to be known; never data, keys or ciphertext.
        """
        if not self._connection.in_transaction:
            raise AssertionError("an entry is written in the transaction of what it records")
        head = self.head
        entry = AuditEntry(
            number=head.length + 1,
            time=int(time.time()),
            event=event.value,
            person=person,
            release=release,
            facts=facts,
        )
        line = entry.line
        self._connection.execute(
            "INSERT INTO audit (number, line, digest) VALUES (?, ?, ?)", [entry.number, line, head.after(line).digest]
        )

    def lines(self, after: int = 0) -> Iterator[tuple[int, str, bytes]]:
        """Return (number, line, digest) of each entry after one, oldest first, some thousands in memory at a time."""
        number = after
        while rows := self._connection.execute(
            "SELECT number, line, digest FROM audit WHERE number > ? ORDER BY number LIMIT ?", [number, _READ_AT_ONCE]
        ).fetchall():
            yield from ((row["number"], row["line"], bytes(row["digest"])) for row in rows)
            number = rows[-1]["number"]

    def entries(self, release: str = "", *, after: int = 0) -> Iterator[AuditEntry]:
        """Return the entries about one release, or all that came after one; oldest first."""
        if not release:
            return (AuditEntry(**json.loads(line)) for _, line, _ in self.lines(after))
        rows = self._connection.execute("SELECT line FROM audit WHERE release_id = ? ORDER BY number", [release])
        return (AuditEntry(**json.loads(row["line"])) for row in rows)

    def key_given_at(self, release: str, attribute: str, researcher: str) -> int | None:
        """Return when it was recorded last that a researcher is given a key, Unix seconds; None if it never was."""
        query = (
            "SELECT json_extract(line, '$.time') FROM audit WHERE release_id = ?"
            " AND json_extract(line, '$.event') = ? AND json_extract(line, '$.facts.attribute') = ?"
            " AND json_extract(line, '$.facts.researcher') = ? ORDER BY number DESC LIMIT 1"
        )
        time: int | None = value_of(self._connection, query, release, Event.KEY.value, attribute, researcher)
        return time

    def head_before(self, time: int) -> AuditHead:
        """Return where the log stood before the first entry of a time (Unix seconds) or later."""
        query = "SELECT number FROM audit WHERE json_extract(line, '$.time') >= ? ORDER BY number LIMIT 1"
        first = value_of(self._connection, query, time)
        head = self.head if first is None else self.head_at(first - 1)
        if head is None:
            raise IntegrityError("the audit log lacks entries", where="audit log", remedy="See docs/evidence.md.")
        return head

    def verify(self) -> AuditHead:
        """Recompute the chain from its beginning, and return its head.

        Raises:
            IntegrityError: an entry was altered, or one is missing.
        """
        return chained(self.lines())

    def verify_newest(self, count: int) -> None:
        """Recompute the links of the newest entries; see `verify`."""
        before = max(0, self.head.length - count)
        chained(self.lines(before), self.head_at(before))

    def verify_against(self, heads: Iterable[AuditHead]) -> None:
        """Check that the log still contains what was covered elsewhere.

        Args:
            heads: that the log had, as the ledger has recorded them.

        Raises:
            IntegrityError: entries are missing or differ.
        """
        for head in heads:
            if self.head_at(head.length) != head:
                raise IntegrityError(
                    f"the audit log lacks entries that the ledger covers, up to entry {head.length}",
                    where="audit log",
                    remedy="It was altered or cut off; see docs/evidence.md.",
                )

    def head_at(self, length: int) -> AuditHead | None:
        """Return where the log stood with so many entries; None if it has fewer."""
        if length == 0:
            return EMPTY
        digest = value_of(self._connection, "SELECT digest FROM audit WHERE number = ?", length)
        return None if digest is None else AuditHead(length=length, digest=digest)


def chained(lines: Iterable[tuple[int, str, bytes]], head: AuditHead | None = EMPTY) -> AuditHead:
    """Return the head after lines, each with its number and digest.

    Raises:
        IntegrityError: a line was altered, or one is missing.
    """
    for number, line, digest in lines:
        head = None if head is None else head.after(line)
        if head is None or (head.length, head.digest) != (number, digest):
            raise IntegrityError(
                f"the audit log was altered at entry {number}", where="audit log", remedy="See docs/evidence.md."
            )
    if head is None:
        raise IntegrityError("the audit log lacks entries", where="audit log", remedy="See docs/evidence.md.")
    return head
