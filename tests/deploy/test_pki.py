import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.conftest import STUDY, refuses
from tests.worlds.parties import ALICE
from veiltab.common.command.parties import parties_of
from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError, VeiltabError
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.study.file import CuratorMember, Member, Study, study_from_bytes
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.authority import names_of
from veiltab.deploy.pki.certificates import ISSUED, init_pki, issue_party

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)


STUDY_FILE = STUDY + b'[[analyst]]\nname = "ana"\nresearcher = "rita"\n'
SURVEY = replace(
    study_from_bytes(STUDY_FILE, "study.toml"),
    server=Member(name="cloud", endpoint="cloud.example.org:7000"),
    curators=(
        CuratorMember(name="alice", endpoint="alice.example.org:7001", id_columns=("id",)),
        CuratorMember(name="bob", endpoint="192.0.2.7:7002", id_columns=("id",)),
    ),
    researchers=(Member(name="rita", endpoint="[2001:db8::7]:7003"),),
)


class Anywhere(Member):
    """A researcher with an endpoint that a study file may refuse."""

    def __post_init__(self) -> None: ...


def make(out: Path, study: Study | None = None, lifetime: timedelta = timedelta(days=30)) -> dict[Party, Path]:
    return init_pki(study or SURVEY, out, lifetime=lifetime, clock=lambda: NOW)


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_every_party_gets_a_directory_that_loads(tmp_path: Path) -> None:
    folders = make(tmp_path / "pki")
    assert {party.uri: folder.name for party, folder in folders.items()} == {
        "veiltab://survey/server/cloud": "server-cloud",
        "veiltab://survey/curator/alice": "curator-alice",
        "veiltab://survey/curator/bob": "curator-bob",
        "veiltab://survey/researcher/rita": "researcher-rita",
        "veiltab://survey/analyst/ana": "analyst-ana",
    }
    for party, folder in folders.items():
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            ["ca.pem", f"{party.name}.pem", f"{party.name}.key"]
        )
        moved = folder.rename(tmp_path / f"moved-{party.name}")
        assert load_identity(moved, party.role, party.name, study="survey", clock=lambda: NOW).party == party


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    make(tmp_path / "pki")
    keys = list((tmp_path / "pki").rglob("*.key"))
    assert len(keys) == 6
    assert len({key.read_bytes() for key in keys}) == 6
    for path in [*keys, *(key.parent for key in keys), tmp_path / "pki" / ISSUED]:
        assert path.stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "pki").rglob("*.tmp"))
    serials = {certificate(path).serial_number for path in (tmp_path / "pki").rglob("*.pem")}
    assert len(serials) == 6, "five parties and the authority"


def test_a_certificate_says_what_it_should(tmp_path: Path) -> None:
    folder = make(tmp_path / "pki")[ALICE]
    ca, leaf = certificate(folder / "ca.pem"), certificate(folder / "alice.pem")
    extensions = leaf.extensions
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH}
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    key_usage = extensions.get_extension_for_class(x509.KeyUsage).value
    assert (key_usage.digital_signature, key_usage.key_cert_sign) == (True, False)
    own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == own
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["veiltab://survey/curator/alice"]
    dns = ["alice.curator.survey.veiltab", "localhost", "alice.example.org"]
    assert names.get_values_for_type(x509.DNSName) == dns
    constraints = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.ca, constraints.value.path_length, constraints.critical) == (True, 0, True)
    for one in (ca, leaf):
        key = one.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
    leaf.verify_directly_issued_by(ca)
    assert leaf.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert leaf.not_valid_after_utc == NOW + timedelta(days=30)
    assert ca.not_valid_after_utc == NOW + timedelta(days=3650)


@pytest.mark.parametrize(
    ("endpoint", "expected"), [("192.0.2.7:1", "192.0.2.7"), ("[2001:db8::7]:1", "2001:db8::7"), ("[::1]:1", "::1")]
)
def test_an_address_is_an_address(endpoint: str, expected: str) -> None:
    assert names_of(ALICE, endpoint)[-1] == x509.IPAddress(ip_address(expected))


@pytest.mark.parametrize(
    "host",
    ["cloud.server.survey.veiltab", "CLOUD.SERVER.SURVEY.VEILTAB", "x.veiltab.", "veiltab", "*.example.org", "*", ""],
)
def test_no_endpoint_makes_a_certificate_another_partys(host: str, tmp_path: Path) -> None:
    study = replace(SURVEY, researchers=(Anywhere(name="rita", endpoint=f"{host}:7003"),))
    with refuses(InvalidInputError, where="researcher rita"):
        make(tmp_path / "pki", study)
    assert not (tmp_path / "pki").exists()


@pytest.mark.parametrize("left", ["ca.pem", "ca.key"])
def test_an_authority_is_never_overwritten(left: str, tmp_path: Path) -> None:
    make(tmp_path)
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ConflictError, match="pki issue"):
        make(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == kept
    for path in kept:
        if path.name != left:
            path.unlink()
    with pytest.raises(ConflictError):
        make(tmp_path)


def test_renewal_gives_a_fresh_key_and_leaves_the_others(tmp_path: Path) -> None:
    folders = make(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    later = NOW + timedelta(days=29)
    assert issue_party(SURVEY, tmp_path, ALICE, lifetime=timedelta(days=1), clock=lambda: later) == folders[ALICE]
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in before if before[path] != after[path]} == {"alice.key", "alice.pem", "issued"}
    identity = load_identity(folders[ALICE], Role.CURATOR, "alice", clock=lambda: later)
    assert identity.certificate_facts.not_after == later + timedelta(days=1)


def test_a_party_that_joins_is_added(tmp_path: Path) -> None:
    make(tmp_path)
    study = replace(SURVEY, researchers=(*SURVEY.researchers, Member(name="ruth", endpoint="ruth.example.org:1")))
    ruth = Party(study="survey", role=Role.RESEARCHER, name="ruth")
    folder = issue_party(study, tmp_path, ruth, clock=lambda: NOW)
    assert load_identity(folder, ruth.role, ruth.name, clock=lambda: NOW).party == ruth


def test_an_analyst_s_certificate_names_no_host_of_a_party_that_serves(tmp_path: Path) -> None:
    ana = Party(study="survey", role=Role.ANALYST, name="ana")
    leaf = certificate(make(tmp_path)[ana] / "ana.pem")
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ana.analyst.survey.veiltab", "localhost"]


def test_a_certificate_ends_with_its_authority(tmp_path: Path) -> None:
    make(tmp_path)
    late = NOW + timedelta(days=3649)
    folder = issue_party(SURVEY, tmp_path, ALICE, clock=lambda: late)
    assert certificate(folder / "alice.pem").not_valid_after_utc == NOW + timedelta(days=3650)
    with pytest.raises(InvalidInputError, match="authority has expired"):
        issue_party(SURVEY, tmp_path, ALICE, clock=lambda: late + timedelta(days=2))


def swapped(out: Path) -> None:
    (out / "ca.key").write_bytes((out / "curator-bob" / "bob.key").read_bytes())


BROKEN: dict[str, tuple[Callable[[Path], object], type[VeiltabError]]] = {
    "no key": (lambda out: (out / "ca.key").unlink(), NotFoundError),
    "no certificate": (lambda out: (out / "ca.pem").unlink(), NotFoundError),
    "another key": (swapped, InvalidInputError),
    "nonsense": (lambda out: (out / "ca.key").write_bytes(b"x"), InvalidInputError),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_authority_that_is_none_issues_nothing(case: str, tmp_path: Path) -> None:
    make(tmp_path)
    damage, kind = BROKEN[case]
    damage(tmp_path)
    with pytest.raises(kind):
        issue_party(SURVEY, tmp_path, ALICE, clock=lambda: NOW)


def test_nobody_outside_the_study_gets_a_certificate(tmp_path: Path) -> None:
    make(tmp_path)
    for party in (
        Party(study="survey", role=Role.RESEARCHER, name="mallory"),
        Party(study="survey", role=Role.RESEARCHER, name="alice"),
        Party(study="survey", role=Role.NODE, name="alice"),
        Party(study="survey", role=Role.ANALYST, name="rita"),
        Party(study="other", role=Role.CURATOR, name="alice"),
    ):
        with pytest.raises(InvalidInputError, match="the study has no"):
            issue_party(SURVEY, tmp_path, party, clock=lambda: NOW)
    other = replace(SURVEY, id="other")
    with pytest.raises(InvalidInputError, match="not the authority of study other"):
        issue_party(other, tmp_path, next(iter(parties_of(other))), clock=lambda: NOW)


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_bytes(STUDY_FILE)
    return path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(veiltab, ["pki", *map(str, arguments)], catch_exceptions=True)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_the_commands_print_one_json_object(study_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "pki"
    made = json.loads(run("init", study_file, "--out", out, "--days", 2, "--json"))
    assert made["parties"]["veiltab://survey/curator/alice"] == str(out / "curator-alice")
    shown = json.loads(run("show", out / "curator-alice" / "alice.pem", "--json"))
    assert run("show", out / "curator-alice" / "alice.pem").endswith(f"UTC, serial number {shown['serial']}\n")
    assert (shown["party"], shown["valid_now"]) == ("veiltab://survey/curator/alice", True)
    left = datetime.fromisoformat(shown["not_after"]) - datetime.now(UTC)
    assert timedelta(days=1.9) < left <= timedelta(days=2)
    renewed = json.loads(run("issue", study_file, "--pki", out, "--party", "curator/alice", "--json"))
    assert renewed == {"party": "veiltab://survey/curator/alice", "directory": str(out / "curator-alice")}


@pytest.mark.parametrize("who", ["alice", "curator", "curator/", "root/alice", "curator/mallory", "curator/a/b"])
def test_a_party_that_is_none_is_refused(who: str, study_file: Path, tmp_path: Path) -> None:
    run("init", study_file, "--out", tmp_path / "pki")
    with pytest.raises(InvalidInputError):
        run("issue", study_file, "--pki", tmp_path / "pki", "--party", who)


@pytest.mark.parametrize(("name", "refusal"), [("no.pem", NotFoundError), ("ca.pem", InvalidInputError)])
def test_show_refuses_what_is_no_party_certificate(
    study_file: Path, tmp_path: Path, name: str, refusal: type[VeiltabError]
) -> None:
    run("init", study_file, "--out", tmp_path / "pki")
    with pytest.raises(refusal):
        run("show", tmp_path / "pki" / name)
