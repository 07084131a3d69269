"""Release certificates: one file from which anybody can check, offline, what a release was and who vouches for it.

It holds the spec, from which the plan and every epsilon follow, and a signed statement of each curator and the server:
the published columns, the ledgers, and the receipts of the server's noise.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.core.canonical import canonical_json, canonical_text, read_canonical
from veiltab.common.core.spelling import escaped
from veiltab.common.errors import IntegrityError, InvalidInputError, VeiltabError
from veiltab.common.privacy.words import delta_text
from veiltab.common.release.guarantees import check_keeps_what_was_asked, epsilon_card
from veiltab.common.release.receipt import Receipt, is_right
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.statement import Statement
from veiltab.common.rpc.identity import Party, Role
from veiltab.common.rpc.revocation import check_none_revoked
from veiltab.common.rpc.signing import SignedText, signer_of
from veiltab.common.study.file import Study

_FORMAT = "veiltab release certificate 1"
_EPSILON = re.compile(r"(?:(?<== )|(?<== \())(\d+\.\d{6})\b")
"""An epsilon in what a coalition faces."""

_LAST_DIGIT = Decimal("1e-6")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """One row of an epsilon card, in words.

    Args:
        coalition: who puts what it sees together.
        faces: which epsilon.
    """

    coalition: str
    faces: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCertificate:
    """The certificate of one release.

    Args:
        kind: names the format.
        spec: of the release.
        card: who faces what, as it follows from the spec; for people who read the file.
        authority: certificate of the study's authority, PEM.
        statements: signed, of every curator and the server, in order of their URIs.
    """

    kind: str
    spec: ReleaseSpec
    card: tuple[CardRow, ...]
    authority: str
    statements: tuple[SignedText, ...]

    def to_text(self) -> str:
        """Return the file."""
        return canonical_text(self) + "\n"

    @classmethod
    def of(cls, spec: ReleaseSpec, authority: bytes, statements: Mapping[str, SignedText]) -> "ReleaseCertificate":
        """Return the certificate of a release from the statements of its parties, by URI."""
        ordered = tuple(statements[uri] for uri in sorted(statements))
        return cls(kind=_FORMAT, spec=spec, card=_card(spec), authority=_plain(authority), statements=ordered)

    @classmethod
    def from_text(cls, text: str) -> "ReleaseCertificate":
        """Read a file.

        Raises:
            IntegrityError: it is no release certificate, or not as it was written.
        """
        try:
            read = read_canonical(cls, text)
            as_written = read.kind == _FORMAT and read.to_text() == text
            as_written = as_written and read.authority == _plain(read.authority.encode())
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, VeiltabError):
            as_written = False
        if not as_written:
            raise IntegrityError("this is no release certificate, or it was altered", where="certificate")
        return read

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, hexadecimal."""
        return hashlib.sha256(self.authority.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of a verification.

    Args:
        what: what was checked.
        detail: what was found, in words.
        holds: whether it is as it must be; None if that was not checked, so that the whole does not hold either.
    """

    what: str
    detail: str
    holds: bool | None


def statement_of(one: SignedText) -> Statement:
    """Read what was signed.

    Raises:
        IntegrityError: it is no statement, or not in the canonical form.
    """
    try:
        read = read_canonical(Statement, one.text)
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, VeiltabError):
        raise IntegrityError("what was signed is no statement about a release", where="statement") from None
    if read.to_json() != one.text:
        raise IntegrityError("what was signed is not in the canonical form", where="statement")
    return read


def check_statement(one: SignedText, party: Party, spec: ReleaseSpec, authority: bytes) -> Statement:
    """Return a party's statement about a release.

    Raises:
        IntegrityError: it is another's, about another release, or not signed by a certificate that was valid then.
    """
    stated = statement_of(one)
    try:
        at = datetime.fromtimestamp(stated.signed_at, UTC)
    except (ValueError, OverflowError, OSError):
        raise IntegrityError("a statement was signed at no possible time", where=str(party)) from None
    signer = signer_of(one, authority, at)
    if signer != party or stated.party != party.uri:
        raise IntegrityError(f"the statement is signed by {signer}, not by {party}", where=str(party))
    if stated.spec_digest != spec.digest().hex():
        raise IntegrityError("the statement is about another release", where=str(party))
    return stated


def verified(
    certificate: ReleaseCertificate, study: Study, authority: bytes | None = None, revoked: Path | None = None
) -> tuple[Finding, ...]:
    """Check a release certificate against a study file; return a line for each check.

    Args:
        certificate: as it was read.
        study: the study file that the release must be of.
        authority: certificate of the study's authority, PEM, if the checker has it; without it the certificate does not
            hold, as anybody can make an authority and sign as every party.
        revoked: the authority's revocation list, PEM, if nobody whom it revokes may have signed.
    """
    findings = tuple(_findings(certificate, study, authority))
    return findings if revoked is None else (*findings, _revocation(certificate, revoked))


def _findings(certificate: ReleaseCertificate, study: Study, authority: bytes | None) -> Iterator[Finding]:
    spec = certificate.spec
    yield Finding(
        what="study",
        detail=f"the release is of study {study.id}, of exactly these bytes"
        if spec.study_digest == study.digest
        else "the release is of another study file",
        holds=spec.study_digest == study.digest,
    )
    if authority is None:
        yield unknown_authority(certificate.fingerprint)
    else:
        same = _plain(authority) == certificate.authority
        detail = "the certificates are of your authority" if same else "the certificates are of another authority"
        yield Finding(what="authority", detail=detail, holds=same)
    yield _kept(certificate)
    statements: dict[Party, Statement] = {}
    stated_by = [_stated_party(one) for one in certificate.statements]
    by_uri = dict(zip(stated_by, certificate.statements, strict=True))
    if len(by_uri) < len(stated_by):
        twice = max(stated_by, key=stated_by.count)
        yield Finding(what="statements", detail=f"{twice} states more than once", holds=False)
    elif stated_by != sorted(stated_by):
        yield Finding(what="statements", detail="they are not in the order of their parties' URIs", holds=False)
    for party in signers(study):
        one = by_uri.pop(party.uri, None)
        try:
            stated = None if one is None else check_statement(one, party, spec, certificate.authority.encode())
        except IntegrityError as error:
            yield Finding(what=str(party), detail=error.problem, holds=False)
            continue
        if stated is None:
            yield Finding(what=str(party), detail="its signature is missing", holds=False)
        else:
            statements[party] = stated
            yield _signed(party, stated)
    for uri in by_uri:
        yield Finding(what=uri or "statement", detail="a statement of nobody who takes part in releases", holds=False)
    owners = {column.owner for column in spec.columns}
    by_party = {
        stated.published for party, stated in statements.items() if party.role is Role.SERVER or party.name in owners
    }
    if len(by_party) > 1:
        yield Finding(what="published columns", detail="the parties state different columns", holds=False)
    elif by_party:
        (published,) = by_party
        whole = tuple(one.attribute for one in published) == tuple(c.attribute for c in spec.columns)
        listed = ", ".join(f"{one.attribute} {one.digest[:16]}..." for one in published)
        yield Finding(what="published columns", detail=f"all parties state the same: {listed}", holds=whole)
    yield from _receipts(spec, statements)


def unknown_authority(fingerprint: str) -> Finding:
    """Return the line of a file that was checked by nothing but the authority that it brings."""
    return Finding(
        what="authority",
        detail=f"the file brings its own, SHA-256 {fingerprint}, and anybody can make one. Name the certificate of the"
        " study's authority that you have from elsewhere (ca.pem)",
        holds=None,
    )


def _revocation(certificate: ReleaseCertificate, revoked: Path) -> Finding:
    signed_by = (one.certificate for one in certificate.statements)
    try:
        detail = check_none_revoked(revoked, certificate.authority.encode(), signed_by)
    except VeiltabError as error:
        return Finding(what="revocation", detail=escaped(str(error)), holds=False)
    return Finding(what="revocation", detail=detail, holds=True)


def signers(study: Study) -> tuple[Party, ...]:
    """Return who signs the release certificates of a study: every curator, and the server."""
    curators = [Party(study=study.id, role=Role.CURATOR, name=one.name) for one in study.curators]
    return (*curators, Party(study=study.id, role=Role.SERVER, name=study.server.name))


def _kept(certificate: ReleaseCertificate) -> Finding:
    spec = certificate.spec
    asked = f"epsilon {spec.epsilon}" + ("" if spec.delta is None else f" at delta {delta_text(spec.delta)}")
    try:
        check_keeps_what_was_asked(spec)
    except InvalidInputError as error:
        return Finding(what="privacy", detail=f"{asked} was asked for, but {error.problem}", holds=False)
    card = _card(spec)
    rows = "; ".join(f"{row.coalition}: {row.faces}" for row in card)
    if not _is_same(card, certificate.card):
        return Finding(
            what="privacy", detail=f"another card follows from the spec than the file says. {rows}", holds=False
        )
    return Finding(what="privacy", detail=f"{asked} was asked for and is kept. {rows}", holds=True)


def _card(spec: ReleaseSpec) -> tuple[CardRow, ...]:
    return tuple(CardRow(coalition=coalition, faces=faces) for coalition, faces in epsilon_card(spec).rows_in_full())


def _is_same(computed: tuple[CardRow, ...], stated: tuple[CardRow, ...]) -> bool:
    """Whether two cards say the same; an epsilon of another version may differ by one in its last digit."""
    # Texts that alternate with epsilons.
    ours, theirs = (
        _EPSILON.split(canonical_json([[row.coalition, row.faces] for row in card])) for card in (computed, stated)
    )
    if ours[::2] != theirs[::2]:
        return False
    return all(
        abs(Decimal(one) - Decimal(other)) <= _LAST_DIGIT for one, other in zip(ours[1::2], theirs[1::2], strict=True)
    )


def _stated_party(one: SignedText) -> str:
    try:
        return statement_of(one).party
    except IntegrityError:
        return ""


def _signed(party: Party, stated: Statement) -> Finding:
    at = datetime.fromtimestamp(stated.signed_at, UTC)
    ledger = ""
    if stated.ledger is not None:
        ledger = f"; its ledger then had {stated.ledger.length} entries, head {stated.ledger.digest[:16]}..."
    return Finding(what=str(party), detail=f"signed on {at:%Y-%m-%d %H:%M:%S} UTC{ledger}", holds=True)


def _receipts(spec: ReleaseSpec, statements: Mapping[Party, Statement]) -> Iterator[Finding]:
    owners = {column.owner for column in spec.columns}
    joint = set()
    for party, stated in statements.items():
        what = f"receipts of {party}"
        if (party.role is Role.CURATOR) != (stated.ledger is not None):
            yield Finding(what=str(party), detail="a curator, and nobody else, states its ledger", holds=False)
        if party.role is not Role.CURATOR or party.name not in owners:
            if stated.receipts:
                yield Finding(what=what, detail="receipts of a party without columns", holds=False)
        elif [one.tester for one in stated.receipts] != [party.name, ""]:
            yield Finding(what=what, detail="one of its columns and one of all together are not there", holds=False)
        elif spec.canaries == 0:
            yield Finding(what=what, detail="no canaries: nothing shows that the server added its noise", holds=True)
        else:
            joint.add(stated.receipts[1])
            yield _tests(what, spec, stated.receipts)
    if joint:
        one, *others = joint
        detail = f"{one.sentence()}. This shows nothing if a curator told the server the places of the canaries"
        if others:
            detail = "the owners state different results"
        yield Finding(what="tests of all columns", detail=detail, holds=not others)


def _tests(what: str, spec: ReleaseSpec, receipts: tuple[Receipt, ...]) -> Finding:
    if not all(_is_of_all_canaries(one, spec) for one in receipts):
        # What follows from a number takes as long as the number is large.
        return Finding(what=what, detail=f"not of the release's {spec.canaries:,} canaries", holds=False)
    for one in receipts:
        if not is_right(one, spec):
            return Finding(what=what, detail=f"of {one.where} it states what no test of this release has", holds=False)
        if not one.passed:
            return Finding(what=what, detail=one.sentence(), holds=False)
    return Finding(what=what, detail=receipts[0].sentence(), holds=True)


def _is_of_all_canaries(receipt: Receipt, spec: ReleaseSpec) -> bool:
    """Whether a test had every canary of the release; where the server samples, as many as it may have published."""
    if spec.sampling.is_by_server:
        return 0 <= receipt.canaries <= spec.published_rows
    return receipt.canaries == spec.canaries


def _plain(pem: bytes) -> str:
    """Return certificates in the plain spelling.

    Raises:
        InvalidInputError: these are none.
    """
    try:
        read = x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion):
        raise InvalidInputError("this is no PEM certificate", where="authority") from None
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in read)


def to_dict(certificate: ReleaseCertificate, findings: tuple[Finding, ...]) -> dict[str, object]:
    """Return a verification as plain data for JSON."""
    return {
        "holds": all(one.holds for one in findings),
        "release_id": certificate.spec.release_id,
        "authority": certificate.fingerprint,
        "findings": [{"what": one.what, "detail": one.detail, "holds": one.holds} for one in findings],
        "spec": json.loads(certificate.spec.to_json()),
    }
