"""The export of evidence: one signed file for an auditor, recorded under the person's name."""

from datetime import UTC, datetime
from functools import partial

from starlette.responses import Response

from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.evidence.export import EvidenceOrder, write_evidence


def evidence_page(books: StateReader, identity: Identity) -> Page:
    """Return the page of evidence, which the identity signs."""
    return Page(path="/evidence", label="Evidence", show=_show, act=partial(_export, books, identity))


def _show(visit: Visit) -> Response:
    return visit.render("evidence.html")


def _export(books: StateReader, identity: Identity, visit: Visit) -> Response:
    own_state = books.own_state
    order = EvidenceOrder(person=visit.person, since=_since(visit.form.text("since")), certificates=())
    name = f"evidence-{own_state.name}-{datetime.fromtimestamp(books.now, UTC):%Y-%m-%d}.zip"
    folder = TemporaryFolder()
    try:
        path = folder.path / name
        write_evidence(own_state, identity, order, path)
        return visit.download(name, path.read_bytes(), "application/zip")
    finally:
        folder.delete()


def _since(text: str) -> int | None:
    """Return a date as Unix seconds; None for none.

    Raises:
        InvalidInputError: it is not a date.
    """
    if not text:
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise InvalidInputError("a date reads like 2026-01-31", where="from") from None
