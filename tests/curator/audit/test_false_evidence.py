"""Evidence that was changed, damaged or never true."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.curator.audit.exported_evidence import (  # noqa: F401 - fixtures
    DAY,
    FAILED_TESTS,
    ID,
    NOW,
    PEM,
    SIGNER,
    TESTS,
    Office,
    contents,
    failures,
    identity,
    in_index,
    office_fixture,
    open_office,
    replaced,
    rewritten,
)
from tests.made_receipts import beautified
from tests.worlds.parties import BOB, CLOUD
from tests.worlds.states import curator_state
from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.errors import IntegrityError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.rpc.certificates.statement import Statement
from veiltab.common.rpc.parties.signing import signed
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.evidence.export import _Bundle
from veiltab.deploy.pki.authority import new_authority


def without_line(name: str, number: int) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        lines = files[name].splitlines(keepends=True)
        del lines[number]
        files[name] = b"".join(lines)

    return change


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
def test_changes_are_found(office: Office, change: Callable[[dict[str, bytes]], None], what: str, detail: str) -> None:
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
        (replaced("audit.jsonl", b'"event"', b' "event"'), "audit log", "not a line of an audit log"),
        (lambda files: files.update({"audit.jsonl": files["audit.jsonl"][:-1]}), "audit log", "cut off"),
        (replaced("releases.jsonl", b"approved", b"denied"), "decisions", "not what was recorded"),
        (replaced("releases.jsonl", b'"person":"Ben Ode"', b'"person":"Eva"'), "decisions", "not what was recorded"),
        (replaced("releases.jsonl", b"too much", b"too late"), "decisions", "not what was recorded"),
        (replaced("releases.jsonl", b"wage gap", b"a plague"), "decisions", "another request than was received"),
        (replaced("statements.jsonl", b"622", b"623"), "statements", "does not fit what it signed"),
        (replaced("statements.jsonl", b"2400", b"2401"), "statements", "about another release"),
        (replaced(f"certificates/{ID}.certificate", b"622", b"623"), "certificates", "certificate"),
        (replaced("study.toml", b"survey", b"burvey"), "study", "of another study"),
        (lambda files: files.update({"study.toml": b"x"}), "study", "study.toml"),
        (lambda files: files.pop("policy.toml"), "policy", "the file has no policy, and one was read"),
    ],
)
def test_what_contradicts_itself_is_found_although_it_is_signed(
    office: Office, change: Callable[[dict[str, bytes]], None], what: str, detail: str
) -> None:
    assert detail in failures(rewritten(office, change, sign=SIGNER))[what]


def test_a_study_file_that_was_not_served_is_found(tmp_path: Path, study_bytes: bytes) -> None:
    office = open_office(tmp_path, study_bytes)
    budget = replaced("study.toml", b"[budget]\nepsilon = 1", b"[budget]\nepsilon = 50")
    office.export("evidence.zip")
    assert failures(rewritten(office, budget, sign=SIGNER))["study"] == (
        "the newest request was made under another version of the study file;"
        " requests made under it: 0, under other versions of it: 2"
    )
    later = study_from_bytes(study_bytes + b"# a remark\n", "study.toml")
    with closing(curator_state(tmp_path / "state")) as store:
        store.served.set_served_study(office.study)
        store.served.set_served_study(later)
    (tmp_path / "study.toml").write_bytes(later.source)
    office.file.unlink()
    evidence = check_evidence(office.export("evidence.zip"), PEM, later)
    found = {one.what: one for one in evidence.findings}
    assert found["study"].holds
    assert found["study"].detail.endswith("requests made under it: 0, under other versions of it: 2")
    earlier = rewritten(office, lambda files: files.update({"study.toml": study_bytes}), sign=SIGNER)
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

    found = failures(rewritten(office, forget_the_charge, sign=SIGNER))
    assert found == {"ledger and audit log": "the audit log has another charge 1 than the ledger"}
    events = [json.loads(line)["event"] for line in contents(office.file)["audit.jsonl"].splitlines()]
    place = events.index("charge")
    for kept, problem in (
        (place - 1, "charge 1 covers another audit log"),
        (place, "charge 1 is not in the audit log"),
    ):
        assert problem in failures(rewritten(office, cut_log(kept), sign=SIGNER))["ledger and audit log"]


OWN, TOGETHER = TESTS.receipts("alice")


FAILED_OWN, FAILED_TOGETHER = FAILED_TESTS.receipts("alice")


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

    def change(files: dict[str, bytes]) -> None:
        plain = json.loads(files["statements.jsonl"])
        stated = replace(read_canonical(Statement, plain["text"]), receipts=receipts)
        made = signed(SIGNER, stated.to_json(), NOW)
        plain |= {"text": made.text, "signature": made.signature, "certificate": made.certificate}
        files["statements.jsonl"] = json.dumps(plain).encode() + b"\n"

    assert "test" in failures(rewritten(office, change, sign=SIGNER))["statements"]


def test_nobody_signs_in_the_future(office: Office) -> None:
    later = in_index("made_at", int((NOW + timedelta(hours=1)).timestamp()))
    assert "signed in the future" in failures(rewritten(office, later, sign=SIGNER))["signature"]


def test_who_must_have_signed(office: Office) -> None:
    for other in (BOB, CLOUD):
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
    with pytest.raises(IntegrityError, match="not an evidence file"):
        check_evidence(tmp_path / "x.zip", None, None)


@pytest.mark.parametrize(("name", "problem"), [("index.json", "in the form in which"), ("a", "is missing")])
def test_an_archive_with_a_name_twice_or_without_an_index(tmp_path: Path, name: str, problem: str) -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        bundle = _Bundle(archive=archive)
        for other in (name, name[:-1] + "b"):
            bundle.add(other, [b"{}"])
    (tmp_path / "x.zip").write_bytes(written.getvalue().replace(b"index.jsob", b"index.json"))
    with pytest.raises(IntegrityError, match=problem):
        check_evidence(tmp_path / "x.zip", None, None)


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
        with pytest.raises(IntegrityError, match=r"cannot be read|in the form in which"):
            check_evidence(path, PEM, None)


def test_nothing_stands_beside_the_signed_files(office: Office) -> None:
    """A program that reads an archive as a stream, such as `jar x`, would see it."""
    whole, hidden = office.file.read_bytes(), io.BytesIO()
    with zipfile.ZipFile(hidden, "w") as archive:
        _Bundle(archive=archive).add("index.html", [b"<h1>HIDDEN</h1>"])
    page = hidden.getvalue()[: hidden.getvalue().index(b"PK\x01\x02")]
    with zipfile.ZipFile(office.file) as archive:
        start = archive.start_dir
    end = whole[:-6] + (start + len(page)).to_bytes(4, "little") + whole[-2:]
    path = office.folder / "hidden.zip"
    for changed in (end[:start] + page + end[start:], whole + page, whole + b"x", whole[:-2] + b"\x01\x00x"):
        path.write_bytes(changed)
        with pytest.raises(IntegrityError, match=r"in the form in which|not an evidence file"):
            check_evidence(path, PEM, None)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED])
def test_another_way_to_compress_is_refused(office: Office, method: int) -> None:
    path = office.folder / "packed.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents(office.file).items():
            archive.writestr(name, content)
    data = bytearray(path.read_bytes())
    for change in (0, 1):
        data[60] ^= change
        path.write_bytes(data)
        with pytest.raises(IntegrityError):
            check_evidence(path, PEM, None)


def test_many_files_are_refused_and_not_named(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.evidence.files.MOST_FILES", 5)
    with pytest.raises(IntegrityError, match="in the form in which"):
        check_evidence(office.file, PEM, None)


def test_whatever_a_library_raises_is_a_line_or_a_refusal(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError("of the library")

    monkeypatch.setattr("veiltab.curator.evidence.check.study_from_bytes", fails)
    assert failures(office.file)["study"] == "what stands there cannot be read"
    monkeypatch.setattr("veiltab.curator.evidence.check.check_archive", fails)
    with pytest.raises(IntegrityError, match="not an evidence file"):
        check_evidence(office.file, PEM, None)
