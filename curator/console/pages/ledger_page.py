"""The ledger: every charge with who, when, why and what, a page at a time, newest first."""

from functools import partial

from starlette.responses import Response

from veiltab.common.web.pages import Page, Visit
from veiltab.curator.budget.entries import Entry
from veiltab.curator.budget.ledger_text import purpose_of, released_text
from veiltab.curator.console.paging import read_page, span_of
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.console.words import asked_of
from veiltab.curator.progress.progress import APPROVED
from veiltab.curator.records.store import CuratorStore

PER_PAGE = 50


def ledger_page(books: StateReader) -> Page:
    """Return the page of the ledger."""
    return Page(path="/ledger", label="Ledger", show=partial(_show, books))


def _show(books: StateReader, visit: Visit) -> Response:
    own_state, entries = books.own_state, books.entries()
    span = span_of(len(entries), PER_PAGE, read_page(visit.query))
    newest_first = entries[len(entries) - span.stop : len(entries) - span.start][::-1]
    return visit.render(
        "ledger.html",
        lines=[_line(own_state.store, entry) for entry in newest_first],
        span=span,
        ledger=own_state.ledger,
        checked=books.check_chain(),
    )


def _line(store: CuratorStore, entry: Entry) -> dict[str, object]:
    """Return what the template shows of a charge."""
    texts = {"released": released_text(entry), "asked": asked_of(entry), "purpose": purpose_of(entry, store)}
    return {"entry": entry, "decided_by": _decided_by(store, entry.release_id), **texts}


def _decided_by(store: CuratorStore, release_id: str) -> str:
    """Return who approved which attributes of this curator's."""
    by: dict[str, list[str]] = {}
    approvals: dict[str, list[str]] = {}
    if store.releases.knows(release_id):
        for approval in store.decisions.approvals(release_id):
            approvals.setdefault(approval.attribute, []).append(approval.person)
    for decision in store.decisions.decisions(release_id):
        if decision.verdict != APPROVED:
            continue
        persons = " and ".join(approvals.get(decision.attribute, ())) or decision.person or "a person"
        who = persons if decision.decided_by == "person" else f"the policy, rule {decision.rule or '?'}"
        by.setdefault(who, []).append(decision.attribute)
    return "; ".join(f"{', '.join(attributes)}: {who}" for who, attributes in by.items())
