"""The tables of releases of several, each recorded as a release of its own."""

import json
from collections.abc import Iterable

from veiltab.common.errors import ConflictError
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.curator.progress.table_steps import TableState, request_of_table
from veiltab.curator.records.releases import Releases


class ReleaseTables:
    """The tables of releases of several."""

    def __init__(self, connection: Database, releases: Releases) -> None:
        self._connection = connection
        self._releases = releases

    def open_tables(self, release_id: str, numbers: Iterable[int], now: int) -> None:
        """Record tables of a charged release as releases that are planned; again changes nothing.

        Args:
            numbers: of the tables to record.
            now: Unix seconds.

        Raises:
            ConflictError: somebody asked for another release under the id of a table.
        """
        with transaction(self._connection):
            self._open_tables(release_id, numbers, now)

    def choose_tables(self, release_id: str, numbers: tuple[int, ...], now: int) -> None:
        """Record which tables run a second time, and these as releases that are planned, at once; as `open_tables`."""
        with transaction(self._connection) as db:
            db.execute("UPDATE release SET choice = ? WHERE id = ?", [json.dumps(numbers), release_id])
            self._open_tables(release_id, map(self._releases.release(release_id).planned_release.again, numbers), now)

    def _open_tables(self, release_id: str, numbers: Iterable[int], now: int) -> None:
        release = self._releases.release(release_id)
        for number in numbers:
            spec = release.planned_release.table(number)
            self._connection.execute(
                "INSERT INTO release"
                " (id, researcher, request, state, spec, created, since, study_digest, part_of, number)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [
                    spec.release_id,
                    spec.researcher,
                    request_of_table(release.request, spec).to_json(),
                    ReleaseState.PLANNED.value,
                    spec.to_json(),
                    now,
                    now,
                    release.study_digest,
                    release_id,
                    number,
                ],
            )
            if self._releases.release(spec.release_id).part_of != release_id:
                raise ConflictError("another release has the id of a table", where=f"release {release_id}")

    def tables(self, release_id: str) -> dict[int, TableState]:
        """Return number -> state of the tables of a release that run, or are over."""
        rows = self._connection.execute("SELECT number, state, failure FROM release WHERE part_of = ?", [release_id])
        return {row["number"]: TableState(state=ReleaseState(row["state"]), failure=row["failure"]) for row in rows}

    def bytes_uploaded_of_tables(self, release_id: str) -> int:
        """Return how many bytes the server has of this curator's columns of all tables of a release."""
        query = "SELECT COALESCE(SUM(bytes_uploaded), 0) FROM release WHERE part_of = ?"
        return int(value_of(self._connection, query, release_id))
