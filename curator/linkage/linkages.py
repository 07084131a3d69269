"""What a curator keeps of its linkages: the report, and which rows a sample may have."""

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.dataclass import dataclass
from veiltab.common.storage.database import Database, transaction
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.linkage.linkage_report import LinkageReport


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedSample:
    """Some rows of a table: at a spoke linked ones, at the hub those that may be compared, in the order of numbers.

    Args:
        rows: their places in the table's file, from 0.
        numbers: the numbers of the hub's rows.
    """

    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]
    content_digest: str


class Linkages:
    """The linkages of one curator, one for each alignment."""

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def record(self, alignment_id: str, report: LinkageReport, sample: LinkedSample) -> None:
        """Record once what this curator knows of a linkage."""
        rows = np.stack([sample.rows, sample.numbers]).astype("<i8").tobytes()
        with transaction(self._connection) as db:
            latest = "UPDATE linkage SET rowid = (SELECT max(rowid) + 1 FROM linkage) WHERE alignment_id = ?"
            db.execute(latest, [alignment_id])
            sql = "INSERT INTO linkage VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            is_new = db.execute(sql, [alignment_id, report.text, rows, sample.content_digest]).rowcount
            if is_new and not report.is_hub:
                self._audit.record(Event.LINKED)

    def latest_report(self) -> LinkageReport | None:
        """Return the report of the latest linkage; None if there is none."""
        row = self._connection.execute(_LATEST).fetchone()
        return None if row is None else read_canonical(LinkageReport, row["report"])

    def latest_sample(self) -> LinkedSample:
        """Return the sample of the latest linkage, of which there is a report."""
        row = self._connection.execute(_LATEST).fetchone()
        rows, numbers = np.frombuffer(row["sample"], "<i8").reshape(2, -1)
        return LinkedSample(rows=rows, numbers=numbers, content_digest=row["content_digest"])


_LATEST = "SELECT * FROM linkage ORDER BY rowid DESC LIMIT 1"
