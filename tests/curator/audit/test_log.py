import hashlib
import json
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import refuses, request_with, reserve, spec_with
from tests.curator.made_records import charge, decision, deny
from veiltab.common.errors import IntegrityError
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import transaction
from veiltab.curator.audit.log import EMPTY, AuditEntry, AuditHead, AuditLog, Event, chained
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.progress import APPROVED, HELD
from veiltab.curator.progress.release_record import Approval
from veiltab.curator.records.store import CuratorStore

ID = "0" * 31 + "1"


@pytest.fixture(name="store")
def store_fixture(store: CuratorStore) -> CuratorStore:
    store.releases.add(request_with(), 1)
    return store


def approval(store: CuratorStore) -> Approval:
    digest = store.releases.release(ID).request_digest
    return Approval(attribute="sex", person="Ana", time=1, reason="", expires=None, request_digest=digest)


def record(store: CuratorStore, count: int) -> None:
    with transaction(store.connection):
        for _ in range(count):
            store.audit.record(Event.SESSION_BEGUN, person="Ana Díaz", interface="console")


def without_triggers(store: CuratorStore) -> sqlite3.Connection:
    for name in ("audit_is_not_altered", "audit_is_not_cut"):
        store.connection.execute(f"DROP TRIGGER {name}")
    return store.connection


def test_the_chain_is_recomputed_as_the_documents_say(store: CuratorStore) -> None:
    record(store, 2)
    head = hashlib.sha256(b"veiltab audit log").digest()
    for number, line, digest in store.audit.lines():
        fields = json.loads(line)
        assert line == json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert (set(fields), fields["number"]) == ({"event", "facts", "number", "person", "release", "time"}, number)
        head = hashlib.sha256(head + line.encode("ascii")).digest()
        assert head == digest
    assert store.audit.verify() == store.audit.head == AuditHead(length=3, digest=head)


def test_whatever_is_decided_or_given_out_is_recorded(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, Decimal(1))
    store.decisions.decide(ID, (decision(verdict=HELD, rule=2, rule_text="r"),))
    store.decisions.decide(ID, (decision(verdict=HELD, rule=2, rule_text="r", time=9),))  # the same again
    with transaction(store.connection):
        store.decisions.record_approvals(ID, [approval(store)])
    store.decisions.decide(ID, (decision(person="Ana", reason="yes"),))
    store.decisions.decide(ID, (decision(verdict=HELD),))  # what is final stays
    reserve(ledger, spec_with())
    ledger.charge(ID)
    ledger.charge(ID)
    store.keys.record_key_given(ID, "sex", "rosa")
    store.releases.end(ID, ReleaseState.FAILED, "why")
    store.served.set_served_policy(None, 3, Decimal("0.5"), 2, "ab")
    store.coins.clear_aborted("curator bob", person="Ben")
    store.joins.allow("bob", bytes(16), person="Ben")
    entries = list(store.audit.entries())
    found = [(one.event, one.person, one.release, one.facts) for one in entries]
    request, held, approved, decided, charge, *others = found
    digest = store.releases.release(ID).request_digest.hex()
    assert request == ("request received", "", ID, {"researcher": "rosa", "request": digest})
    assert held[3] == {
        "attribute": "sex",
        "verdict": HELD,
        "expires": None,
        "decided_by": "policy",
        "reason": "",
        "rule": 2,
        "rule_text": "r",
        "time": 0,
    }
    assert (approved[:2], approved[3]["time"]) == (("approval", "Ana"), 1)
    assert (decided[:2], decided[3]["verdict"], decided[3]["reason"]) == (("decision", "Ana"), APPROVED, "yes")
    assert charge == ("charge", "", ID, {"number": 1, "ledger": ledger.chain.head[1].hex()})
    assert others == [
        ("key given", "", ID, {"attribute": "sex", "researcher": "rosa"}),
        ("release ended", "", ID, {"state": "failed", "failure": "why"}),
        ("policy loaded", "", "", {"file": None, "rules": 3, "budget": "0.5", "persons": 2, "sha256": "ab"}),
        ("tosses cleared", "Ben", "", {"party": "curator bob", "tosses": 0}),
        ("alignment allowed", "Ben", "", {"curator": "bob", "sessions": 0}),
    ]
    assert [one.number for one in store.audit.entries(ID)] == [1, 2, 3, 4, 5, 6, 7]
    assert entries[0] == AuditEntry.from_line(entries[0].line)


def test_a_key_is_recorded_once_a_day_and_researcher(store: CuratorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    midnight = 1_900_022_400
    assert midnight % 86_400 == 0
    same, other, another, elsewhere = (
        (ID, "sex", "rosa"),
        (ID, "age", "rosa"),
        (ID, "sex", "rita"),
        ("2", "sex", "rosa"),
    )
    given = [
        *((midnight - 86_400, one) for one in (same, same, other, another, elsewhere, same, elsewhere)),
        *((midnight - 1, one) for one in (another, other, same)),
        *((midnight, one) for one in (same, other, same)),
        (midnight - 1, same),  # the clock was set back
    ]
    for now, one in given:
        monkeypatch.setattr("time.time", lambda now=now: now)
        store.keys.record_key_given(*one)
    entries = [one for one in store.audit.entries() if one.event == "key given"]
    assert [(one.time, (one.release, one.facts["attribute"], one.facts["researcher"])) for one in entries] == [
        *((midnight - 86_400, one) for one in (same, other, another, elsewhere)),
        *((midnight, one) for one in (same, other)),
        (midnight - 1, same),
    ]


@pytest.mark.parametrize(
    "event",
    [
        lambda store, _ledger: store.decisions.decide(ID, (decision(),)),
        lambda store, _ledger: deny(store, ID),
        lambda store, _ledger: store.releases.end(ID, ReleaseState.FAILED, "why"),
        lambda _store, ledger: ledger.charge(ID),
        lambda store, _ledger: store.keys.record_key_given(ID, "sex", "rosa"),
        lambda store, _ledger: store.served.set_served_policy(None, 3, None),
        lambda store, _ledger: store.served.set_served_table(None, 3, "ab"),
        lambda store, _ledger: store.coins.clear_aborted("curator bob", person="Ben"),
        lambda store, _ledger: store.joins.allow("bob", bytes(16), person="Ben"),
    ],
)
@pytest.mark.parametrize("failure", ["trigger", "disk is full"])
def test_what_cannot_be_recorded_does_not_happen(
    store: CuratorStore, monkeypatch: pytest.MonkeyPatch, event: Callable[[CuratorStore, Ledger], None], failure: str
) -> None:
    ledger = Ledger(store.connection, Decimal(1))
    reserve(ledger, spec_with())
    store.coins.add_aborted(ID, "curator bob", "why")
    store.joins.begin("a" * 32, "bob", "version", bytes(16))
    before = list(store.connection.iterdump())
    if failure == "trigger":
        store.connection.execute(
            "CREATE TRIGGER audit_refuses BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'trigger'); END"
        )
    else:
        (pages,) = store.connection.execute("PRAGMA page_count").fetchone()
        store.connection.execute(f"PRAGMA max_page_count = {pages}")
        record = AuditLog.record
        monkeypatch.setattr(AuditLog, "record", lambda *of, **facts: record(*of, **facts, padding="x" * 100_000))
    with pytest.raises(sqlite3.Error, match=failure):
        event(store, ledger)
    after = [line for line in store.connection.iterdump() if "audit_refuses" not in line]
    assert after == before


def test_the_log_takes_no_change_and_no_cut(store: CuratorStore) -> None:
    for statement in ("UPDATE audit SET line = '{}'", "DELETE FROM audit"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store.connection.execute(statement)
    with pytest.raises(AssertionError, match="in the transaction"):
        store.audit.record(Event.KEY)


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE audit SET line = replace(line, 'Ana', 'Eva') WHERE number = 3", 3),
        ("UPDATE audit SET line = line || ' ' WHERE number = 3", 3),
        ("DELETE FROM audit WHERE number = 3", 4),
        ("UPDATE audit SET digest = zeroblob(32) WHERE number = 3", 3),
        ("DELETE FROM audit WHERE number = 3; UPDATE audit SET number = number - 1 WHERE number > 3", 3),
    ],
)
def test_an_altered_log_is_found(store: CuratorStore, statement: str, entry: int) -> None:
    record(store, 4)
    without_triggers(store).executescript(statement)
    with pytest.raises(IntegrityError, match=f"altered at entry {entry}"):
        store.audit.verify()
    with refuses(IntegrityError, where="audit log"):
        store.audit.verify_newest(3)


def test_only_the_newest_links_are_checked_at_the_start(store: CuratorStore) -> None:
    record(store, 4)
    without_triggers(store).execute("UPDATE audit SET line = '{}' WHERE number = 2")
    store.audit.verify_newest(2)
    for count in (4, 5, 100):
        with pytest.raises(IntegrityError, match="altered at entry 2"):
            store.audit.verify_newest(count)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM audit WHERE number > 2",
        "UPDATE audit SET digest = zeroblob(32) WHERE number = 3",
        "DELETE FROM audit",
    ],
)
def test_a_log_that_was_cut_off_before_a_charge_is_found(store: CuratorStore, statement: str) -> None:
    record(store, 2)
    ledger = Ledger(store.connection, Decimal(1))
    charge(ledger, spec_with())
    store.audit.verify_against(ledger.chain.audit_heads)
    (entry,) = ledger.chain.entries
    assert entry.audit == ledger.chain.audit_heads[0] == AuditHead(length=3, digest=_digest(store, 3))
    without_triggers(store).execute(statement)
    with pytest.raises(IntegrityError, match="entries that the ledger covers, up to entry 3"):
        store.audit.verify_against(ledger.chain.audit_heads)


def _digest(store: CuratorStore, number: int) -> bytes:
    return bytes(store.connection.execute("SELECT digest FROM audit WHERE number = ?", [number]).fetchone()["digest"])


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"number":1}', "[" * 5000, ' {"event":""}'])
def test_what_is_no_line_of_a_log(line: str) -> None:
    with refuses(IntegrityError, where="audit log"):
        AuditEntry.from_line(line)


def test_an_empty_log(tmp_path: Path) -> None:
    store = CuratorStore(tmp_path / "curator.sqlite")
    assert store.audit.verify() == store.audit.head == EMPTY
    store.audit.verify_newest(10)
    store.audit.verify_against([])
    store.close()


def test_a_log_without_its_beginning_is_no_chain(store: CuratorStore) -> None:
    record(store, 3)
    lines = list(store.audit.lines())
    assert chained(lines) == store.audit.head
    for lacking in (lines, []):
        with pytest.raises(IntegrityError, match=r"lacks entries|altered at entry 1"):
            chained(lacking, None)


def test_evidence_since_a_time_needs_entries_before_it(store: CuratorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1e9)
    record(store, 3)
    monkeypatch.setattr("time.time", lambda: 2e9)
    record(store, 1)
    before = store.audit.head_before(2 * 10**9)
    assert before.length == store.audit.head.length - 1
    without_triggers(store).execute("DELETE FROM audit WHERE number = ?", [before.length])
    with refuses(IntegrityError, where="audit log"):
        store.audit.head_before(2 * 10**9)
