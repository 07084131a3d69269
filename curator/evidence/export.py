"""Evidence: one signed file from which an auditor sees what a curator decided, charged and recorded."""

import hashlib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from veiltab.common.core.texts.canonical import canonical_json, canonical_text
from veiltab.common.dataclass import dataclass, field
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Identity, utc_now
from veiltab.common.rpc.parties.signing import signed
from veiltab.common.storage.database import transaction
from veiltab.common.storage.files import written_whole
from veiltab.common.study.toml_text import parsed_toml_text, toml_text
from veiltab.curator.audit.log import EMPTY, AuditHead, Event
from veiltab.curator.evidence.auditor_page import PageInput, evidence_page
from veiltab.curator.evidence.files import (
    AUDIT,
    AUTHORITY,
    CERTIFICATES,
    FORMAT,
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
    FileDigest,
    ReleaseRecord,
    statement_line,
)
from veiltab.curator.officer.open_state import OpenedState
from veiltab.curator.peers.witnesses import witnessed_lines
from veiltab.curator.progress.release_record import CuratorRelease
from veiltab.curator.release.statements import signed_statement

_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The time of every file of the archive: the same content makes the same bytes."""

_SHOWN_OF_POLICY = ("budget", "persons", "rule")
"""What an auditor sees of a policy file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOrder:
    """What evidence is wanted.

    Args:
        since: first Unix second of what was decided and recorded; None for all.
        certificates: release certificates to go with it.
    """

    person: str
    since: int | None
    certificates: tuple[ReleaseCertificate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bundle:
    """An archive that is written, with the sizes and digests of what is in it."""

    archive: zipfile.ZipFile
    files: list[FileDigest] = field(default_factory=list)

    @property
    def digests(self) -> dict[str, str]:
        return {one.name: one.sha256 for one in self.files}

    def add(self, name: str, parts: Iterable[bytes]) -> None:
        info = zipfile.ZipInfo(name, _MOMENT)
        info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o600 << 16
        digest, size = hashlib.sha256(), 0
        with self.archive.open(info, "w", force_zip64=True) as file:
            for part in parts:
                digest.update(part)
                size += file.write(part)
        self.files.append(FileDigest(name=name, size=size, sha256=digest.hexdigest()))

    def add_lines(self, name: str, lines: Iterable[str]) -> None:
        self.add(name, (f"{line}\n".encode() for line in lines))


def write_evidence(own_state: OpenedState, identity: Identity, order: EvidenceOrder, path: Path) -> EvidenceIndex:
    """Write evidence to a file, after the audit log has recorded that it is exported.

    Args:
        identity: the curator's own, which signs.
        path: one that is there is replaced.

    Raises:
        InvalidInputError: the curator's certificate is not valid now.
        IntegrityError: the ledger or the audit log was altered.
    """
    store = own_state.store
    identity.check_lifetime(utc_now())
    store.audit.verify()
    store.audit.verify_against(own_state.ledger.chain.audit_heads)
    with transaction(store.connection):
        store.audit.record(Event.EVIDENCE, person=order.person, file=path.name, since=order.since)
    with store.connection.snapshot(), written_whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        return _write(own_state, identity, order, _Bundle(archive=archive))


def _write(own_state: OpenedState, identity: Identity, order: EvidenceOrder, bundle: _Bundle) -> EvidenceIndex:
    store, ledger, now = own_state.store, own_state.ledger, utc_now()
    before = EMPTY if order.since is None else store.audit.head_before(order.since)
    length, head = ledger.chain.head
    records = tuple(_records(own_state, order.since, before))
    bundle.add(STUDY, [own_state.study.source])
    policy = b""
    if own_state.policy_path is not None and own_state.policy_path.is_file():
        policy = own_state.policy_path.read_bytes()
        bundle.add(POLICY, [shown_policy(policy, str(own_state.policy_path)).encode()])
    bundle.add(AUTHORITY, [identity.authority])
    bundle.add_lines(LEDGER, ledger.chain.lines())
    bundle.add_lines(AUDIT, (line for _, line, _ in store.audit.lines(before.length)))
    bundle.add_lines(RELEASES, (record.line() for record in records))
    ready = tuple(_ready(own_state, order.since))
    bundle.add_lines(STATEMENTS, (statement_line(one, signed_statement(identity, one, store, ledger)) for one in ready))
    bundle.add_lines(WITNESSED, witnessed_lines(store.connection, own_state.name))
    for certificate in order.certificates:
        bundle.add(f"{CERTIFICATES}{certificate.spec.release_id}.certificate", [certificate.to_text().encode()])
    page = PageInput(
        own_state=own_state,
        person=order.person,
        since=order.since,
        made_at=int(now.timestamp()),
        records=records,
        audit_before=before,
        ready=ready,
        certificates=order.certificates,
        digests=bundle.digests,
        authority=identity.authority,
    )
    bundle.add(PAGE, [evidence_page(page).encode()])
    index = EvidenceIndex(
        kind=FORMAT,
        party=identity.party.uri,
        made_at=int(now.timestamp()),
        made_by=order.person,
        files=tuple(sorted(bundle.files, key=lambda one: one.name)),
        ledger=LedgerHead(length=length, digest=head.hex()),
        audit_before=_plain(before),
        audit=_plain(store.audit.head),
        since=order.since,
        policy=hashlib.sha256(policy).hexdigest() if POLICY in bundle.digests else None,
    )
    signature = signed(identity, canonical_text(index), now)
    bundle.add(INDEX, [signature.text.encode()])
    plain = {"signature": signature.signature, "certificate": signature.certificate}
    bundle.add(SIGNATURE, [canonical_json(plain).encode()])
    return index


def shown_policy(content: bytes, where: str) -> str:
    """Return what an auditor sees of a policy file: budget, persons and rules; no comment, and nobody's addresses.

    Raises:
        InvalidInputError: it is not TOML.
    """
    plain = parsed_toml_text(content, where)
    keys = {name: plain[name] for name in _SHOWN_OF_POLICY if name in plain}
    return "# Comments and the table [notify] were left out.\n" + toml_text(keys)


def _records(own_state: OpenedState, since: int | None, before: AuditHead) -> Iterator[ReleaseRecord]:
    """Return the requests that were made or changed since a time, and all that the audit log is about since then."""
    in_log = set() if since is None else {one.release for one in own_state.store.audit.entries(after=before.length)}
    for release in own_state.store.releases.releases():
        release_id = release.request.release_id
        if release_id in in_log or max(release.created, release.since) >= (since or 0):
            yield ReleaseRecord(
                release=release,
                decisions=own_state.store.decisions.decisions(release_id),
                approvals=own_state.store.decisions.approvals(release_id),
            )


def _ready(own_state: OpenedState, since: int | None) -> Iterator[CuratorRelease]:
    """Return the releases that are ready since a time, and that this curator tested if it has columns in them."""
    for release in own_state.store.releases.ready():
        if release.spec is None:  # several tables ran, and each of them is such a release
            continue
        has_columns = bool(release.spec.columns_of(own_state.name))
        is_tested = bool(own_state.store.tests.receipts(release.request.release_id))
        if release.since >= (since or 0) and (is_tested or not has_columns):
            yield release


def _plain(head: AuditHead) -> LedgerHead:
    return LedgerHead(length=head.length, digest=head.digest.hex())
