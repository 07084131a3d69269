"""What a researcher's service keeps: its releases in SQLite, fetched columns and results as files beside it."""

import json
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from veiltab.common.core.canonical import canonical_text, read_canonical
from veiltab.common.errors import ConflictError, NotFoundError
from veiltab.common.release.receipt import Receipt
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.rows import FINISHED, IS_FINISHED, latest_rows, state_counts
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import Connection, open_database, transaction
from veiltab.common.storage.files import written_whole
from veiltab.common.study.file import Study

_HISTOGRAM = "histogram.bin"
_CERTIFICATE = "certificate"
_NOISY = ".noisy"

_MIGRATIONS = (
    """
    CREATE TABLE release (
        id TEXT PRIMARY KEY, label TEXT NOT NULL, asked TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL,
        failure TEXT NOT NULL DEFAULT '', spec TEXT, granted TEXT NOT NULL DEFAULT '[]',
        seconds TEXT NOT NULL DEFAULT '{}', bytes TEXT NOT NULL DEFAULT '{}', created INTEGER NOT NULL);
    CREATE UNIQUE INDEX release_label ON release (label) WHERE label <> ''
    """,
    """
    ALTER TABLE release ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
    UPDATE release SET since = created
    """,
    """
    ALTER TABLE release ADD COLUMN study_digest TEXT NOT NULL DEFAULT '';
    UPDATE release SET study_digest = json_extract(spec, '$.study_digest') WHERE spec IS NOT NULL
    """,
    """
    CREATE TABLE access (
        number INTEGER PRIMARY KEY AUTOINCREMENT, analyst TEXT NOT NULL, subject TEXT NOT NULL,
        release_id TEXT NOT NULL, day INTEGER NOT NULL, times INTEGER NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, UNIQUE (analyst, subject, release_id, day))
    """,
    """
    ALTER TABLE release ADD COLUMN receipts TEXT NOT NULL DEFAULT '[]'
    """,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearcherRelease:
    """One release as the researcher's service knows it.

    `study_digest` is that of the study file under which it was asked for; "" if an older version recorded it.
    """

    request: ReleaseRequest
    study_digest: str
    label: str
    state: ReleaseState
    failure: str
    spec: ReleaseSpec | None
    granted: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    seconds: dict[str, float]
    bytes: dict[str, int]
    created: int
    since: int


class ResearcherStore:
    """The researcher's database and folder.

    Args:
        folder: the state folder.
        study: the study file that the service runs with; its bytes are kept, as are those of the ones before it.
    """

    def __init__(self, folder: Path, study: Study) -> None:
        self._folder = folder
        self._study = study
        self.connection = open_database(folder / "researcher.sqlite", _MIGRATIONS)
        if not self._study_path(study.digest).exists():
            with written_whole(self._study_path(study.digest)) as file:
                file.write(study.source)

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
        asked = request.asked()
        with transaction(self.connection) as db:
            row = _row_to_continue(db, request, label, self._study.digest)
            if row is None:
                db.execute(
                    "INSERT INTO release (id, study_digest, label, asked, request, state, created, since)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        request.release_id,
                        self._study.digest,
                        label,
                        asked,
                        request.to_json(),
                        ReleaseState.REQUESTED.value,
                        now,
                        now,
                    ],
                )
                return self.release(request.release_id), False
        is_of_study = row["study_digest"] in {"", self._study.digest}
        if row["asked"] != asked or not is_of_study:
            named, name = ("id", row["id"]) if row["id"] == request.release_id else ("label", label)
            what = "asks for something else" if is_of_study else "was asked for under another study file"
            raise ConflictError(
                f"a release of this {named} {what}", where=f"{named} {name}", remedy=f"Use another {named}."
            )
        return self.release(row["id"]), True

    def study_file(self, digest: str) -> Path:
        """Return where the study file of a digest lies, with which this service runs or ran; "" is that of now.

        Raises:
            NotFoundError: it never ran with such a one.
        """
        path = self._study_path(digest or self._study.digest)
        if path not in self._folder.glob("studies/*.toml"):
            raise NotFoundError("this service never ran with such a study file", where="study file")
        return path

    def release(self, name: str) -> ResearcherRelease:
        """Return a release by id or label."""
        row = self.connection.execute(
            "SELECT * FROM release WHERE id = ? OR (label = ? AND label <> '') ORDER BY id <> ?", [name, name, name]
        ).fetchone()
        if row is None:
            raise NotFoundError(
                "no such release", where="release", remedy="`veiltab researcher status` lists the releases there are."
            )
        return _release_of(row)

    def releases(self) -> tuple[ResearcherRelease, ...]:
        """Return all releases, oldest first."""
        rows = self.connection.execute("SELECT * FROM release ORDER BY created, id").fetchall()
        return tuple(_release_of(row) for row in rows)

    def latest(self, over: int) -> tuple[ResearcherRelease, ...]:
        """Return the releases that are not over and the last ones that are, `over` of them; oldest first."""
        return tuple(_release_of(row) for row in latest_rows(self.connection, "release", over))

    def counts(self) -> dict[str, int]:
        """Return how many releases are in each state."""
        return state_counts(self.connection, "release")

    def finish(self, release_id: str, state: ReleaseState, failure: str = "") -> None:
        """Record how a release ended."""
        self.connection.execute(
            "UPDATE release SET state = ?, failure = ?, since = ? WHERE id = ?",
            [state.value, failure, int(time.time()), release_id],
        )

    def set_state(self, release_id: str, state: ReleaseState) -> None:
        """Record the state of a release."""
        self.connection.execute(
            "UPDATE release SET state = ?, since = ? WHERE id = ? AND state <> ?",
            [state.value, int(time.time()), release_id, state.value],
        )

    def set_spec(self, release_id: str, spec: ReleaseSpec) -> None:
        """Record the spec that the server published."""
        self.connection.execute("UPDATE release SET spec = ? WHERE id = ?", [spec.to_json(), release_id])

    def set_granted(self, release_id: str, granted: tuple[str, ...]) -> None:
        """Record the attributes whose keys were given, in order of the histogram."""
        self.connection.execute("UPDATE release SET granted = ? WHERE id = ?", [json.dumps(granted), release_id])

    def set_receipts(self, release_id: str, receipts: tuple[Receipt, ...]) -> None:
        """Record what the tests of the server showed, instead of what was recorded before."""
        texts = [canonical_text(receipt) for receipt in receipts]
        self.connection.execute("UPDATE release SET receipts = ? WHERE id = ?", [json.dumps(texts), release_id])

    def set_measure(self, release_id: str, seconds: dict[str, float], byte_counts: dict[str, int]) -> None:
        """Record the duration of steps and the bytes over each link; add to the earlier figures."""
        self.connection.execute(
            "UPDATE release SET seconds = json_patch(seconds, ?), bytes = json_patch(bytes, ?) WHERE id = ?",
            [json.dumps(seconds), json.dumps(byte_counts), release_id],
        )

    def _study_path(self, digest: str) -> Path:
        return self._folder / "studies" / f"{digest}.toml"

    def noisy_column(self, release_id: str, attribute: str) -> Path:
        """Return where a perturbed column lies, still encrypted."""
        return self._folder / "releases" / release_id / f"{attribute}{_NOISY}"

    def one_time_pad(self, release_id: str, attribute: str) -> Path:
        """Return where the one-time pad of a column lies while it is used."""
        return self._folder / "releases" / release_id / f"{attribute}.pad"

    def certificate(self, release_id: str) -> Path:
        """Return where the certificate of a release lies, once its parties have signed."""
        return self._folder / "releases" / release_id / _CERTIFICATE

    def histogram(self, release_id: str) -> Path:
        """Return where the counts of the noisy rows lie."""
        return self._folder / "releases" / release_id / _HISTOGRAM

    def delete_columns(self, release_id: str) -> None:
        """Delete the columns and one-time pads of a release that is over: its counts and its certificate are kept."""
        for path in (self._folder / "releases" / release_id).glob("*"):
            if path.name not in {_HISTOGRAM, _CERTIFICATE}:
                path.unlink()

    def delete_leftovers(self) -> None:
        """Delete what a crash, or a version that kept rows, left of releases: all but counts and fetched columns.

        A release that is not over keeps its perturbed columns, which are still encrypted.
        """
        unfinished = {stored.request.release_id for stored in self.releases() if not stored.state.finished}
        for folder in (self._folder / "releases").glob("*"):
            if folder.name not in unfinished:
                self.delete_columns(folder.name)
                continue
            for path in folder.glob("*"):
                if path.suffix != _NOISY:
                    path.unlink()


def _row_to_continue(db: Connection, request: ReleaseRequest, label: str, study_digest: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None
    columns = "SELECT id, asked, study_digest FROM release"
    row = db.execute(f"{columns} WHERE id = ?", [request.release_id]).fetchone()
    if row is None and label:
        row = db.execute(f"{columns} WHERE label = ?", [label]).fetchone()
    elif row is None:
        row = db.execute(
            f"{columns} WHERE label = '' AND asked = ? AND study_digest IN ('', ?)"
            f" AND NOT {IS_FINISHED} ORDER BY created DESC",
            [request.asked(), study_digest, *FINISHED],
        ).fetchone()
    return row


def _release_of(row: sqlite3.Row) -> ResearcherRelease:
    return ResearcherRelease(
        request=ReleaseRequest.from_json(row["request"]),
        study_digest=row["study_digest"],
        label=row["label"],
        state=ReleaseState(row["state"]),
        failure=row["failure"],
        spec=None if row["spec"] is None else ReleaseSpec.from_json(row["spec"]),
        granted=tuple(json.loads(row["granted"])),
        receipts=tuple(read_canonical(Receipt, text) for text in json.loads(row["receipts"])),
        seconds=json.loads(row["seconds"]),
        bytes=json.loads(row["bytes"]),
        created=row["created"],
        since=row["since"],
    )
