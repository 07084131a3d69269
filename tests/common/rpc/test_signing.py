"""Who may sign, and which signatures and statements are refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ed448

from tests.common.rpc.test_release_certificate import MALLORY, NOW, PEM, identity
from tests.conftest import spec_with
from tests.worlds.parties import ALICE, BOB, CLOUD
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.spec import release_of
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import check_statement, verified
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.signing import SignedText, signed, signed_from_proto, signed_to_proto, signer_of
from veiltab.common.study.file import Study

SPEC = spec_with(server_replacement=2**63)


def statement(party: Party) -> Statement:
    ledger = LedgerHead(length=1, digest="ab" * 32) if party.role is Role.CURATOR else None
    return Statement(
        party=party.uri, spec_digest=SPEC.digest().hex(), published=(), signed_at=int(NOW.timestamp()), ledger=ledger
    )


def test_a_key_that_cannot_sign_so_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    key = ed448.Ed448PrivateKey.generate()
    monkeypatch.setattr("veiltab.deploy.pki.authority.ec.generate_private_key", lambda _curve: key)
    with pytest.raises(InvalidInputError, match="a key of this kind cannot sign") as caught:
        signed(identity(ALICE), "text", NOW)
    assert caught.value.remedy == "Use EC P-256."


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, signature=one.signature[:-2]),
        lambda one: replace(one, signature=one.signature.upper()),
        lambda one: replace(one, signature=f"{one.signature} "),
        lambda one: replace(one, signature="no digits"),
        lambda one: replace(one, certificate=one.certificate + "\n"),
        lambda one: replace(one, certificate="no certificate"),
        lambda one: replace(one, text=one.text + " "),
    ],
)
def test_a_signature_has_one_spelling_and_fits_its_text(change: Callable[[SignedText], SignedText]) -> None:
    one = signed(identity(ALICE), "text", NOW)
    assert signer_of(one, PEM, NOW) == ALICE
    with pytest.raises(IntegrityError):
        signer_of(change(one), PEM, NOW)


@pytest.mark.parametrize("field", ["text", "signature", "certificate"])
def test_what_is_longer_than_any_statement_is_not_read(field: str) -> None:
    message = signed_to_proto(SignedText(text="a", signature="ab", certificate=""))
    assert signed_from_proto(message).text == "a"
    setattr(message, field, "x" * 2**18 if field == "text" else b"x" * 2**18)
    with pytest.raises(InvalidInputError, match="longer than any can be"):
        signed_from_proto(message)


def test_a_certificate_that_is_no_text_is_not_read() -> None:
    message = signed_to_proto(SignedText(text="a", signature="ab", certificate=""))
    message.certificate = b"\xff"
    with pytest.raises(InvalidInputError, match="this is not a PEM certificate"):
        signed_from_proto(message)


def test_a_statement_is_of_who_signs_it_and_names_itself() -> None:
    alice = identity(ALICE)
    assert check_statement(signed(alice, statement(ALICE).to_json(), NOW), ALICE, SPEC.digest(), PEM) == statement(
        ALICE
    )
    for party, stated in ((ALICE, statement(BOB)), (BOB, statement(ALICE)), (BOB, statement(BOB))):
        with pytest.raises(IntegrityError, match=f"signed by curator alice, not by {party}"):
            check_statement(signed(alice, stated.to_json(), NOW), party, SPEC.digest(), PEM)


def test_a_certificate_holds_only_for_whole_columns_and_for_nobody_besides(study: Study) -> None:
    one = {party.uri: signed(identity(party), statement(party).to_json(), NOW) for party in (ALICE, BOB, CLOUD)}
    found = {line.what: line.holds for line in verified(ReleaseCertificate.of(release_of(SPEC), PEM, one), study, PEM)}
    assert found["published columns"] is False
    assert MALLORY.uri not in found
    one[MALLORY.uri] = signed(identity(MALLORY), statement(MALLORY).to_json(), NOW)
    found = {line.what: line.holds for line in verified(ReleaseCertificate.of(release_of(SPEC), PEM, one), study, PEM)}
    assert found[MALLORY.uri] is False
