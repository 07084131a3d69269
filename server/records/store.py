"""The server's durable state: sessions in a database, columns as files in its folder.

Every step of a session is made under a lease, and refused in its own transaction if another process took the lease.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from veiltab.common.errors import ConflictError, IntegrityError, NotFoundError
from veiltab.common.release.messages.witness import WITNESS_TABLE, Shown, Witnessed, longest_ledger, remember_ledger
from veiltab.common.release.release_queries import latest_rows, state_counts
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.database import transaction
from veiltab.common.storage.disk import DiskReservations
from veiltab.server.records.databases import open_state
from veiltab.server.records.noise import SECRET_LENGTH, noise_digest, noise_secret
from veiltab.server.records.session import OtherKeyError, Session
from veiltab.server.records.session_files import SessionFiles
from veiltab.server.sharing.leases import Lease, Leases
from veiltab.server.sharing.quota import Quota

Answer = TypeVar("Answer")

_SCHEMA = f"""
CREATE TABLE session (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, spec TEXT NOT NULL, state TEXT NOT NULL, failure TEXT NOT NULL,
    perturbation_seconds REAL NOT NULL DEFAULT 0, created INTEGER NOT NULL, since INTEGER NOT NULL DEFAULT 0,
    publication INTEGER NOT NULL DEFAULT 0, noise BLOB, announced_by TEXT NOT NULL DEFAULT '',
    size INTEGER NOT NULL DEFAULT 0, places_key BLOB, places_key_from TEXT NOT NULL DEFAULT '',
    room INTEGER NOT NULL DEFAULT 0, noise_digest BLOB, salt BLOB);
CREATE INDEX session_state ON session (state, since);
CREATE TABLE complete_column (
    release_id TEXT NOT NULL REFERENCES session(id), attribute TEXT NOT NULL, digest BLOB NOT NULL,
    file TEXT NOT NULL, fence INTEGER NOT NULL, start INTEGER NOT NULL, published BLOB,
    PRIMARY KEY (release_id, attribute));
{WITNESS_TABLE}
"""

_SESSIONS = "SELECT session.*, attribute, published FROM session LEFT JOIN complete_column ON release_id = id"
"""Yields a session once for each part of a column that is whole, or once if none is."""


class ServerStore(SessionFiles):
    """Sessions and the folders of their columns.

    Args:
        folder: the server's state folder; releases/<id> lies below it.
        database: URL of the PostgreSQL that several processes share; empty for SQLite in the folder.
    """

    def __init__(self, folder: Path, database: str = "") -> None:
        super().__init__(folder)
        self._room = DiskReservations(folder)
        self.connection = open_state(folder / "server.sqlite", (_SCHEMA,), database)
        self.leases = Leases()
        if self.connection.shared:
            from veiltab.server.sharing.shared_leases import SharedLeases  # noqa: PLC0415 - not for SQLite

            self.leases = SharedLeases(self.connection)

    def close(self) -> None:
        """Close the database."""
        self.leases.close()
        self.connection.close()

    async def look_up(self, question: Callable[..., Answer], *arguments: object) -> Answer:
        """Return what a short question to the state is answered with, which waits for no disk of this machine.

        A database on another machine may be slow to answer, so a thread asks it. One on this machine answers sooner
        than a thread begins.
        """
        if self.connection.shared:
            return await asyncio.to_thread(question, *arguments)
        return question(*arguments)

    def session(self, release_id: str) -> Session:
        """Return the session of a release."""
        rows = self.connection.execute(f"{_SESSIONS} WHERE id = ?", [release_id]).fetchall()
        if not rows:
            raise NotFoundError("no such release here", where=f"release {release_id[:32]}")
        return _session(rows)

    def sessions(self) -> tuple[Session, ...]:
        """Return all sessions."""
        rows = self.connection.execute(f"{_SESSIONS} ORDER BY number")
        return tuple(_session(list(own)) for _, own in groupby(rows, itemgetter("id")))

    def perturbing(self) -> tuple[Session, ...]:
        """Return the sessions that are to be perturbed."""
        rows = self.connection.execute(
            "SELECT id FROM session WHERE state = ? ORDER BY number", [ReleaseState.PERTURBING.value]
        ).fetchall()
        return tuple(self.session(row["id"]) for row in rows)

    def latest(self, over: int) -> tuple[tuple[Session, int], ...]:
        """Return the sessions that are not over and the last ones that are, each with Unix seconds of its state."""
        rows = latest_rows(self.connection, "session", over)
        return tuple((self.session(row["id"]), row["since"]) for row in rows)

    def counts(self) -> dict[str, int]:
        """Return how many sessions are in each state."""
        return state_counts(self.connection, "session")

    def open_session(self, spec: TableSpec, announced_by: str = "", quota: Quota | None = None) -> Session:
        """Record a release, or return the recorded one; refuse another spec under the same id.

        It waits for the disk: curators send columns for the one noise whose digest they heard.

        Args:
            announced_by: the curator that announces it; a release counts as the first one's that did.
            quota: what that curator may have open.

        Raises:
            ConflictError: it is another spec.
            UnavailableError: with this release the curator would exceed its quota, or the disk would be full.
        """
        now, secret = int(time.time()), secrets.token_bytes(SECRET_LENGTH)
        opened = Session(spec=spec, announced_by=announced_by, noise_digest=noise_digest(secret))
        with transaction(self.connection) as db:
            added = db.execute(
                "INSERT INTO session (id, spec, state, failure, created, since, noise, noise_digest, announced_by,"
                " size, room, number) VALUES (?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?,"
                " (SELECT COALESCE(MAX(number), 0) + 1 FROM session)) ON CONFLICT DO NOTHING",
                [
                    *(spec.release_id, spec.to_json(), ReleaseState.UPLOADING.value, now, now),
                    *(secret, opened.noise_digest),
                    announced_by,
                    spec.ciphertext_bytes,
                    room_of(spec),
                ],
            ).rowcount
            if added:
                self._check_room(spec, announced_by, quota)
                return opened
            session = self.session(spec.release_id)
            session.check_same(spec)
        return session

    def _check_room(self, spec: TableSpec, curator: str, quota: Quota | None) -> None:
        """Refuse a release beyond its curator's quota, or with too little room on the disk beside the open ones."""
        rows = self.connection.execute(
            "SELECT id, room, size, announced_by FROM session WHERE state IN (?, ?)",
            [ReleaseState.UPLOADING.value, ReleaseState.PERTURBING.value],
        ).fetchall()
        if quota is not None:
            sizes = [row["size"] for row in rows if row["announced_by"] == curator]
            quota.check(len(sizes), sum(sizes))
        size, rows = room_of(spec), [row for row in rows if row["id"] != spec.release_id]
        if not self._room.holds(size, promised=sum(row["room"] for row in rows)):
            # What the others have written is no longer free.
            to_come = sum(max(row["room"] - self.folder(row["id"]).size, 0) for row in rows)
            self._room.check(size, promised=to_come)

    def witness(self, curator: str, ledger: Witnessed) -> Witnessed:
        """Remember a curator's ledger; return the longest one that it showed before.

        One of more entries than releases were ever opened here is not remembered: the party that shows it may have
        another's certificate.
        """
        longest = longest_ledger(self.connection, curator)
        has_so_many = "SELECT id FROM session WHERE number = ?"
        if longest[0] < ledger[0] and self.connection.execute(has_so_many, [ledger[0]]).fetchone():
            remember_ledger(self.connection, curator, ledger)
        return longest

    def complete_columns(
        self, release_id: str, columns: Mapping[str, tuple[bytes, Lease]], file: str = "", shown: Shown | None = None
    ) -> Session:
        """Record that columns are whole; the session is perturbing once all are.

        Args:
            columns: attribute -> digest of its column, and the lease under which that was received.
            file: under the first one's fence, in which they lie one after the other; else the first one's own.
            shown: the ledger that came with them, for `witness`.

        Raises:
            LostLeaseError: another process took over one of them; none is recorded.
        """
        with transaction(self.connection) as db:
            for _, lease in columns.values():
                self._check(lease, release_id)
            session, start, rows = self.session(release_id), 0, list[tuple[str | bytes | int, ...]]()
            (first, (_, lease)), *_ = columns.items()
            for attribute, (digest, _) in columns.items():
                session = session.with_complete(attribute)
                rows.append((release_id, attribute, digest, file or first, lease.fence, start))
                start += session.spec.column_of_part(attribute).byte_length(session.spec.uploaded_rows)
            db.executemany("INSERT INTO complete_column VALUES (?, ?, ?, ?, ?, ?, NULL)", rows)
            self._save(session)
            if shown is not None:
                self.witness(*shown)
        return session

    def complete_files(self, release_id: str) -> Mapping[str, tuple[Path, int]]:
        """Return the file of each column that is whole, and the byte of it at which the column begins."""
        rows = self.connection.execute(
            "SELECT attribute, file, fence, start FROM complete_column WHERE release_id = ?", [release_id]
        )
        folder = self.folder(release_id)
        return {row["attribute"]: (folder.column(row["file"], row["fence"]), row["start"]) for row in rows}

    def noise_secret(self, spec: TableSpec) -> bytes:
        """Return the secret of the one noise of a release whose columns are complete.

        Raises:
            IntegrityError: there is none: the release is published or over.
        """
        row = self.connection.execute("SELECT noise FROM session WHERE id = ?", [spec.release_id]).fetchone()
        if row is None or row["noise"] is None:
            raise IntegrityError("the release has no noise secret", where=f"release {spec.release_id}")
        columns = self.connection.execute(
            "SELECT attribute, digest FROM complete_column WHERE release_id = ?", [spec.release_id]
        )
        digests = {row["attribute"]: bytes(row["digest"]) for row in columns}
        return noise_secret(bytes(row["noise"]), spec.digest(), digests)

    def check_column_digest(self, release_id: str, attribute: str, digest: bytes) -> None:
        """Refuse a complete column that comes again with other bytes."""
        row = self.connection.execute(
            "SELECT digest FROM complete_column WHERE release_id = ? AND attribute = ?", [release_id, attribute]
        ).fetchone()
        if bytes(row["digest"]) != digest:
            raise ConflictError("other bytes were taken for this column", where=f"attribute {attribute}")

    def publish(self, release_id: str, salt: bytes, digests: Mapping[str, bytes], seconds: float, lease: Lease) -> None:
        """Record the one publication of a release: what was perturbed under this lease.

        Args:
            release_id: of a release that is being perturbed.
            digests: attribute -> SHA-256 of the salt, 32 bytes, and its perturbed column.
            seconds: how long the perturbation took.

        Raises:
            LostLeaseError: another process took over.
            IntegrityError: it is not being perturbed, so it was published or ended before.
        """
        with transaction(self.connection) as db:
            self._check(lease, release_id)
            self._save(self.session(release_id).published(lease.fence, seconds, salt))
            db.executemany(
                "UPDATE complete_column SET published = ? WHERE release_id = ? AND attribute = ?",
                [(digest, release_id, attribute) for attribute, digest in digests.items()],
            )

    def record_places_key(self, release_id: str, curator: str, key: bytes) -> Session:
        """Record the key of the places of a published release's canaries; only the first one counts, for good.

        Args:
            key: 32 bytes.

        Raises:
            OtherKeyError: another key was recorded before.
            NotFoundError, DeniedError, FailedReleaseError, NotReadyError: the curator may not test this release, or not
                now.
        """
        session = self.session(release_id)
        session.check_testable(curator)
        if not session.places_key:
            self.connection.execute(
                "UPDATE session SET places_key = ?, places_key_from = ? WHERE id = ? AND places_key IS NULL",
                [key, curator, release_id],
            )
            session = self.session(release_id)
            session.check_testable(curator)
        if session.places_key != key:
            raise OtherKeyError(session.places_key, session.places_key_from, release_id)
        return session

    def end(self, session: Session, state: ReleaseState, failure: str, lease: Lease) -> Session:
        """Record that a release expired or failed, unless it has gone on since the session was read.

        Returns:
            The session as it stands now.

        Raises:
            LostLeaseError: another process took over.
        """
        with transaction(self.connection):
            self._check(lease, session.spec.release_id)
            current = self.session(session.spec.release_id)
            if current.state is session.state:
                current = current.ended(state, failure)
                self._save(current)
        return current

    def check_current(self, lease: Lease) -> None:
        """Raise LostLeaseError if another process took over; for anyone who finds files gone that were there."""
        with transaction(self.connection):
            self.leases.check(lease)

    def _check(self, lease: Lease, release_id: str) -> None:
        if lease.resource.partition("/")[0] != release_id:
            raise ValueError("a lease on another release")
        self.leases.check(lease)

    def _save(self, session: Session) -> None:
        self.connection.execute(
            "UPDATE session SET since = CASE WHEN state = ? THEN since ELSE ? END,"
            " state = ?, failure = ?, publication = ?, noise = CASE WHEN ? THEN NULL ELSE noise END,"
            " perturbation_seconds = ?, salt = ? WHERE id = ?",
            [
                *(session.state.value, int(time.time())),
                *(session.state.value, session.failure, session.publication, session.state.finished),
                *(session.perturbation_seconds, session.salt, session.spec.release_id),
            ],
        )


def room_of(spec: TableSpec) -> int:
    """Return the bytes that a release takes at most: ciphertext, what is published, and lists of places."""
    published = sum(column.byte_length(spec.published_rows) for column in spec.columns)
    return spec.ciphertext_bytes + published + spec.place_bytes


def _session(rows: Sequence[Any]) -> Session:
    """Return the session of some rows of `_SESSIONS`."""
    row = rows[0]
    state = ReleaseState(row["state"])
    is_ready = state is ReleaseState.READY
    return Session(
        spec=TableSpec.from_json(row["spec"]),
        state=state,
        complete=frozenset(row["attribute"] for row in rows if row["attribute"]),
        digests={row["attribute"]: bytes(row["published"]) for row in rows if is_ready and row["published"]},
        places_key=bytes(row["places_key"] or b""),
        places_key_from=row["places_key_from"],
        failure=row["failure"],
        announced_by=row["announced_by"],
        publication=row["publication"],
        noise_digest=bytes(row["noise_digest"] or b""),
        perturbation_seconds=row["perturbation_seconds"],
        salt=bytes(row["salt"] or b""),
    )
