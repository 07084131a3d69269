"""Release certificates over real processes: signed by every party, checked offline, and had by whom they are for."""

from pathlib import Path

import pytest

from tests.protocol.village import FREE
from tests.protocol.world import ALICE, ROSA, Who, World
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import statement_of, verified


@pytest.fixture(scope="module")
def label(village: World) -> str:
    """A release of Rosa's that is ready, whose server was tested."""
    label = village.label()
    with village.client() as client:
        client.request(FREE, epsilon="4", label=label, noise_split="0.5", canaries=400).wait(60)
    return label


def written(world: World, who: Who, label: str, out: Path) -> Path:
    own = ("--identity", world.local.identity_folder(*who))
    told = world.command("researcher", "report", world.local.study_path, *own, "--release", label, "--out", str(out))
    assert told.code == 0, told.errors
    assert told.data["certificate"] == str(out)
    return out


def test_a_stranger_checks_a_certificate_offline(village: World, label: str, tmp_path: Path) -> None:
    file = written(village, ROSA, label, tmp_path / "release.certificate")
    authority = village.local.identity_folder(*ROSA) / "ca.pem"
    checked = ("verify", file, "--study", village.local.study_path, "--authority", authority)
    few = village.command(*checked)
    assert (few.code, few.data["holds"]) == (4, False)
    assert [found["what"] for found in few.data["findings"] if found["holds"] is None] == ["test of the server"]
    told = village.command(*checked, "--untested")
    assert (told.code, told.data["holds"]) == (0, True), told.data
    lines = {found["what"]: found["detail"] for found in told.data["findings"]}
    assert "the server is tested too little: one that leaves out" in lines["test of the server"]
    assert "epsilon 4 was asked for and is kept" in lines["privacy"]
    for name in ("alice", "bob"):
        assert "canaries" in lines[f"receipts of curator {name}"]
        assert "its ledger then had" in lines[f"curator {name}"]
    assert "signed on" in lines["server cloud"]


def test_what_is_certified_is_what_the_ledgers_and_the_server_hold(village: World, label: str) -> None:
    with village.client() as client:
        release = client.release(label)
        certificate = ReleaseCertificate.from_text(release.certificate())
        assert release.certificate() == certificate.to_text()
        assert certificate.spec == release.status().spec
    authority = (village.local.identity_folder(*ROSA) / "ca.pem").read_bytes()
    assert all(found.holds for found in verified(certificate, village.local.study, authority, untested=True))
    published = village.published(certificate.spec.release_id)
    for one in certificate.statements:
        stated = statement_of(one)
        assert {column.attribute for column in stated.published} == set(published)
        assert (not stated.receipts) == ("/server/" in stated.party)
    (alice,) = (s for s in map(statement_of, certificate.statements) if s.party.endswith("curator/alice"))
    assert alice.ledger is not None
    assert alice.ledger.length >= 1 + village.charges(ALICE[1]).index(certificate.spec.release_id)
