"""A release, and a table of one, as a desk has recorded them."""

import json
import sqlite3
from functools import lru_cache

from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.dataclass import dataclass
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearcherRelease:
    """One release as the researcher's service knows it: one that was asked for, or a table of one.

    `study_digest` is that of the study file under which it was asked for. `spec` is the table that runs under this id,
    and `planned` the release, if it was asked for; one of several tables has no `spec`. Of a table, `part_of` is the id
    of its release, and `number` its own in it.
    """

    request: ReleaseRequest
    study_digest: str
    label: str
    state: ReleaseState
    failure: str
    spec: TableSpec | None
    planned: ReleaseSpec | None
    granted: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    seconds: dict[str, float]
    bytes: dict[str, int]
    left_out: dict[str, int]
    created: int
    since: int
    part_of: str
    number: int

    @property
    def is_certified(self) -> bool:
        """Whether it is certified once it is ready; a release of several tables is when somebody asks for it."""
        return not (self.part_of or self.request.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """One table of a release of several.

    Args:
        number: of the table, from 0.
        is_repeat: whether it runs for the second time.
        release_id: its own.
        failure: why it ended without a result; empty if it did not.
        attributes: of its cells, in study order: those that were asked for, and once it is ready, those of its result.
        seconds: step -> seconds.
        bytes: link -> bytes.
    """

    number: int
    is_repeat: bool
    release_id: str
    state: ReleaseState
    failure: str
    attributes: tuple[str, ...]
    seconds: dict[str, float]
    bytes: dict[str, int]


_AS_THEY_ARE = ("study_digest", "label", "failure", "created", "since", "part_of", "number")
"""Columns of a release that are fields of its record."""


@lru_cache(maxsize=64)
def release_of(row: sqlite3.Row) -> ResearcherRelease:
    """Return what a row of the database records; a desk reads the same one at many steps of a release."""
    text, is_table = row["spec"], bool(row["part_of"])
    planned = None if text is None or is_table else ReleaseSpec.from_json(text)
    alone = None if planned is None else planned.only_table
    return ResearcherRelease(
        request=ReleaseRequest.from_json(row["request"]),
        state=ReleaseState(row["state"]),
        spec=TableSpec.from_json(text) if is_table and text is not None else alone,
        planned=planned,
        granted=tuple(json.loads(row["granted"])),
        receipts=tuple(read_canonical(Receipt, one) for one in json.loads(row["receipts"])),
        **{name: json.loads(row[name]) for name in ("seconds", "bytes", "left_out")},
        **{name: row[name] for name in _AS_THEY_ARE},
    )


def table_of(row: sqlite3.Row) -> StoredTable:
    """Return what a row of one table records."""
    return StoredTable(
        number=row["number"],
        is_repeat=bool(row["is_repeat"]),
        release_id=row["id"],
        state=ReleaseState(row["state"]),
        failure=row["failure"],
        attributes=tuple(json.loads(row["granted"]) or json.loads(row["asked"])),
        seconds=json.loads(row["seconds"]),
        bytes=json.loads(row["bytes"]),
    )
