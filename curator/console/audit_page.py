"""The audit log: every decision and every access, a page at a time, newest first."""

from dataclasses import dataclass
from functools import partial
from itertools import islice

from starlette.responses import Response

from veiltab.common.web.pages import Page, Visit
from veiltab.curator.audit_cli import facts_text
from veiltab.curator.audit_log import AuditEntry
from veiltab.curator.console.books import Books
from veiltab.curator.console.paging import read_page, span_of

PER_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """An entry as the page shows it.

    Args:
        entry: of the audit log.
        facts: what else it says, in words.
    """

    entry: AuditEntry
    facts: str


def audit_page(books: Books) -> Page:
    """Return the page of the audit log."""
    return Page(path="/audit", label="Audit log", show=partial(_show, books))


def _show(books: Books, visit: Visit) -> Response:
    checked = books.check_audit()
    log = books.standing.store.audit
    span = span_of(log.head.length, PER_PAGE, read_page(visit.query))
    lines = islice(log.lines(span.total - span.stop), span.stop - span.start)
    entries = [AuditEntry.from_line(line) for _, line, _ in lines][::-1]
    shown = [AuditLine(entry=entry, facts=facts_text(entry)) for entry in entries]
    return visit.render("audit.html", lines=shown, span=span, checked=checked)
