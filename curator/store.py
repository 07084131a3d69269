"""A curator's durable state: requests, decisions, coins, pads and peers. Every record precedes the action on it.

What is told or shown of a release, and what another process would compute again, waits for no disk: the next record
makes it durable too (`Database.execute_unsynced`).
"""

import hashlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, fields
from decimal import Decimal
from pathlib import Path

from veiltab.common.core.canonical import canonical_text, read_canonical
from veiltab.common.errors import ConflictError, IntegrityError, InvalidInputError, NotFoundError
from veiltab.common.release.receipt import Receipt
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.rows import FINISHED, IS_FINISHED, latest_rows, state_counts
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.witness import longest_ledger, remember_ledger
from veiltab.common.release.workload import WorkloadSpec
from veiltab.common.storage.database import erase_traces, open_database, transaction
from veiltab.common.study.file import Study
from veiltab.curator.alignment.private_sessions import PrivateSessions
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.doubts import DOUBT_TABLE
from veiltab.curator.progress import (
    DENIED,
    HELD,
    Approval,
    ColumnDigests,
    CuratorRelease,
    GrantDecision,
    PublicationDigests,
)
from veiltab.curator.served_files import ServedPolicy, ServedTable
from veiltab.curator.table_steps import MOST_TABLES_AT_A_TIME, TableState, request_of_table, table_ids

_MIGRATIONS = (
    """
    CREATE TABLE release (
        id TEXT PRIMARY KEY, researcher TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL,
        waiting_for TEXT NOT NULL DEFAULT '', failure TEXT NOT NULL DEFAULT '', spec TEXT,
        sample_check BLOB, seconds TEXT NOT NULL DEFAULT '{}', bytes_uploaded INTEGER NOT NULL DEFAULT 0,
        created INTEGER NOT NULL);
    CREATE TABLE decision (
        release_id TEXT NOT NULL REFERENCES release(id), attribute TEXT NOT NULL, verdict TEXT NOT NULL,
        expires INTEGER, decided_by TEXT NOT NULL, PRIMARY KEY (release_id, attribute));
    CREATE TABLE coin (id TEXT PRIMARY KEY, share BLOB NOT NULL, value BLOB);
    CREATE TABLE commitment (
        coin_id TEXT NOT NULL, curator TEXT NOT NULL, commitment BLOB NOT NULL, PRIMARY KEY (coin_id, curator));
    CREATE TABLE pad (
        release_id TEXT NOT NULL, attribute TEXT NOT NULL, key BLOB NOT NULL, digest BLOB,
        PRIMARY KEY (release_id, attribute));
    CREATE TABLE spent_key (fingerprint BLOB PRIMARY KEY);
    CREATE TABLE table_version (content_digest TEXT PRIMARY KEY, version TEXT NOT NULL);
    CREATE TABLE alignment (id TEXT PRIMARY KEY, population INTEGER NOT NULL, digest TEXT NOT NULL);
    CREATE TABLE witness (curator TEXT PRIMARY KEY, length INTEGER NOT NULL, head BLOB NOT NULL);
    CREATE TABLE reservation (release_id TEXT PRIMARY KEY, entry TEXT NOT NULL, epsilon TEXT NOT NULL);
    CREATE TABLE ledger (
        number INTEGER PRIMARY KEY, release_id TEXT NOT NULL UNIQUE, entry TEXT NOT NULL, epsilon TEXT NOT NULL,
        digest BLOB NOT NULL)
    """,
    """
    ALTER TABLE release ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
    UPDATE release SET since = created
    """,
    """
    CREATE TABLE price (release_id TEXT PRIMARY KEY, mu TEXT NOT NULL, slack TEXT NOT NULL)
    """,
    """
    CREATE TABLE served_policy (path TEXT, rules INTEGER NOT NULL, budget TEXT)
    """,
    """
    CREATE TABLE plan (
        release_id TEXT NOT NULL REFERENCES release(id), question BLOB NOT NULL, answer TEXT NOT NULL,
        PRIMARY KEY (release_id, question));
    CREATE TABLE card (
        spec BLOB PRIMARY KEY, release_id TEXT NOT NULL REFERENCES release(id), rows TEXT NOT NULL)
    """,
    """
    CREATE TABLE aborted_toss (release_id TEXT PRIMARY KEY REFERENCES release(id), curator TEXT NOT NULL)
    """,
    """
    CREATE TABLE charge (
        question BLOB PRIMARY KEY, release_id TEXT NOT NULL REFERENCES release(id), answer TEXT NOT NULL)
    """,
    """
    CREATE TABLE private_session (
        alignment_id TEXT PRIMARY KEY, part BLOB NOT NULL, name TEXT NOT NULL DEFAULT '',
        scalar BLOB NOT NULL DEFAULT x'')
    """,
    """
    CREATE TABLE opening (
        coin_id TEXT NOT NULL, curator TEXT NOT NULL, given INTEGER NOT NULL DEFAULT 0,
        received INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (coin_id, curator));
    ALTER TABLE aborted_toss RENAME TO earlier_aborted_toss;
    CREATE TABLE aborted_toss (
        release_id TEXT NOT NULL REFERENCES release(id), curator TEXT NOT NULL, PRIMARY KEY (release_id, curator));
    INSERT INTO aborted_toss SELECT release_id, curator FROM earlier_aborted_toss;
    DROP TABLE earlier_aborted_toss;
    ALTER TABLE release ADD COLUMN study_digest TEXT NOT NULL DEFAULT ''
    """,
    """
    CREATE TABLE spent_shared_key (fingerprint BLOB PRIMARY KEY, release_id TEXT NOT NULL);
    CREATE TABLE canary_key (release_id TEXT PRIMARY KEY REFERENCES release(id), key BLOB NOT NULL)
    """,
    """
    CREATE TABLE view_price (view TEXT PRIMARY KEY, mu TEXT NOT NULL)
    """,
    """
    CREATE TABLE published_column (
        release_id TEXT NOT NULL REFERENCES release(id), attribute TEXT NOT NULL, digest BLOB NOT NULL,
        canary_digest BLOB, PRIMARY KEY (release_id, attribute));
    CREATE TABLE receipt (
        release_id TEXT NOT NULL REFERENCES release(id), tester TEXT NOT NULL, receipt TEXT NOT NULL,
        PRIMARY KEY (release_id, tester));
    CREATE TABLE canary_changes (
        release_id TEXT NOT NULL REFERENCES release(id), curator TEXT NOT NULL, list BLOB NOT NULL,
        PRIMARY KEY (release_id, curator))
    """,
    """
    CREATE TABLE published_places (release_id TEXT PRIMARY KEY REFERENCES release(id), digest BLOB NOT NULL)
    """,
    """
    ALTER TABLE release ADD COLUMN part_of TEXT NOT NULL DEFAULT '';
    ALTER TABLE release ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE release ADD COLUMN workload TEXT;
    ALTER TABLE release ADD COLUMN choice TEXT;
    CREATE INDEX release_part_of ON release (part_of, number);
    CREATE VIEW asked AS SELECT * FROM release WHERE part_of = ''
    """,
    """
    ALTER TABLE decision ADD COLUMN time INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decision ADD COLUMN person TEXT NOT NULL DEFAULT '';
    ALTER TABLE decision ADD COLUMN reason TEXT NOT NULL DEFAULT '';
    ALTER TABLE decision ADD COLUMN rule INTEGER;
    ALTER TABLE decision ADD COLUMN rule_text TEXT NOT NULL DEFAULT '';
    CREATE TABLE approval (
        release_id TEXT NOT NULL REFERENCES release(id), attribute TEXT NOT NULL, person TEXT NOT NULL,
        time INTEGER NOT NULL, reason TEXT NOT NULL, expires INTEGER, request_digest BLOB NOT NULL,
        PRIMARY KEY (release_id, attribute, person));
    ALTER TABLE served_policy ADD COLUMN persons INTEGER NOT NULL DEFAULT 1
    """,
    """
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY, line TEXT NOT NULL, digest BLOB NOT NULL,
        release_id TEXT GENERATED ALWAYS AS (json_extract(line, '$.release')) VIRTUAL);
    CREATE INDEX audit_release ON audit (release_id);
    CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
    CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
    """,
    """
    CREATE TABLE notices_wanted (one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL);
    CREATE TABLE notice (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, facts TEXT NOT NULL,
        created INTEGER NOT NULL, UNIQUE (kind, subject));
    CREATE TABLE delivery (
        notice INTEGER NOT NULL REFERENCES notice(number), channel TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
        due INTEGER, sent INTEGER, problem TEXT NOT NULL DEFAULT '', PRIMARY KEY (notice, channel));
    CREATE INDEX delivery_due ON delivery (channel, due) WHERE sent IS NULL
    """,
    """
    ALTER TABLE served_policy ADD COLUMN digest TEXT NOT NULL DEFAULT ''
    """,
    """
    CREATE INDEX release_state ON release (state, since)
    """,
    """
    CREATE TABLE served_study (source BLOB NOT NULL)
    """,
    """
    CREATE TABLE served_table (path TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL)
    """,
    """
    DELETE FROM private_session WHERE scalar <> x'';
    ALTER TABLE private_session ADD COLUMN seed BLOB NOT NULL DEFAULT x'';
    ALTER TABLE private_session ADD COLUMN version TEXT NOT NULL DEFAULT '';
    ALTER TABLE private_session ADD COLUMN suspects TEXT NOT NULL DEFAULT '';
    CREATE TABLE private_part (curator TEXT PRIMARY KEY, part BLOB NOT NULL, sessions INTEGER NOT NULL DEFAULT 0)
    """,
    """
    CREATE TABLE server_noise (release_id TEXT PRIMARY KEY, digest BLOB NOT NULL)
    """,
    DOUBT_TABLE,
    """
    CREATE TABLE id_of_table (id TEXT PRIMARY KEY, release_id TEXT NOT NULL);
    CREATE INDEX id_of_table_release ON id_of_table (release_id)
    """,
)

_DECISION = ", ".join(field.name for field in fields(GrantDecision))
_APPROVAL = ", ".join(field.name for field in fields(Approval))


_SECONDS_A_DAY = 86_400
_MOST_NAMED = 10
"""Releases that a refusal names."""

_ENDED = [state.value for state in ReleaseState if state.unsuccessful]


class CuratorStore:
    """The curator's database; the ledger shares its connection and its transactions."""

    def __init__(self, path: Path) -> None:
        self.connection = open_database(path, _MIGRATIONS)
        self.audit = AuditLog(self.connection)
        self.private = PrivateSessions(self.connection, self.audit)
        self._version = 0
        self.has_traces = True
        """Whether the database's log may have coins that were forgotten; an earlier process may have left some."""

    def close(self) -> None:
        """Close the database; the last process that does so empties its log."""
        self.connection.close()

    # Releases

    def add(self, request: ReleaseRequest, now: int, study_digest: str = "") -> CuratorRelease:
        """Record a request; the same one again changes nothing, another one under the same id is refused.

        Args:
            request: what is asked for.
            now: Unix seconds.
            study_digest: of the study file that it is asked under; empty if that is not known.
        """
        text = request.to_json()
        with transaction(self.connection) as db:
            row = db.execute("SELECT request FROM release WHERE id = ?", [request.release_id]).fetchone()
            if row is None:
                self._keep_ids(request)
                db.execute(
                    "INSERT INTO release (id, researcher, request, state, created, since, study_digest)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        request.release_id,
                        request.researcher,
                        text,
                        ReleaseState.REQUESTED.value,
                        now,
                        now,
                        study_digest,
                    ],
                )
            elif row["request"] != text:
                raise ConflictError(
                    "another request is recorded under this release id",
                    where=f"release {request.release_id}",
                    remedy="Ask again under a new id.",
                )
            stored = self.release(request.release_id)
            if row is None:
                digest = stored.request_digest.hex()
                self.audit.record(
                    Event.REQUEST, release=request.release_id, researcher=request.researcher, request=digest
                )
        return stored

    def _keep_ids(self, request: ReleaseRequest) -> None:
        """Keep the ids that the tables of a request will have for them; refuse one for which an id is not free."""
        ids = table_ids(request)
        known = f"SELECT id FROM release WHERE id IN ({', '.join('?' * len(ids))})"  # noqa: S608
        kept = "SELECT 1 FROM id_of_table WHERE id = ?"
        if (
            self.connection.execute(kept, [request.release_id]).fetchone()
            or self.connection.execute(known, ids).fetchone()
        ):
            raise ConflictError(
                "another release has this id, or that of one of its tables",
                where=f"release {request.release_id}",
                remedy="Ask again under a new id.",
            )
        self.connection.executemany("INSERT INTO id_of_table VALUES (?, ?)", [(one, request.release_id) for one in ids])

    def release(self, release_id: str) -> CuratorRelease:
        """Return one release."""
        row = self.connection.execute("SELECT * FROM release WHERE id = ?", [release_id]).fetchone()
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
        rows = self.connection.execute(
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
        return self.connection.execute("SELECT 1 FROM release WHERE id = ?", [release_id]).fetchone() is not None

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of releases that are not over, and of those that left something to erase.

        Of the tables of a release, those of the lowest numbers run first, some at a time.
        """
        rows = self.connection.execute(
            "SELECT id FROM (SELECT id, part_of, ROW_NUMBER() OVER (PARTITION BY part_of ORDER BY number) AS place"  # noqa: S608
            f" FROM release WHERE NOT {IS_FINISHED}) WHERE part_of = '' OR place <= {MOST_TABLES_AT_A_TIME}"
            f" UNION SELECT id FROM release WHERE {IS_FINISHED} AND (EXISTS"
            " (SELECT 1 FROM coin WHERE coin.id = 'release/' || release.id AND coin.share <> x'')"
            f" OR state IN ({', '.join('?' * len(_ENDED))}) AND"
            " (EXISTS (SELECT 1 FROM reservation WHERE reservation.release_id = release.id)"
            " OR EXISTS (SELECT 1 FROM canary_key WHERE canary_key.release_id = release.id)"
            " OR EXISTS (SELECT 1 FROM pad WHERE pad.release_id = release.id AND pad.key <> x'')))",
            [*FINISHED, *FINISHED, *_ENDED],
        )
        return tuple(row["id"] for row in rows)

    def releases(self) -> tuple[CuratorRelease, ...]:
        """Return all releases that were asked for, oldest first; not the tables of those of several."""
        rows = self.connection.execute("SELECT * FROM asked ORDER BY created, id").fetchall()
        return tuple(_release_of(row) for row in rows)

    def releases_between(self, start: int, stop: int) -> tuple[CuratorRelease, ...]:
        """Return some of the releases that were asked for, counted from the newest; as `releases`."""
        rows = self.connection.execute(
            "SELECT * FROM asked ORDER BY created DESC, id LIMIT ? OFFSET ?", [stop - start, start]
        )
        return tuple(map(_release_of, rows))

    def ended_since(self, state: ReleaseState, since: int) -> tuple[str, ...]:
        """Return the ids of releases that ended in a state at a time (Unix seconds) or later, oldest first."""
        rows = self.connection.execute(
            "SELECT id FROM asked WHERE state = ? AND since >= ? ORDER BY since, id", [state.value, since]
        )
        return tuple(row["id"] for row in rows)

    def ready(self) -> tuple[CuratorRelease, ...]:
        """Return the releases of one table that are ready, and the tables of those of several; oldest first."""
        rows = self.connection.execute(
            "SELECT * FROM release WHERE state = ? AND spec IS NOT NULL ORDER BY created, id",
            [ReleaseState.READY.value],
        )
        return tuple(map(_release_of, rows))

    def latest(self, over: int) -> tuple[CuratorRelease, ...]:
        """Return the releases that are not over and the last ones that are, `over` of them; oldest first."""
        return tuple(_release_of(row) for row in latest_rows(self.connection, "asked", over))

    def counts(self) -> dict[str, int]:
        """Return how many releases are in each state."""
        return state_counts(self.connection, "asked")

    def held(self) -> int:
        """Return how many requests wait for a person."""
        (held,) = self.connection.execute(
            "SELECT COUNT(DISTINCT release.id) FROM release JOIN decision ON release.id = decision.release_id"
            " WHERE release.state = ? AND decision.verdict = ?",
            [ReleaseState.REQUESTED.value, HELD],
        ).fetchone()
        return int(held)

    def waiting_for_a_person(self, now: float) -> frozenset[str]:
        """Return the ids of requests that a person has yet to decide about, and whose deadline lies ahead.

        A request that asks for all or nothing needs no decision any more once anything of it is denied.
        """
        rows = self.connection.execute(
            "SELECT DISTINCT release.id FROM release JOIN decision ON release.id = decision.release_id"
            " WHERE release.state = ? AND decision.verdict = ? AND json_extract(release.request, '$.deadline') >= ?"
            " AND (json_extract(release.request, '$.partial') OR NOT EXISTS"
            " (SELECT 1 FROM decision AS other WHERE other.release_id = release.id AND other.verdict = ?))",
            [ReleaseState.REQUESTED.value, HELD, now, DENIED],
        )
        return frozenset(row["id"] for row in rows)

    def open_requests(self) -> Counter[str]:
        """Return how many releases of each researcher are not over."""
        rows = self.connection.execute(
            f"SELECT researcher, COUNT(*) AS number FROM asked WHERE NOT {IS_FINISHED} GROUP BY researcher",  # noqa: S608
            FINISHED,
        )
        return Counter({row["researcher"]: row["number"] for row in rows})

    def planned(self) -> int:
        """Return how many of the releases that were asked for were ever planned here; every charge was before."""
        (number,) = self.connection.execute(
            "SELECT COUNT(*) FROM asked WHERE spec IS NOT NULL OR workload IS NOT NULL"
        ).fetchone()
        return int(number)

    # Releases of several tables

    def set_workload(self, release_id: str, workload: WorkloadSpec) -> None:
        """Record the planned tables."""
        self.connection.execute("UPDATE release SET workload = ? WHERE id = ?", [workload.to_json(), release_id])

    def open_tables(self, release_id: str, numbers: Iterable[int], now: int) -> None:
        """Record tables of a charged release as releases that are planned; again changes nothing.

        Args:
            release_id: of all the tables.
            numbers: of the tables to record.
            now: Unix seconds.

        Raises:
            ConflictError: somebody asked for another release under the id of a table.
        """
        with transaction(self.connection):
            self._open_tables(release_id, numbers, now)

    def choose_tables(self, release_id: str, numbers: tuple[int, ...], now: int) -> None:
        """Record which tables run a second time, and these as releases that are planned, at once; as `open_tables`."""
        with transaction(self.connection) as db:
            db.execute("UPDATE release SET choice = ? WHERE id = ?", [json.dumps(numbers), release_id])
            self._open_tables(release_id, map(_workload(self.release(release_id)).again, numbers), now)

    def _open_tables(self, release_id: str, numbers: Iterable[int], now: int) -> None:
        stored = self.release(release_id)
        workload = _workload(stored)
        for number in numbers:
            spec = workload.table(number)
            self.connection.execute(
                "INSERT INTO release"
                " (id, researcher, request, state, spec, created, since, study_digest, part_of, number)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [
                    spec.release_id,
                    spec.researcher,
                    request_of_table(stored.request, spec).to_json(),
                    ReleaseState.PLANNED.value,
                    spec.to_json(),
                    now,
                    now,
                    stored.study_digest,
                    release_id,
                    number,
                ],
            )
            if self.release(spec.release_id).part_of != release_id:
                raise ConflictError("another release has the id of a table", where=f"release {release_id}")

    def tables(self, release_id: str) -> dict[int, TableState]:
        """Return number -> state of the tables of a release that run, or are over."""
        rows = self.connection.execute("SELECT number, state, failure FROM release WHERE part_of = ?", [release_id])
        return {row["number"]: TableState(state=ReleaseState(row["state"]), failure=row["failure"]) for row in rows}

    def bytes_uploaded_of_tables(self, release_id: str) -> int:
        """Return how many bytes the server has of this curator's columns of all tables of a release."""
        (count,) = self.connection.execute(
            "SELECT COALESCE(SUM(bytes_uploaded), 0) FROM release WHERE part_of = ?", [release_id]
        ).fetchone()
        return int(count)

    def has_changed_elsewhere(self) -> bool:
        """Whether another process has changed the database since this was last asked."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        before, self._version = self._version, version
        return bool(before != version)

    def set_state(
        self, release_id: str, state: ReleaseState, failure: str = "", *, seconds: float | None = None
    ) -> None:
        """Change a release's state; a release that ended never moves again.

        Args:
            release_id: the release.
            state: its new state.
            failure: why it ended without a result; else empty.
            seconds: how long it was in the state that it leaves, if that is known.

        A state follows from the records beside it, and each of those is durable before the action on it: one that a
        failing power undoes is reached again by the step that led to it. What that step needs again is not deleted
        before a later record is durable.
        """
        self.connection.execute_unsynced(
            "UPDATE release SET state = ?, failure = ?, waiting_for = '', since = ?,"  # noqa: S608
            " seconds = json_patch(seconds, json_object(state, ?))"
            f" WHERE id = ? AND state NOT IN ({', '.join('?' * len(_ENDED))})",
            [state.value, failure, int(time.time()), seconds, release_id, *_ENDED],
        )

    def end(self, release_id: str, state: ReleaseState, failure: str, *, seconds: float | None = None) -> None:
        """End a release without a result, its tables with it, and give back what the ledger keeps for it, at once.

        Args:
            release_id: the release.
            state: how it ended.
            failure: why.
            seconds: how long it was in its last state, if that is known.
        """
        with transaction(self.connection):
            self._end(release_id, state, failure, seconds)
            self.audit.record(Event.END, release=release_id, state=state.value, failure=failure)

    def record_denial(self, release_id: str, failure: str, *, person: str, reason: str) -> None:
        """End a release by a person's decision, in the transaction of the caller; who drives it erases what is left.

        Args:
            release_id: the release.
            failure: what its researcher is told.
            person: who refuses it.
            reason: the person's; it stays here.

        Raises:
            NotFoundError: there is no such release.
            InvalidInputError: it is over, or charged.
        """
        stored = self.release(release_id)
        state, paid_as = stored.state, stored.part_of or release_id
        charged = self.connection.execute("SELECT 1 FROM ledger WHERE release_id = ?", [paid_as]).fetchone()
        if state.finished or charged:
            raise InvalidInputError(
                f"the release is {state.value}" + (" and charged" if charged else ""),
                where=f"release {release_id}",
                remedy="What is charged goes on to its end; it is paid for.",
            )
        self._end(release_id, ReleaseState.DENIED, failure)
        self.audit.record(Event.REFUSAL, person=person, release=release_id, reason=reason, failure=failure)

    def _end(self, release_id: str, state: ReleaseState, failure: str, seconds: float | None = None) -> None:
        self.set_state(release_id, state, failure, seconds=seconds)
        self.connection.execute(
            "UPDATE release SET state = ?, failure = ?, waiting_for = '', since = ?"  # noqa: S608
            f" WHERE part_of = ? AND NOT {IS_FINISHED}",
            [state.value, failure, int(time.time()), release_id, *FINISHED],
        )
        self.connection.execute("DELETE FROM id_of_table WHERE release_id = ?", [release_id])
        reserved = "SELECT release_id FROM reservation WHERE release_id = ?"
        self.connection.execute(f"DELETE FROM price WHERE release_id IN ({reserved})", [release_id])  # noqa: S608
        self.connection.execute("DELETE FROM reservation WHERE release_id = ?", [release_id])

    def set_waiting(self, release_id: str, waiting_for: str) -> None:
        """Record what a release waits for, for people to read."""
        self.connection.execute_unsynced(
            "UPDATE release SET waiting_for = ? WHERE id = ? AND waiting_for <> ?",
            [waiting_for, release_id, waiting_for],
        )

    def set_spec(self, release_id: str, spec: ReleaseSpec) -> None:
        """Record the planned spec; a request whose plan is lost is planned again before anything is kept for it."""
        self.connection.execute_unsynced("UPDATE release SET spec = ? WHERE id = ?", [spec.to_json(), release_id])

    def set_sample_check(self, release_id: str, check: bytes, *, has_columns: bool) -> None:
        """Record the keyed check of the sample; the same seed gives the same one again.

        A curator without columns in the release waits for the disk, and the coin's value is durable with it: nothing
        that it records later waits, and the others forget their shares once it needs the coin no more.
        """
        execute = self.connection.execute_unsynced if has_columns else self.connection.execute
        execute("UPDATE release SET sample_check = ? WHERE id = ?", [check, release_id])

    def set_bytes_uploaded(self, release_id: str, count: int) -> None:
        """Record how many bytes the server has of this curator's columns, before their ciphertexts are deleted.

        It waits for the disk: were it undone by a failing power that they were made, they could not be made again.
        """
        self.connection.execute("UPDATE release SET bytes_uploaded = ? WHERE id = ?", [count, release_id])

    # Decisions

    def decide(self, release_id: str, decisions: tuple[GrantDecision, ...]) -> None:
        """Record decisions of the policy; a final one stays.

        They follow from the policy and the request, and are durable before the budget is reserved.
        """
        with transaction(self.connection, is_synced=False):
            self.record_decisions(release_id, decisions)

    def record_decisions(self, release_id: str, decisions: tuple[GrantDecision, ...]) -> None:
        """Record decisions in the transaction of the caller; a final one stays."""
        changed = ", ".join(f"{field.name} = excluded.{field.name}" for field in fields(GrantDecision))
        for decision in decisions:
            written = self.connection.execute(
                f"INSERT INTO decision (release_id, {_DECISION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
                f" ON CONFLICT (release_id, attribute) DO UPDATE SET {changed} WHERE decision.verdict = 'held'"
                " AND (decision.verdict, decision.rule, decision.rule_text)"
                " IS NOT (excluded.verdict, excluded.rule, excluded.rule_text)",
                [release_id, *astuple(decision)],
            )
            if written.rowcount:
                facts = asdict(decision)
                person = facts.pop("person")
                self.audit.record(Event.DECISION, person=person, release=release_id, **facts)

    def decisions(self, release_id: str) -> tuple[GrantDecision, ...]:
        """Return the decisions about a release; those about a table are those about the release that it is part of."""
        rows = self.connection.execute(
            f"SELECT {_DECISION} FROM decision WHERE release_id ="  # noqa: S608
            " COALESCE((SELECT part_of FROM release WHERE id = ?1 AND part_of <> ''), ?1)",
            [release_id],
        )
        return tuple(GrantDecision(**dict(row)) for row in rows)

    def record_approvals(self, release_id: str, approvals: Iterable[Approval]) -> None:
        """Record what persons approved, in the transaction of the caller."""
        for approval in approvals:
            self.connection.execute(
                f"INSERT INTO approval (release_id, {_APPROVAL}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                [release_id, *astuple(approval)],
            )
            self.audit.record(
                Event.APPROVAL,
                person=approval.person,
                release=release_id,
                attribute=approval.attribute,
                time=approval.time,
                reason=approval.reason,
                expires=approval.expires,
                request=approval.request_digest.hex(),
            )

    def approvals(self, release_id: str) -> tuple[Approval, ...]:
        """Return what persons approved of a release, as its request stands; oldest first."""
        rows = self.connection.execute(
            f"SELECT {_APPROVAL} FROM approval WHERE release_id = ? AND request_digest = ? ORDER BY rowid",  # noqa: S608
            [release_id, self.release(release_id).request_digest],
        )
        return tuple(Approval(**dict(row)) for row in rows)

    # Plans

    def plan(self, release_id: str, question: bytes) -> str | None:
        """Return the answer to a question of this digest, if it was ever answered."""
        row = self.connection.execute(
            "SELECT answer FROM plan WHERE release_id = ? AND question = ?", [release_id, question]
        ).fetchone()
        return None if row is None else str(row["answer"])

    def set_plan(self, release_id: str, question: bytes, answer: str) -> None:
        """Record the answer to a question; the first one counts."""
        self.connection.execute_unsynced(
            "INSERT INTO plan VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [release_id, question, answer]
        )

    def card(self, spec: bytes) -> str | None:
        """Return the epsilon card of the spec of this digest, if it was ever made."""
        row = self.connection.execute("SELECT rows FROM card WHERE spec = ?", [spec]).fetchone()
        return None if row is None else str(row["rows"])

    def set_card(self, release_id: str, spec: bytes, rows: str) -> None:
        """Record the epsilon card of a spec."""
        self.connection.execute("INSERT INTO card VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [spec, release_id, rows])

    def charge(self, question: bytes) -> str | None:
        """Return the answer to the question of this digest what a release takes, if it was ever answered."""
        row = self.connection.execute("SELECT answer FROM charge WHERE question = ?", [question]).fetchone()
        return None if row is None else str(row["answer"])

    def set_charge(self, release_id: str, question: bytes, answer: str) -> None:
        """Record what a release takes; the first answer counts."""
        values = [question, release_id, answer]
        self.connection.execute_unsynced("INSERT INTO charge VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)

    # Coins

    def own_share(self, coin_id: str, fresh: bytes) -> bytes:
        """Return this curator's share of a coin: `fresh` the first time, the same ever after."""
        self.connection.execute("INSERT INTO coin (id, share) VALUES (?, ?) ON CONFLICT DO NOTHING", [coin_id, fresh])
        row = self.connection.execute("SELECT share FROM coin WHERE id = ?", [coin_id]).fetchone()
        return bytes(row["share"])

    def knows_coin(self, coin_id: str) -> bool:
        """Whether this curator has, or had, a share of a coin."""
        return self.connection.execute("SELECT 1 FROM coin WHERE id = ?", [coin_id]).fetchone() is not None

    def commit(self, coin_id: str, curator: str, commitment: bytes) -> None:
        """Record a commitment; the first one counts, and another one is refused."""
        known = "SELECT commitment FROM commitment WHERE coin_id = ? AND curator = ?"
        self.connection.execute(
            "INSERT INTO commitment VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [coin_id, curator, commitment]
        )
        row = self.connection.execute(known, [coin_id, curator]).fetchone()
        if bytes(row["commitment"]) != commitment:
            raise ConflictError("a curator changed its commitment", where=f"curator {curator}")

    def commitments(self, coin_id: str) -> dict[str, bytes]:
        """Return the commitments to a coin by curator."""
        rows = self.connection.execute("SELECT curator, commitment FROM commitment WHERE coin_id = ?", [coin_id])
        return {row["curator"]: bytes(row["commitment"]) for row in rows}

    def set_opening_given(self, coin_id: str, curator: str) -> None:
        """Record that a curator gets this one's share of a coin, before it leaves."""
        self.connection.execute(
            "INSERT INTO opening (coin_id, curator, given) VALUES (?, ?, 1)"
            " ON CONFLICT (coin_id, curator) DO UPDATE SET given = 1",
            [coin_id, curator],
        )

    def set_opening_received(self, coin_id: str, curator: str) -> None:
        """Record that a curator opened its share of a coin here; it does so again where this is undone."""
        self.connection.execute_unsynced(
            "INSERT INTO opening (coin_id, curator, received) VALUES (?, ?, 1)"
            " ON CONFLICT (coin_id, curator) DO UPDATE SET received = 1",
            [coin_id, curator],
        )

    def openings_received(self, coin_id: str) -> frozenset[str]:
        """Return the curators that opened their share of a coin here."""
        return self._openings(coin_id, "received = 1")

    def openings_withheld(self, coin_id: str) -> frozenset[str]:
        """Return the curators that have this one's share of a coin, and did not open theirs."""
        return self._openings(coin_id, "given = 1 AND received = 0")

    def _openings(self, coin_id: str, condition: str) -> frozenset[str]:
        rows = self.connection.execute(f"SELECT curator FROM opening WHERE coin_id = ? AND {condition}", [coin_id])  # noqa: S608
        return frozenset(row["curator"] for row in rows)

    def coin_value(self, coin_id: str) -> bytes | None:
        """Return a coin's value once it is tossed, and until it is forgotten."""
        row = self.connection.execute("SELECT value FROM coin WHERE id = ?", [coin_id]).fetchone()
        return bytes(row["value"]) if row is not None and row["value"] else None

    def set_coin_value(self, coin_id: str, value: bytes) -> None:
        """Record a coin's value; the same shares give the same one again."""
        self.connection.execute_unsynced("UPDATE coin SET value = ? WHERE id = ?", [value, coin_id])

    def forget_coin(self, coin_id: str) -> None:
        """Erase a coin that nobody needs any more; its commitments stay, so that it is never tossed again.

        Its traces are there until `erase_traces`.
        """
        self.has_traces = True
        self.connection.execute_unsynced("UPDATE coin SET share = x'', value = x'' WHERE id = ?", [coin_id])

    def erase_traces(self) -> None:
        """Erase coins that were forgotten from the database's log too; it waits for the disk several times."""
        # Before that, as another thread may forget one meanwhile.
        self.has_traces = False
        if not erase_traces(self.connection):
            self.has_traces = True

    def add_aborted(self, release_id: str, curator: str) -> None:
        """Record that a release was charged in vain, as a curator withheld its share, ended it or differed."""
        self.connection.execute("INSERT INTO aborted_toss VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, curator])

    def aborted(self) -> Counter[str]:
        """Return how many releases were charged in vain by each curator."""
        rows = self.connection.execute("SELECT curator, COUNT(*) AS number FROM aborted_toss GROUP BY curator")
        return Counter({row["curator"]: row["number"] for row in rows})

    def clear_aborted(self, curator: str, *, person: str) -> int:
        """Forget the releases that were charged in vain by a curator, as a person decided; return their number."""
        with transaction(self.connection) as db:
            cleared = db.execute("DELETE FROM aborted_toss WHERE curator = ?", [curator]).rowcount
            self.audit.record(Event.TOSSES_CLEARED, person=person, curator=curator, tosses=cleared)
        return cleared

    # Pads

    def pad(self, release_id: str, attribute: str) -> tuple[bytes, bytes] | None:
        """Return (key, digest of the one ciphertext it made) of a column that is encrypted."""
        row = self.connection.execute(
            "SELECT key, digest FROM pad WHERE release_id = ? AND attribute = ?", [release_id, attribute]
        ).fetchone()
        return None if row is None or row["digest"] is None else (bytes(row["key"]), bytes(row["digest"]))

    def ciphertext_digest(self, release_id: str, attribute: str) -> bytes:
        """Return the digest of a column's one ciphertext.

        Raises:
            NotFoundError: the column was not encrypted.
        """
        found = self.pad(release_id, attribute)
        if found is None:
            raise NotFoundError("this column was not encrypted", where=f"attribute {attribute}")
        return found[1]

    def spend_key(self, release_id: str, attribute: str, key: bytes, replacement_key: bytes = b"") -> None:
        """Record a pad's fresh key as spent, before it makes its first symbol; a key that was ever spent is refused.

        A key recorded earlier for this column is dropped: no byte under it can have left, since a column is sent only
        after `set_pad_digest`.

        Args:
            release_id: the release.
            attribute: the column.
            key: of the pad; it is kept.
            replacement_key: of the symbols of the curators' noise, spent and not kept; empty if there is no noise.
        """
        with transaction(self.connection) as db:
            try:
                for fresh in filter(None, (key, replacement_key)):
                    db.execute("INSERT INTO spent_key VALUES (?)", [hashlib.sha256(fresh).digest()])
            except sqlite3.IntegrityError:
                raise ConflictError("a pad is used once; this one is spent", where=f"attribute {attribute}") from None
            db.execute(
                "INSERT INTO pad VALUES (?, ?, ?, NULL) ON CONFLICT (release_id, attribute)"
                " DO UPDATE SET key = excluded.key WHERE pad.digest IS NULL",
                [release_id, attribute, key],
            )

    def set_pad_digest(self, release_id: str, attribute: str, digest: bytes) -> None:
        """Record the digest of the ciphertext that a key made; from here on only that ciphertext may be sent."""
        self.connection.execute(
            "UPDATE pad SET digest = ? WHERE release_id = ? AND attribute = ? AND digest IS NULL",
            [digest, release_id, attribute],
        )

    def record_key_given(self, release_id: str, attribute: str, researcher: str) -> None:
        """Record that a researcher gets the key of a column, before it leaves: the first time on each day (UTC).

        A researcher may fetch a key as often as it likes, and fills nobody's log with that.
        """
        with transaction(self.connection):
            before = self.audit.key_given_at(release_id, attribute, researcher)
            if before is None or before // _SECONDS_A_DAY != int(time.time()) // _SECONDS_A_DAY:
                self.audit.record(Event.KEY, release=release_id, attribute=attribute, researcher=researcher)

    def forget_keys(self, release_id: str) -> None:
        """Erase the keys of a release; that they were spent stays recorded."""
        with transaction(self.connection) as db:
            db.execute("DELETE FROM canary_key WHERE release_id = ?", [release_id])
            db.execute("UPDATE pad SET key = x'' WHERE release_id = ?", [release_id])
        erase_traces(self.connection)

    # Noise and canaries

    def spend_shared_keys(self, release_id: str, coin_key: bytes, canary_key: bytes) -> None:
        """Record the keys of a release's coins and canaries as spent, before their first use; keep the canaries'.

        Where this is undone the release's coin gives the same keys again, and `spend_key` makes it durable before they
        make a symbol.

        Raises:
            ConflictError: another release has spent one of them.
        """
        for key in (coin_key, canary_key):
            spent = [hashlib.sha256(key).digest(), release_id]
            self.connection.execute_unsynced("INSERT INTO spent_shared_key VALUES (?, ?) ON CONFLICT DO NOTHING", spent)
            by_this = "SELECT 1 FROM spent_shared_key WHERE fingerprint = ? AND release_id = ?"
            if self.connection.execute(by_this, spent).fetchone() is None:
                raise ConflictError(
                    "coins of the noise and canaries serve one release; these are spent",
                    where=f"release {release_id}",
                )
        self.connection.execute_unsynced(
            "INSERT INTO canary_key VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, canary_key]
        )

    def canary_key(self, release_id: str) -> bytes:
        """Return the key of a release's canaries.

        Raises:
            NotFoundError: its sample is not drawn, or the key is erased.
        """
        row = self.connection.execute("SELECT key FROM canary_key WHERE release_id = ?", [release_id]).fetchone()
        if row is None:
            raise NotFoundError("the key of the canaries is not here", where=f"release {release_id}")
        return bytes(row["key"])

    def record_noise_digest(self, release_id: str, digest: bytes) -> None:
        """Record what the server stated of its noise of a release, before a column is sent; the first one counts."""
        self.connection.execute("INSERT INTO server_noise VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, digest])

    def noise_digest(self, release_id: str) -> bytes:
        """Return what the server stated of its noise of a release first; empty before."""
        row = self.connection.execute("SELECT digest FROM server_noise WHERE release_id = ?", [release_id]).fetchone()
        return b"" if row is None else bytes(row["digest"])

    # The test of the server

    def record_publication(self, release_id: str, digests: PublicationDigests) -> None:
        """Record the digests of what the server published; the first ones count.

        Raises:
            ConflictError: others were recorded.
        """
        with transaction(self.connection) as db:
            db.executemany(
                "INSERT INTO published_column (release_id, attribute, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(release_id, attribute, digest) for attribute, digest in digests.columns.items()],
            )
            db.execute(
                "INSERT INTO published_places VALUES (?, ?) ON CONFLICT DO NOTHING", [release_id, digests.places]
            )
            if self.published_digests(release_id) != digests.columns:
                raise ConflictError("the server has published other columns before", where=f"release {release_id}")
            if self.places_digest(release_id) != digests.places:
                raise ConflictError("the server has sampled other places before", where=f"release {release_id}")

    def published_digests(self, release_id: str) -> dict[str, bytes]:
        """Return attribute -> SHA-256 of its published column, as the server stated it before the test."""
        rows = self.connection.execute(
            "SELECT attribute, digest FROM published_column WHERE release_id = ?", [release_id]
        )
        return {row["attribute"]: bytes(row["digest"]) for row in rows}

    def places_digest(self, release_id: str) -> bytes:
        """Return SHA-256 of the places that the server sampled, as it stated it before the test; else empty."""
        row = self.connection.execute(
            "SELECT digest FROM published_places WHERE release_id = ?", [release_id]
        ).fetchone()
        return b"" if row is None else bytes(row["digest"])

    def set_receipt(self, release_id: str, receipt: Receipt, changes: bytes, digests: Mapping[str, bytes]) -> None:
        """Record what this curator's test of its own columns showed.

        Args:
            release_id: the release.
            receipt: of the test.
            changes: the list of changed canaries; empty where so many changed that none was made.
            digests: attribute -> SHA-256 of the published symbols of its canaries, for one's own columns.
        """
        with transaction(self.connection) as db:
            db.execute("INSERT INTO receipt VALUES (?, ?, ?)", [release_id, receipt.tester, canonical_text(receipt)])
            db.execute("INSERT INTO canary_changes VALUES (?, ?, ?)", [release_id, receipt.tester, changes])
            db.executemany(
                "UPDATE published_column SET canary_digest = ? WHERE release_id = ? AND attribute = ?",
                [(digest, release_id, attribute) for attribute, digest in digests.items()],
            )

    def set_joint_receipt(self, release_id: str, receipt: Receipt, lists: Mapping[str, bytes]) -> None:
        """Record what the test of all columns together showed, and the owners' lists that it was made on."""
        with transaction(self.connection) as db:
            db.execute("INSERT OR REPLACE INTO receipt VALUES (?, ?, ?)", [release_id, "", canonical_text(receipt)])
            db.executemany(
                "INSERT OR REPLACE INTO canary_changes VALUES (?, ?, ?)",
                [(release_id, curator, changes) for curator, changes in lists.items()],
            )

    def receipts(self, release_id: str) -> tuple[Receipt, ...]:
        """Return what the tests of the server showed that were made: of one's own columns, then of all together."""
        rows = self.connection.execute(
            "SELECT receipt FROM receipt WHERE release_id = ? ORDER BY tester DESC", [release_id]
        )
        return tuple(read_canonical(Receipt, row["receipt"]) for row in rows)

    def canary_changes(self, release_id: str) -> dict[str, bytes]:
        """Return the lists of changed canaries that are here, by the curator whose columns they are of."""
        rows = self.connection.execute("SELECT curator, list FROM canary_changes WHERE release_id = ?", [release_id])
        return {row["curator"]: bytes(row["list"]) for row in rows}

    def tested(self, release_id: str, attribute: str) -> ColumnDigests | None:
        """Return what was tested of a column of one's own, if it was."""
        row = self.connection.execute(
            "SELECT digest, canary_digest FROM published_column WHERE release_id = ? AND attribute = ?",
            [release_id, attribute],
        ).fetchone()
        if row is None or row["canary_digest"] is None:
            return None
        return ColumnDigests(published=bytes(row["digest"]), canaries=bytes(row["canary_digest"]))

    # Table, alignment and peers

    def table_version(self, content_digest: str, fresh: str) -> str:
        """Return the random name of a table content: `fresh` the first time, the same ever after."""
        self.connection.execute(
            "INSERT INTO table_version VALUES (?, ?) ON CONFLICT DO NOTHING", [content_digest, fresh]
        )
        row = self.connection.execute(
            "SELECT version FROM table_version WHERE content_digest = ?", [content_digest]
        ).fetchone()
        return str(row["version"])

    def alignment(self, alignment_id: str) -> tuple[int, str] | None:
        """Return (common respondents, digest) of a finished alignment."""
        row = self.connection.execute("SELECT * FROM alignment WHERE id = ?", [alignment_id]).fetchone()
        return None if row is None else (row["population"], row["digest"])

    def latest_alignment(self) -> tuple[int, str] | None:
        """Return (common respondents, digest) of the latest alignment."""
        row = self.connection.execute("SELECT * FROM alignment ORDER BY rowid DESC LIMIT 1").fetchone()
        return None if row is None else (row["population"], row["digest"])

    def set_alignment(self, alignment_id: str, population: int, digest: str) -> None:
        """Record a finished alignment."""
        self.connection.execute(
            "INSERT INTO alignment VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [alignment_id, population, digest]
        )

    def set_served_policy(
        self, path: Path | None, rules: int, budget: Decimal | None, persons: int = 1, digest: str = ""
    ) -> None:
        """Record the policy that a process serves with: its file, rules, own budget, persons, and the file's digest."""
        file, own = None if path is None else str(path.absolute()), None if budget is None else str(budget)
        with transaction(self.connection) as db:
            db.execute("DELETE FROM served_policy")
            db.execute(
                "INSERT INTO served_policy (path, rules, budget, persons, digest) VALUES (?, ?, ?, ?, ?)",
                [file, rules, own, persons, digest],
            )
            self.audit.record(Event.POLICY_LOADED, file=file, rules=rules, budget=own, persons=persons, sha256=digest)

    def served_policy(self) -> ServedPolicy:
        """Return the policy that the latest process served with; one that asks little before there was any."""
        row = self.connection.execute("SELECT * FROM served_policy").fetchone()
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
        with transaction(self.connection) as db:
            db.execute("DELETE FROM served_study")
            db.execute("INSERT INTO served_study (source) VALUES (?)", [study.source])
            self.audit.record(Event.STUDY_LOADED, sha256=study.digest)

    def served_study(self) -> bytes | None:
        """Return the study file that the latest process served with; None if no process has recorded it."""
        row = self.connection.execute("SELECT source FROM served_study").fetchone()
        return None if row is None else bytes(row["source"])

    def set_served_table(self, file: ServedTable | None, rows: int, version: str) -> None:
        """Record the table that a process serves with: its file, if it is one, its respondents, and its version.

        The version is random, and the same for the same content: a digest would let an auditor test guesses of a table.
        """
        with transaction(self.connection) as db:
            db.execute("DELETE FROM served_table")
            if file is not None:
                db.execute(
                    "INSERT INTO served_table (path, size, modified) VALUES (?, ?, ?)",
                    [str(file.path), file.size, file.modified],
                )
            self.audit.record(Event.TABLE_LOADED, rows=rows, version=version)

    def served_table(self) -> ServedTable | None:
        """Return the file of the table that the latest process served with; None if it was not a single file."""
        row = self.connection.execute("SELECT path, size, modified FROM served_table").fetchone()
        if row is None:
            return None
        return ServedTable(path=Path(row["path"]), size=row["size"], modified=row["modified"])

    def latest_study_digest(self) -> str:
        """Return the digest of the study file that the newest request was made under; empty if it is not known."""
        row = self.connection.execute(
            "SELECT study_digest FROM asked WHERE study_digest <> '' ORDER BY created DESC, id LIMIT 1"
        ).fetchone()
        return "" if row is None else str(row["study_digest"])

    def witness(self, curator: str) -> tuple[int, bytes]:
        """Return the longest ledger (entries, head) that a peer ever showed."""
        return longest_ledger(self.connection, curator)

    def set_witness(self, curator: str, length: int, head: bytes) -> None:
        """Record a peer's ledger if it is longer than the recorded one."""
        remember_ledger(self.connection, curator, (length, head))


def _release_of(row: sqlite3.Row) -> CuratorRelease:
    return CuratorRelease(
        request=ReleaseRequest.from_json(row["request"]),
        state=ReleaseState(row["state"]),
        waiting_for=row["waiting_for"],
        failure=row["failure"],
        spec=None if row["spec"] is None else ReleaseSpec.from_json(row["spec"]),
        sample_check=row["sample_check"] or b"",
        seconds=json.loads(row["seconds"]),
        bytes_uploaded=row["bytes_uploaded"],
        created=row["created"],
        since=row["since"],
        study_digest=row["study_digest"],
        workload=None if row["workload"] is None else WorkloadSpec.from_json(row["workload"]),
        choice=None if row["choice"] is None else tuple(json.loads(row["choice"])),
        part_of=row["part_of"],
    )


def _workload(stored: CuratorRelease) -> WorkloadSpec:
    if stored.workload is None:
        raise IntegrityError("a release of several tables has no plan", where=f"release {stored.request.release_id}")
    return stored.workload
