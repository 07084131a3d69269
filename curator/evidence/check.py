"""Checks an evidence file: signature, digests, the chains of ledger and audit log, and that all of it agrees.

Every check is one line of the result. What cannot be read fails its line. After a signature or a digest that
does not hold nothing else is read; else the other lines are still checked.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from veiltab.common.core.texts.spelling import escaped
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError, VeiltabError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import is_right
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.checkpoint import read_note
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import (
    Finding,
    check_statement,
    statement_of,
    unknown_authority,
    verified,
)
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.revocation import check_none_revoked
from veiltab.common.rpc.parties.signing import SignedText, signer_of
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.audit.log import AuditEntry, AuditHead
from veiltab.curator.budget.entries import GENESIS, covered_audit_head, linked
from veiltab.curator.evidence.files import (
    AUDIT,
    AUTHORITY,
    CERTIFICATES,
    DAMAGED,
    INDEX,
    LEDGER,
    PAGE,
    POLICY,
    RELEASES,
    SIGNATURE,
    STATEMENTS,
    STUDY,
    WITNESSED,
    EvidenceIndex,
    asked_under_text,
    check_archive,
    read_lines,
    read_text,
)
from veiltab.curator.evidence.ledger_comparison import View, compared, view_in_statement
from veiltab.curator.evidence.replay import AuditReplay

_MOST_BYTES = 2**32
"""Most bytes of all files, once they are unpacked."""

_BLOCK = 2**20
_CLOCKS_APART = timedelta(minutes=5)
_NEEDED = {STUDY, AUTHORITY, LEDGER, AUDIT, RELEASES, STATEMENTS, WITNESSED, PAGE}
_BEFORE_ALL = {"signature", "files"}
"""Lines that must hold before anything else is read: until then anybody may have written it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFindings:
    """What checking an evidence file found.

    Args:
        index: the index, as it was signed.
        findings: a line for each check.
        ledger: digest of each entry of the ledger, by its number, as far as its chain is whole.
        releases: id of the release of each entry, but for tables that the curator released alone.
        views: what it holds of ledgers: checkpoints of others that the curator cosigned, statements in certificates.
    """

    index: EvidenceIndex
    findings: tuple[Finding, ...]
    ledger: Mapping[int, str] = field(default_factory=dict)
    releases: Mapping[int, str] = field(default_factory=dict)
    views: tuple[View, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every line was checked and holds."""
        return all(one.holds for one in self.findings)

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "holds": self.holds,
            "party": self.index.party,
            "made_at": self.index.made_at,
            "made_by": self.index.made_by,
            "findings": self.findings,
        }


def check_evidence(
    path: Path, authority: bytes | None, study: Study | None, revoked: Path | None = None
) -> EvidenceFindings:
    """Check an evidence file.

    Args:
        authority: certificate of the study's authority, PEM, if the checker has it; without it the other lines are
            checked with that of the file, and the evidence does not hold.
        study: the study file that it must be of, if the checker has it.
        revoked: the authority's revocation list, PEM, if nobody whom it revokes may have signed.

    Raises:
        IntegrityError: it is not an evidence file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(path, archive, _MOST_BYTES)
            index = EvidenceIndex.from_text(read_text(archive, INDEX))
            check = _Check(archive=archive, index=index, authority=authority, study=study, revoked=revoked)
            findings = tuple(check.findings())
            return EvidenceFindings(
                index=index,
                findings=findings,
                ledger=check.ledger_heads,
                releases=check.ledger_releases,
                views=tuple(check.views),
            )
    except VeiltabError:
        raise
    except Exception:  # noqa: BLE001 - whatever a library raises for what a stranger made
        raise IntegrityError("this is not an evidence file, or it is damaged", where=str(path)) from None


@dataclass(slots=True, kw_only=True)
class _Check:
    archive: zipfile.ZipFile
    index: EvidenceIndex
    authority: bytes | None
    study: Study | None
    revoked: Path | None
    replay: AuditReplay = field(default_factory=AuditReplay)
    audit_heads: dict[int, str] = field(default_factory=dict)
    covered: dict[int, AuditHead] = field(default_factory=dict)
    ledger_heads: dict[int, str] = field(default_factory=dict)
    ledger_releases: dict[int, str] = field(default_factory=dict)
    signing_certificates: set[str] = field(default_factory=set)
    views: list[View] = field(default_factory=list)

    def findings(self) -> Iterator[Finding]:
        fingerprint = hashlib.sha256(self._issuer).hexdigest()
        if self.authority is None:
            yield unknown_authority(fingerprint)
        else:
            yield Finding(what="authority", detail=f"yours, SHA-256 {fingerprint}", holds=True)
        checks: tuple[tuple[str, Callable[[], str]], ...] = (
            ("signature", self._signature),
            ("files", self._files),
            ("ledger", self._ledger),
            ("audit log", self._audit),
            ("study", self._study),
            ("ledger and audit log", self._cover),
            ("policy", self._policy),
            ("decisions", self._decisions),
            ("statements", self._statements),
            ("certificates", self._certificates),
            ("checkpoints", self._checkpoints),
            *(() if self.revoked is None else (("revocation", partial(self._revocation, self.revoked)),)),
        )
        for what, check in checks:
            finding = _finding(what, check)
            yield finding
            if what in _BEFORE_ALL and not finding.holds:
                return

    @property
    def _party(self) -> Party:
        return Party.from_uri(self.index.party)

    @property
    def _issuer(self) -> bytes:
        return read_text(self.archive, AUTHORITY).encode() if self.authority is None else self.authority

    def _signature(self) -> str:
        plain = json.loads(read_text(self.archive, SIGNATURE))
        signed = SignedText(text=read_text(self.archive, INDEX), **plain)
        at = datetime.fromtimestamp(self.index.made_at, UTC)
        if at > datetime.now(UTC) + _CLOCKS_APART:
            raise IntegrityError(f"it is signed in the future, on {at:%Y-%m-%d %H:%M:%S} UTC")
        signer = signer_of(signed, self._issuer, at)
        if signer != self._party or signer.role is not Role.CURATOR:
            raise IntegrityError(f"the index is signed by {signer}, and says that it is of {self.index.party}")
        self.signing_certificates.add(signed.certificate)
        return f"{signer} signed the index on {at:%Y-%m-%d %H:%M:%S} UTC; {self.index.made_by} exported it"

    def _files(self) -> str:
        listed = {one.name: one.sha256 for one in self.index.files}
        there = set(self.archive.namelist()) - {INDEX, SIGNATURE}
        if missing := (set(listed) | _NEEDED) - there:
            raise IntegrityError(f"missing: {', '.join(sorted(missing))}")
        if more := there - set(listed):
            raise IntegrityError(f"not in the index: {', '.join(sorted(more))}")
        sizes = {one.filename: one.file_size for one in self.archive.infolist()}
        # Nothing of a file that unpacks to more than was signed is unpacked.
        altered = [one.name for one in self.index.files if sizes[one.name] != one.size]
        altered = altered or [name for name, digest in listed.items() if self._digest(name) != digest]
        if altered:
            raise IntegrityError(f"altered: {', '.join(sorted(altered))}")
        return f"{len(listed)} files are as the index says"

    def _digest(self, name: str) -> str:
        digest = hashlib.sha256()
        try:
            with self.archive.open(name) as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        except DAMAGED:
            return "unreadable"
        return digest.hexdigest()

    def _study(self) -> str:
        content = read_text(self.archive, STUDY).encode()
        study = study_from_bytes(content, STUDY)
        study.curator(self._party.name)
        if study.id != self._party.study:
            raise IntegrityError("the study file is of another study")
        if self.study is not None and self.study.digest != study.digest:
            raise IntegrityError("the study file is another than yours")
        asked_under = self._asked_under(study.digest)
        yours = "" if self.study is None else ": your study file"
        return f"study {study.id}, with curator {self._party.name}{yours}; {asked_under}"

    def _asked_under(self, digest: str) -> str:
        """Compare the study file with the one that was served last, or that the newest request was made under."""
        rows = [(one["created"], one["study_digest"]) for one in map(json.loads, read_lines(self.archive, RELEASES))]
        text = asked_under_text((one for _, one in rows), digest)
        if self.replay.study:
            if self.replay.study != digest:
                raise IntegrityError(f"the curator served another version of the study file last; {text}")
            return text
        digests = [(created, one) for created, one in rows if one and created >= (self.index.since or 0)]
        if digests and (max(digests)[0], digest) not in digests:
            raise IntegrityError(f"the newest request was made under another version of the study file; {text}")
        return text

    def _ledger(self) -> str:
        head, number = GENESIS, 0
        for number, line in enumerate(read_lines(self.archive, LEDGER), start=1):
            place, release_id, entry, *_ = json.loads(line)
            if place != number:
                raise IntegrityError(f"the line of entry {number} is that of another")
            head = linked(head, line)
            self.ledger_heads[number] = head.hex()
            self.ledger_releases[number] = release_id
            if (audit := covered_audit_head(json.loads(entry))) is not None:
                self.covered[number] = audit
        if LedgerHead(length=number, digest=head.hex()) != self.index.ledger:
            raise IntegrityError("the chain does not end where the index says: it was altered or cut off")
        return f"the chain is whole to entry {number}, head {head.hex()[:16]}..."

    def _audit(self) -> str:
        before = self.index.audit_before
        head = AuditHead(length=before.length, digest=bytes.fromhex(before.digest))
        lengths = {one.length for one in self.covered.values()}
        self.audit_heads[head.length] = before.digest
        self.replay.since = (self.index.since or 1) if before.length else 1
        for line in read_lines(self.archive, AUDIT):
            entry, head = AuditEntry.from_line(line), head.after(line)
            if entry.number != head.length:
                raise IntegrityError(f"the line of entry {head.length} is that of another")
            if head.length in lengths:
                self.audit_heads[head.length] = head.digest.hex()
            self.replay.add(entry)
        if LedgerHead(length=head.length, digest=head.digest.hex()) != self.index.audit:
            raise IntegrityError("the chain does not end where the index says: it was altered or cut off")
        return f"entries {before.length + 1} to {head.length}; the chain is whole, head {head.digest.hex()[:16]}..."

    def _cover(self) -> str:
        """Compare the chains where one covers the other."""
        first = self.index.audit_before.length
        for number, head in self.covered.items():
            if head.length < first:
                continue  # before what the file has of the log
            if self.audit_heads.get(head.length) != head.digest.hex():
                raise IntegrityError(f"charge {number} covers another audit log, up to its entry {head.length}")
            if number not in self.replay.charges:
                raise IntegrityError(f"charge {number} is not in the audit log")
        for number, digest in self.replay.charges.items():
            if self.ledger_heads.get(number) != digest:
                raise IntegrityError(f"the audit log has another charge {number} than the ledger")
        return f"{len(self.replay.charges)} charges stand in both, and each covers the log before it"

    def _policy(self) -> str:
        """Compare the policy file with the one that the curator read last."""
        loaded, is_there = self.replay.policy, POLICY in self.archive.namelist()
        if loaded is None:
            return "none was read by a curator within what the file has of the audit log"
        if is_there != (loaded["file"] is not None):
            raise IntegrityError("the file has no policy, and one was read" if not is_there else "no policy was read")
        if not is_there:
            return "none: a person decides"
        if self.index.policy != loaded["sha256"]:
            raise IntegrityError("the policy file is another than the one that the curator read last")
        return f"it is what the curator read last (rules: {loaded['rules']})"

    def _decisions(self) -> str:
        """Compare the requests, approvals, decisions and ends with the audit log, both ways."""
        rows, decisions, earlier = set(), 0, 0
        for plain in map(json.loads, read_lines(self.archive, RELEASES)):
            earlier += not self.replay.check(plain)
            decisions += len(plain["decisions"])
            rows.add(plain["release"])
        if missing := self.replay.releases - rows:
            raise IntegrityError(f"release {min(missing)}: it is in the audit log, and not among the requests")
        older = f"; {earlier} requests are older than the log in the file" if earlier else ""
        return f"{decisions} decisions are as the audit log recorded them" + older

    def _statements(self) -> str:
        releases = set()
        for plain in map(json.loads, read_lines(self.archive, STATEMENTS)):
            spec = TableSpec.from_json(plain["spec"])
            signed = SignedText(**{name: plain[name] for name in ("text", "signature", "certificate")})
            statement = check_statement(signed, self._party, spec.digest(), self._issuer)
            if bool(spec.columns_of(self._party.name)) != bool(statement.receipts):
                raise IntegrityError(
                    f"release {spec.release_id}: a curator with columns, and no other, tests the server"
                )
            if statement.receipts and not _are_passed(statement.receipts, spec, self._party.name):
                raise IntegrityError(f"release {spec.release_id}: the server did not pass this curator's test")
            releases.add(spec.release_id)
            self.signing_certificates.add(signed.certificate)
        return f"{len(releases)} signed statements about releases"

    def _certificates(self) -> str:
        study = study_from_bytes(read_text(self.archive, STUDY).encode(), STUDY)
        names = [name for name in self.archive.namelist() if name.startswith(CERTIFICATES)]
        untested = 0
        for name in names:
            certificate = ReleaseCertificate.from_text(read_text(self.archive, name))
            findings = verified(certificate, study, self._issuer)
            _check_none_fails(name, findings)
            untested += not all(one.holds for one in findings)
            self.signing_certificates.update(one.certificate for one in certificate.signed_texts())
            self.views += filter(None, map(view_in_statement, map(statement_of, certificate.signed_texts())))
        weak = f"; in {untested} of them the server was tested too little, or not at all" if untested else ""
        return f"{len(names)} release certificates, and no line of them fails{weak}"

    def _checkpoints(self) -> str:
        """Check what the curator holds of the others' ledgers: notes that they signed and it cosigned."""
        for number, plain in enumerate(map(json.loads, read_lines(self.archive, WITNESSED)), start=1):
            note = read_note(plain["note"], plain["certificate"], plain["cosigner"], self._issuer)
            if note.witness != self._party or note.checkpoint.party == self._party:
                raise IntegrityError(f"line {number} is not a checkpoint of another that this curator cosigned")
            self.views.append(View.of(note))
            self.signing_certificates |= {plain["certificate"], plain["cosigner"]}
        parties = len({note.party for note in self.views})
        return (
            f"{len(self.views)} of ledgers of {parties} curators; --beside compares them with those curators' evidence"
        )

    def _revocation(self, revoked: Path) -> str:
        return check_none_revoked(revoked, self._issuer, self.signing_certificates)


def check_beside(one: EvidenceFindings, other: EvidenceFindings) -> Iterator[Finding]:
    """Yield whether each of two curators' ledgers is what the evidence of the other one shows of it.

    Nothing is compared with a file that is not of its curator, or whose chain is not whole: that is a line of its own.
    """
    names = [escaped(each.index.party) for each in (one, other)]
    if failed := [each.what for each in other.findings if each.holds is False]:
        yield Finding(what=f"evidence of {names[1]}", detail=f"does not hold: {', '.join(failed)}", holds=False)
        return
    for own, witness, name in ((one, other, names[1]), (other, one, names[0])):
        yield compared(own.index.party, own.index.made_at, own.ledger, own.releases, name, witness.views)


def _finding(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what=name, detail=escaped(check()), holds=True)
    except VeiltabError as error:
        return Finding(what=name, detail=escaped(str(error)), holds=False)
    except Exception:  # noqa: BLE001 - as above
        return Finding(what=name, detail="what stands there cannot be read", holds=False)


def _are_passed(receipts: tuple[Receipt, ...], spec: TableSpec, tester: str) -> bool:
    """Whether receipts are a curator's, have the bounds that follow from the spec, and are within them."""
    testers = [receipt.tester for receipt in receipts]
    return testers == [tester, ""] and all(is_right(receipt, spec) and receipt.passed for receipt in receipts)


def _check_none_fails(name: str, findings: Iterable[Finding]) -> None:
    for one in findings:
        if one.holds is False:
            raise IntegrityError(f"{one.what}: {one.detail}", where=name)
