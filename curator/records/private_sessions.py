"""What a curator keeps of its private alignments: secrets while a session lasts, and who began how many sessions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from veiltab.common.storage.database import Database, erase_traces, transaction, value_of
from veiltab.curator.audit.log import AuditLog, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSession:
    """One curator's part in a private alignment.

    Args:
        part: its random part of the session's name.
        name: the session that it entered last; empty before the first.
        scalar: its scalar in that session; empty once the session is finished, or has failed.
        seed: of the weights that check the query; empty once nothing is left to check.
        suspects: who may have changed the query, if the session has failed; one or more.
    """

    part: bytes
    name: str
    scalar: bytes
    seed: bytes
    suspects: tuple[str, ...]

    @property
    def finished(self) -> str:
        """The session that it has finished; empty if there is none."""
        return "" if self.scalar or self.suspects else self.name

    @property
    def failed(self) -> str:
        """The session that has failed; empty if there is none."""
        return self.name if self.suspects else ""


class PrivateSessions:
    """The sessions of one curator, one for each alignment.

    Args:
        audit: where each session, and a person's decision, is recorded.
    """

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def session(self, alignment_id: str) -> PrivateSession | None:
        """Return this curator's part in a private alignment, if it has one."""
        sql = "SELECT * FROM private_session WHERE alignment_id = ?"
        row = self._connection.execute(sql, [alignment_id]).fetchone()
        if row is None:
            return None
        return PrivateSession(
            part=bytes(row["part"]),
            name=row["name"],
            scalar=bytes(row["scalar"]),
            seed=bytes(row["seed"]),
            suspects=tuple(row["suspects"].split()),
        )

    def suspects(self) -> tuple[str, ...]:
        """Return who may have changed the query of a session that has failed, in any alignment."""
        rows = self._connection.execute("SELECT suspects FROM private_session WHERE suspects <> '' ORDER BY rowid")
        return tuple(dict.fromkeys(name for row in rows for name in row["suspects"].split()))

    def begin(self, alignment_id: str, version: str, fresh: bytes) -> None:
        """Record this curator's part in a private alignment: that of its table version, or `fresh` for another one."""
        part = value_of(
            self._connection, "SELECT part FROM private_session WHERE version = ? ORDER BY rowid DESC", version
        )
        self._connection.execute(
            "INSERT INTO private_session (alignment_id, part, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [alignment_id, fresh if part is None else part, version],
        )

    def renew(self, alignment_id: str, part: bytes) -> None:
        """Record a fresh part in a private alignment, whose sessions so far are over with it."""
        self._connection.execute(
            "UPDATE private_session SET part = ?, name = '', scalar = x'', seed = x'', suspects = ''"
            " WHERE alignment_id = ?",
            [part, alignment_id],
        )
        erase_traces(self._connection)

    def parts(self) -> dict[str, tuple[bytes, int]]:
        """Return curator -> (its part in the last session, sessions counted for it since a person allowed more)."""
        rows = self._connection.execute("SELECT * FROM private_part")
        return {row["curator"]: (bytes(row["part"]), row["sessions"]) for row in rows}

    def enter(self, alignment_id: str, name: str, scalar: bytes, seed: bytes, parts: Mapping[str, bytes]) -> None:
        """Record the secrets of a session that begins, and count it for the curators whose parts these are.

        The secrets of an earlier session are erased.
        """
        with transaction(self._connection) as db:
            db.execute(
                "UPDATE private_session SET name = ?, scalar = ?, seed = ?, suspects = '' WHERE alignment_id = ?",
                [name, scalar, seed, alignment_id],
            )
            db.executemany(
                "INSERT INTO private_part VALUES (?, ?, 1) ON CONFLICT (curator) DO UPDATE"
                " SET part = excluded.part, sessions = sessions + 1",
                list(parts.items()),
            )
            self._audit.record(Event.ALIGNMENT_BEGUN, curators=" ".join(sorted(parts)))
        erase_traces(self._connection)

    def fail(self, alignment_id: str, suspects: Iterable[str], *, is_checked: bool = True) -> None:
        """Record that a session has failed, and erase its scalar.

        Args:
            suspects: who may have changed the query; one or more.
            is_checked: whether nothing is left to check; then the seed is erased too.
        """
        self._connection.execute(
            "UPDATE private_session SET scalar = x'', seed = CASE WHEN ? THEN x'' ELSE seed END, suspects = ?"
            " WHERE alignment_id = ?",
            [is_checked, " ".join(suspects), alignment_id],
        )
        erase_traces(self._connection)

    def allow(self, curator: str, fresh: bytes, *, person: str) -> int:
        """Let a peer begin private sessions again, as a person decided; return how many it had.

        A session that has failed is over once every suspect is allowed: another one begins with a fresh part.
        """
        with transaction(self._connection) as db:
            _, sessions = self.parts().get(curator, (b"", 0))
            db.execute("UPDATE private_part SET sessions = 0 WHERE curator = ?", [curator])
            for row in db.execute("SELECT alignment_id, suspects FROM private_session WHERE suspects <> ''").fetchall():
                left = [name for name in row["suspects"].split() if name != curator]
                db.execute(
                    "UPDATE private_session SET suspects = ? WHERE alignment_id = ?",
                    [" ".join(left), row["alignment_id"]],
                )
                if not left:
                    db.execute(
                        "UPDATE private_session SET part = ?, name = '', seed = x'' WHERE alignment_id = ?",
                        [fresh, row["alignment_id"]],
                    )
            self._audit.record(Event.ALIGNMENT_ALLOWED, person=person, curator=curator, sessions=sessions)
        erase_traces(self._connection)
        return sessions

    def finish(self, alignment_id: str) -> None:
        """Erase the secrets of a session that is finished, and all of other alignments."""
        with transaction(self._connection) as db:
            db.execute("UPDATE private_session SET scalar = x'', seed = x'' WHERE alignment_id = ?", [alignment_id])
            db.execute("DELETE FROM private_session WHERE alignment_id <> ?", [alignment_id])
        erase_traces(self._connection)
