"""Checks release certificates and the statements in them, offline, a line for each check."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from veiltab.common.core.texts.canonical import canonical_json, read_canonical
from veiltab.common.core.texts.spelling import escaped
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import IntegrityError, NotFoundError, VeiltabError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.guarantees import keeps_what_was_asked, release_card
from veiltab.common.release.receipts.canary_plan import HowTested, server_test
from veiltab.common.release.receipts.pooled_receipts import pooled_counts
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import is_right
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.release_certificate import CardRow, ReleaseCertificate, card_rows, plain_pem
from veiltab.common.rpc.certificates.statement import Statement
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.revocation import check_none_revoked
from veiltab.common.rpc.parties.signing import SignedText, signer_of
from veiltab.common.study.file import Study

_EPSILON = re.compile(r"(?:(?<== )|(?<== \())(\d+\.\d{6})\b")
"""An epsilon in what a coalition faces."""

_LAST_DIGIT = Decimal("1e-6")

_AUTHORITY = "authority"
_TEST = "test of the server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of a verification.

    Args:
        detail: what was found, in words.
        holds: whether it is as it must be; None if that was not checked, so that the whole does not hold either.
        table: number of the table of several that is signed and complete; None if the line is about another thing.
    """

    what: str
    detail: str
    holds: bool | None
    table: int | None = None


@lru_cache(maxsize=64)
def statement_of(signed_text: SignedText) -> Statement:
    """Read what was signed.

    Raises:
        IntegrityError: it is not a statement, or not in the canonical form.
    """
    try:
        statement = read_canonical(Statement, signed_text.text)
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, VeiltabError):
        raise IntegrityError("what was signed is not a statement about a release", where="statement") from None
    if statement.to_json() != signed_text.text:
        raise IntegrityError("what was signed is not in the canonical form", where="statement")
    return statement


def check_statement(signed_text: SignedText, party: Party, digest: bytes, authority: bytes) -> Statement:
    """Return a party's statement about a release, or about a table, whose spec has this digest.

    Raises:
        IntegrityError: it is another's, about another release, or not signed by a certificate that was valid then.
    """
    statement = statement_of(signed_text)
    try:
        at = datetime.fromtimestamp(statement.signed_at, UTC)
    except (ValueError, OverflowError, OSError):
        raise IntegrityError("a statement was signed at no possible time", where=str(party)) from None
    signer = signer_of(signed_text, authority, at)
    if signer != party or statement.party != party.uri:
        raise IntegrityError(f"the statement is signed by {signer}, not by {party}", where=str(party))
    if statement.spec_digest != digest.hex():
        raise IntegrityError("the statement is about another release", where=str(party))
    return statement


def verified(
    certificate: ReleaseCertificate,
    study: Study,
    authority: bytes | None = None,
    revoked: Path | None = None,
    *,
    untested: bool = False,
) -> tuple[Finding, ...]:
    """Check a release certificate against a study file; return a line for each check.

    Args:
        study: the study file that the release must be of.
        authority: certificate of the study's authority, PEM, if the checker has it; without it the certificate does not
            hold, as anybody can make an authority and sign as every party.
        revoked: the authority's revocation list, PEM, if nobody whom it revokes may have signed.
        untested: whether a release holds too whose server was tested too little, or not at all.
    """
    findings = tuple(
        replace(one, holds=True) if untested and one.holds is None and one.what != _AUTHORITY else one
        for one in _findings(certificate, study, authority)
    )
    return findings if revoked is None else (*findings, _revocation(certificate, revoked))


def _findings(certificate: ReleaseCertificate, study: Study, authority: bytes | None) -> Iterator[Finding]:
    release = certificate.spec
    is_same = release.study_digest == study.digest
    exact = f"the release is of study {study.id}, of exactly these bytes"
    other = "the release is of another study file; give --study the one that it is of, to check the rest"
    yield Finding(what="study", detail=exact if is_same else other, holds=is_same)
    if not is_same:
        return
    if authority is None:
        yield unknown_authority(certificate.fingerprint)
    else:
        same = plain_pem(authority) == certificate.authority
        detail = "the certificates are of your authority" if same else "the certificates are of another authority"
        yield Finding(what=_AUTHORITY, detail=detail, holds=same)
    yield _privacy(certificate)
    issuer = certificate.authority.encode()
    if release.only_table is not None:
        yield from _table(release.only_table, certificate.statements, study, issuer)
    else:
        yield from _tables(release, certificate, study, issuer)


def _tables(release: ReleaseSpec, certificate: ReleaseCertificate, study: Study, authority: bytes) -> Iterator[Finding]:
    """Check that the tables in the file are those that every curator states, and each of them."""
    statements: dict[Party, Statement] = {}
    curators = signers(study)[:-1]
    yield from _signatures(release.digest(), certificate.statements, curators, authority, statements)
    for party, statement in statements.items():
        if statement.ledger is None or statement.published or statement.receipts:
            yield Finding(what=str(party), detail="of all tables a curator states which, and its ledger", holds=False)
    yield _all_there(release, certificate, {statement.tables for statement in statements.values()})
    joint = []
    for table in certificate.tables:
        try:
            spec = release.table(table.number)
        except NotFoundError:
            yield Finding(what=f"table {table.number}", detail="the release has no such table", holds=False)
            continue
        name = f"table {table.number} ({', '.join(column.attribute for column in spec.columns)})"
        tables = tuple(_table(spec, table.statements, study, authority))
        wrong = [one for one in tables if one.holds is False]
        yield from (Finding(what=f"{name}: {one.what}", detail=one.detail, holds=False) for one in wrong)
        if not wrong:
            signed = f"signed by {', '.join(map(str, signers(study)))}, who state the same columns"
            (tested,) = (one for one in tables if one.what == _TEST)
            detail = f"{signed}; {tested.detail}"
            yield Finding(what=name, detail=detail, holds=tested.holds, table=table.number)
            joint += _joint_receipts(table.statements)
    if joint:
        yield _pooled(joint)


def _all_there(release: ReleaseSpec, certificate: ReleaseCertificate, lists: set[tuple[int, ...]]) -> Finding:
    """Compare the tables in the file with those that the curators state."""
    here = tuple(table.number for table in certificate.tables)
    first = len(release.tables)
    problem = ""
    if len(lists) != 1:
        problem = "the curators state different tables" if lists else "no curator states which tables there are"
    else:
        (numbers,) = lists
        missing, foreign = sorted(set(numbers) - set(here)), sorted(set(here) - set(numbers))
        if missing or foreign:
            groups = {"missing from the file": missing, "in the file, and in no curator's list": foreign}
            problem = "; ".join(
                f"{what}: table {', '.join(map(str, which))}" for what, which in groups.items() if which
            )
        elif list(here) != sorted(set(here)):
            problem = "a table stands twice, or not in its place"
        elif sum(number >= first for number in here) > release.repeats:
            problem = "more tables ran a second time than the release allows"
        elif not here:
            problem = "there is no table"
    if problem:
        return Finding(what="tables", detail=problem, holds=False)
    again = sum(number >= first for number in here)
    ran = f"{len(here) - again} of {first} planned"
    ran += f", {again} of at most {release.repeats} a second time" if release.repeats else ""
    return Finding(
        what="tables", detail=f"none is missing of the {len(here)} that every curator states: {ran}", holds=True
    )


def _joint_receipts(statements: Iterable[SignedText]) -> list[Receipt]:
    """Return the receipt of all columns together of a table whose statements hold."""
    receipts = (receipt for one in statements for receipt in statement_of(one).receipts if not receipt.tester)
    return list(receipts)[:1]


def _pooled(receipts: list[Receipt]) -> Finding:
    refused = [one for one in pooled_counts(receipts) if not one.passed]
    detail = refused[0].sentence() if refused else f"the tests accept the sums over {len(receipts)} tables"
    return Finding(what="tests of all tables", detail=detail, holds=not refused)


def _signatures(
    digest: bytes,
    signed: Iterable[SignedText],
    parties: Iterable[Party],
    authority: bytes,
    statements: dict[Party, Statement],
) -> Iterator[Finding]:
    """Check who signed what about a release or a table, by its digest, and put what holds into `statements`."""
    signed = tuple(signed)
    stated_by = [_stated_party(signed_text) for signed_text in signed]
    by_uri = dict(zip(stated_by, signed, strict=True))
    if len(by_uri) < len(stated_by):
        twice = max(stated_by, key=stated_by.count)
        yield Finding(what="statements", detail=f"{twice} states more than once", holds=False)
    elif stated_by != sorted(stated_by):
        yield Finding(what="statements", detail="they are not in the order of their parties' URIs", holds=False)
    for party in parties:
        signed_text = by_uri.pop(party.uri, None)
        try:
            statement = None if signed_text is None else check_statement(signed_text, party, digest, authority)
        except IntegrityError as error:
            yield Finding(what=str(party), detail=error.problem, holds=False)
            continue
        if statement is None:
            yield Finding(what=str(party), detail="its signature is missing", holds=False)
        else:
            statements[party] = statement
            yield _signed(party, statement)
    for uri in by_uri:
        yield Finding(what=uri or "statement", detail="a statement of nobody who takes part in releases", holds=False)


def _table(spec: TableSpec, signed: Iterable[SignedText], study: Study, authority: bytes) -> Iterator[Finding]:
    """Check the statements about a table."""
    statements: dict[Party, Statement] = {}
    yield from _signatures(spec.digest(), signed, signers(study), authority, statements)
    if any(statement.tables for statement in statements.values()):
        yield Finding(what="statements", detail="they list tables of a release that has one", holds=False)
    owners = spec.owners
    by_party = {one.published for party, one in statements.items() if party.role is Role.SERVER or party.name in owners}
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
        what=_AUTHORITY,
        detail=f"the file brings its own, SHA-256 {fingerprint}, and anybody can make one. Name the certificate of the"
        " study's authority that you have from elsewhere (ca.pem)",
        holds=None,
    )


def _revocation(certificate: ReleaseCertificate, revoked: Path) -> Finding:
    signed_by = (one.certificate for one in certificate.signed_texts())
    try:
        detail = check_none_revoked(revoked, certificate.authority.encode(), signed_by)
    except VeiltabError as error:
        return Finding(what="revocation", detail=escaped(str(error)), holds=False)
    return Finding(what="revocation", detail=detail, holds=True)


def signers(study: Study) -> tuple[Party, ...]:
    """Return who signs the release certificates of a study: every curator, and the server."""
    curators = [Party(study=study.id, role=Role.CURATOR, name=one.name) for one in study.curators]
    return (*curators, Party(study=study.id, role=Role.SERVER, name=study.server.name))


def _privacy(certificate: ReleaseCertificate) -> Finding:
    release = certificate.spec
    charge = f"epsilon {release.epsilon}" + (f" at delta {delta_text(release.delta)}" if release.delta else "")
    if not keeps_what_was_asked(release):
        return Finding(what="privacy", detail=f"{charge} was asked for, but the noise is too small for it", holds=False)
    rows = ". ".join(f"{bound.name}: {bound.limit}" for bound in release_card(release).bounds)
    if not _is_same(card_rows(release), certificate.card):
        return Finding(
            what="privacy", detail=f"another card follows from the release than the file says. {rows}", holds=False
        )
    return Finding(what="privacy", detail=f"{charge} was asked for and is kept. {rows}", holds=True)


def _is_same(computed: tuple[CardRow, ...], other: tuple[CardRow, ...]) -> bool:
    """Whether two cards say the same; an epsilon of another version may differ by one in its last digit."""
    # Texts that alternate with epsilons.
    ours, theirs = (
        _EPSILON.split(canonical_json([[row.coalition, row.faces] for row in card])) for card in (computed, other)
    )
    if ours[::2] != theirs[::2]:
        return False
    return all(
        abs(Decimal(one) - Decimal(other)) <= _LAST_DIGIT for one, other in zip(ours[1::2], theirs[1::2], strict=True)
    )


def _stated_party(signed_text: SignedText) -> str:
    try:
        return statement_of(signed_text).party
    except IntegrityError:
        return ""


def _signed(party: Party, statement: Statement) -> Finding:
    at = datetime.fromtimestamp(statement.signed_at, UTC)
    ledger = ""
    if statement.ledger is not None:
        ledger = f"; its ledger then ended with entry {statement.ledger.length}, head {statement.ledger.digest[:16]}..."
    return Finding(what=str(party), detail=f"signed on {at:%Y-%m-%d %H:%M:%S} UTC{ledger}", holds=True)


def _receipts(spec: TableSpec, statements: Mapping[Party, Statement]) -> Iterator[Finding]:
    owners = spec.owners
    joint = set()
    for party, statement in statements.items():
        name = f"receipts of {party}"
        if (party.role is Role.CURATOR) != (statement.ledger is not None):
            yield Finding(what=str(party), detail="a curator, and nobody else, states its ledger", holds=False)
        if party.role is not Role.CURATOR or party.name not in owners:
            if statement.receipts:
                yield Finding(what=name, detail="receipts of a party without columns", holds=False)
        elif [one.tester for one in statement.receipts] != [party.name, ""]:
            yield Finding(what=name, detail="one of its columns and one of all together are not there", holds=False)
        else:
            joint.add(statement.receipts[1])
            yield _tests(name, spec, statement.receipts)
    if not joint:
        return
    test, (one, *others) = server_test(spec), joint
    if others:
        yield Finding(what=_TEST, detail="the owners state different results", holds=False)
    elif test.tested is HowTested.NOT:
        yield Finding(what=_TEST, detail=test.sentence, holds=None)
    else:
        detail = f"{one.sentence()}; {test.sentence}. This shows nothing if a curator told the server the places"
        is_enough = True if test.tested is HowTested.ENOUGH else None
        yield Finding(what=_TEST, detail=f"{detail} of the canaries", holds=is_enough)


def _tests(name: str, spec: TableSpec, receipts: tuple[Receipt, ...]) -> Finding:
    if not all(_is_of_all_canaries(one, spec) for one in receipts):
        # What follows from a number takes as long as the number is large.
        return Finding(what=name, detail=f"not of the release's {spec.canaries:,} canaries", holds=False)
    for one in receipts:
        if not is_right(one, spec):
            return Finding(what=name, detail=f"of {one.where} it states what no test of this release has", holds=False)
        if not one.passed:
            return Finding(what=name, detail=one.sentence(), holds=False)
    return Finding(what=name, detail=receipts[0].sentence(), holds=True)


def _is_of_all_canaries(receipt: Receipt, spec: TableSpec) -> bool:
    """Whether a test had every canary of the release; where the server samples, as many as it may have published."""
    if spec.sampling.is_by_server:
        return 0 <= receipt.canaries <= spec.published_rows
    return receipt.canaries == spec.canaries


def to_dict(certificate: ReleaseCertificate, findings: tuple[Finding, ...]) -> dict[str, object]:
    """Return a verification as plain data for JSON."""
    return {
        "holds": all(one.holds for one in findings),
        "release_id": certificate.spec.release_id,
        "tables": len(certificate.tables) or 1,
        "authority": certificate.fingerprint,
        "findings": findings,
        "spec": json.loads(certificate.spec.to_json()),
        "card": [bound.as_dict() for bound in release_card(certificate.spec).bounds],
    }
