"""The first page: what waits for a person, and the releases under way."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.books import Books
from veiltab.curator.console.paging import read_page, span_of
from veiltab.curator.console.words import Badge, badge_of_state
from veiltab.curator.officer.requests import RequestView, view_of
from veiltab.curator.officer.verdicts import waits_for
from veiltab.curator.progress.release_record import CuratorRelease

PER_PAGE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLine:
    """A release in a list: as it is recorded, and how it stands."""

    stored: CuratorRelease
    badge: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """A request that waits for a person.

    Args:
        is_mine: whether it waits for the reader, who has not approved all of it.
    """

    view: RequestView
    is_mine: bool


def waiting_page(books: Books) -> Page:
    """Return the first page."""
    return Page(path="/", label="Requests", show=partial(_show, books))


def lines_of(releases: Iterable[CuratorRelease], held: Container[str]) -> list[ReleaseLine]:
    """Return releases as lists show them; those that are held wait for a person."""
    return [
        ReleaseLine(stored=one, badge=badge_of_state(one.state, is_held=one.request.release_id in held))
        for one in releases
    ]


def _show(books: Books, visit: Visit) -> Response:
    standing = books.standing
    held = standing.store.decisions.waiting_for_a_person(books.now)
    open_releases = standing.store.releases.latest(0)
    waiting = [one for one in open_releases if one.request.release_id in held]
    span = span_of(len(waiting), PER_PAGE, read_page(visit.query))
    shown = [
        WaitingRequest(
            view=view_of(stored, standing),
            is_mine=visit.decides and waits_for(standing, stored.request.release_id, visit.person),
        )
        for stored in waiting[span.start : span.stop]
    ]
    under_way = [one for one in open_releases if one.request.release_id not in held]
    return visit.render(
        "waiting.html",
        waiting=shown,
        span=span,
        under_way=lines_of(under_way[-PER_PAGE:], held),
        more_under_way=max(0, len(under_way) - PER_PAGE),
        ledger=standing.ledger,
    )
