"""Release certificates: what an honest one says, and that nothing in it can be changed, missing or out of date."""

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import spec_with
from tests.made_receipts import beautified, made_tests
from tests.worlds.parties import ALICE, BOB, CLOUD
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.spec import release_of
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import signers, verified
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement, published_columns
from veiltab.common.rpc.parties.identity import Identity, Party, Role, party_of_certificate
from veiltab.common.rpc.parties.signing import SignedText, signed
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.authority import Authority, names_of, new_authority

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)
AUTHORITY = new_authority("survey", since=NOW - 9 * DAY, until=NOW + 9 * DAY)
OTHER_AUTHORITY = new_authority("survey", since=NOW - 9 * DAY, until=NOW + 9 * DAY)
PEM = AUTHORITY.certificate.public_bytes(Encoding.PEM)
SPEC = spec_with(server_replacement=2**63, epsilon=Decimal(1), canaries=2400)
TESTS, FAILED, FEW = made_tests(SPEC), made_tests(SPEC, share=0.0), made_tests(replace(SPEC, canaries=12))
OWN, TOGETHER = TESTS.receipts("alice")
FAILED_OWN, FAILED_TOGETHER = FAILED.receipts("alice")
DIGESTS = {"sex": bytes(32), "salary": bytes([1]) * 32}


def identity(party: Party, authority: Authority = AUTHORITY) -> Identity:
    made = authority.issue("x", names_of(party, "localhost:1"), NOW - DAY, NOW + DAY)
    pem = authority.certificate.public_bytes(Encoding.PEM)
    return Identity(certificate=made.certificate_pem, key=made.key_pem, authority=pem)


def statement(party: Party, spec: TableSpec = SPEC, **changes: object) -> Statement:
    whole = Statement(
        party=party.uri,
        spec_digest=spec.digest().hex(),
        published=published_columns(spec, DIGESTS),
        signed_at=int(NOW.timestamp()),
        ledger=LedgerHead(length=3, digest="ab" * 32) if party.role is Role.CURATOR else None,
        receipts=made_tests(spec).receipts(party.name) if party.role is Role.CURATOR else (),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def certificate(
    study: Study, spec: TableSpec = SPEC, other: dict[str, SignedText | None] | None = None
) -> ReleaseCertificate:
    """Return the certificate of a release; `other` replaces the statements of parties by name, None leaves one out."""
    statements = {}
    for party in signers(study):
        honest = signed(identity(party), statement(party, spec).to_json(), NOW)
        one = (other or {}).get(party.name, honest)
        if one is not None:
            statements[party.uri] = one
    return ReleaseCertificate.of(release_of(spec), PEM, statements)


def failures(one: ReleaseCertificate, study: Study) -> list[str]:
    return [f"{found.what}: {found.detail}" for found in verified(one, study, PEM) if not found.holds]


MALLORY = Party(study="survey", role=Role.CURATOR, name="mallory")


def test_an_honest_certificate_holds_and_says_what_it_certifies(study: Study) -> None:
    one = ReleaseCertificate.from_text(certificate(study).to_text())
    found = {line.what: line for line in verified(one, study, PEM)}
    assert all(line.holds for line in found.values())
    changed = f"{OWN.changed} changed in alice's columns, 600 +- 21 expected"
    assert changed in found["receipts of curator alice"].detail
    changed = f"{TOGETHER.changed} changed in all columns together, 900 +- 24 expected"
    assert changed in found["test of the server"].detail
    assert "epsilon 1 was asked for and is kept" in found["privacy"].detail
    assert "ended with entry 3" in found["curator bob"].detail
    assert set(found) >= {"study", "authority", "curator alice", "curator bob", "server cloud", "published columns"}


@pytest.mark.filterwarnings("ignore:Parsed a serial number")  # a changed byte may make it negative
def test_any_changed_byte_is_noticed(study: Study) -> None:
    text = certificate(study).to_text()
    for place in range(0, len(text), 71):
        for flip in (1, 32):
            altered = text[:place] + chr(ord(text[place]) ^ flip) + text[place + 1 :]
            try:
                read = ReleaseCertificate.from_text(altered)
            except IntegrityError:
                continue
            # The last digit of an epsilon on the card may be another version's.
            is_last_digit = re.fullmatch(r"\.\d{6}", text[place - 6 : place + 1]) and altered[place].isdigit()
            assert failures(read, study) or is_last_digit, place


def resigned(party: Party, **changes: object) -> SignedText:
    return signed(identity(party), statement(party, **changes).to_json(), NOW)  # type: ignore[arg-type]


def by(signer: Party, authority: Authority = AUTHORITY, text: str = "") -> SignedText:
    """Sign alice's statement, or a text in its place."""
    return signed(identity(signer, authority), text or statement(ALICE).to_json(), NOW)


def since(days: int) -> int:
    return int((NOW + days * DAY).timestamp())


Forged = dict[str, SignedText | None]


def with_receipts(*receipts: Receipt) -> Forged:
    return {"alice": resigned(ALICE, receipts=receipts)}


def both_with(receipt: Receipt) -> Forged:
    """Let both owners state a receipt of all columns, each beside its own."""
    return with_receipts(OWN, receipt) | {"bob": resigned(BOB, receipts=(TESTS.receipts("bob")[0], receipt))}


STATED = statement(ALICE).to_json()
LACKING = "receipts of curator alice: one of its columns and one of all together are not there"
NOT_RIGHT = "receipts of curator alice: of all columns together it states what no test of this release has"
DIFFERENT = "test of the server: the owners state different results"

FORGERIES: dict[str, tuple[Callable[[], Forged], str]] = {
    "a missing signature": (lambda: {"bob": None}, "curator bob: its signature is missing"),
    "the server's missing": (lambda: {"cloud": None}, "server cloud: its signature is missing"),
    "another's signature": (lambda: {"alice": by(MALLORY)}, "signed by curator mallory"),
    "another authority": (lambda: {"alice": by(ALICE, OTHER_AUTHORITY)}, "curator alice"),
    "signed after its end": (lambda: {"alice": resigned(ALICE, signed_at=since(2))}, "expired on"),
    "signed before its time": (lambda: {"alice": resigned(ALICE, signed_at=since(-2))}, "valid only from"),
    "signed at no time": (lambda: {"alice": resigned(ALICE, signed_at=10**30)}, "at no possible time"),
    "another release": (lambda: {"alice": resigned(ALICE, spec_digest="0" * 64)}, "about another release"),
    "other columns": (
        lambda: {"cloud": resigned(CLOUD, published=published_columns(SPEC, DIGESTS | {"sex": bytes([7]) * 32}))},
        "the parties state different columns",
    ),
    "no receipts": (with_receipts, LACKING),
    "no receipt of all columns": (lambda: with_receipts(OWN), LACKING),
    "no receipt of its own columns": (lambda: with_receipts(TOGETHER), LACKING),
    "receipts in another order": (lambda: with_receipts(TOGETHER, OWN), LACKING),
    "a receipt twice": (lambda: with_receipts(OWN, TOGETHER, TOGETHER), LACKING),
    "another's receipt": (lambda: with_receipts(TESTS.receipts("bob")[0], TOGETHER), LACKING),
    "a receipt of the server's": (
        lambda: {"cloud": resigned(CLOUD, receipts=(TOGETHER,))},
        "receipts of a party without columns",
    ),
    "no noise": (
        lambda: with_receipts(FAILED_OWN, FAILED_TOGETHER),
        "alice's columns fail: amount (all columns): 0 canaries",
    ),
    "no noise in all columns": (
        lambda: both_with(FAILED_TOGETHER),
        "all columns together fail: amount (all columns): 0",
    ),
    "different results": (lambda: with_receipts(OWN, made_tests(SPEC, seed=2).together()), DIFFERENT),
    "results of different lists": (lambda: with_receipts(OWN, replace(TOGETHER, changes="0" * 64)), DIFFERENT),
    "too few canaries": (lambda: with_receipts(*FEW.receipts("alice")), "not of the release's 2,400"),
    "a receipt with bounds of its own": (
        lambda: with_receipts(beautified(FAILED_OWN), TOGETHER),
        "of alice's columns it states what no test",
    ),
    "bounds of their own": (lambda: both_with(beautified(FAILED_TOGETHER)), NOT_RIGHT),
    "the amount alone": (lambda: both_with(replace(TOGETHER, counts=TOGETHER.counts[:1])), NOT_RIGHT),
    "texts that move a cursor": (
        lambda: {"alice": by(ALICE, text=STATED.replace("block", "\\u001b[2Jblock"))},
        "curator alice: ",
    ),
    "no ledger": (lambda: {"alice": resigned(ALICE, ledger=None)}, "states its ledger"),
    "no statement": (lambda: {"alice": by(ALICE, text="{}")}, "curator alice: its signature is missing"),
    "a statement in another form": (
        lambda: {"alice": by(ALICE, text=f"{STATED} ")},
        "curator alice: its signature is missing",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_does_not_hold_is_named(study: Study, forgery: str) -> None:
    other, problem = FORGERIES[forgery]
    assert any(problem in line for line in failures(certificate(study, other=other()), study))


@pytest.mark.parametrize(("canaries", "holds"), [(-1, False), (0, True), (900, True), (901, False), (10**15, False)])
def test_where_the_server_samples_as_many_canaries_are_tested_as_it_can_have_published(
    study: Study, canaries: int, *, holds: bool
) -> None:
    spec = replace(SPEC, sampling=Sampling.SERVER, sample=900)
    published = max(0, min(canaries, 900))
    tests = made_tests(spec, canaries=published)
    other = {}
    for party in (ALICE, BOB):
        receipts = tuple(replace(one, canaries=canaries) for one in tests.receipts(party.name))
        other[party.name] = resigned(party, spec=spec, receipts=receipts)
    found = failures(certificate(study, spec, dict(other)), study)
    assert any(line.startswith("receipts of curator alice") for line in found) is not holds


def test_another_study_another_authority_and_too_little_noise_are_named(study: Study, study_bytes: bytes) -> None:
    honest, other_study = certificate(study), study_from_bytes(study_bytes + b"# other", "study.toml")
    (one,) = verified(honest, other_study, PEM)
    assert (one.what, one.holds) == ("study", False)
    foreign = OTHER_AUTHORITY.certificate.public_bytes(Encoding.PEM)
    lines = [line for line in verified(honest, study, foreign) if not line.holds]
    assert [line.what for line in lines] == ["authority"]
    weak = spec_with(server_replacement=2**40, canaries=2400)
    assert any("the noise is too small" in line for line in failures(certificate(study, weak), study))
    kinder = replace(honest, card=(replace(honest.card[0], faces="nothing"), *honest.card[1:]))
    assert any("another card follows from the release" in line for line in failures(kinder, study))


@pytest.mark.parametrize(("digits", "holds"), [(0, True), (1, True), (-1, True), (2, False), (-2, False)])
def test_an_epsilon_of_another_version_may_differ_by_one_in_its_last_digit(
    study: Study, digits: int, *, holds: bool
) -> None:
    honest = certificate(study)
    before, epsilon, after = re.split(r"(?<=epsilon = )([\d.]+)", honest.card[0].faces, maxsplit=1)
    other = f"{before}{Decimal(epsilon) + digits * Decimal('1e-6')}{after}"
    shown = replace(honest, card=(replace(honest.card[0], faces=other), *honest.card[1:]))
    assert [line.split(":")[0] for line in failures(shown, study)] == ([] if holds else ["privacy"])


def test_an_expired_party_signs_nothing() -> None:
    with pytest.raises(InvalidInputError, match="expired"):
        signed(identity(ALICE), "text", NOW + 2 * DAY)


def test_the_command_explains_each_line_and_fails_with_5(study: Study, study_bytes: bytes, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(study_bytes)
    (tmp_path / "ca.pem").write_bytes(PEM)
    file = tmp_path / "release.certificate"
    common = ["--study", str(tmp_path / "study.toml"), "--authority", str(tmp_path / "ca.pem")]
    file.write_text(certificate(study).to_text())
    honest = CliRunner().invoke(veiltab, ["verify", str(file), *common])
    assert honest.exit_code == 0, honest.output
    assert "Every line holds" in honest.output
    file.write_text(certificate(study, other={"bob": None}).to_text())
    lacking = CliRunner().invoke(veiltab, ["verify", str(file), *common, "--json"])
    assert lacking.exit_code == 5
    assert json.loads(lacking.output)["holds"] is False
    for content in (b"", b"\xff", b"[]", b"{}", b"nothing"):
        file.write_bytes(content)
        result = CliRunner().invoke(veiltab, ["verify", str(file), *common])
        assert isinstance(result.exception, IntegrityError)
        assert result.exception.where == str(file)


def test_without_an_authority_that_was_given_nothing_holds(study: Study, study_bytes: bytes, tmp_path: Path) -> None:
    """A forger is an authority, too, until the checker names the right one."""
    (tmp_path / "study.toml").write_bytes(study_bytes)
    file = tmp_path / "release.certificate"
    common = [str(file), "--study", str(tmp_path / "study.toml")]
    for one, code, end in (
        (certificate(study), 4, "Nothing fails, but this was not shown: authority."),
        (certificate(study, other={"bob": None}), 5, "This certificate does not hold."),
    ):
        file.write_text(one.to_text())
        shown = CliRunner().invoke(veiltab, ["verify", *common])
        assert (shown.exit_code, shown.output.startswith(f"{end} Release ")) == (code, True), shown.output
        assert "faces" not in shown.output.splitlines()[0]
        assert "Every line holds" not in shown.output
        assert f"not checked  authority: the file brings its own, SHA-256 {one.fingerprint}" in shown.output
        plain = json.loads(CliRunner().invoke(veiltab, ["verify", *common, "--json"]).output)
        lines = {line["what"]: line["holds"] for line in plain["findings"]}
        assert (plain["holds"], lines["authority"], lines["privacy"]) == (False, None, True)


def test_a_party_states_once(study: Study) -> None:
    """Of two statements of one party a reader may see the first, whatever a program checks."""
    honest = certificate(study)
    other = resigned(ALICE, signed_at=1)
    for place in (0, 1, 3):
        statements = (*honest.statements[:place], other, *honest.statements[place:])
        read = ReleaseCertificate.from_text(replace(honest, statements=statements).to_text())
        assert f"statements: {ALICE.uri} states more than once" in failures(read, study)


def test_the_statements_have_one_order(study: Study) -> None:
    honest = certificate(study)
    for statements in itertools.permutations(honest.statements):
        found = failures(replace(honest, statements=statements), study)
        assert found == (
            [] if statements == honest.statements else ["statements: they are not in the order of their parties' URIs"]
        )


def test_the_other_spelling_of_a_signature_changes_nothing_that_is_stated(study: Study) -> None:
    """Anybody makes (r, n - s) of an ECDSA signature (r, s): it is the same party's, of the same text."""
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    honest = resigned(ALICE)
    first, second = decode_dss_signature(bytes.fromhex(honest.signature))
    other = replace(honest, signature=encode_dss_signature(first, order - second).hex())
    assert other != honest
    assert failures(certificate(study, other={"alice": other}), study) == []


def test_who_was_revoked_has_not_signed(study: Study, tmp_path: Path) -> None:
    one, crl = certificate(study), tmp_path / "crl.pem"
    serials = {party_of_certificate(signed_text.certificate.encode()).serial for signed_text in one.statements}

    def line(authority: Authority, *revoked: int) -> tuple[str, bool]:
        crl.write_bytes(authority.revocation_list([], revoked, NOW).public_bytes(Encoding.PEM))
        *others, last = verified(one, study, PEM, crl)
        assert last.what == "revocation"
        assert all(found.holds for found in others)
        return last.detail, last.holds is True

    assert line(AUTHORITY, 7) == ("none of 3 signing certificates is on the list of 2030-01-15 12:00 UTC", True)
    for serial in serials:
        detail, holds = line(AUTHORITY, 7, serial)
        assert (f"the certificate {serial:x} of" in detail, holds) == (True, False)
    detail, holds = line(OTHER_AUTHORITY, *serials)
    assert ("is of another authority" in detail, holds) == (True, False)
    assert not verified(one, study, PEM, tmp_path / "none.pem")[-1].holds
    crl.write_text("no list")
    assert not verified(one, study, PEM, crl)[-1].holds
