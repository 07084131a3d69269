"""What a curator keeps of its joins: secrets while a session lasts, and who began how many sessions."""

from veiltab.common.dataclass import dataclass, field
from veiltab.common.storage.database import Database, erase_traces, transaction
from veiltab.curator.audit.log import AuditLog, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSession:
    """One curator's part in the session with one other, of one alignment.

    Args:
        part: its random part of the session's name.
        name: the session that it entered last; empty before the first.
        secret: 32 bytes, of which all that it draws in that session follows; empty once the session is over.
        has_failed: whether it ended the session for what the other sent.
    """

    part: bytes
    name: str
    secret: bytes = field(repr=False)
    has_failed: bool

    @property
    def finished(self) -> str:
        """The session that it has finished; empty if there is none."""
        return "" if self.secret or self.has_failed else self.name

    @property
    def failed(self) -> str:
        """The session that it has ended; empty if there is none."""
        return self.name if self.has_failed else ""


class JoinSessions:
    """The sessions of one curator.

    Args:
        audit: where each session, and a person's decision, is recorded.
    """

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def session(self, alignment_id: str, peer: str) -> JoinSession | None:
        """Return this curator's part in the session with a peer, if it has one."""
        sql = "SELECT * FROM join_session WHERE alignment_id = ? AND peer = ?"
        row = self._connection.execute(sql, [alignment_id, peer]).fetchone()
        if row is None:
            return None
        return JoinSession(
            part=bytes(row["part"]), name=row["name"], secret=bytes(row["secret"]), has_failed=bool(row["failed"])
        )

    def begin(self, alignment_id: str, peer: str, version: str, fresh: bytes) -> None:
        """Record this curator's part: that which it last entered one with under its table version, or `fresh`."""
        sql = "SELECT part FROM join_session WHERE peer = ? AND version = ? ORDER BY name = '', rowid DESC"
        row = self._connection.execute(sql, [peer, version]).fetchone()
        self._connection.execute(
            "INSERT INTO join_session (alignment_id, peer, part, version) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [alignment_id, peer, fresh if row is None else row["part"], version],
        )

    def renew(self, alignment_id: str, peer: str, part: bytes) -> None:
        """Record a fresh part, with which the session so far is over unless it failed."""
        self._connection.execute(
            "UPDATE join_session SET part = ?, name = '', secret = x''"
            " WHERE alignment_id = ? AND peer = ? AND NOT failed",
            [part, alignment_id, peer],
        )
        erase_traces(self._connection)

    def count(self, peer: str, begun: bytes, most: int) -> bool:
        """Count a session of a peer unless it was counted; return False if it would be one too many.

        Args:
            begun: what the peer alone decides: its table version, and beside that its part and its size.
        """
        row = self._connection.execute("SELECT * FROM join_part WHERE curator = ?", [peer]).fetchone()
        before, sessions = (b"", 0) if row is None else (bytes(row["begun"]), row["sessions"])
        sessions += not before or not (before.startswith(begun) or begun.startswith(before))
        if sessions <= most and not before.startswith(begun):
            self._connection.execute("INSERT OR REPLACE INTO join_part VALUES (?, ?, ?)", [peer, begun, sessions])
        return sessions <= most

    def count_next(self, peer: str) -> None:
        """Have the next session of a peer counted, whatever it begins with."""
        self._connection.execute("UPDATE join_part SET begun = x'' WHERE curator = ?", [peer])

    def sessions_of(self) -> dict[str, int]:
        """Return peer -> its sessions since a person allowed more."""
        rows = self._connection.execute("SELECT * FROM join_part ORDER BY curator")
        return {row["curator"]: row["sessions"] for row in rows}

    def failed_with(self) -> tuple[str, ...]:
        """Return the peers with which a session was ended for what they sent."""
        rows = self._connection.execute("SELECT DISTINCT peer FROM join_session WHERE failed ORDER BY peer")
        return tuple(row["peer"] for row in rows)

    def enter(self, alignment_id: str, peer: str, name: str, secret: bytes) -> None:
        """Record a session that begins, and erase the secret of an earlier one."""
        sql = "UPDATE join_session SET name = ?, secret = ?, failed = 0 WHERE alignment_id = ? AND peer = ?"
        with transaction(self._connection) as db:
            db.execute(sql, [name, secret, alignment_id, peer])
            db.execute("DELETE FROM join_pass WHERE session NOT IN (SELECT name FROM join_session)")
            self._audit.record(Event.ALIGNMENT_BEGUN, curators=peer)
        erase_traces(self._connection)

    def challenge(self, session: str, number: int, challenge: bytes) -> bytes:
        """Record the challenge of a pass of a session unless there is one; return the recorded one."""
        return self._first("challenge", (session, number), challenge)

    def asked_digest(self, session: str, number: int, digest: bytes) -> bytes:
        """Record SHA-256 of what a spoke asks in a pass, unless there is one; return the recorded one.

        Args:
            digest: of its store, or at the hub of its columns.
        """
        return self._first("asked", (session, number), digest)

    def fail(self, alignment_id: str, peer: str) -> None:
        """Record that a peer sent what no honest curator sends, and erase the secret of the session."""
        sql = "UPDATE join_session SET secret = x'', failed = 1 WHERE alignment_id = ? AND peer = ?"
        with transaction(self._connection) as db:
            db.execute(sql, [alignment_id, peer])
            self._audit.record(Event.ALIGNMENT_FAILED, curator=peer)
        erase_traces(self._connection)

    def allow(self, peer: str, fresh: bytes, *, person: str) -> int:
        """Let a peer begin sessions again, as a person decided; return how many it had.

        A session that has failed is over: another one begins with a fresh part.
        """
        with transaction(self._connection) as db:
            sessions = self.sessions_of().get(peer, 0)
            db.execute("UPDATE join_part SET sessions = 0, begun = x'' WHERE curator = ?", [peer])
            db.execute(
                "UPDATE join_session SET part = ?, name = '', failed = 0 WHERE peer = ? AND failed", [fresh, peer]
            )
            self._audit.record(Event.ALIGNMENT_ALLOWED, person=person, curator=peer, sessions=sessions)
        erase_traces(self._connection)
        return sessions

    def finish(self, alignment_id: str, peer: str) -> None:
        """Erase the secret of a session that is finished, and all sessions with the peer of other alignments."""
        with transaction(self._connection) as db:
            where = [alignment_id, peer]
            db.execute("UPDATE join_session SET secret = x'' WHERE alignment_id = ? AND peer = ?", where)
            db.execute("DELETE FROM join_session WHERE alignment_id <> ? AND peer = ?", where)
            # One of the same parts may begin again, with other secrets: it gets another challenge.
            db.execute("DELETE FROM join_pass WHERE session NOT IN (SELECT name FROM join_session)")
        erase_traces(self._connection)

    def order_key(self, alignment_id: str, fresh: bytes) -> bytes:
        """Return the hub's key of the order of its rows, `fresh` the first time; the same ever after."""
        with transaction(self._connection) as db:
            db.execute("INSERT INTO row_order VALUES (?, ?) ON CONFLICT DO NOTHING", [alignment_id, fresh])
            row = db.execute("SELECT key FROM row_order WHERE alignment_id = ?", [alignment_id]).fetchone()
        return bytes(row["key"])

    def _first(self, column: str, place: tuple[str, int], value: bytes) -> bytes:
        with transaction(self._connection) as db:
            db.execute("INSERT INTO join_pass (session, number) VALUES (?, ?) ON CONFLICT DO NOTHING", place)
            db.execute(
                f"UPDATE join_pass SET {column} = ? WHERE session = ? AND number = ? AND {column} = x''",  # noqa: S608 - a column of the schema
                [value, *place],
            )
            row = db.execute("SELECT * FROM join_pass WHERE session = ? AND number = ?", place).fetchone()
        return bytes(row[column])
