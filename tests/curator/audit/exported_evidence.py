"""Evidence of a curator that has lived through releases."""

import hashlib
import json
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import request_with, spec_with
from tests.curator.made_records import charge, decision
from tests.made_receipts import made_tests
from tests.worlds.parties import ALICE
from tests.worlds.states import curator_state
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import signers
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement, published_columns
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.parties.signing import signed
from veiltab.common.storage.database import transaction
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.audit.log import Event
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.evidence.export import EvidenceOrder, _Bundle, write_evidence
from veiltab.curator.officer.open_state import OpenedState, open_state
from veiltab.curator.officer.verdicts import approve, deny
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.deploy.pki.authority import names_of, new_authority

NOW = datetime.now(UTC)


DAY = timedelta(days=1)


AUTHORITY = new_authority("survey", since=NOW - DAY, until=NOW + DAY)


PEM = AUTHORITY.certificate.public_bytes(Encoding.PEM)


ID, OTHER = "0" * 31 + "1", "1" * 32


SPEC = spec_with(server_replacement=2**63, epsilon=Decimal(1), canaries=2400)


TESTS, FAILED_TESTS = made_tests(SPEC), made_tests(SPEC, share=0.0)


DIGESTS = {"sex": bytes(32), "salary": bytes([1]) * 32}


def identity(party: Party) -> Identity:
    made = AUTHORITY.issue("x", names_of(party, "localhost:1"), NOW - timedelta(hours=1), NOW + DAY)
    return Identity(certificate=made.certificate_pem, key=made.key_pem, authority=PEM)


SIGNER = identity(ALICE)


def certificate(study: Study) -> ReleaseCertificate:
    statements = {}
    for party in signers(study):
        is_curator = party.role is Role.CURATOR
        stated = Statement(
            party=party.uri,
            spec_digest=SPEC.digest().hex(),
            published=published_columns(SPEC, DIGESTS),
            signed_at=int(NOW.timestamp()),
            ledger=LedgerHead(length=1, digest="ab" * 32) if is_curator else None,
            receipts=TESTS.receipts(party.name) if is_curator else (),
        )
        statements[party.uri] = signed(identity(party), stated.to_json(), NOW)
    return ReleaseCertificate.of(release_of(SPEC), PEM, statements)


def live(own_state: OpenedState) -> None:
    """Let a curator decide, charge and release."""
    store = own_state.store
    for request in (request_with(), request_with(release_id=OTHER, purpose="<script>alert(1)</script>")):
        store.releases.add(request, int(time.time()), own_state.study.digest)
        held = decision("sex", HELD, rule=2, rule_text="r")
        store.decisions.decide(request.release_id, (held,))
    approve(own_state, ID, person="Ana Díaz", reason="as agreed")
    approve(own_state, ID, person="Ben Ode")
    deny(own_state, OTHER, person="Ben Ode", reason="too much <b>")
    store.releases.set_planned(release_of(SPEC))
    charge(own_state.ledger, SPEC)
    store.tests.record_publication(ID, PublicationDigests(columns=DIGESTS))
    own, together = TESTS.receipts("alice")
    store.tests.set_receipt(ID, own, TESTS.lists["alice"], {"sex": bytes(32)})
    store.tests.set_joint_receipt(ID, together, TESTS.lists)
    store.releases.set_state(ID, ReleaseState.READY)
    store.keys.record_key_given(ID, "sex", "rosa")
    with transaction(store.connection):
        store.audit.record(Event.SESSION_BEGUN, person="Ana Díaz")


@dataclass(frozen=True)
class Office:
    """A curator that has something to show, and a file of evidence."""

    folder: Path
    study: Study

    @property
    def file(self) -> Path:
        return self.folder / "evidence.zip"

    def export(self, name: str, since: int | None = None, policy: Path | None = None) -> Path:
        with open_state(self.folder / "study.toml", self.folder / "state", policy) as own_state:
            order = EvidenceOrder(person="Ana Díaz", since=since, certificates=(certificate(self.study),))
            write_evidence(own_state, SIGNER, order, self.folder / name)
        return self.folder / name


def open_office(folder: Path, study_bytes: bytes) -> Office:
    (folder / "study.toml").write_bytes(study_bytes)
    (folder / "policy.toml").write_text("persons = 2\n")
    store = curator_state(folder / "state")
    digest = hashlib.sha256((folder / "policy.toml").read_bytes()).hexdigest()
    store.served.set_served_policy(folder / "policy.toml", 0, None, persons=2, digest=digest)
    store.close()
    with open_state(folder / "study.toml", folder / "state", None) as own_state:
        live(own_state)
    return Office(folder=folder, study=study_from_bytes(study_bytes, "study.toml"))


@pytest.fixture(scope="module", name="office")
def office_fixture(tmp_path_factory: pytest.TempPathFactory, study_bytes: bytes) -> Office:
    office = open_office(tmp_path_factory.mktemp("office"), study_bytes)
    office.export("evidence.zip")
    return office


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(office: Office, change: Callable[[dict[str, bytes]], None], sign: Identity | None = None) -> Path:
    """Return a copy with changed files; with an identity, under an index that fits them, which it signs."""
    files = contents(office.file)
    change(files)
    if sign is not None:
        index = json.loads(files["index.json"])
        listed = sorted(set(files) - {"index.json", "index.signature"})
        index["files"] = [
            {"name": name, "size": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
            for name in listed
        ]
        text = json.dumps(index, sort_keys=True, separators=(",", ":"))
        made = signed(sign, text, NOW)
        files["index.json"] = text.encode()
        files["index.signature"] = json.dumps({"signature": made.signature, "certificate": made.certificate}).encode()
    path = office.folder / "rewritten.zip"
    with zipfile.ZipFile(path, "w") as archive:
        bundle = _Bundle(archive=archive)
        for name, content in files.items():
            bundle.add(name, [content])
    return path


def failures(path: Path) -> dict[str, str]:
    return {one.what: one.detail for one in check_evidence(path, PEM, None).findings if not one.holds}


def replaced(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new, 1)

    return change


ALTERATIONS = {
    "altered at entry 2": "UPDATE audit SET line = '{}' WHERE number = 2",
    "lacks entries that the ledger covers": "DELETE FROM audit WHERE number > 3",
}


@pytest.fixture(params=ALTERATIONS, name="altered")
def altered_fixture(request: pytest.FixtureRequest, tmp_path: Path, study_bytes: bytes) -> tuple[Office, str]:
    """A curator whose audit log somebody altered, and what is said of it."""
    office = open_office(tmp_path, study_bytes)
    with closing(curator_state(tmp_path / "state")) as store:
        for trigger in ("audit_is_not_altered", "audit_is_not_cut"):
            store.connection.execute(f"DROP TRIGGER {trigger}")
        store.connection.execute(ALTERATIONS[request.param])
    return office, request.param


def in_index(key: str, value: object) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        index = json.loads(files["index.json"]) | {key: value}
        files["index.json"] = json.dumps(index, sort_keys=True, separators=(",", ":")).encode()

    return change
