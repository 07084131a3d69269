"""The first page: what waits for a person, and the releases under way."""

from collections.abc import Container, Iterable
from functools import partial

from starlette.responses import Response

from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.paging import read_page, span_of
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.console.words import badge_of_state
from veiltab.curator.officer.requests import view_of
from veiltab.curator.officer.verdicts import waits_for
from veiltab.curator.progress.release_record import CuratorRelease

PER_PAGE = 10


def waiting_page(books: StateReader) -> Page:
    """Return the first page."""
    return Page(path="/", label="Requests", show=partial(_show, books))


def lines_of(releases: Iterable[CuratorRelease], ids: Container[str]) -> list[dict[str, object]]:
    """Return releases as lists show them; those that are held wait for a person."""
    return [
        {"release": one, "badge": badge_of_state(one.state, is_held=one.request.release_id in ids)} for one in releases
    ]


def _show(books: StateReader, visit: Visit) -> Response:
    own_state = books.own_state
    waiting_ids = own_state.store.decisions.waiting_for_a_person(books.now)
    open_releases = own_state.store.releases.latest(0)
    waiting = [one for one in open_releases if one.request.release_id in waiting_ids]
    span = span_of(len(waiting), PER_PAGE, read_page(visit.query))
    page = waiting[span.start : span.stop]
    mine = [visit.decides and waits_for(own_state, one.request.release_id, visit.person) for one in page]
    under_way = [one for one in open_releases if one.request.release_id not in waiting_ids]
    return visit.render(
        "waiting.html",
        waiting=[
            {"view": view_of(one, own_state), "is_mine": is_mine} for one, is_mine in zip(page, mine, strict=True)
        ],
        span=span,
        under_way=lines_of(under_way[-PER_PAGE:], waiting_ids),
        more_under_way=max(0, len(under_way) - PER_PAGE),
        ledger=own_state.ledger,
    )
