"""All releases, and one of them: what is asked for, what it would cost, what was decided, and how far it is.

A person decides at the end of the page of a release, under the name of the session.
"""

from functools import partial

from starlette.responses import Response

from veiltab.common.errors import InvalidInputError
from veiltab.common.web.bodies import Form, whole_number
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.pages.timeline import timeline_of
from veiltab.curator.console.pages.waiting_page import lines_of
from veiltab.curator.console.paging import read_page, span_of
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.console.words import badge_of_state
from veiltab.curator.officer.policy import MOST_DAYS, expiry
from veiltab.curator.officer.requests import view_of
from veiltab.curator.officer.verdicts import Outcome, approve, deny, has_approved, held_attributes
from veiltab.curator.progress.progress import HELD

PER_PAGE = 50


def releases_page(books: StateReader) -> Page:
    """Return the list of all releases."""
    return Page(path="/releases", label="Releases", show=partial(_list, books))


def release_page(books: StateReader) -> Page:
    """Return the page of one release, where persons decide."""
    return Page(path="/releases/{release}", show=partial(_show, books), act=partial(_decide, books))


def _list(books: StateReader, visit: Visit) -> Response:
    store = books.own_state.store
    span = span_of(sum(store.releases.counts().values()), PER_PAGE, read_page(visit.query))
    releases = store.releases.releases_between(span.start, span.stop)
    return visit.render(
        "releases.html", lines=lines_of(releases, store.decisions.waiting_for_a_person(books.now)), span=span
    )


def _show(books: StateReader, visit: Visit, problem: str = "") -> Response:
    """Return the page; with a problem, the form as it was sent."""
    own_state = books.own_state
    release = own_state.store.releases.release(visit.parameters["release"])
    release_id = release.request.release_id
    view, entry = view_of(release, own_state), books.entry_of(release.part_of or release_id)
    waiting = held_attributes(own_state.store, release_id, books.now)
    approved = {one.decision.attribute: has_approved(visit.person, one.approvals) for one in view.own}
    choices = {name: is_approved for name, is_approved in approved.items() if name in waiting}
    return visit.render(
        "release.html",
        status=400 if problem else 200,
        view=view,
        problem=problem,
        form=visit.form,
        badge=badge_of_state(release.state, is_held=bool(waiting)),
        choices=choices,
        is_mine=visit.decides and not all(choices.values()),
        may_be_stopped=visit.decides and not waiting and entry is None and not release.state.finished,
        events=timeline_of(own_state, release, entry, is_held=bool(waiting)),
        tables=own_state.store.tables.tables(release_id),
        ledger=own_state.ledger,
        persons=own_state.persons,
        is_over=release.state.finished,
        HELD=HELD,
    )


def _decide(books: StateReader, visit: Visit) -> Response:
    try:
        outcome = _outcome(books, visit)
    except InvalidInputError as error:
        return _show(books, visit, str(error))
    return visit.go_to(f"/releases/{outcome.release_id}", _outcome_text(outcome))


def _outcome(books: StateReader, visit: Visit) -> Outcome:
    """Do what a person decided.

    Raises:
        InvalidInputError: the form says no decision, or one that cannot be taken now.
        ConflictError: the person has approved it before.
    """
    release_id, form, own_state = visit.parameters["release"], visit.form, books.own_state
    attributes, reason = form.texts("attribute"), form.text("reason")
    verdict = form.text("verdict")
    if not attributes and verdict != "stop":
        raise InvalidInputError("no attribute was chosen", where="decision", remedy="Mark at least one.")
    match verdict:
        case "approve":
            expires = _expires(form, books.now)
            return approve(own_state, release_id, attributes, person=visit.person, reason=reason, expires=expires)
        case "refuse" | "stop":
            return deny(own_state, release_id, attributes, person=visit.person, reason=reason)
        case _:
            raise InvalidInputError("the decision is neither to approve nor to refuse", where="decision")


def _expires(form: Form, now: int) -> int | None:
    """Return until when keys may be fetched, Unix seconds; None for ever."""
    text = form.text("days")
    if not text:
        return None
    days = whole_number(text, 1, MOST_DAYS)
    if days is None:
        raise InvalidInputError(f"the days are not a whole number from 1 to {MOST_DAYS}", where="days")
    return expiry(now, days)


def _outcome_text(outcome: Outcome) -> str:
    """Return what a decision led to, in words."""
    if outcome.is_whole:
        return "Refused: the whole request. Nothing is charged for it."
    parts = [f"Approved: {', '.join(outcome.approved)}."] if outcome.approved else []
    if outcome.denied:
        parts.append(f"Refused: {', '.join(outcome.denied)}. Nothing is charged for it.")
    parts += [
        f"Your approval of {attribute} is recorded; {number} other {'persons' if number > 1 else 'person'} must approve"
        " it as well."
        for attribute, number in outcome.missing.items()
    ]
    return " ".join(parts)
