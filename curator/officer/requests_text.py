"""A curator's requests as lines for a terminal."""

from collections.abc import Iterable
from dataclasses import fields

from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.request import ReleaseRequest
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.budget.ledger_text import spent_text
from veiltab.curator.officer.requests import AttributeStatus, RequestView
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import CuratorRelease

_ELSEWHERE = {"release_id", "researcher", "attributes", "epsilon", "delta", "tables"}
_BELOW = {field.name: field.name.replace("_", " ") for field in fields(ReleaseRequest) if field.name not in _ELSEWHERE}
_LABELS = _BELOW | {
    "waiting_for": "waits for",
    "failure": "failed",
    "note": "note",
    "cell_root_mse": "expected root-mean-square error of each share",
    "typical_error": "expected total variation distance of a typical table",
    "repeats": "tables that run a second time, chosen after the first results",
}
"""What is printed below a request's headline where there is something to print: its key, and what it is called."""

_SHOWN = 3
"""Tables that are named for people; of more it is said how many there are."""


def requests_text(
    views: Iterable[RequestView], ledger: Ledger, under_way: Iterable[CuratorRelease] = (), ended: int = 0
) -> str:
    """Return the budget, and the requests.

    Args:
        views: those that are shown with their cards and what was decided.
        under_way: those that are shown in a line each.
        ended: how many others have ended.
    """
    lines = [f"Budget {ledger.budget.epsilon}. {spent_text(ledger)}"]
    blocks = ["\n" + "\n".join(_lines(view)) for view in views]
    if rows := [_headline(release) + _waits(release) for release in under_way]:
        blocks.append("\n".join(["\nUnder way:", *rows]))
    if ended:
        blocks.append(f"\nEnded: {ended}; --all shows them.")
    return "\n".join([*lines, *(blocks or ["No requests."])])


def _headline(release: CuratorRelease) -> str:
    request = release.request
    return (
        f"{request.release_id}  {release.state.value}  {request.researcher} asks for {', '.join(request.attributes)}"
        f" at epsilon {request.epsilon}" + ("" if request.delta is None else f" at delta {delta_text(request.delta)}")
    )


def _waits(release: CuratorRelease) -> str:
    return f"; waits for {release.waiting_for}" if release.waiting_for else ""


def _lines(view: RequestView) -> list[str]:
    request, outlook, plain = view.request, view.outlook, view.as_dict()
    lines = [_headline(view.release), *(f"  unusual: {one}" for one in outlook.unusual)]
    lines += [f"  budget: {outlook.budget_note}"] if outlook.budget_note else []
    lines += [f"  {label}: {_fact_text(plain[key])}" for key, label in _LABELS.items() if plain.get(key)]
    if request.tables:
        tables = "; ".join(" x ".join(table) for table in request.tables[:_SHOWN])
        more = ", for example" if len(request.tables) > _SHOWN else ":"
        lines.append(f"  tables: {len(request.tables)}{more} {tables}")
    if outlook.n is not None:
        here = "" if outlook.matched is None else f", {outlook.matched:,} of people in the table here"
        lines.append(f"  rows: {outlook.n:,}{here}")
    if outlook.bytes is not None:
        lines.append(f"  bytes sent from here: {outlook.bytes:,}")
    if outlook.charge is not None:
        rest = "" if outlook.rest_after is None else f"; after it one more release may have {outlook.rest_after}"
        lines.append(f"  charge: {percent(outlook.charge)} of the budget{rest}")
    lines += [f"  decision here: {_decided(one, is_over=bool(view.release.failure))}" for one in view.own]
    lines += [f"  {bound.name}: {bound.faces}" for bound in outlook.card]
    return lines + ([f"  {N_IS_EXACT}", f"  {outlook.presence}"] if outlook.card else [])


def _decided(status: AttributeStatus, *, is_over: bool) -> str:
    decision = status.decision
    parts = [f"{decision.attribute} {'was held' if decision.verdict == HELD and is_over else decision.verdict}"]
    if decision.rule is not None:
        parts.append(f"by rule {decision.rule} ({decision.rule_text})")
    elif decision.person and not status.approvals:
        parts.append(f"by {decision.person}{f': {decision.reason}' if decision.reason else ''}")
    if status.approvals:
        approvals = (f"{one.person} ({one.reason})" if one.reason else one.person for one in status.approvals)
        parts.append(f"approved by {', '.join(approvals)}")
    if status.missing and (status.approvals or status.missing > 1) and not is_over:
        parts.append(f"{status.missing} {'persons' if status.missing > 1 else 'other person'} must approve it")
    return "; ".join(parts)


def _fact_text(fact: object) -> str:
    """Return a fact for people: an error with three digits, and whether something is so in words."""
    match fact:
        case bool():
            return "yes"
        case float():
            return f"{fact:.3g}"
        case _:
            return str(fact)
