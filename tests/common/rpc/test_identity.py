import re
from base64 import encodebytes
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from hypothesis import example, given
from hypothesis import strategies as st

from tests.worlds.parties import ALICE
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.rpc.parties.identity import Identity, Party, Role, load_identity, party_of_certificate
from veiltab.deploy.pki.authority import Authority, Issued, names_of, new_authority

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)
SINCE, UNTIL = NOW - timedelta(days=1), NOW + timedelta(days=1)
AUTHORITY = new_authority("survey", since=SINCE - timedelta(days=9), until=UNTIL + timedelta(days=9))
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
labels = st.from_regex(LABEL, fullmatch=True).filter(lambda label: len(label) <= 40)
parties = st.builds(Party, study=labels, role=st.sampled_from(Role), name=labels)


def authority_pem(authority: Authority = AUTHORITY) -> bytes:
    return authority.certificate.public_bytes(Encoding.PEM)


def issued(
    party: Party = ALICE, names: list[x509.GeneralName] | None = None, authority: Authority = AUTHORITY
) -> Issued:
    return authority.issue("x", names_of(party, "localhost:1") if names is None else names, SINCE, UNTIL)


def identity(made: Issued) -> Identity:
    return Identity(certificate=made.certificate_pem, key=made.key_pem, authority=authority_pem())


def written(directory: Path, made: Issued, name: str = "alice") -> Path:
    (directory / "ca.pem").write_bytes(authority_pem())
    (directory / f"{name}.pem").write_bytes(made.certificate_pem)
    key = directory / f"{name}.key"
    key.write_bytes(made.key_pem)
    key.chmod(0o600)
    return directory


def load(directory: Path, now: datetime = NOW, role: Role = Role.CURATOR, study: str | None = "survey") -> Identity:
    return load_identity(directory, role, "alice", study=study, clock=lambda: now)


def test_a_party_has_a_uri_and_a_dns_name() -> None:
    assert ALICE.uri == "veiltab://survey/curator/alice"
    assert ALICE.dns_name == "alice.curator.survey.veiltab"
    assert str(ALICE) == "curator alice"


@given(parties)
def test_a_uri_names_its_party_and_no_other(party: Party) -> None:
    assert Party.from_uri(party.uri) == party


@given(parties, parties)
def test_parties_that_differ_have_names_that_differ(one: Party, other: Party) -> None:
    assert (one == other) == (one.uri == other.uri) == (one.dns_name == other.dns_name)


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a.b", "a_b", "a b", "a\n", "ä", "a/b", "a" * 41, "*", "a\u0000", "\u0661"]
)
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError):
        Party(study="survey", role=Role.CURATOR, name=name)
    with pytest.raises(InvalidInputError):
        Party(study=name, role=Role.CURATOR, name="alice")
    with pytest.raises(InvalidInputError):
        Party.from_uri(f"veiltab://survey/curator/{name}")


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "veiltab://survey/curator",
        "veiltab://survey/curator/alice#x",
        "VEILTAB://survey/curator/alice",
        "veiltab://survey/curator/alice\n",
        "veiltab://user@survey/curator/alice",
        "veiltab://survey/curator/%61lice",
    ],
)
def test_a_uri_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        Party.from_uri(uri)


@given(st.text(max_size=60))
def test_any_text_is_a_party_or_is_refused(text: str) -> None:
    for uri in (text, f"veiltab://{text}", f"veiltab://survey/curator/{text}"):
        with suppress(InvalidInputError):
            assert Party.from_uri(uri).uri == uri


def test_a_certificate_states_its_party_and_lifetime() -> None:
    assert party_of_certificate(issued().certificate_pem)[:3] == (ALICE, SINCE, UNTIL)


@pytest.mark.parametrize("pem", [b"", b"nonsense", authority_pem()])
def test_what_names_no_party_is_refused(pem: bytes) -> None:
    with pytest.raises(InvalidInputError):
        party_of_certificate(pem)


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@given(st.integers(0, 400), st.integers(0, 255))
@example(12, 1)  # the version of X.509
def test_a_damaged_certificate_names_a_party_or_is_refused(at: int, value: int) -> None:
    damaged = DER[:at] + bytes([value]) + DER[at + 1 :]
    pem = b"-----BEGIN CERTIFICATE-----\n" + encodebytes(damaged) + b"-----END CERTIFICATE-----\n"
    with suppress(InvalidInputError):
        assert isinstance(party_of_certificate(pem).party, Party)


DER = issued().certificate.public_bytes(Encoding.DER)
CERTIFICATE = issued().certificate_pem


@pytest.mark.parametrize(
    ("seconds", "told"), [(-1, "valid only from 2030-01-14 12:00:00"), (172_801, "expired on 2030-01-16")]
)
def test_a_lifetime_has_no_allowance(seconds: int, told: str) -> None:
    stated = party_of_certificate(CERTIFICATE)
    stated.check_lifetime(SINCE)
    stated.check_lifetime(UNTIL)
    with pytest.raises(InvalidInputError, match=told):
        stated.check_lifetime(SINCE + timedelta(seconds=seconds))


def test_an_identity_belongs_together() -> None:
    made = issued()
    good = identity(made)
    assert good.party == ALICE
    assert made.key_pem.decode() not in repr(good)
    assert "PRIVATE" not in repr(good)
    refusals: dict[str, Callable[[], Identity]] = {
        "not the certificate's": lambda: replace_key(good, issued().key_pem),
        "this is not a PEM private key, or it has a passphrase": lambda: replace_key(good, b"nonsense"),
        "or it has a passphrase": lambda: replace_key(good, encrypted_key()),
        "not issued by the authority": lambda: identity(issued(authority=rogue())),
        "not a PEM certificate": lambda: Identity(certificate=made.certificate_pem, key=made.key_pem, authority=b"x"),
        "lacks its party's DNS name": lambda: identity(
            issued(names=[x509.UniformResourceIdentifier(ALICE.uri), x509.DNSName("localhost")])
        ),
        "carries 2 URIs": lambda: identity(
            issued(names=[*names_of(ALICE, "localhost:1"), x509.UniformResourceIdentifier(ALICE.uri)])
        ),
    }
    for told, make in refusals.items():
        with pytest.raises(InvalidInputError, match=told):
            make()


def replace_key(good: Identity, key: bytes) -> Identity:
    return Identity(certificate=good.certificate, key=key, authority=good.authority)


def encrypted_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"passphrase"))


def rogue() -> Authority:
    return new_authority("survey", since=SINCE, until=UNTIL)


def test_a_bundle_may_hold_several_authorities() -> None:
    made = issued()
    bundle = authority_pem(rogue()) + authority_pem()
    assert Identity(certificate=made.certificate_pem, key=made.key_pem, authority=bundle).party == ALICE


def test_a_directory_loads(tmp_path: Path) -> None:
    assert load(written(tmp_path, issued())).party == ALICE
    assert load(tmp_path, study=None).party == ALICE


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666])
def test_a_key_that_others_may_use_is_refused_with_the_remedy(mode: int, tmp_path: Path) -> None:
    written(tmp_path, issued())
    key = tmp_path / "alice.key"
    key.chmod(mode)
    with pytest.raises(InvalidInputError) as refusal:
        load(tmp_path)
    assert refusal.value.remedy == f"Run: chmod 600 {key}"
    key.chmod(0o400)
    load(tmp_path)


@pytest.mark.parametrize("name", ["ca.pem", "alice.pem", "alice.key"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    (written(tmp_path, issued()) / name).unlink()
    with pytest.raises(NotFoundError, match=re.escape(str(tmp_path / name))):
        load(tmp_path)


def test_another_partys_certificate_is_refused(tmp_path: Path) -> None:
    for other in (replace(ALICE, name="bob"), replace(ALICE, role=Role.SERVER), replace(ALICE, study="other")):
        written(tmp_path, issued(other))
        with pytest.raises(InvalidInputError, match=f"certificate of {other.uri}, not of {ALICE.uri}"):
            load(tmp_path)


def test_an_expired_or_early_certificate_says_when(tmp_path: Path) -> None:
    written(tmp_path, issued())
    with pytest.raises(InvalidInputError, match=r"own certificate: .*expired on 2030-01-16 12:00:00 UTC.*pki issue"):
        load(tmp_path, UNTIL + timedelta(seconds=1))
    with pytest.raises(InvalidInputError, match="valid only from 2030-01-14 12:00:00 UTC"):
        load(tmp_path, SINCE - timedelta(seconds=1))
    load(tmp_path, UNTIL)


@pytest.mark.parametrize("name", ["alice.pem", "ca.pem", "crl.pem", "."])
def test_an_identity_that_others_may_write_is_refused(tmp_path: Path, name: str) -> None:
    written(tmp_path, issued())
    (tmp_path / "crl.pem").touch()
    assert load(tmp_path).party == ALICE
    (tmp_path / name).chmod(0o777)
    with pytest.raises(InvalidInputError, match="others than its owner may write this"):
        load(tmp_path)
