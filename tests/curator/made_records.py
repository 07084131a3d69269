"""A release as a curator has recorded it, or a person denied it, what it records, and its progress as peers see it."""

from collections.abc import Sequence
from typing import Any

import pytest

from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import Database, FetchedRows, transaction
from veiltab.curator.progress.release_record import CuratorRelease, Progress
from veiltab.curator.records.store import CuratorStore


def recorded(**changes: Any) -> CuratorRelease:  # noqa: ANN401 - any field; the request is needed
    """Return a release that has just been asked for, unless changed."""
    fields: dict[str, Any] = {
        "state": ReleaseState.REQUESTED,
        "waiting_for": "",
        "failure": "",
        "spec": None,
        "sample_check": b"",
        "seconds": {},
        "bytes_uploaded": 0,
        "created": 1,
        "since": 1,
        "study_digest": "",
    }
    return CuratorRelease(**(fields | changes))


def shown(**changes: Any) -> Progress:  # noqa: ANN401 - any field
    """Return how far bob is: he has decided, and granted nothing, unless changed."""
    fields: dict[str, Any] = {
        "curator": "bob",
        "state": ReleaseState.PLANNED,
        "considered": True,
        "decided": True,
        "granted": frozenset(),
        "denied": frozenset(),
        "spec_digest": b"",
        "reserved": False,
        "charged": False,
        "sample_check": b"",
        "tested": False,
        "failure": "",
    }
    return Progress(**(fields | changes))


def deny(store: CuratorStore, release_id: str, failure: str = "a person denied the request") -> None:
    """Let a person deny the whole of a release."""
    with transaction(store.connection):
        store.releases.record_denial(release_id, failure, person="Ana", reason="")


def unsynced_statements(patch: pytest.MonkeyPatch) -> set[str]:
    """Return the set to which every statement is added that waits for no disk: what it writes."""
    found = set[str]()

    def recorded(database: Database, statement: str, parameters: Sequence[Any] = ()) -> FetchedRows:
        found.add(statement.partition(" = ")[0].partition(" VALUES")[0])
        return database.execute(statement, parameters)

    patch.setattr(Database, "execute_unsynced", recorded)
    return found
