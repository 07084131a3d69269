"""Checkpoints: notes as C2SP describes them, of which nothing can be changed, under keys of every kind."""

import hashlib
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from tests.common.rpc.test_release_certificate import DAY, NOW, OTHER_AUTHORITY, PEM, identity
from tests.conftest import refuses
from tests.worlds.parties import ALICE, BOB
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.certificates.checkpoint import (
    _SIGNS,
    Checkpoint,
    _key_id,
    check_checkpoint,
    cosigned_note,
    read_note,
    signed_checkpoint,
)
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Identity

HEAD = LedgerHead(length=3, digest="ab" * 32)
ID = "0" * 31 + "1"
KINDS = ("ec", "rsa", "ed25519")


def noted(alice: Identity, bob: Identity) -> tuple[str, str, str]:
    one = signed_checkpoint(alice, HEAD, ID, NOW)
    note, cosigner = cosigned_note(one, bob, NOW + timedelta(seconds=5))
    return note, one.certificate, cosigner


@pytest.fixture(params=KINDS, name="parties")
def parties_fixture(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Identity, Identity]:
    if request.param != "ec":
        made = {
            "rsa": lambda _: rsa.generate_private_key(65537, 2048),
            "ed25519": lambda _: ed25519.Ed25519PrivateKey.generate(),
        }
        monkeypatch.setattr("veiltab.deploy.pki.authority.ec.generate_private_key", made[request.param])
    return identity(ALICE), identity(BOB)


def test_a_note_reads_as_it_was_signed(parties: tuple[Identity, Identity]) -> None:
    note, certificate, cosigner = noted(*parties)
    read = read_note(note, certificate, cosigner, PEM)
    assert (read.checkpoint.party, read.checkpoint.head, read.witness) == (ALICE, HEAD, BOB)
    assert read.checkpoint.release == ID
    assert read.at == NOW + timedelta(seconds=5)
    assert note.startswith(
        f"survey.veiltab/curator/alice/ledger\n3\n{b64encode(bytes([0xAB]) * 32).decode()}\nrelease {ID}\n\n\u2014 "
    )


def test_nothing_of_a_note_can_be_changed(parties: tuple[Identity, Identity]) -> None:
    note, certificate, cosigner = noted(*parties)
    for place in range(0, len(note), 5):
        for flip in (1, 32):
            altered = note[:place] + chr(ord(note[place]) ^ flip) + note[place + 1 :]
            with pytest.raises(IntegrityError):
                read_note(altered, certificate, cosigner, PEM)
    for altered in (note + "\n", note[:-1], note.replace("\n\n", "\n"), "", note + note.splitlines(keepends=True)[-1]):
        with pytest.raises(IntegrityError):
            read_note(altered, certificate, cosigner, PEM)


def test_the_signatures_of_p_256_are_those_of_the_specifications() -> None:
    note, certificate, cosigner = noted(identity(ALICE), identity(BOB))
    text, lines = note[: note.index("\n\n") + 1], note.splitlines()[-2:]
    key = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    name, first = lines[0].removeprefix("\u2014 ").split(" ")
    assert name == "survey.veiltab/curator/alice/ledger"
    signature = b64decode(first)
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert signature[:4] == hashlib.sha256(spki).digest()[:4]
    key.verify(signature[4:], text.encode(), ec.ECDSA(hashes.SHA256()))
    witness = x509.load_pem_x509_certificate(cosigner.encode()).public_key()
    assert isinstance(witness, ec.EllipticCurvePublicKey)
    name, second = lines[1].removeprefix("\u2014 ").split(" ")
    assert name == "survey.veiltab/curator/bob"
    stamped = b64decode(second)[4:]
    time = int.from_bytes(stamped[:8], "big")
    assert time == int(NOW.timestamp()) + 5
    witness.verify(stamped[8:], f"cosignature/v1\ntime {time}\n{text}".encode(), ec.ECDSA(hashes.SHA256()))


def test_the_key_of_the_example_of_the_specification_has_its_id() -> None:
    """`example.com/foo+530d903a+Ae...`, of c2sp.org/signed-note."""
    raw = b64decode("AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
    assert raw[:1] == b"\x01"
    key = ed25519.Ed25519PublicKey.from_public_bytes(raw[1:])
    signature = b64decode(
        "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    )
    key.verify(signature[4:], b"This is an example message.\n")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateBuilder(
        name, name, key, 1, datetime(2030, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    )
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    assert _key_id("example.com/foo", made, _SIGNS) == bytes.fromhex("530d903a") == signature[:4]


def test_certificates_of_others_do_not_fit() -> None:
    alice, bob = identity(ALICE), identity(BOB)
    note, certificate, cosigner = noted(alice, bob)
    again = identity(ALICE).certificate.decode()
    for wrong in ((cosigner, cosigner), (certificate, certificate), (again, cosigner), (certificate, again), ("", "")):
        with pytest.raises(IntegrityError):
            read_note(note, *wrong, PEM)
    with pytest.raises(IntegrityError):
        read_note(note, certificate, cosigner, OTHER_AUTHORITY.certificate.public_bytes(Encoding.PEM))


def test_a_checkpoint_is_of_its_curator_alone_and_signed_while_the_certificate_was_valid() -> None:
    alice, one = identity(ALICE), signed_checkpoint(identity(ALICE), HEAD, ID, NOW)
    assert check_checkpoint(one, ALICE, PEM, NOW).head == HEAD
    with pytest.raises(IntegrityError, match="is not that of curator bob"):
        check_checkpoint(one, BOB, PEM, NOW)
    with pytest.raises(IntegrityError, match="expired"):
        check_checkpoint(one, ALICE, PEM, NOW + 2 * DAY)
    with pytest.raises(InvalidInputError, match="expired"):
        signed_checkpoint(alice, HEAD, ID, NOW + 2 * DAY)


def test_another_curators_key_signs_no_checkpoint_of_alice() -> None:
    bob = identity(BOB)
    text = Checkpoint(party=ALICE, head=HEAD, release=ID).text
    forged = signed_checkpoint(bob, HEAD, ID, NOW)
    assert forged.text != text
    with pytest.raises(IntegrityError):
        check_checkpoint(
            type(forged)(text=text, signature=forged.signature, certificate=forged.certificate), ALICE, PEM, NOW
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "survey.veiltab/curator/alice/ledger\n03\n{}\n",
        "survey.veiltab/curator/alice/ledger\n-1\n{}\n",
        "survey.veiltab/server/cloud/ledger\n3\n{}\n",
        "survey.veiltab/curator/alice/ledger\n3\n{}\nmore\n",
        "survey.veiltab/curator/alice/ledger\n3\n{}",
        "veiltab statement\n3\n{}\n",
        "survey.veiltab/curator/alice/ledger\n3\n" + "A" * 42 + "B=\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with refuses(IntegrityError, where="checkpoint"):
        Checkpoint.from_text(text.format(b64encode(bytes(32)).decode()))
