"""What a curator keeps of its linkages: the key of the hub's handles, the report, and which rows a sample has."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.linkage.linkage_report import LinkageReport

MOST_SAMPLED = 10_000
"""Linked rows of which it is kept where they are in the table: those of the least handles, which nobody chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedSample:
    """Some linked rows, in an order that all curators have.

    Args:
        rows: their numbers in the table's file, from 0; MOST_SAMPLED at most.
    """

    rows: NDArray[np.int64]
    content_digest: str


class Linkages:
    """The linkages of one curator, one for each alignment."""

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit

    def handle_key(self, alignment_id: str, fresh: bytes) -> bytes:
        """Return the key of an alignment's handles: `fresh` the first time, the same ever after."""
        with transaction(self._connection) as db:
            db.execute(
                "INSERT INTO linkage (alignment_id, handle_key) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [alignment_id, fresh],
            )
            return bytes(value_of(db, "SELECT handle_key FROM linkage WHERE alignment_id = ?", alignment_id))

    def forget_key(self, alignment_id: str) -> None:
        """Erase the key of an alignment's handles, which nobody needs any more."""
        erased = "UPDATE linkage SET handle_key = x'' WHERE alignment_id = ? AND handle_key <> x''"
        self._connection.execute_unsynced(erased, [alignment_id])

    def record(
        self, alignment_id: str, report: str, asked: Mapping[str, tuple[int, int]], sample: LinkedSample
    ) -> None:
        """Record once what this curator knows of a linkage, and in the audit log how much was asked.

        Args:
            asked: the other curator of each leg -> links, and blinded keys that the spoke asked for.
            sample: of the linked rows.
        """
        rows = sample.rows.astype("<i8").tobytes()
        with transaction(self._connection) as db:
            latest = "UPDATE linkage SET rowid = (SELECT max(rowid) + 1 FROM linkage) WHERE alignment_id = ?"
            db.execute(latest, [alignment_id])
            sql = "UPDATE linkage SET report = ?, sample = ?, content_digest = ? WHERE alignment_id = ? AND report = ''"
            if db.execute(sql, [report, rows, sample.content_digest, alignment_id]).rowcount:
                for curator, (links, elements) in asked.items():
                    self._audit.record(Event.LINKED, curator=curator, links=links, elements=elements)

    def latest_report(self) -> LinkageReport | None:
        """Return the report of the latest linkage; None if there is none."""
        row = self._connection.execute(_LATEST).fetchone()
        return None if row is None else read_canonical(LinkageReport, row["report"])

    def noise_key(self) -> bytes:
        """Return the secret that the noise of match rates follows from; it was drawn with the state."""
        return bytes(value_of(self._connection, "SELECT key FROM noise_of_rates"))

    def latest_sample(self) -> LinkedSample:
        """Return the sample of the latest linkage, of which there is a report."""
        row = self._connection.execute(_LATEST).fetchone()
        return LinkedSample(rows=np.frombuffer(row["sample"], "<i8"), content_digest=row["content_digest"])


_LATEST = "SELECT * FROM linkage WHERE report <> '' ORDER BY rowid DESC LIMIT 1"
