"""The server's durable state: sessions in SQLite, columns as files beside it."""

import shutil
import time
from pathlib import Path

from common.database import open_database, transaction
from common.errors import ConflictError, NotFoundError
from common.release import ReleaseSpec, ReleaseState
from server.session import Session

_MIGRATIONS = (
    """
    CREATE TABLE session (
        id TEXT PRIMARY KEY, spec TEXT NOT NULL, state TEXT NOT NULL, failure TEXT NOT NULL,
        perturbation_seconds REAL NOT NULL DEFAULT 0, created INTEGER NOT NULL);
    CREATE TABLE complete_column (
        release_id TEXT NOT NULL REFERENCES session(id), attribute TEXT NOT NULL, digest BLOB NOT NULL,
        PRIMARY KEY (release_id, attribute))
    """,
    """
    ALTER TABLE session ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
    UPDATE session SET since = created
    """,
)


class ServerStore:
    """Sessions and the folders of their columns.

    Args:
        folder: the server's state folder; releases/<id>/ciphertext and releases/<id>/published lie below it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.connection = open_database(folder / "server.sqlite", _MIGRATIONS)

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def session(self, release_id: str) -> Session:
        """Return the session of a release."""
        row = self.connection.execute("SELECT * FROM session WHERE id = ?", [release_id]).fetchone()
        if row is None:
            raise NotFoundError("no such release here", where=f"release {release_id[:32]}")
        complete = self.connection.execute("SELECT attribute FROM complete_column WHERE release_id = ?", [release_id])
        return Session(
            spec=ReleaseSpec.from_json(row["spec"]),
            state=ReleaseState(row["state"]),
            complete=frozenset(row["attribute"] for row in complete),
            failure=row["failure"],
        )

    def sessions(self) -> tuple[Session, ...]:
        """Return all sessions."""
        rows = self.connection.execute("SELECT id FROM session ORDER BY created, id").fetchall()
        return tuple(self.session(row["id"]) for row in rows)

    def latest(self, over: int) -> tuple[tuple[Session, int], ...]:
        """Return the sessions that are not over and the last ones that are, each with Unix seconds of its state."""
        states = [s.value for s in ReleaseState if s.finished]
        ended = f"state IN ({', '.join('?' * len(states))})"
        rows = self.connection.execute(
            f"SELECT id, since FROM session WHERE NOT {ended} OR id IN"  # noqa: S608
            f" (SELECT id FROM session WHERE {ended} ORDER BY since DESC, id LIMIT ?) ORDER BY created, id",
            [*states, *states, over],
        ).fetchall()
        return tuple((self.session(row["id"]), row["since"]) for row in rows)

    def counts(self) -> dict[str, int]:
        """Return how many sessions are in each state."""
        rows = self.connection.execute("SELECT state, COUNT(*) FROM session GROUP BY state").fetchall()
        return {row[0]: row[1] for row in rows}

    def open_session(self, spec: ReleaseSpec) -> Session:
        """Record a release, or find it; another spec under the same id is refused."""
        now = int(time.time())
        with transaction(self.connection) as db:
            db.execute(
                "INSERT INTO session (id, spec, state, failure, created, since) VALUES (?, ?, ?, '', ?, ?)"
                " ON CONFLICT DO NOTHING",
                [spec.release_id, spec.to_json(), ReleaseState.UPLOADING.value, now, now],
            )
            session = self.session(spec.release_id)
            session.check_same(spec)
        return session

    def complete_column(self, release_id: str, attribute: str, digest: bytes) -> Session:
        """Record that a column with this digest is whole; the session is perturbing once all are."""
        with transaction(self.connection) as db:
            session = self.session(release_id).with_complete(attribute)
            db.execute("INSERT INTO complete_column VALUES (?, ?, ?)", [release_id, attribute, digest])
            self._save(session)
        return session

    def check_column_digest(self, release_id: str, attribute: str, digest: bytes) -> None:
        """Refuse a complete column that comes again with other bytes."""
        row = self.connection.execute(
            "SELECT digest FROM complete_column WHERE release_id = ? AND attribute = ?", [release_id, attribute]
        ).fetchone()
        if bytes(row["digest"]) != digest:
            raise ConflictError("other bytes were taken for this column", where=f"attribute {attribute}")

    def publish(self, release_id: str, seconds: float) -> None:
        """Record the one publication of a release.

        Raises:
            IntegrityError: it is not being perturbed, so it was published or ended before.
        """
        with transaction(self.connection) as db:
            self._save(self.session(release_id).published())
            db.execute("UPDATE session SET perturbation_seconds = ? WHERE id = ?", [seconds, release_id])

    def end(self, release_id: str, state: ReleaseState, failure: str) -> None:
        """Record that a release expired or failed."""
        with transaction(self.connection):
            self._save(self.session(release_id).ended(state, failure))

    def perturbation_seconds(self, release_id: str) -> float:
        """Return how long the perturbation took."""
        row = self.connection.execute("SELECT perturbation_seconds FROM session WHERE id = ?", [release_id]).fetchone()
        return float(row[0])

    def _save(self, session: Session) -> None:
        self.connection.execute(
            "UPDATE session SET since = CASE WHEN state = ? THEN since ELSE ? END, state = ?, failure = ? WHERE id = ?",
            [
                *(session.state.value, int(time.time())),
                *(session.state.value, session.failure, session.spec.release_id),
            ],
        )

    def ciphertext_folder(self, release_id: str) -> Path:
        """Return where unperturbed columns lie until they are perturbed; no RPC reads it."""
        return self._folder / "releases" / release_id / "ciphertext"

    def published_folder(self, release_id: str) -> Path:
        """Return where perturbed columns lie."""
        return self._folder / "releases" / release_id / "published"

    def delete_ciphertext(self, release_id: str) -> None:
        """Delete the unperturbed columns of a release."""
        shutil.rmtree(self.ciphertext_folder(release_id), ignore_errors=True)

    def delete_published(self, release_id: str) -> None:
        """Delete the perturbed columns of a release that ended."""
        shutil.rmtree(self.published_folder(release_id), ignore_errors=True)
