"""A release certificate over real processes: signed by every party, and checked offline."""

from tests.protocol.village import FREE
from tests.protocol.world import ALICE, ROSA, World
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import statement_of, verified


def test_what_is_certified_is_what_the_ledgers_and_the_server_hold(village: World) -> None:
    with village.client() as client:
        release = client.request(FREE, epsilon="4", label=village.label(), noise_split="0.5", canaries=400)
        release.wait(60)
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
