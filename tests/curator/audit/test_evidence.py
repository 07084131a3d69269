"""Evidence: what an honest file says, and that nothing in it can be changed, added or left out unnoticed."""

import hashlib
import io
import json
import re
import time
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import request_with, reserve, spec_with
from tests.curator.made_records import deny as deny_release
from tests.made_receipts import made_tests
from veiltab.common.command.options import ServeOptions
from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.certificates.certificate_check import signers
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement, published_columns
from veiltab.common.rpc.parties.identity import Identity, Party, Role, party_of_certificate
from veiltab.common.rpc.parties.signing import SignedText, signed
from veiltab.common.storage.database import transaction
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.common.tasks.engine_options import EngineOptions
from veiltab.curator.audit.log import Event
from veiltab.curator.cli import curator
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.evidence.export import EvidenceOrder, _Bundle, checked_certificate, write_evidence
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.officer.opened import Standing, open_standing
from veiltab.curator.officer.verdicts import approve, deny
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.party.serving import serve_curator
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import GrantDecision, PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.statements import signed_statement
from veiltab.deploy.operate.verify_cli import verify
from veiltab.deploy.pki.authority import names_of, new_authority

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
AUTHORITY = new_authority("survey", since=NOW - DAY, until=NOW + DAY)
PEM = AUTHORITY.certificate.public_bytes(Encoding.PEM)
ID, OTHER = "0" * 31 + "1", "1" * 32
SPEC = spec_with(server_replacement=2**63, epsilon=Decimal(1), canaries=1200)
TESTS, FAILED_TESTS = made_tests(SPEC), made_tests(SPEC, share=0.0)
DIGESTS = {"sex": bytes(32), "salary": bytes([1]) * 32}


def identity(party: Party) -> Identity:
    made = AUTHORITY.issue("x", names_of(party, "localhost:1"), NOW - timedelta(hours=1), NOW + DAY)
    return Identity(certificate=made.certificate_pem, key=made.key_pem, authority=PEM)


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


def live(standing: Standing) -> None:
    """Let a curator decide, charge and release."""
    store = standing.store
    for request in (request_with(), request_with(release_id=OTHER, purpose="<script>alert(1)</script>")):
        store.releases.add(request, int(time.time()), standing.study.digest)
        held = GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy", rule=2, rule_text="r")
        store.decisions.decide(request.release_id, (held,))
    approve(standing, ID, person="Ana Díaz", reason="as agreed")
    approve(standing, ID, person="Ben Ode")
    deny(standing, OTHER, person="Ben Ode", reason="too much <b>")
    store.releases.set_planned(release_of(SPEC))
    reserve(standing.ledger, SPEC)
    standing.ledger.charge(ID)
    store.tests.record_publication(ID, PublicationDigests(columns=DIGESTS))
    own, together = TESTS.receipts("alice")
    store.tests.set_receipt(ID, own, TESTS.lists["alice"], {"sex": bytes(32)})
    store.tests.set_joint_receipt(ID, together, TESTS.lists)
    store.releases.set_state(ID, ReleaseState.READY)
    store.pads.record_key_given(ID, "sex", "rosa")
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
        with open_standing(self.folder / "study.toml", "alice", self.folder / "state", policy) as standing:
            order = EvidenceOrder(
                person="Ana Díaz",
                since=since,
                certificates=(certificate(self.study),),
            )
            alice = Party(study="survey", role=Role.CURATOR, name="alice")
            write_evidence(standing, identity(alice), order, self.folder / name)
        return self.folder / name


def open_office(folder: Path, study_bytes: bytes) -> Office:
    (folder / "study.toml").write_bytes(study_bytes)
    (folder / "policy.toml").write_text("persons = 2\n")
    store = CuratorStore(folder / "state" / "curator.sqlite")
    digest = hashlib.sha256((folder / "policy.toml").read_bytes()).hexdigest()
    store.served.set_served_policy(folder / "policy.toml", 0, None, persons=2, digest=digest)
    store.close()
    with open_standing(folder / "study.toml", "alice", folder / "state", None) as standing:
        live(standing)
    return Office(folder=folder, study=study_from_bytes(study_bytes, "study.toml"))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, study_bytes: bytes) -> Office:
    office = open_office(tmp_path_factory.mktemp("office"), study_bytes)
    office.export("evidence.zip")
    return office


def test_an_honest_file_holds_and_says_what_was_checked(office: Office) -> None:
    evidence = check_evidence(office.file, PEM, office.study)
    found = {one.what: one.detail for one in evidence.findings}
    assert evidence.holds, found
    assert (evidence.index.party, evidence.index.made_by) == ("veiltab://survey/curator/alice", "Ana Díaz")
    assert "curator alice signed the index on" in found["signature"]
    assert found["files"] == "9 files are as the index says"
    counts = "requests made under it: 2, under other versions of it: 0"
    assert found["study"] == f"study survey, with curator alice: your study file; {counts}"
    assert f"SHA-256 {office.study.digest}; {counts}" in contents(office.file)["index.html"].decode()
    assert found["ledger"].startswith("1 entries; the chain is whole")
    assert found["audit log"].startswith("entries 1 to 13; the chain is whole")
    assert found["ledger and audit log"] == "1 charges stand in both, and each covers the log before it"
    assert found["decisions"] == "2 decisions are as the audit log recorded them"
    assert found["statements"] == "1 signed statements about releases"
    assert found["certificates"] == "1 release certificates, and every line of them holds"


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_chains_are_recomputed_as_the_documents_say(office: Office) -> None:
    files = contents(office.file)
    index = json.loads(files["index.json"])
    assert {one["name"]: one["sha256"] for one in index["files"]} == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in files.items()
        if name not in {"index.json", "index.signature"}
    }
    for name, key in (("ledger", "ledger"), ("audit log", "audit")):
        head = hashlib.sha256(f"veiltab {name}".encode()).digest()
        lines = files[f"{key}.jsonl"].splitlines()
        for line in lines:
            head = hashlib.sha256(head + line).digest()
        assert index[key] == {"length": len(lines), "digest": head.hex()}


def test_the_page_is_self_contained_and_shows_what_was_decided(office: Office) -> None:
    page = contents(office.file)["index.html"].decode()
    assert "Content-Security-Policy" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.findall(r'(?:src|href)="', page)
    for text in (
        "Ana Díaz and Ben Ode",
        "Ana Díaz: as agreed",
        "Ben Ode: too much &lt;b&gt;",
        "wage gap",
        "key given",
        "attribute sex, researcher rosa",
        "session begun",
        "of 1,200 canaries 301 changed",
        "persons who must approve what is held",
    ):
        assert text in page, text


def test_keys_and_other_entries_push_nothing_of_each_other_out_of_the_page(
    tmp_path: Path, study_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.evidence.auditor_page._MOST_ENTRIES", 2)
    office = open_office(tmp_path, study_bytes)
    with closing(CuratorStore(tmp_path / "state" / "curator.sqlite")) as store:
        for number in range(3):
            store.pads.record_key_given(ID, f"number-{number}", "rosa")
    office.export("evidence.zip")
    page = contents(office.file)["index.html"].decode()
    keys, others = page.split("<h2>Who was given keys</h2>")[1].split("<h2>What else was recorded</h2>")
    assert "The newest 2 of 4; audit.jsonl has all." in keys
    assert ["number-0" in keys, "number-1" in keys, "number-2" in keys] == [False, True, True]
    assert "session begun" in others
    assert "key given" not in others


def test_the_same_content_makes_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for now in (1e9, 2e9):
        monkeypatch.setattr("time.time", lambda now=now: now)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            bundle = _Bundle(archive=archive)
            bundle.add_lines("one", ["a", "b"])
            bundle.add("two", [b"x" * 10_000])
        written.append(file.getvalue())
    assert written[0] == written[1]
    assert bundle.digests["one"] == hashlib.sha256(b"a\nb\n").hexdigest()


def test_evidence_of_a_period_has_the_log_from_then_on(office: Office) -> None:
    later = int(time.time()) + 1000
    nothing = check_evidence(office.export("later.zip", since=later), PEM, None)
    assert nothing.holds, nothing.findings
    files = contents(office.folder / "later.zip")
    assert files["audit.jsonl"] == files["releases.jsonl"] == files["statements.jsonl"] == b""
    assert nothing.index.audit_before == nothing.index.audit
    assert nothing.index.ledger.length == 1
    everything = check_evidence(office.export("all.zip", since=1), PEM, None)
    assert everything.holds
    assert everything.index.audit_before.length == 0


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
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def failures(path: Path) -> dict[str, str]:
    return {one.what: one.detail for one in check_evidence(path, PEM, None).findings if not one.holds}


def replaced(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new, 1)

    return change


def without_line(name: str, number: int) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        lines = files[name].splitlines(keepends=True)
        del lines[number]
        files[name] = b"".join(lines)

    return change


def in_index(key: str, value: object) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        index = json.loads(files["index.json"]) | {key: value}
        files["index.json"] = json.dumps(index, sort_keys=True, separators=(",", ":")).encode()

    return change


def test_what_unpacks_to_more_than_was_signed_is_not_unpacked(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(files: dict[str, bytes]) -> None:
        files["index.html"] += bytes(1 << 20)

    opened = zipfile.ZipFile.open
    unpacked: list[str] = []

    def noted(archive: zipfile.ZipFile, name: str) -> Any:  # noqa: ANN401 - a file
        unpacked.append(name)
        return opened(archive, name)

    path = rewritten(office, longer)
    monkeypatch.setattr(zipfile.ZipFile, "open", noted)
    assert failures(path) == {"files": "altered: index.html"}
    assert set(unpacked) == {"index.json", "index.signature"}


def test_evidence_that_unpacks_to_too_much_is_refused_before_that(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = "veiltab.curator.evidence.check._MOST_BYTES"
    with zipfile.ZipFile(office.file) as archive:
        size = sum(one.file_size for one in archive.infolist())
    monkeypatch.setattr(most, size)
    assert check_evidence(office.file, PEM, None).holds
    monkeypatch.setattr(most, size - 1)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(IntegrityError, match="too large"):
        check_evidence(office.file, PEM, None)


@pytest.mark.parametrize(
    ("change", "what", "detail"),
    [
        (replaced("releases.jsonl", b"as agreed", b"as argued"), "files", "altered: releases.jsonl"),
        (replaced("index.html", b"as agreed", b"as argued"), "files", "altered: index.html"),
        (replaced("policy.toml", b"2", b"1"), "files", "altered: policy.toml"),
        (lambda files: files.pop("policy.toml"), "files", "missing: policy.toml"),
        (lambda files: files.update({"more.txt": b""}), "files", "not in the index: more.txt"),
        (lambda files: files.update({"a\nok\x1b[2J": b""}), "files", "not in the index: a\\nok\\x1b[2J"),
        (lambda files: files.update({"a\u200bb": b""}), "files", "not in the index: a\\u200bb"),
        (replaced("index.json", b'"made_by":"Ana', b'"made_by":"Eva'), "signature", "does not fit what it signed"),
        (in_index("made_at", 1), "signature", "valid only from"),
        (in_index("since", 5), "signature", "does not fit what it signed"),
        (in_index("party", "veiltab://survey/curator/bob"), "signature", "does not fit"),
        (replaced("index.signature", b'"signature":"', b'"signature":"00'), "signature", "does not fit"),
        (lambda files: files.update({"index.signature": b"[]"}), "signature", "cannot be read"),
    ],
)
def test_what_was_changed_afterwards_is_found(
    office: Office, change: Callable[[dict[str, bytes]], None], what: str, detail: str
) -> None:
    assert detail in failures(rewritten(office, change))[what]


@pytest.mark.parametrize(
    ("change", "what", "detail"),
    [
        (replaced("ledger.jsonl", b"rosa", b"rita"), "ledger", "altered or cut off"),
        (lambda files: files.update({"ledger.jsonl": b""}), "ledger", "altered or cut off"),
        (replaced("ledger.jsonl", b"[1,", b"[2,"), "ledger", "that of another"),
        (lambda files: files.update({"ledger.jsonl": b"[1]\n"}), "ledger", "cannot be read"),
        (replaced("audit.jsonl", b"as agreed", b"as argued"), "audit log", "altered or cut off"),
        (without_line("audit.jsonl", 5), "audit log", "that of another"),
        (without_line("audit.jsonl", -1), "audit log", "altered or cut off"),
        (replaced("audit.jsonl", b'"event"', b' "event"'), "audit log", "no line of an audit log"),
        (lambda files: files.update({"audit.jsonl": files["audit.jsonl"][:-1]}), "audit log", "cut off"),
        (replaced("releases.jsonl", b"approved", b"denied"), "decisions", "not what was recorded"),
        (replaced("releases.jsonl", b'"person":"Ben Ode"', b'"person":"Eva"'), "decisions", "not what was recorded"),
        (replaced("releases.jsonl", b"too much", b"too late"), "decisions", "not what was recorded"),
        (replaced("releases.jsonl", b"wage gap", b"a plague"), "decisions", "another request than was received"),
        (replaced("statements.jsonl", b"301", b"300"), "statements", "does not fit what it signed"),
        (replaced("statements.jsonl", b"1200", b"1201"), "statements", "about another release"),
        (replaced(f"certificates/{ID}.certificate", b"301", b"302"), "certificates", "certificate"),
        (replaced("study.toml", b"survey", b"burvey"), "study", "of another study"),
        (lambda files: files.update({"study.toml": b"x"}), "study", "study.toml"),
    ],
)
def test_what_contradicts_itself_is_found_although_it_is_signed(
    office: Office, change: Callable[[dict[str, bytes]], None], what: str, detail: str
) -> None:
    alice = identity(Party(study="survey", role=Role.CURATOR, name="alice"))
    assert detail in failures(rewritten(office, change, sign=alice))[what]


def test_a_study_file_that_was_not_served_is_found(tmp_path: Path, study_bytes: bytes) -> None:
    office = open_office(tmp_path, study_bytes)
    alice = identity(Party(study="survey", role=Role.CURATOR, name="alice"))
    budget = replaced("study.toml", b"[budget]\nepsilon = 1", b"[budget]\nepsilon = 50")
    office.export("evidence.zip")
    assert failures(rewritten(office, budget, sign=alice))["study"] == (
        "the newest request was made under another version of the study file;"
        " requests made under it: 0, under other versions of it: 2"
    )
    later = study_from_bytes(study_bytes + b"# a remark\n", "study.toml")
    with closing(CuratorStore(tmp_path / "state" / "curator.sqlite")) as store:
        store.served.set_served_study(office.study)
        store.served.set_served_study(later)
    (tmp_path / "study.toml").write_bytes(later.source)
    office.file.unlink()
    evidence = check_evidence(office.export("evidence.zip"), PEM, later)
    found = {one.what: one for one in evidence.findings}
    assert found["study"].holds
    assert found["study"].detail.endswith("requests made under it: 0, under other versions of it: 2")
    earlier = rewritten(office, lambda files: files.update({"study.toml": study_bytes}), sign=alice)
    assert failures(earlier)["study"] == (
        "the curator served another version of the study file last;"
        " requests made under it: 2, under other versions of it: 0"
    )


def test_a_ledger_or_a_log_of_another_history_is_found(office: Office) -> None:
    """Whoever has the key may sign a chain that is whole; it must still fit the other one."""

    def forget_the_charge(files: dict[str, bytes]) -> None:
        genesis = hashlib.sha256(b"veiltab ledger").hexdigest()
        in_index("ledger", {"length": 0, "digest": genesis})(files)
        files["ledger.jsonl"] = b""

    def cut_log(kept: int) -> Callable[[dict[str, bytes]], None]:
        def change(files: dict[str, bytes]) -> None:
            lines = files["audit.jsonl"].splitlines()[:kept]
            head = hashlib.sha256(b"veiltab audit log").digest()
            for line in lines:
                head = hashlib.sha256(head + line).digest()
            in_index("audit", {"length": kept, "digest": head.hex()})(files)
            files["audit.jsonl"] = b"".join(line + b"\n" for line in lines)

        return change

    alice = identity(Party(study="survey", role=Role.CURATOR, name="alice"))
    found = failures(rewritten(office, forget_the_charge, sign=alice))
    assert found == {"ledger and audit log": "the audit log has another charge 1 than the ledger"}
    events = [json.loads(line)["event"] for line in contents(office.file)["audit.jsonl"].splitlines()]
    place = events.index("charge")
    for kept, problem in (
        (place - 1, "charge 1 covers another audit log"),
        (place, "charge 1 is not in the audit log"),
    ):
        assert problem in failures(rewritten(office, cut_log(kept), sign=alice))["ledger and audit log"]


OWN, TOGETHER = TESTS.receipts("alice")
FAILED_OWN, FAILED_TOGETHER = FAILED_TESTS.receipts("alice")


def beautified(receipt: Receipt) -> Receipt:
    """Return a receipt whose bounds accept whatever was counted."""
    return replace(receipt, counts=tuple(replace(one, low=0, high=one.trials) for one in receipt.counts))


@pytest.mark.parametrize(
    "receipts",
    [
        (),
        (OWN,),
        (TOGETHER,),
        (TOGETHER, OWN),
        (OWN, TOGETHER, TOGETHER),
        (FAILED_OWN, TOGETHER),
        (OWN, FAILED_TOGETHER),
        (beautified(FAILED_OWN), TOGETHER),
        (OWN, beautified(FAILED_TOGETHER)),
        (TESTS.receipts("bob")[0], TOGETHER),
        (OWN, replace(TOGETHER, counts=TOGETHER.counts[:-1])),
        (OWN, replace(TOGETHER, counts=TOGETHER.counts[::-1])),
    ],
    ids=lambda receipts: ", ".join(one.tester or "all" for one in receipts),
)
def test_a_statement_whose_tests_did_not_pass_does_not_hold(office: Office, receipts: tuple[Receipt, ...]) -> None:
    alice = identity(Party(study="survey", role=Role.CURATOR, name="alice"))

    def change(files: dict[str, bytes]) -> None:
        plain = json.loads(files["statements.jsonl"])
        stated = replace(read_canonical(Statement, plain["text"]), receipts=receipts)
        made = signed(alice, stated.to_json(), NOW)
        plain |= {"text": made.text, "signature": made.signature, "certificate": made.certificate}
        files["statements.jsonl"] = json.dumps(plain).encode() + b"\n"

    assert "test" in failures(rewritten(office, change, sign=alice))["statements"]


def test_nobody_signs_in_the_future(office: Office) -> None:
    later = in_index("made_at", int((NOW + timedelta(hours=1)).timestamp()))
    alice = identity(Party(study="survey", role=Role.CURATOR, name="alice"))
    assert "signed in the future" in failures(rewritten(office, later, sign=alice))["signature"]


def test_who_must_have_signed(office: Office) -> None:
    for other in (
        Party(study="survey", role=Role.CURATOR, name="bob"),
        Party(study="survey", role=Role.SERVER, name="cloud"),
    ):
        found = failures(rewritten(office, lambda _files: None, sign=identity(other)))
        assert "and says that it is of veiltab://survey/curator/alice" in found["signature"]
    rogue = new_authority("survey", since=NOW - DAY, until=NOW + DAY).certificate.public_bytes(Encoding.PEM)
    evidence = check_evidence(office.file, rogue, None)
    assert {one.what for one in evidence.findings if not one.holds} == {"signature"}
    assert "signature" in {one.what for one in check_evidence(office.file, b"", None).findings if not one.holds}
    without = check_evidence(office.file, None, None)
    assert (without.holds, without.as_dict()["holds"]) == (False, False)
    assert {one.what: one.holds for one in without.findings if not one.holds} == {"authority": None}
    assert hashlib.sha256(PEM).hexdigest() in without.findings[0].detail


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04" + bytes(100), b"no archive"])
def test_what_is_no_evidence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(IntegrityError, match="no evidence file"):
        check_evidence(tmp_path / "x.zip", None, None)


@pytest.mark.parametrize(("name", "problem"), [("index.json", "stands twice"), ("a", "is missing")])
def test_an_archive_with_a_name_twice_or_without_an_index(tmp_path: Path, name: str, problem: str) -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for other in (name, name[:-1] + "b"):
            archive.writestr(other, "{}")
    (tmp_path / "x.zip").write_bytes(written.getvalue().replace(b"index.jsob", b"index.json"))
    with pytest.raises(IntegrityError, match=problem):
        check_evidence(tmp_path / "x.zip", None, None)


STOPPED = "2" * 32


def test_a_damaged_archive_is_said_to_be_damaged(office: Office) -> None:
    """Each damage that a reader of archives answers in its own way."""
    whole = office.file.read_bytes()
    with zipfile.ZipFile(office.file) as archive:
        place = archive.getinfo("index.json").header_offset
    start = place + 30 + len("index.json") + int.from_bytes(whole[place + 28 : place + 30], "little")
    method = whole.rindex(b"index.json") - 46 + 10
    path = office.folder / "damaged.zip"
    for damaged in (
        whole[:start] + b"\xff" * 20 + whole[start + 20 :],
        whole[:method] + b"\x63\x00" + whole[method + 2 :],
        b"PK before" + whole,
    ):
        path.write_bytes(damaged)
        with pytest.raises(IntegrityError, match=r"cannot be read|before the first file"):
            check_evidence(path, PEM, None)


DIFFERS = "attribute sex: not what was recorded"
EDITS = [
    ("DELETE FROM decision WHERE release_id = :other; DELETE FROM release WHERE id = :other", "not among the requests"),
    ("DELETE FROM decision WHERE release_id = :id", DIFFERS),
    ("DELETE FROM approval WHERE person = 'Ben Ode'", DIFFERS),
    ("UPDATE decision SET expires = 1", DIFFERS),
    ("UPDATE decision SET time = time - 1", DIFFERS),
    ("UPDATE approval SET time = time - 1", DIFFERS),
    ("UPDATE decision SET rule_text = 'another'", DIFFERS),
    (
        "INSERT INTO decision VALUES (:id, 'age', 'approved', NULL, 'person', 1, '', '', NULL, '')",
        "attribute age: not what was recorded",
    ),
    ("UPDATE release SET state = 'denied' WHERE id = :id", "it is denied, and no end of it was recorded"),
    ("UPDATE release SET state = 'requested' WHERE id = :id", "it is requested, and it was charged"),
    ("UPDATE release SET state = 'failed' WHERE id = :stopped", "it is failed, and another end of it was recorded"),
    ("UPDATE release SET failure = 'other' WHERE id = :stopped", "it is denied, and another end of it was recorded"),
]


@pytest.mark.parametrize(("edits", "problem"), EDITS)
def test_rows_that_were_edited_before_the_export_do_not_fit_the_log(
    tmp_path: Path, study_bytes: bytes, edits: str, problem: str
) -> None:
    office = open_office(tmp_path, study_bytes)
    with closing(CuratorStore(tmp_path / "state" / "curator.sqlite")) as store:
        store.releases.add(request_with(release_id=STOPPED), 1)
        deny_release(store, STOPPED)
        assert check_evidence(office.export("honest.zip"), PEM, None).holds
        for edit in edits.split(";"):
            ids = {"id": ID, "other": OTHER, "stopped": STOPPED}
            assert store.connection.execute(edit, ids).rowcount
    for since in (None, 1):
        found = failures(office.export(f"edited-{since}.zip", since))
        assert set(found) == {"decisions"}
        assert problem in found["decisions"]


def test_requests_from_before_the_log_are_counted(tmp_path: Path, study_bytes: bytes) -> None:
    office = open_office(tmp_path, study_bytes)
    with closing(CuratorStore(tmp_path / "state" / "curator.sqlite")) as store:
        old = "INSERT INTO release SELECT :old, researcher, replace(request, id, :old), state"
        columns = [row["name"] for row in store.connection.execute("PRAGMA table_info(release)")][4:]
        store.connection.execute(f"{old}, {', '.join(columns)} FROM release WHERE id = :id", {"old": STOPPED, "id": ID})
    evidence = check_evidence(office.export("evidence.zip"), PEM, None)
    assert {one.what: one.detail for one in evidence.findings}["decisions"].endswith(
        "; 1 requests are older than the log in the file"
    )


def test_nobody_sees_where_notices_go(tmp_path: Path, study_bytes: bytes) -> None:
    office = open_office(tmp_path, study_bytes)
    rule = '[[rule]]\nresearcher = "rosa"\nattributes = ["sex"]\nmaximum_epsilon = 0.5\ndecision = "hold"\n'
    whole = f'persons = 2 # password\nbudget = 0.5\n{rule}[notify]\nchannels = "/etc/secret"\n'
    (tmp_path / "policy.toml").write_text(whole)
    with closing(CuratorStore(tmp_path / "state" / "curator.sqlite")) as store:
        digest = hashlib.sha256(whole.encode()).hexdigest()
        store.served.set_served_policy(tmp_path / "policy.toml", 1, None, 2, digest)
    evidence = check_evidence(office.export("evidence.zip"), PEM, None)
    assert (evidence.holds, evidence.index.policy) == (True, digest)
    shown = contents(office.file)["policy.toml"].decode()
    assert tomllib.loads(shown) == {key: value for key, value in tomllib.loads(whole).items() if key != "notify"}
    assert not re.search("secret|password|channels =", "".join(map(str, contents(office.file).values())))


def test_a_policy_that_was_never_served_does_not_hold(office: Office) -> None:
    other = office.folder / "other.toml"
    other.write_text("persons = 3\n")
    assert "another than the one" in failures(office.export("other.zip", policy=other))["policy"]


ALTERATIONS = {
    "altered at entry 2": "UPDATE audit SET line = '{}' WHERE number = 2",
    "lacks entries that the ledger covers": "DELETE FROM audit WHERE number > 3",
}


@pytest.fixture(params=ALTERATIONS)
def altered(request: pytest.FixtureRequest, tmp_path: Path, study_bytes: bytes) -> tuple[Office, str]:
    """A curator whose audit log somebody altered, and what is said of it."""
    office = open_office(tmp_path, study_bytes)
    with closing(CuratorStore(tmp_path / "state" / "curator.sqlite")) as store:
        for trigger in ("audit_is_not_altered", "audit_is_not_cut"):
            store.connection.execute(f"DROP TRIGGER {trigger}")
        store.connection.execute(ALTERATIONS[request.param])
    return office, request.param


def test_nothing_is_exported_of_a_log_that_was_altered(altered: tuple[Office, str]) -> None:
    office, problem = altered
    with pytest.raises(IntegrityError, match=problem):
        office.export("evidence.zip")
    assert not office.file.exists()


def test_no_curator_serves_with_a_log_that_was_altered(
    altered: tuple[Office, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    office, problem = altered
    write_identity(office.folder)
    monkeypatch.setattr("veiltab.curator.party.serving.log_to_stderr", lambda **_: None)
    options = ServeOptions(
        study_path=office.folder / "study.toml",
        name="alice",
        identity_folder=office.folder,
        state_folder=office.folder / "state",
        listen=None,
        metrics=None,
        trace_file=None,
        verbose=False,
    )
    table = TableAddress(location=str(office.folder / "alice.csv"))
    with pytest.raises(IntegrityError, match=problem):
        serve_curator(options, table=table, policy_path=None, work=WorkOptions(engine=EngineOptions()))


def test_what_happens_meanwhile_is_not_half_in_the_file(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def signed_meanwhile(*of: Any) -> SignedText:  # noqa: ANN401 - those of the original
        with closing(CuratorStore(office.folder / "state" / "curator.sqlite")) as other:
            other.pads.record_key_given(ID, "salary", "rosa")
        return signed_statement(*of)

    monkeypatch.setattr("veiltab.curator.evidence.export.signed_statement", signed_meanwhile)
    evidence = check_evidence(office.export("meanwhile.zip"), PEM, None)
    assert evidence.holds, evidence.findings


def write_identity(folder: Path) -> None:
    alice = identity(Party(study="survey", role=Role.CURATOR, name="alice"))
    for name, content in (("ca.pem", alice.authority), ("alice.pem", alice.certificate), ("alice.key", alice.key)):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)


def signing_serial(path: Path) -> int:
    """Return the serial number of the certificate that signed the index of an evidence file."""
    return party_of_certificate(json.loads(contents(path)["index.signature"])["certificate"].encode()).serial


def test_the_commands(office: Office, tmp_path: Path) -> None:
    write_identity(tmp_path)
    (tmp_path / "one.certificate").write_text(certificate(office.study).to_text())
    out, study = tmp_path / "out.zip", str(office.folder / "study.toml")
    state = ("--name", "alice", "--state", str(office.folder / "state"), "--identity", str(tmp_path))

    def run(command: Any, *args: str) -> Any:  # noqa: ANN401 - a command and its result
        return CliRunner().invoke(command, args)

    exported = ("evidence", study, *state, "--certificate", str(tmp_path / "one.certificate"), "--person", "Ana")
    result = run(curator, *exported, "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.output)["files"]) == set(contents(out)) - {"index.json", "index.signature"}
    with pytest.raises(InvalidInputError, match="there is such a file"):
        curator.main([*exported, "--out", str(out)], standalone_mode=False)
    result = run(verify, str(out), "--authority", str(tmp_path / "ca.pem"), "--study", study)
    assert (result.exit_code, "Every line holds" in result.output) == (0, True)
    result = run(verify, str(out))
    assert (result.exit_code, "Every line holds" in result.output) == (4, False)
    (tmp_path / "crl.pem").write_bytes(
        AUTHORITY.revocation_list([], [signing_serial(out)], NOW).public_bytes(Encoding.PEM)
    )
    result = run(verify, str(out), "--revoked", str(tmp_path / "crl.pem"), "--json")
    (line,) = (one for one in json.loads(result.output)["findings"] if one["holds"] is False)
    assert (result.exit_code, line["what"], "which signed, is revoked" in line["detail"]) == (5, "revocation", True)
    altered = rewritten(office, replaced("index.html", b"as agreed", b"as argued"))
    result = run(verify, str(altered), "--json")
    assert (result.exit_code, json.loads(result.output)["holds"]) == (5, False)
    assert run(verify, str(tmp_path / "one.certificate")).exit_code == 2
    broken = certificate(office.study).to_text().replace("301", "302")
    with pytest.raises((IntegrityError, InvalidInputError)):
        checked_certificate(broken, office.study, PEM)
