"""People who are told what happens at a curator."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import request_with
from tests.worlds.parties import ALICE
from veiltab.common.rpc.parties.identity import Identity
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.notify.events import EventSource
from veiltab.curator.notify.outbox import Notice
from veiltab.curator.officer.notify_settings import Kind, NotifySettings
from veiltab.curator.officer.policy import load_policy
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.curator.records.store import CuratorStore
from veiltab.deploy.pki.authority import names_of, new_authority

ID, OTHER = "0" * 31 + "1", "1" * 32


NOW = datetime.now(UTC)


AUTHORITY = new_authority("survey", since=NOW - timedelta(days=1), until=NOW + timedelta(days=1000))


PEM = AUTHORITY.certificate.public_bytes(Encoding.PEM)


ISSUED = AUTHORITY.issue("x", names_of(ALICE, "localhost:1"), NOW - timedelta(hours=1), NOW + timedelta(days=90))


IDENTITY = Identity(certificate=ISSUED.certificate_pem, key=ISSUED.key_pem, authority=PEM)


FACTS = {"event": "held", "study": "survey", "curator": "alice", "release": ID, "text": "it waits", "look": "veiltab"}


NOTICE = Notice(kind=Kind.HELD, subject=ID, facts=FACTS)


AGAIN = Notice(kind=Kind.REFUSED, subject=OTHER, facts=FACTS)


def settings(tmp_path: Path, text: str) -> NotifySettings:
    (tmp_path / "policy.toml").write_text(text)
    found = load_policy(tmp_path / "policy.toml", researchers=[], attributes=[]).notify
    assert found is not None
    return found


def to(tmp_path: Path, **urls: str) -> str:
    """Write a file of channels, and return the table that names it."""
    path = tmp_path / "channels.toml"
    path.touch(0o600)
    path.write_text("".join(f"{name} = {json.dumps(url)}\n" for name, url in urls.items()))
    return f'[notify]\nchannels = "{path}"\n'


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path) -> Iterator[CuratorStore]:
    store = CuratorStore(tmp_path / "curator.sqlite")
    store.releases.add(request_with(purpose="a secret plague"), 1)
    yield store
    store.close()


def source(store: CuratorStore, wanted: NotifySettings) -> EventSource:
    ledger = Ledger(store.connection, Decimal(1))
    return EventSource("survey", IDENTITY, store, ledger, wanted, lambda: {ID, OTHER})


def hold(store: CuratorStore) -> None:
    store.decisions.decide(ID, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),))
