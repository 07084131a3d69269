"""The keys of pads and canaries: each is spent before what it made leaves, and serves one column of one release."""

import hashlib
import sqlite3
import time

from veiltab.common.errors import ConflictError, NotFoundError
from veiltab.common.storage.database import Database, erase_traces, transaction, value_of
from veiltab.curator.audit.log import AuditLog, Event

_SECONDS_A_DAY = 86_400


class Keys:
    """Keys that are spent, kept, given and erased."""

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def pad(self, release_id: str, attribute: str) -> tuple[bytes, bytes] | None:
        """Return (key, digest of the one ciphertext it made) of a column that is encrypted."""
        row = self._connection.execute(
            "SELECT key, digest FROM pad WHERE release_id = ? AND attribute = ?", [release_id, attribute]
        ).fetchone()
        return None if row is None else (bytes(row["key"]), bytes(row["digest"]))

    def ciphertext_digest(self, release_id: str, attribute: str) -> bytes:
        """Return the digest of a column's one ciphertext.

        Raises:
            NotFoundError: the column was not encrypted.
        """
        pad = self.pad(release_id, attribute)
        if pad is None:
            raise NotFoundError("this column was not encrypted", where=f"attribute {attribute}")
        return pad[1]

    def spend_keys(
        self, release_id: str, attribute: str, digest: bytes, key: bytes, replacement_key: bytes = b""
    ) -> None:
        """Record the fresh keys of a column as spent; from here on the ciphertext that they made may be sent.

        Args:
            digest: SHA-256 of that ciphertext; no other one of the column is ever sent.
            key: of the pad; it is kept.
            replacement_key: of the symbols of the curators' noise, spent and not kept; empty if there is no noise.

        Raises:
            ConflictError: a key was spent before, or the column is encrypted.
        """
        with transaction(self._connection) as db:
            try:
                for fresh in filter(None, (key, replacement_key)):
                    db.execute("INSERT INTO spent_key VALUES (?)", [hashlib.sha256(fresh).digest()])
                db.execute("INSERT INTO pad VALUES (?, ?, ?, ?)", [release_id, attribute, key, digest])
            except sqlite3.IntegrityError:
                raise ConflictError("the pad was used before", where=f"attribute {attribute}") from None

    def record_key_given(self, release_id: str, attribute: str, researcher: str) -> None:
        """Record that a researcher gets the key of a column, before it leaves: the first time on each day (UTC).

        A researcher may fetch a key as often as it likes, and fills nobody's log with that.
        """
        with transaction(self._connection):
            before = self._audit.key_given_at(release_id, attribute, researcher)
            if before is None or before // _SECONDS_A_DAY != int(time.time()) // _SECONDS_A_DAY:
                self._audit.record(Event.KEY, release=release_id, attribute=attribute, researcher=researcher)

    def of_results(self) -> tuple[str, ...]:
        """Return the releases with a result whose keys are here."""
        rows = self._connection.execute(
            "SELECT id FROM release WHERE state = 'ready'"
            " AND EXISTS (SELECT 1 FROM pad WHERE release_id = release.id AND key <> x'')"
        )
        return tuple(row["id"] for row in rows.fetchall())

    def forget_keys(self, release_id: str) -> None:
        """Erase the keys of a release; that they were spent stays recorded."""
        with transaction(self._connection) as db:
            db.execute("DELETE FROM canary_key WHERE release_id = ?", [release_id])
            db.execute("UPDATE pad SET key = x'' WHERE release_id = ?", [release_id])
        erase_traces(self._connection)

    def spend_shared_keys(self, release_id: str, coin_key: bytes, canary_key: bytes) -> None:
        """Record the keys of a release's coins and canaries as spent, before their first use; keep the canaries'.

        Where this is undone the release's coin gives the same keys again, and `spend_keys` makes it durable before a
        symbol that they made leaves.

        Raises:
            ConflictError: another release has spent one of them.
        """
        for key in (coin_key, canary_key):
            spent = [hashlib.sha256(key).digest(), release_id]
            add = "INSERT INTO spent_shared_key VALUES (?, ?) ON CONFLICT DO NOTHING"
            is_new = self._connection.execute_unsynced(add, spent).rowcount
            by_this = "SELECT 1 FROM spent_shared_key WHERE fingerprint = ? AND release_id = ?"
            if not is_new and value_of(self._connection, by_this, *spent) is None:
                raise ConflictError(
                    "the coins of the noise and canaries were used before", where=f"release {release_id}"
                )
        self._connection.execute_unsynced(
            "INSERT INTO canary_key VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, canary_key]
        )

    def canary_key(self, release_id: str) -> bytes:
        """Return the key of a release's canaries.

        Raises:
            NotFoundError: its sample is not drawn, or the key is erased.
        """
        key = value_of(self._connection, "SELECT key FROM canary_key WHERE release_id = ?", release_id)
        if key is None:
            raise NotFoundError("the key of the canaries is not here", where=f"release {release_id}")
        return bytes(key)
