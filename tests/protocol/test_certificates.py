"""Release certificates over real processes: signed by every party, checked offline, and had by whom they are for."""

import json
from pathlib import Path

import pytest

from tests.protocol.village import FREE
from tests.protocol.world import ALICE, ANA, RITA, ROSA, Who, World
from veiltab.common.errors import DeniedError
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import statement_of, verified
from veiltab.researcher.client.client import Client


@pytest.fixture(scope="module")
def label(village: World) -> str:
    """A release of Rosa's that is ready, whose server was tested."""
    label = village.label()
    with village.client() as client:
        client.request(FREE, epsilon="4", label=label, noise_split="0.5", canaries=400).wait(60)
    return label


def written(world: World, who: Who, label: str, out: Path) -> Path:
    own = ("--name", who[1], "--identity", world.local.identity_folder(*who))
    told = world.command(
        "researcher", "certificate", world.local.study_path, *own, "--release", label, "--out", str(out)
    )
    assert told.code == 0, told.errors
    assert told.data["certificate"] == str(out)
    return out


def test_a_stranger_checks_a_certificate_offline(village: World, label: str, tmp_path: Path) -> None:
    file = written(village, ROSA, label, tmp_path / "release.certificate")
    authority = village.local.identity_folder(*ROSA) / "ca.pem"
    told = village.command("verify", file, "--study", village.local.study_path, "--authority", authority)
    assert told.code == 0, told.data
    assert told.data["holds"] is True
    lines = {found["what"]: found["detail"] for found in told.data["findings"]}
    assert "epsilon 4 was asked for and is kept" in lines["privacy"]
    for name in ("alice", "bob"):
        assert "canaries" in lines[f"receipts of curator {name}"]
        assert "its ledger then had" in lines[f"curator {name}"]
    assert "signed on" in lines["server cloud"]


@pytest.mark.long
def test_an_altered_certificate_and_another_study_are_refused(village: World, label: str, tmp_path: Path) -> None:
    file = written(village, ROSA, label, tmp_path / "release.certificate")
    text = file.read_text()
    file.write_text(text.replace('"epsilon":"4"', '"epsilon":"1"'))
    told = village.command("verify", file, "--study", village.local.study_path)
    assert told.code == 5
    assert any("about another release" in found["detail"] for found in told.data["findings"])
    file.write_text(text)
    told = village.command("verify", file, "--study", village.local.study_path)
    assert (told.code, told.data["holds"]) == (4, False)
    other = tmp_path / "study.toml"
    other.write_bytes(village.local.study_path.read_bytes() + b"\n# another\n")
    assert village.command("verify", file, "--study", other).code == 5


def test_what_is_certified_is_what_the_ledgers_and_the_server_hold(village: World, label: str) -> None:
    with village.client() as client:
        release = client.release(label)
        certificate = ReleaseCertificate.from_text(release.certificate())
        assert release.certificate() == certificate.to_text()
        assert certificate.spec == release.status().spec
    authority = (village.local.identity_folder(*ROSA) / "ca.pem").read_bytes()
    assert all(found.holds for found in verified(certificate, village.local.study, authority))
    published = village.published(certificate.spec.release_id)
    for one in certificate.statements:
        stated = statement_of(one)
        assert {column.attribute for column in stated.published} == set(published)
        assert (not stated.receipts) == ("/server/" in stated.party)
    (alice,) = (s for s in map(statement_of, certificate.statements) if s.party.endswith("curator/alice"))
    assert alice.ledger is not None
    assert alice.ledger.length >= 1 + village.charges(ALICE[1]).index(certificate.spec.release_id)


def test_an_analyst_and_another_researcher_have_it_not(village: World, label: str, tmp_path: Path) -> None:
    mine = written(village, ROSA, label, tmp_path / "rosa.certificate").read_bytes()
    with (
        Client(village.local.study_path, identity=village.local.identity_folder(*ANA), name=ANA[1]) as ana,
        pytest.raises(DeniedError, match="may have the certificate, which holds the counts of the tests"),
    ):
        ana.release(label).certificate()
    with (
        Client(village.local.study_path, identity=village.local.identity_folder(*RITA), name=RITA[1]) as rita,
        pytest.raises(Exception, match="no such release"),
    ):
        rita.release(label)
    assert json.loads(mine)["kind"] == "veiltab release certificate 2"
