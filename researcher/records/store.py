"""What a researcher's service keeps: its releases in SQLite, fetched columns and results as files beside it."""

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from veiltab.common.core.texts.id_prefix import whole_id
from veiltab.common.core.texts.nearest import nearest
from veiltab.common.errors import ConflictError, IntegrityError
from veiltab.common.release.messages.witness import Witnessed, longest_ledger
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.release_queries import IS_UNFINISHED, latest_rows, state_counts
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.spec import release_of as release_of_table
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.storage.database import Connection, open_database, transaction, value_of
from veiltab.common.study.file import Study
from veiltab.researcher.records.desk_files import DeskFiles
from veiltab.researcher.records.releases import ResearcherRelease, StoredTable, release_of, table_of

_SCHEMA = """
CREATE TABLE release (
    id TEXT PRIMARY KEY, label TEXT NOT NULL, asked TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL,
    failure TEXT NOT NULL DEFAULT '', spec TEXT, granted TEXT NOT NULL DEFAULT '[]',
    seconds TEXT NOT NULL DEFAULT '{}', bytes TEXT NOT NULL DEFAULT '{}', created INTEGER NOT NULL,
    since INTEGER NOT NULL, study_digest TEXT NOT NULL, receipts TEXT NOT NULL DEFAULT '[]',
    part_of TEXT NOT NULL DEFAULT '', number INTEGER NOT NULL DEFAULT 0,
    is_chosen INTEGER NOT NULL DEFAULT 0, left_out TEXT NOT NULL DEFAULT '{}');
CREATE UNIQUE INDEX release_label ON release (label) WHERE label <> '';
CREATE INDEX release_part_of ON release (part_of, state);
CREATE VIEW asked_release AS SELECT * FROM release WHERE part_of = '';
CREATE TABLE access (
    number INTEGER PRIMARY KEY AUTOINCREMENT, analyst TEXT NOT NULL, subject TEXT NOT NULL,
    release_id TEXT NOT NULL, day INTEGER NOT NULL, times INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, UNIQUE (analyst, subject, release_id, day));
CREATE TABLE witness (
    curator TEXT PRIMARY KEY, length INTEGER NOT NULL, head BLOB NOT NULL, stated INTEGER NOT NULL);
"""


class ResearcherStore:
    """The researcher's database, and the files of its desk.

    Until the end of a release is recorded, which makes all before it durable, its steps can be repeated: what they
    record waits for no disk.

    Args:
        study: the study file that the service runs with; its bytes are kept, as are those of the ones before it.
    """

    def __init__(self, folder: Path, study: Study) -> None:
        self.files = DeskFiles(folder, study)
        self.connection = open_database(folder / "researcher.sqlite", (_SCHEMA,))

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def start(self, request: ReleaseRequest, label: str, now: int) -> tuple[ResearcherRelease, bool]:
        """Record a request, or find the one to continue; return it and whether it was recorded before.

        The release of the same id is continued; else, with a label, the release of that label; without, an unfinished
        one that asks for the same.

        Raises:
            ConflictError: the id or the label names a release that asks for something else, or that was asked for
                under another study file.
        """
        text = request.text_without_id()
        with transaction(self.connection) as db:
            row = _row_to_continue(db, request, label, self.files.study.digest)
            if row is None:
                db.execute(
                    "INSERT INTO release (id, study_digest, label, asked, request, state, created, since)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        request.release_id,
                        self.files.study.digest,
                        label,
                        text,
                        request.to_json(),
                        ReleaseState.REQUESTED.value,
                        now,
                        now,
                    ],
                )
                return self.release(request.release_id), False
        is_of_study = row["study_digest"] in {"", self.files.study.digest}
        if row["asked"] != text or not is_of_study:
            named, name = ("id", row["id"]) if row["id"] == request.release_id else ("label", label)
            what = _asks_for_something_else(row, request) if is_of_study else "was asked for under another study file"
            raise ConflictError(
                f"a release of this {named} {what}", where=f"{named} {name}", remedy=f"Use another {named}."
            )
        return self.release(row["id"]), True

    def witnessed(self, curator: str) -> Witnessed:
        """Return the longest ledger that a curator has stated."""
        return longest_ledger(self.connection, curator)

    def witness(self, ledgers: Iterable[tuple[str, LedgerHead, int]]) -> None:
        """Remember the ledgers that curators stated at some times (Unix seconds), as far as they are the longest.

        Raises:
            IntegrityError: a curator stated a longer one before, or another one of the same length; those of the
                others are remembered.
        """
        refusals = []
        with transaction(self.connection) as db:
            for curator, ledger, stated in ledgers:
                row = db.execute("SELECT * FROM witness WHERE curator = ?", [curator]).fetchone()
                before = (0, "", stated) if row is None else (row["length"], bytes(row["head"]).hex(), row["stated"])
                is_other = ledger.length == before[0] and ledger.digest != before[1] and row is not None
                # Statements may be read in another order than that in which they were made.
                if stated > before[2] and (ledger.length < before[0] or is_other):
                    refusal = IntegrityError(
                        f"states a ledger of {ledger.length} entries, and stated another one of {before[0]} before",
                        where=f"curator {curator}",
                        remedy="Its ledger was rolled back, perhaps by restoring an old backup; tell its operator.",
                    )
                    refusals.append(refusal)
                elif row is None or ledger.length > before[0]:
                    db.execute(
                        "INSERT OR REPLACE INTO witness VALUES (?, ?, ?, ?)",
                        [curator, ledger.length, bytes.fromhex(ledger.digest), stated],
                    )
        if refusals:
            raise refusals[0]

    def release(self, name: str) -> ResearcherRelease:
        """Return a release by id, by label, or by a prefix of the id of one that was asked for.

        Raises:
            NotFoundError: there is none.
            InvalidInputError: several ids begin with the name.
        """
        by_id, by_label = "SELECT * FROM release WHERE id = ?", "SELECT * FROM release WHERE label = ? AND label <> ''"
        row = self.connection.execute(by_id, [name]).fetchone() or self.connection.execute(by_label, [name]).fetchone()
        if row is None:
            labels = {one["id"]: one["label"] for one in self.connection.execute("SELECT * FROM asked_release")}
            remedy = f"{nearest(labels.values(), name)}`veiltab researcher status` lists the releases there are."
            return self.release(whole_id(name, labels, kinds=["release"], where="release", remedy=remedy))
        return release_of(row)

    def releases(self) -> tuple[ResearcherRelease, ...]:
        """Return all releases that were asked for, oldest first."""
        rows = self.connection.execute("SELECT * FROM asked_release ORDER BY created, id").fetchall()
        return tuple(release_of(row) for row in rows)

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of the releases that were asked for and are not over, oldest first."""
        rows = self.connection.execute(
            f"SELECT id FROM asked_release WHERE {IS_UNFINISHED} ORDER BY created, id"  # noqa: S608 - our own words
        )
        return tuple(row["id"] for row in rows)

    def latest(self, over: int) -> tuple[ResearcherRelease, ...]:
        """Return the releases that are not over and the last ones that are, `over` of them; oldest first."""
        return tuple(release_of(row) for row in latest_rows(self.connection, "asked_release", over))

    def counts(self) -> dict[str, int]:
        """Return how many of the releases that were asked for are in each state."""
        return state_counts(self.connection, "asked_release")

    def record_tables(self, spec: ReleaseSpec) -> None:
        """Record what the curators planned, and the tables that run for the first time."""
        with transaction(self.connection) as db:
            db.execute("UPDATE release SET spec = ? WHERE id = ? AND spec IS NULL", [spec.to_json(), spec.release_id])
            _add_tables(db, self.release(spec.release_id), spec, range(len(spec.tables)))

    def has_chosen(self, release_id: str) -> bool:
        """Whether it is recorded which tables of a release run a second time."""
        return bool(value_of(self.connection, "SELECT is_chosen FROM release WHERE id = ?", release_id))

    def record_choice(self, spec: ReleaseSpec, numbers: Iterable[int]) -> None:
        """Record which tables of a release run a second time, for good: a later choice changes nothing."""
        with transaction(self.connection) as db:
            first = db.execute(
                "UPDATE release SET is_chosen = 1 WHERE id = ? AND NOT is_chosen", [spec.release_id]
            ).rowcount
            if first:
                _add_tables(db, self.release(spec.release_id), spec, map(spec.again, numbers))

    def tables(self, release_id: str) -> tuple[StoredTable, ...]:
        """Return the tables of a release of several that are recorded, by number."""
        rows = self.connection.execute(
            "SELECT number, id, state, failure, asked, granted, seconds, bytes,"
            " number >= (SELECT json_array_length(spec, '$.tables') FROM release WHERE id = ?) AS is_repeat"
            " FROM release WHERE part_of = ? ORDER BY number",
            [release_id, release_id],
        )
        return tuple(table_of(row) for row in rows)

    def finish(self, release_id: str, state: ReleaseState, failure: str = "") -> None:
        """Record how a release ended, and that its tables which are not over have ended without a result."""
        with transaction(self.connection):
            self._finish(release_id, state, failure)

    def record_counts(
        self, release_id: str, attributes: tuple[str, ...], seconds: dict[str, float], byte_counts: dict[str, int]
    ) -> None:
        """Record that the counts of a release, or of a table, are here, and what they took: it is ready.

        Args:
            attributes: the attributes whose keys were given, in order of the histogram.
            seconds: step -> its duration.
            byte_counts: link -> bytes over it.
        """
        with transaction(self.connection):
            self.set_measure(release_id, seconds, byte_counts)
            self._finish(release_id, ReleaseState.READY, granted=attributes)

    def _finish(self, release_id: str, state: ReleaseState, failure: str = "", granted: tuple[str, ...] = ()) -> None:
        now = int(time.time())
        rest = ReleaseState.EXPIRED if state is ReleaseState.READY else state
        self.connection.execute(
            "UPDATE release SET state = ?, failure = ?, since = ?, granted = ? WHERE id = ?",
            [state.value, failure, now, json.dumps(granted), release_id],
        )
        self.connection.execute(
            f"UPDATE release SET state = ?, failure = ?, since = ? WHERE part_of = ? AND {IS_UNFINISHED}",  # noqa: S608 - the program's own words
            [rest.value, failure, now, release_id],
        )

    def set_state(self, release_id: str, state: ReleaseState) -> None:
        """Record the state of a release."""
        self.connection.execute_unsynced(
            "UPDATE release SET state = ?, since = ? WHERE id = ? AND state <> ?",
            [state.value, int(time.time()), release_id, state.value],
        )

    def set_spec(self, spec: TableSpec) -> None:
        """Record what the server published: a release of one table, or one of several."""
        text = spec.to_json() if spec.part_of else release_of_table(spec).to_json()
        self.connection.execute_unsynced("UPDATE release SET spec = ? WHERE id = ?", [text, spec.release_id])

    def set_receipts(self, release_id: str, receipts: tuple[Receipt, ...]) -> None:
        """Record what the tests of the server showed, instead of what was recorded before."""
        texts = [receipt.text for receipt in receipts]
        self.connection.execute_unsynced(
            "UPDATE release SET receipts = ? WHERE id = ?", [json.dumps(texts), release_id]
        )

    def set_measure(
        self,
        release_id: str,
        seconds: Mapping[str, float],
        byte_counts: Mapping[str, int] | None = None,
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        """Record seconds of steps, bytes over links and rows that curators left out; other figures stay."""
        self.connection.execute_unsynced(
            "UPDATE release SET seconds = json_patch(seconds, ?), bytes = json_patch(bytes, ?),"
            " left_out = json_patch(left_out, ?) WHERE id = ?",
            [*(json.dumps(one or {}) for one in (seconds, byte_counts, left_out)), release_id],
        )

    def delete_leftovers(self) -> None:
        """Delete what a crash left of releases in files; see DeskFiles."""
        unfinished = f"SELECT id FROM release WHERE {IS_UNFINISHED}"  # noqa: S608 - as above
        self.files.delete_leftovers({row["id"] for row in self.connection.execute(unfinished)})


def _row_to_continue(db: Connection, request: ReleaseRequest, label: str, study_digest: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None
    columns = "SELECT id, asked, request, study_digest FROM release"
    row = db.execute(f"{columns} WHERE id = ?", [request.release_id]).fetchone()
    if row is None and label:
        row = db.execute(f"{columns} WHERE label = ? AND label <> ''", [label]).fetchone()
    elif row is None:
        row = db.execute(
            f"{columns} WHERE part_of = '' AND label = '' AND asked = ? AND study_digest IN ('', ?)"
            f" AND {IS_UNFINISHED} ORDER BY created DESC",
            [request.text_without_id(), study_digest],
        ).fetchone()
    return row


def _asks_for_something_else(row: sqlite3.Row, request: ReleaseRequest) -> str:
    differences = ", ".join(ReleaseRequest.from_json(row["request"]).unlike(request))
    return "asks for something else" + (f": {differences}" if differences else "")


def _add_tables(db: Connection, parent: ResearcherRelease, spec: ReleaseSpec, numbers: Iterable[int]) -> None:
    """Record tables as releases of their own, once; of what was asked for, each keeps its attributes."""
    for number in numbers:
        attributes = spec.attributes(number)
        request = replace(parent.request, release_id=spec.table_id(number), attributes=attributes, tables=(), repeats=0)
        now = int(time.time())
        db.execute(
            "INSERT INTO release (id, study_digest, label, asked, request, state, created, since, part_of, number)"
            " VALUES (?, ?, '', ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            [
                request.release_id,
                parent.study_digest,
                json.dumps(attributes),
                request.to_json(),
                ReleaseState.CHARGED.value,
                now,
                now,
                spec.release_id,
                number,
            ],
        )
