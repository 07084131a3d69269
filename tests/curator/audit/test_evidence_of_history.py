"""What evidence shows of a history, and how it is exported."""

import hashlib
import json
import re
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import request_with
from tests.curator.audit.exported_evidence import (  # noqa: F401 - fixtures
    AUTHORITY,
    ID,
    NOW,
    OTHER,
    PEM,
    SIGNER,
    Office,
    altered_fixture,
    certificate,
    contents,
    failures,
    identity,
    office_fixture,
    open_office,
    replaced,
    rewritten,
)
from tests.curator.made_records import deny as deny_release
from tests.worlds.states import curator_state
from veiltab.common.command.options import ServeOptions
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.certificates.certificate_files import checked_certificate
from veiltab.common.rpc.parties.identity import party_of_certificate
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.tasks.engine_options import EngineOptions
from veiltab.curator.cli import curator
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.party.serving import serve_curator
from veiltab.curator.release.statements import signed_statement
from veiltab.deploy.cli import veiltab
from veiltab.deploy.operate.verify_cli import verify

STOPPED = "2" * 32


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
def test_rows_that_were_edited_do_not_fit_the_log(tmp_path: Path, study_bytes: bytes, edits: str, problem: str) -> None:
    office = open_office(tmp_path, study_bytes)
    with closing(curator_state(tmp_path / "state")) as store:
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
    with closing(curator_state(tmp_path / "state")) as store:
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
    with closing(curator_state(tmp_path / "state")) as store:
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


def test_nothing_is_exported_of_a_log_that_was_altered(altered: tuple[Office, str]) -> None:
    office, problem = altered
    with pytest.raises(IntegrityError, match=problem):
        office.export("evidence.zip")
    assert not office.file.exists()


def test_no_curator_serves_with_a_log_that_was_altered(altered: tuple[Office, str]) -> None:
    office, problem = altered
    write_identity(office.folder)
    options = ServeOptions(
        study_path=office.folder / "study.toml",
        name="alice",
        identity_folder=office.folder,
        state_folder=office.folder / "state",
        listen=None,
        metrics=None,
        verbose=False,
    )
    table = TableAddress(location=str(office.folder / "alice.csv"))
    with pytest.raises(IntegrityError, match=problem):
        serve_curator(options, table=table, policy_path=None, work=WorkOptions(engine=EngineOptions()))


def test_what_happens_meanwhile_is_not_half_in_the_file(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def signed_meanwhile(*of: Any) -> SignedText:  # noqa: ANN401 - those of the original
        with closing(curator_state(office.folder / "state")) as other:
            other.keys.record_key_given(ID, "salary", "rosa")
        return signed_statement(*of)

    monkeypatch.setattr("veiltab.curator.evidence.export.signed_statement", signed_meanwhile)
    evidence = check_evidence(office.export("meanwhile.zip"), PEM, None)
    assert evidence.holds, evidence.findings


def write_identity(folder: Path) -> None:
    for name, content in (("ca.pem", SIGNER.authority), ("alice.pem", SIGNER.certificate), ("alice.key", SIGNER.key)):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)


def signing_serial(path: Path) -> int:
    """Return the serial number of the certificate that signed the index of an evidence file."""
    return party_of_certificate(json.loads(contents(path)["index.signature"])["certificate"].encode()).serial


def test_the_commands(office: Office, tmp_path: Path) -> None:
    write_identity(tmp_path)
    (tmp_path / "one.certificate").write_text(certificate(office.study).to_text())
    out, study = tmp_path / "out.zip", str(office.folder / "study.toml")
    state = ("--state", str(office.folder / "state"), "--identity", str(tmp_path))

    def run(command: Any, *args: str) -> Any:  # noqa: ANN401 - a command and its result
        return CliRunner().invoke(veiltab, [command.name, *args])

    exported = ("evidence", study, *state, "--certificate", str(tmp_path / "one.certificate"), "--person", "Ana")
    result = run(curator, *exported, "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.output)["files"]) == set(contents(out)) - {"index.json", "index.signature"}
    assert "this file is there already. Name" in str(run(curator, *exported, "--out", str(out)).exception)
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
    result = run(verify, str(rewritten(office, replaced("index.html", b"as agreed", b"as argued"))), "--json")
    assert (result.exit_code, json.loads(result.output)["holds"]) == (5, False)
    assert [run(verify, str(tmp_path / name)).exit_code for name in ("one.certificate", "ca.pem")] == [2, 1]
    refused = [run(verify, str(one), "--authority", str(out)).exception for one in (out, tmp_path / "one.certificate")]
    assert [(one.exit_code, f"{out}: this is not a PEM" in str(one)) for one in refused] == [(2, True)] * 2
    (tmp_path / "broken").write_text(certificate(office.study).to_text().replace("301", "302"))
    with pytest.raises((IntegrityError, InvalidInputError)):
        checked_certificate(tmp_path / "broken", office.study, PEM)
