"""A release as a timeline of what this curator has recorded of it."""

from veiltab.common.dataclass import dataclass
from veiltab.common.release.state import ReleaseState
from veiltab.curator.audit.log import Event as AuditEvent
from veiltab.curator.audit.log import Fact
from veiltab.curator.budget.entries import Entry, percent
from veiltab.curator.console.words import badge_of_state, badge_of_verdict, guarantee, nats
from veiltab.curator.officer.open_state import OpenedState
from veiltab.curator.officer.requests import AttributeStatus, attribute_statuses
from veiltab.curator.progress.progress import APPROVED, HELD
from veiltab.curator.progress.release_record import CuratorRelease, GrantDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a release here.

    Args:
        time: Unix seconds; None if it was not recorded.
        text: more of it; may be empty.
        quote: a person's reason; may be empty.
        kind: "good", "bad", "wait" or plain.
    """

    time: int | None
    title: str
    text: str = ""
    quote: str = ""
    kind: str = ""


def timeline_of(
    own_state: OpenedState, release: CuratorRelease, entry: Entry | None, *, is_held: bool
) -> tuple[Event, ...]:
    """Return what is recorded of a release, oldest first.

    Args:
        entry: its charge, if it is charged.
        is_held: whether it waits for a person.
    """
    request = release.request
    arrival = Event(
        time=release.created,
        title=f"{request.researcher} asks for {', '.join(request.attributes)}",
        text=guarantee(request.epsilon, request.delta),
    )
    decisions = [event for status in attribute_statuses(release, own_state) for event in _of_attribute(status)]
    charges = [] if entry is None else [_of_charge(entry)]
    events = sorted([*decisions, *charges, *_of_keys(own_state, request.release_id)], key=lambda event: event.time or 0)
    wait = Event(time=release.since or None, title="It waits for a person", kind="wait")
    return (arrival, *events, *_of_test(own_state, release), wait if is_held else _of_state(release))


def _of_attribute(status: AttributeStatus) -> list[Event]:
    decision = status.decision
    events = [
        Event(time=one.time, title=f"{one.person} approves {decision.attribute}", quote=one.reason, kind="good")
        for one in status.approvals
    ]
    match decision.decided_by:
        case "policy":
            events.append(_of_policy(decision))
        case "person" if not (decision.verdict == APPROVED and status.approvals):
            badge = badge_of_verdict(decision.verdict)
            who = decision.person or "A person"
            title = f"{who}: {decision.attribute} is {badge.text}"
            events.append(Event(time=decision.time or None, title=title, quote=decision.reason, kind=badge.kind))
        case _:
            pass
    return events


def _of_policy(decision: GrantDecision) -> Event:
    badge = badge_of_verdict(decision.verdict)
    rule = "no rule matches" if decision.rule is None else f"rule {decision.rule}: {decision.rule_text}"
    title = (
        f"The policy leaves {decision.attribute} to a person"
        if decision.verdict == HELD
        else f"The policy: {decision.attribute} is {badge.text}"
    )
    return Event(time=decision.time or None, title=title, text=rule, kind=badge.kind)


def _of_charge(entry: Entry) -> Event:
    return Event(
        time=entry.time,
        title=f"Charged: {percent(entry.share)} of the budget",
        text=f"entry {entry.number} of the ledger, pure epsilon {nats(entry.epsilon)}",
    )


def _of_keys(own_state: OpenedState, release_id: str) -> list[Event]:
    """Return when the keys were first given out, as the audit log has it."""
    first: dict[Fact, Event] = {}
    for entry in own_state.store.audit.entries(release_id):
        if entry.event == AuditEvent.KEY.value:
            attribute, researcher = entry.facts.get("attribute"), entry.facts.get("researcher")
            title = f"The key of {attribute} is given to {researcher}"
            first.setdefault(attribute, Event(time=entry.time, title=title))
    return list(first.values())


def _of_test(own_state: OpenedState, release: CuratorRelease) -> list[Event]:
    """Return this curator's tests of the server's noise that were made."""
    return [
        Event(
            time=None,
            title=f"The server {'passes' if receipt.passed else 'fails'} the test of"
            f" {'your columns' if receipt.tester else 'all columns together'}",
            text=receipt.sentence(),
            kind="good" if receipt.passed else "bad",
        )
        for receipt in own_state.store.tests.receipts(release.request.release_id)
    ]


def _of_state(release: CuratorRelease) -> Event:
    badge = badge_of_state(release.state)
    title = f"Now: {badge.text}" if not release.state.finished else badge.text.capitalize()
    text = release.failure or release.waiting_for
    if release.state is ReleaseState.READY:
        text = "The researcher's service may fetch the keys of what was approved."
    return Event(time=release.since or None, title=title, text=text, kind=badge.kind)
