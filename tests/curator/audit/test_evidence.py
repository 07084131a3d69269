"""Evidence: what an honest file says, and that nothing in it can be changed, added or left out unnoticed."""

import hashlib
import io
import json
import re
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.curator.audit.exported_evidence import (  # noqa: F401 - fixtures
    ID,
    PEM,
    Office,
    altered_fixture,
    contents,
    failures,
    office_fixture,
    open_office,
    rewritten,
)
from tests.worlds.states import curator_state
from veiltab.common.errors import IntegrityError
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.evidence.export import _Bundle


def test_an_honest_file_holds_and_says_what_was_checked(office: Office) -> None:
    evidence = check_evidence(office.file, PEM, office.study)
    found = {one.what: one.detail for one in evidence.findings}
    assert evidence.holds, found
    assert (evidence.index.party, evidence.index.made_by) == ("veiltab://survey/curator/alice", "Ana Díaz")
    assert "curator alice signed the index on" in found["signature"]
    assert found["files"] == "10 files are as the index says"
    counts = "requests made under it: 2, under other versions of it: 0"
    assert found["study"] == f"study survey, with curator alice: your study file; {counts}"
    assert f"SHA-256 {office.study.digest}; {counts}" in contents(office.file)["index.html"].decode()
    assert found["ledger"].startswith("the chain is whole to entry 1")
    assert found["audit log"].startswith("entries 1 to 13; the chain is whole")
    assert found["ledger and audit log"] == "1 charges stand in both, and each covers the log before it"
    assert found["decisions"] == "2 decisions are as the audit log recorded them"
    assert found["statements"] == "1 signed statements about releases"
    assert found["certificates"] == "1 release certificates, and no line of them fails"


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
        "of 2,400 canaries 6",
        "persons who must approve what is held",
    ):
        assert text in page, text


def test_keys_and_other_entries_push_nothing_of_each_other_out_of_the_page(
    tmp_path: Path, study_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.evidence.auditor_page._MOST_ENTRIES", 2)
    office = open_office(tmp_path, study_bytes)
    with closing(curator_state(tmp_path / "state")) as store:
        for number in range(3):
            store.keys.record_key_given(ID, f"number-{number}", "rosa")
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
