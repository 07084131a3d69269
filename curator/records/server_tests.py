"""What the server stated of a release, and what the tests of its noise showed."""

from collections.abc import Mapping

from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.errors import ConflictError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.curator.progress.release_record import ColumnDigests, PublicationDigests


class ServerTests:
    """Statements and tests of the server."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def record_noise_digest(self, release_id: str, digest: bytes) -> None:
        """Record what the server stated of its noise of a release, before a column is sent; the first one counts."""
        self._connection.execute("INSERT INTO server_noise VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, digest])

    def noise_digest(self, release_id: str) -> bytes:
        """Return what the server stated of its noise of a release first; empty before."""
        return value_of(self._connection, "SELECT digest FROM server_noise WHERE release_id = ?", release_id) or b""

    def record_publication(self, release_id: str, digests: PublicationDigests) -> None:
        """Record the digests of what the server published; the first ones count.

        Raises:
            ConflictError: others were recorded.
        """
        with transaction(self._connection) as db:
            db.executemany(
                "INSERT INTO published_column (release_id, attribute, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(release_id, attribute, digest) for attribute, digest in digests.columns.items()],
            )
            db.execute(
                "INSERT INTO published_places VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, digests.places]
            )
            known = self.publication(release_id)
            if known.columns != digests.columns:
                raise ConflictError("the server has published other columns before", where=f"release {release_id}")
            if known.places != digests.places:
                raise ConflictError("the server has sampled other places before", where=f"release {release_id}")

    def publication(self, release_id: str) -> PublicationDigests:
        """Return what the server stated that it published, before the test; no columns before that is recorded."""
        rows = self._connection.execute(
            "SELECT attribute, digest FROM published_column WHERE release_id = ?1 UNION ALL"
            " SELECT '', digest FROM published_places WHERE release_id = ?1",
            [release_id],
        )
        digests = {row["attribute"]: row["digest"] for row in rows}
        return PublicationDigests(places=digests.pop("", b""), columns=digests)

    def set_receipt(self, release_id: str, receipt: Receipt, changes: bytes, digests: Mapping[str, bytes]) -> None:
        """Record what this curator's test of its own columns showed.

        Args:
            changes: the list of changed canaries; empty where so many changed that none was made.
            digests: attribute -> SHA-256 of the published symbols of its canaries, for one's own columns.
        """
        with transaction(self._connection) as db:
            db.execute("INSERT INTO receipt VALUES (?, ?, ?)", [release_id, receipt.tester, receipt.text])
            db.execute("INSERT INTO canary_changes VALUES (?, ?, ?)", [release_id, receipt.tester, changes])
            db.executemany(
                "UPDATE published_column SET canary_digest = ? WHERE release_id = ? AND attribute = ?",
                [(digest, release_id, attribute) for attribute, digest in digests.items()],
            )

    def set_joint_receipt(self, release_id: str, receipt: Receipt, lists: Mapping[str, bytes]) -> None:
        """Record what the test of all columns together showed, and the owners' lists that it was made on."""
        with transaction(self._connection) as db:
            db.execute("INSERT OR REPLACE INTO receipt VALUES (?, ?, ?)", [release_id, "", receipt.text])
            db.executemany(
                "INSERT OR REPLACE INTO canary_changes VALUES (?, ?, ?)",
                [(release_id, curator, changes) for curator, changes in lists.items()],
            )

    def receipts(self, release_id: str) -> tuple[Receipt, ...]:
        """Return what the tests of the server showed that were made: of one's own columns, then of all together."""
        rows = self._connection.execute(
            "SELECT receipt FROM receipt WHERE release_id = ? ORDER BY tester DESC", [release_id]
        )
        return tuple(read_canonical(Receipt, row["receipt"]) for row in rows)

    def canary_changes(self, release_id: str) -> dict[str, bytes]:
        """Return the lists of changed canaries that are here, by the curator whose columns they are of."""
        rows = self._connection.execute("SELECT curator, list FROM canary_changes WHERE release_id = ?", [release_id])
        return {row["curator"]: bytes(row["list"]) for row in rows}

    def tested(self, release_id: str, attribute: str) -> ColumnDigests | None:
        """Return what was tested of a column of one's own, if it was."""
        row = self._connection.execute(
            "SELECT digest, canary_digest FROM published_column WHERE release_id = ? AND attribute = ?",
            [release_id, attribute],
        ).fetchone()
        if row is None or row["canary_digest"] is None:
            return None
        return ColumnDigests(published=bytes(row["digest"]), canaries=bytes(row["canary_digest"]))
