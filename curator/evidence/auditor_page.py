"""The page of an evidence file: what an auditor reads first, without a program. It runs no script and loads nothing."""

import hashlib
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape

from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.web.document import facts, page, table
from veiltab.curator.audit.log import AuditEntry, AuditHead, Event
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger_text import asked_text, purpose_of, released_text, spent_text
from veiltab.curator.evidence.audit_text import facts_text
from veiltab.curator.evidence.files import AUDIT, PAGE, ReleaseRecord, asked_under_text
from veiltab.curator.officer.open_state import OpenedState
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import Approval, CuratorRelease, GrantDecision

_MOST_ENTRIES = 1_000
"""Entries of the audit log that a section shows: the newest. The archive has all."""

_SHORT = 12
"""Digits of a release's id that the page shows; commands take them, and the other files have all."""

_ELSEWHERE = {event.value for event in (Event.DECISION, Event.APPROVAL, Event.CHARGE, Event.REQUEST, Event.KEY)}
"""Events that the other sections show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInput:
    """What the page says.

    Args:
        since: first Unix second of what was decided and recorded; None for all.
        made_at: Unix seconds.
        audit_before: where the audit log stood before the first entry in the file.
        ready: releases that the curator makes statements about.
        certificates: release certificates in the file.
        digests: name of each other file -> SHA-256, hexadecimal.
        authority: certificate of the study's authority, PEM.
    """

    own_state: OpenedState
    person: str
    since: int | None
    made_at: int
    records: tuple[ReleaseRecord, ...]
    audit_before: AuditHead
    ready: tuple[CuratorRelease, ...]
    certificates: tuple[ReleaseCertificate, ...]
    digests: dict[str, str]
    authority: bytes


def evidence_page(content: PageInput) -> str:
    """Return the page."""
    own_state = content.own_state
    sections = [
        ("In short", _summary(content)),
        ("What was charged", _charges(content)),
        ("Who decided what", _decisions(content)),
        ("Who was given keys", _entries(content, lambda event: event == Event.KEY.value)),
        ("What else was recorded", _entries(content, lambda event: event not in _ELSEWHERE)),
        ("Releases that are ready", _ready(content)),
        ("How to check this", _how_to_check(content)),
        ("Files, and the SHA-256 of each", facts(sorted(content.digests.items()))),
    ]
    return page(
        f"Evidence of curator {own_state.name}, study {own_state.study.id}",
        f"What this curator decided, charged and recorded {_period(content)}.",
        sections,
    )


def _period(page: PageInput) -> str:
    since = "" if page.since is None else f"from {_time(page.since)} "
    return f"{since}until {_time(page.made_at)}"


def _summary(page: PageInput) -> str:
    own_state, decisions = page.own_state, [one for record in page.records for one in record.decisions]
    counts = {verdict: sum(one.verdict == verdict for one in decisions) for verdict in (APPROVED, DENIED, HELD)}
    policy = "none: a person decides" if own_state.policy_path is None else own_state.policy_path.name
    head = own_state.store.audit.head
    return facts(
        [
            ("exported by", page.person),
            ("exported at", _time(page.made_at)),
            ("study file", _study_text(page)),
            ("budget", spent_text(own_state.ledger)),
            ("charges", str(own_state.ledger.chain.head[0])),
            ("requests", str(len(page.records))),
            ("decisions about attributes", ", ".join(f"{number} {verdict}" for verdict, number in counts.items())),
            ("persons who must approve what is held", str(own_state.persons)),
            ("policy", policy),
            ("entries of the audit log", f"{page.audit_before.length + 1} to {head.length}"),
        ]
    )


def _study_text(page: PageInput) -> str:
    digest = page.own_state.study.digest
    return f"SHA-256 {digest}; {asked_under_text((one.release.study_digest for one in page.records), digest)}"


def _charges(page: PageInput) -> str:
    own_state = page.own_state
    rows = [
        (
            str(entry.number),
            _time(entry.facts.get("time")),
            str(entry.facts.get("researcher", "")),
            purpose_of(entry, own_state.store),
            released_text(entry),
            asked_text(entry),
            percent(entry.share),
            _short(entry.release_id),
        )
        for entry in own_state.ledger.chain.entries
    ]
    headings = ("", "reserved", "researcher", "purpose", "released", "asked for", "charge", "release")
    return table(headings, rows, {0, 6}) if rows else "<p>Nothing was charged.</p>"


def _decisions(page: PageInput) -> str:
    if not page.records:
        return "<p>Nothing was asked for.</p>"
    return "\n".join(map(_request, page.records))


def _request(record: ReleaseRecord) -> str:
    """Return one request, and what was decided about it."""
    release, request = record.release, record.release.request
    state = release.state.value + (f": {release.failure}" if release.failure else "")
    about = facts(
        [
            ("researcher", request.researcher),
            ("purpose", request.purpose or "none was given"),
            ("attributes", ", ".join(request.attributes)),
            (
                "asked for",
                f"epsilon {request.epsilon}" + (f" at delta {delta_text(request.delta)}" if request.delta else ""),
            ),
            ("received", _time(release.created)),
            ("state", f"{state}, since {_time(release.since)}"),
        ]
    )
    rows = [_decision(one, record.approvals) for one in record.decisions]
    verdict = table(("attribute", "decision", "by", "reason", "time"), rows) if rows else "<p>Nothing was decided.</p>"
    return f"<h3>Release {escape(_short(request.release_id))}</h3>\n{about}\n{verdict}"


def _decision(decision: GrantDecision, approvals: tuple[Approval, ...]) -> tuple[str, ...]:
    own = [one for one in approvals if one.attribute == decision.attribute]
    by, reasons = _by(decision, own), _reasons(decision, own)
    return decision.attribute, decision.verdict, by, reasons, _time(decision.time)


def _by(decision: GrantDecision, approvals: list[Approval]) -> str:
    if decision.decided_by == "policy":
        return "the policy: no rule" if decision.rule is None else f"rule {decision.rule}: {decision.rule_text}"
    names = [one.person for one in approvals]
    if decision.person not in names:
        names.append(decision.person)
    return " and ".join(filter(None, names)) or "a person whose name was not recorded"


def _reasons(decision: GrantDecision, approvals: list[Approval]) -> str:
    reasons = [f"{one.person}: {one.reason}" for one in approvals if one.reason]
    if decision.verdict == DENIED and decision.reason:
        reasons.append(f"{decision.person}: {decision.reason}")
    return "; ".join(reasons)


def _entries(page: PageInput, is_shown: Callable[[str], bool]) -> str:
    newest: deque[AuditEntry] = deque(maxlen=_MOST_ENTRIES)
    number = 0
    for entry in page.own_state.store.audit.entries(after=page.audit_before.length):
        if is_shown(entry.event):
            newest.append(entry)
            number += 1
    rows = [
        (str(one.number), _time(one.time), one.event, one.person, facts_text(one), _short(one.release))
        for one in newest
    ]
    if not rows:
        return "<p>Nothing.</p>"
    note = f"<p>The newest {len(rows)} of {number}; {AUDIT} has all.</p>" if number > len(rows) else ""
    return note + table(("", "time", "event", "person", "what", "release"), rows, {0})


def _ready(page: PageInput) -> str:
    own_state = page.own_state
    certified = {spec.release_id for one in page.certificates for spec in one.specs()}
    rows = []
    for release in page.ready:
        spec = release.planned_spec
        tested = "; ".join(receipt.sentence() for receipt in own_state.store.tests.receipts(spec.release_id))
        has = "yes" if spec.release_id in certified else "no"
        rows.append(
            (
                _short(spec.release_id),
                ", ".join(column.attribute for column in spec.columns),
                tested or "no columns here",
                has,
            )
        )
    headings = ("release", "attributes", "test of the server", "certificate in this file")
    return table(headings, rows) if rows else f"<p>None is {ReleaseState.READY.value}.</p>"


def _short(release_id: str) -> str:
    return release_id[:_SHORT]


def _time(seconds: object) -> str:
    if not isinstance(seconds, int) or not seconds:
        return "not recorded"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _how_to_check(page: PageInput) -> str:
    fingerprint = hashlib.sha256(page.authority).hexdigest()
    return (
        "<p>Run <code>veiltab verify evidence.zip --authority ca.pem</code>, with the certificate of the study's"
        " authority that you have from elsewhere. It checks the signature of the index, the digest of every file, the"
        " chains of the ledger and of the audit log, that each covers the other, that every decision stands in the"
        " audit log, and every statement and certificate. docs/evidence.md says how to recompute each without veiltab."
        "</p>"
        + facts([("SHA-256 of the authority's certificate beside this page", fingerprint)])
        + "<p>A name is what a person gave at this curator; the operating system's accounts decide who may run its"
        " commands. The file shows what the curator's database held when it was exported. Somebody who rules the"
        " curator's machine could write another database from the beginning; the other curators remember its ledger,"
        " and each charge covers the audit log before it, so that what came before the latest charge cannot be changed"
        f" without their noticing. This page is {escape(PAGE)} of the archive and is covered by its index.</p>"
    )
