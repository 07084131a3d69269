"""A request that evidence shows is the one whose digest the audit log has."""

import hashlib
from typing import Any

import pytest

from veiltab.common.errors import IntegrityError
from veiltab.curator.audit.log import AuditEntry, Event
from veiltab.curator.evidence.replay import AuditReplay

ID = "0" * 31 + "1"
RECEIVED = hashlib.sha256(b"study request").hexdigest()


def row(**changes: str) -> dict[str, Any]:
    plain = {"release": ID, "study_digest": "study", "request": "request", "request_digest": RECEIVED}
    return {**plain, "decisions": [], "approvals": [], "state": "requested", "since": 1, "failure": ""} | changes


def replay(request: str = RECEIVED) -> AuditReplay:
    log = AuditReplay()
    log.add(AuditEntry(number=1, time=1, event=Event.REQUEST.value, release=ID, facts={"request": request}))
    return log


def test_the_request_that_was_received_holds() -> None:
    assert replay().check(row())
    assert not AuditReplay(since=2).check(row())  # older than the log


@pytest.mark.parametrize("key", ["request", "study_digest"])
def test_another_request_than_was_received_is_found(key: str) -> None:
    other = {"request": "request", "study_digest": "study"} | {key: "another"}
    digest = hashlib.sha256(f"{other['study_digest']} {other['request']}".encode()).hexdigest()
    for found in (row(**{key: "another"}), row(**other, request_digest=digest), row(request_digest=digest)):
        with pytest.raises(IntegrityError, match="another request than was received"):
            replay().check(found)


def test_a_request_from_before_the_log_has_the_digest_that_it_states() -> None:
    with pytest.raises(IntegrityError, match="another request than was received"):
        AuditReplay(since=2).check(row(request_digest="0" * 64))
