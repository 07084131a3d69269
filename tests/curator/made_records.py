"""Releases, decisions and charges as a curator has recorded them, and its progress as peers see it."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import reserve
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.database import Database, FetchedRows, transaction
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.progress import APPROVED, HELD
from veiltab.curator.progress.release_record import CuratorRelease, GrantDecision, Progress
from veiltab.curator.records.store import CuratorStore

ID = "0" * 31 + "1"


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


def decision(attribute: str = "sex", verdict: str = APPROVED, **changes: Any) -> GrantDecision:  # noqa: ANN401 - any field
    """Return a decision of a person, or of the policy that holds a request for one."""
    fields = {"expires": None, "decided_by": "policy" if verdict == HELD else "person"} | changes
    return GrantDecision(attribute=attribute, verdict=verdict, **fields)


def decide(store: CuratorStore, verdict: str, *attributes: str, release_id: str = ID) -> None:
    """Decide about attributes of a release, or about sex."""
    store.decisions.decide(release_id, tuple(decision(name, verdict) for name in attributes or ("sex",)))


def hold(store: CuratorStore, request: ReleaseRequest, *attributes: str, now: int = 1) -> None:
    """Take a request, of which attributes of this curator wait for a person."""
    store.releases.add(request, now)
    decide(store, HELD, *attributes, release_id=request.release_id)


def charge(ledger: Ledger, *specs: TableSpec) -> None:
    for spec in specs:
        reserve(ledger, spec)
        ledger.charge(spec.release_id)


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
