"""The audit log: every decision and every access, a page at a time, newest first."""

import re
from functools import partial
from itertools import islice

from starlette.responses import Response

from veiltab.common.web.pages import Page, Visit
from veiltab.curator.audit.log import AuditEntry, chained
from veiltab.curator.console.paging import read_page, span_of
from veiltab.curator.console.state_reader import StateReader

PER_PAGE = 50

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHOWN = 12


def audit_page(books: StateReader) -> Page:
    """Return the page of the audit log."""
    return Page(path="/audit", label="Audit log", show=partial(_show, books))


def _show(books: StateReader, visit: Visit) -> Response:
    checked = books.check_audit()
    log = books.own_state.store.audit
    span = span_of(log.head.length, PER_PAGE, read_page(visit.query))
    before = span.total - span.stop
    lines = list(islice(log.lines(before), span.stop - span.start))
    chained(lines, log.head_at(before))
    rows = [_line(AuditEntry.from_line(line)) for _, line, _ in lines][::-1]
    return visit.render("audit.html", lines=rows, span=span, checked=checked)


def _line(entry: AuditEntry) -> dict[str, object]:
    """Return what the template shows of an entry: what else it says are names, and what they are."""
    facts = {name.replace("_", " "): str(value) for name, value in entry.facts.items() if value not in {None, ""}}
    return {"entry": entry, "facts": [(name, _shortened(value)) for name, value in facts.items()]}


def _shortened(value: str) -> str:
    """Return the beginning of a digest, and anything else whole."""
    return f"{value[:_SHOWN]}…" if _DIGEST.fullmatch(value) else value
