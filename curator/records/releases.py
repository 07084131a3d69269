"""The releases that a curator was asked for, and where each of them stands."""

import json
import sqlite3
import time
from collections import Counter
from functools import lru_cache

from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError
from veiltab.common.release.release_queries import IS_FINISHED, IS_UNFINISHED, latest_rows, state_counts
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.progress.release_record import CuratorRelease
from veiltab.curator.progress.table_steps import MOST_TABLES_AT_A_TIME, table_ids

_MOST_NAMED = 10
"""Releases that a refusal names."""

_ENDED = [state.value for state in ReleaseState if state.unsuccessful]


class Releases:
    """The releases of a curator's database; the ledger shares its connection and its transactions."""

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def add(self, request: ReleaseRequest, now: int, study_digest: str = "") -> CuratorRelease:
        """Record a request; the same one again changes nothing, another one under the same id is refused.

        Args:
            now: Unix seconds.
            study_digest: of the study file that it is asked under; empty if that is not known.
        """
        text = request.to_json()
        with transaction(self._connection) as db:
            row = db.execute("SELECT request FROM release WHERE id = ?", [request.release_id]).fetchone()
            if row is None:
                self._keep_ids(request)
                db.execute(
                    "INSERT INTO release (id, researcher, request, state, created, since, study_digest)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
                    [request.release_id, request.researcher, text, ReleaseState.REQUESTED.value, now, study_digest],
                )
            elif row["request"] != text:
                raise ConflictError(
                    "another request is recorded under this release id",
                    where=f"release {request.release_id}",
                    remedy="Ask again under a new id.",
                )
            release = self.release(request.release_id)
            if row is None:
                digest = release.request_digest.hex()
                self._audit.record(
                    Event.REQUEST, release=request.release_id, researcher=request.researcher, request=digest
                )
        return release

    def _keep_ids(self, request: ReleaseRequest) -> None:
        """Keep the ids that the tables of a request will have for them; refuse one for which an id is not free."""
        ids = table_ids(request)
        query = f"SELECT id FROM release WHERE id IN ({', '.join('?' * len(ids))})"  # noqa: S608 - the program's own words
        table_query = "SELECT 1 FROM id_of_table WHERE id = ?"
        if value_of(self._connection, table_query, request.release_id) or value_of(self._connection, query, *ids):
            raise ConflictError(
                "another release has this id, or that of one of its tables",
                where=f"release {request.release_id}",
                remedy="Ask again under a new id.",
            )
        self._connection.executemany(
            "INSERT INTO id_of_table VALUES (?, ?)", [(one, request.release_id) for one in ids]
        )

    def release(self, release_id: str) -> CuratorRelease:
        """Return one release."""
        row = self._connection.execute("SELECT * FROM release WHERE id = ?", [release_id]).fetchone()
        if row is None:
            raise NotFoundError("no such release here", where=f"release {release_id[:32]}")
        return _release_of(row)

    def release_id(self, prefix: str) -> str:
        """Return the id of the one release that begins so, not that of a table of several.

        Raises:
            NotFoundError: none does.
            InvalidInputError: several do.
        """
        begun = prefix.strip().lower()
        if self.knows(begun):
            return begun
        rows = self._connection.execute(
            "SELECT id, researcher FROM asked WHERE substr(id, 1, ?) = ? ORDER BY created, id", [len(begun), begun]
        ).fetchall()
        if not rows or not begun:
            raise NotFoundError(
                "no such release here",
                where=f"release {prefix[:32]}",
                remedy="`veiltab curator requests` lists what has arrived here; --all lists what has ended, too.",
            )
        if len(rows) > 1:
            named = ", ".join(f"{row['id']} ({row['researcher']})" for row in rows[:_MOST_NAMED])
            more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
            raise InvalidInputError(
                f"{len(rows)} releases begin so: {named}{more}",
                where=f"release {prefix[:32]}",
                remedy="Write more of the id.",
            )
        return str(rows[0]["id"])

    def knows(self, release_id: str) -> bool:
        """Whether a request is recorded under this id."""
        return value_of(self._connection, "SELECT 1 FROM release WHERE id = ?", release_id) is not None

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of releases that are not over, and of those that left something to erase.

        Of the tables of a release, those of the lowest numbers run first, some at a time.
        """
        rows = self._connection.execute(
            "SELECT id FROM (SELECT id, part_of, ROW_NUMBER() OVER (PARTITION BY part_of ORDER BY number) AS place"  # noqa: S608 - the program's own words
            f" FROM release WHERE {IS_UNFINISHED}) WHERE part_of = '' OR place <= {MOST_TABLES_AT_A_TIME}"
            f" UNION SELECT id FROM release WHERE {IS_FINISHED} AND (EXISTS"
            " (SELECT 1 FROM coin WHERE coin.id = 'release/' || release.id AND coin.share <> x'')"
            f" OR state IN ({', '.join('?' * len(_ENDED))}) AND"
            " (EXISTS (SELECT 1 FROM reservation WHERE reservation.release_id = release.id)"
            " OR EXISTS (SELECT 1 FROM canary_key WHERE canary_key.release_id = release.id)"
            " OR EXISTS (SELECT 1 FROM pad WHERE pad.release_id = release.id AND pad.key <> x'')))",
            _ENDED,
        )
        return tuple(row["id"] for row in rows)

    def releases(self) -> tuple[CuratorRelease, ...]:
        """Return all releases that were asked for, oldest first; not the tables of those of several."""
        rows = self._connection.execute("SELECT * FROM asked ORDER BY created, id").fetchall()
        return tuple(_release_of(row) for row in rows)

    def releases_between(self, start: int, stop: int) -> tuple[CuratorRelease, ...]:
        """Return some of the releases that were asked for, counted from the newest; as `releases`."""
        rows = self._connection.execute(
            "SELECT * FROM asked ORDER BY created DESC, id LIMIT ? OFFSET ?", [stop - start, start]
        )
        return tuple(map(_release_of, rows))

    def ended_since(self, state: ReleaseState, since: int) -> tuple[str, ...]:
        """Return the ids of releases that ended in a state at a time (Unix seconds) or later, oldest first."""
        rows = self._connection.execute(
            "SELECT id FROM asked WHERE state = ? AND since >= ? ORDER BY since, id", [state.value, since]
        )
        return tuple(row["id"] for row in rows)

    def ready(self) -> tuple[CuratorRelease, ...]:
        """Return the releases that are ready, and the tables of those of several; oldest first."""
        rows = self._connection.execute(
            "SELECT * FROM release WHERE state = ? AND spec IS NOT NULL ORDER BY created, id",
            [ReleaseState.READY.value],
        )
        return tuple(map(_release_of, rows))

    def latest(self, over: int) -> tuple[CuratorRelease, ...]:
        """Return the releases that are not over and the last ones that are, `over` of them; oldest first."""
        return tuple(_release_of(row) for row in latest_rows(self._connection, "asked", over))

    def counts(self) -> dict[str, int]:
        """Return how many releases are in each state."""
        return state_counts(self._connection, "asked")

    def open_requests(self) -> Counter[str]:
        """Return how many releases of each researcher are not over."""
        rows = self._connection.execute(
            f"SELECT researcher, COUNT(*) AS number FROM release WHERE +part_of = '' AND {IS_UNFINISHED} GROUP BY 1"  # noqa: S608 - the program's own words
        )
        return Counter({row["researcher"]: row["number"] for row in rows})

    def planned(self) -> int:
        """Return how many of the releases that were asked for were ever planned here; every charge was before."""
        return int(value_of(self._connection, "SELECT COUNT(*) FROM asked WHERE spec IS NOT NULL"))

    def set_state(
        self, release_id: str, state: ReleaseState, failure: str = "", *, seconds: float | None = None
    ) -> None:
        """Change a release's state; a release that ended never moves again.

        Args:
            failure: why it ended without a result; else empty.
            seconds: how long it was in the state that it leaves, if that is known.

        A state follows from the records beside it, and each of those is durable before the action on it: one that a
        failing power undoes is reached again by the step that led to it. What that step needs again is not deleted
        before a later record is durable.
        """
        self._connection.execute_unsynced(
            "UPDATE release SET state = ?, failure = ?, waiting_for = '', since = ?,"  # noqa: S608 - the program's own words
            " seconds = json_patch(seconds, json_object(state, ?))"
            f" WHERE id = ? AND state NOT IN ({', '.join('?' * len(_ENDED))})",
            [state.value, failure, int(time.time()), seconds, release_id, *_ENDED],
        )

    def end(self, release_id: str, state: ReleaseState, failure: str, *, seconds: float | None = None) -> None:
        """End a release without a result, its tables with it, and give back what the ledger keeps for it, at once.

        Args:
            seconds: how long it was in its last state, if that is known.
        """
        with transaction(self._connection):
            self._end(release_id, state, failure, seconds)
            self._audit.record(Event.END, release=release_id, state=state.value, failure=failure)

    def record_denial(self, release_id: str, failure: str, *, person: str, reason: str) -> None:
        """End a release by a person's decision, in the transaction of the caller; who drives it erases what is left.

        Args:
            failure: what its researcher is told.
            reason: the person's; it stays here.

        Raises:
            NotFoundError: there is no such release.
            InvalidInputError: it is over, or charged.
        """
        release = self.release(release_id)
        state, paid_as = release.state, release.part_of or release_id
        charged = self._connection.execute("SELECT 1 FROM ledger WHERE release_id = ?", [paid_as]).fetchone()
        if state.finished or charged:
            raise InvalidInputError(
                f"the release is {state.value}" + (" and charged" if charged else ""),
                where=f"release {release_id}",
                remedy="What is charged goes on to its end; it is paid for.",
            )
        self._end(release_id, ReleaseState.DENIED, failure)
        self._audit.record(Event.REFUSAL, person=person, release=release_id, reason=reason, failure=failure)

    def _end(self, release_id: str, state: ReleaseState, failure: str, seconds: float | None = None) -> None:
        self.set_state(release_id, state, failure, seconds=seconds)
        self._connection.execute(
            "UPDATE release SET state = ?, failure = ?, waiting_for = '', since = ?"  # noqa: S608 - the program's own words
            f" WHERE part_of = ? AND {IS_UNFINISHED}",
            [state.value, failure, int(time.time()), release_id],
        )
        self._connection.execute("DELETE FROM id_of_table WHERE release_id = ?", [release_id])
        reserved = "SELECT release_id FROM reservation WHERE release_id = ?"
        self._connection.execute(f"DELETE FROM price WHERE release_id IN ({reserved})", [release_id])  # noqa: S608 - the program's own words
        self._connection.execute("DELETE FROM reservation WHERE release_id = ?", [release_id])

    def set_waiting(self, release_id: str, waiting_for: str) -> None:
        """Record what a release waits for, for people to read."""
        self._connection.execute_unsynced(
            "UPDATE release SET waiting_for = ? WHERE id = ? AND waiting_for <> ?",
            [waiting_for, release_id, waiting_for],
        )

    def set_planned(self, spec: ReleaseSpec) -> None:
        """Record what is planned; a request whose plan is lost is planned again before anything is kept for it."""
        self._connection.execute_unsynced("UPDATE release SET spec = ? WHERE id = ?", [spec.to_json(), spec.release_id])

    def set_sample_check(self, release_id: str, check: bytes, *, has_columns: bool) -> None:
        """Record the keyed check of the sample; the same seed gives the same one again.

        A curator without columns in the release waits for the disk, and the coin's value is durable with it: nothing
        that it records later waits, and the others forget their shares once it needs the coin no more.
        """
        execute = self._connection.execute_unsynced if has_columns else self._connection.execute
        execute("UPDATE release SET sample_check = ? WHERE id = ?", [check, release_id])

    def set_bytes_uploaded(self, release_id: str, count: int) -> None:
        """Record how many bytes the server has of this curator's columns, before their ciphertexts are deleted.

        It waits for the disk: were it undone by a failing power that they were made, they could not be made again.
        """
        self._connection.execute("UPDATE release SET bytes_uploaded = ? WHERE id = ?", [count, release_id])


_AS_THEY_ARE = ("waiting_for", "failure", "bytes_uploaded", "created", "since", "study_digest", "part_of")
"""Columns of a release that are fields of its record."""


@lru_cache(maxsize=256)
def _release_of(row: sqlite3.Row) -> CuratorRelease:
    text, is_table = row["spec"], bool(row["part_of"])
    planned = None if text is None or is_table else ReleaseSpec.from_json(text)
    alone = None if planned is None else planned.only_table
    return CuratorRelease(
        request=ReleaseRequest.from_json(row["request"]),
        state=ReleaseState(row["state"]),
        spec=TableSpec.from_json(text) if is_table else alone,
        sample_check=row["sample_check"] or b"",
        seconds=json.loads(row["seconds"]),
        planned=planned,
        choice=None if row["choice"] is None else tuple(json.loads(row["choice"])),
        **{name: row[name] for name in _AS_THEY_ARE},
    )
