"""`veiltab curator requests`, `approve` and `deny`: what waits for a person, and what the person decides."""

import time
from collections.abc import Sequence

import click

from veiltab.common.command.cli import emit, listed, wants_json
from veiltab.common.errors import NotReadyError
from veiltab.curator.commands.ledger_cli import budget_data
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import (
    held_option,
    optional_request_option,
    person_option,
    policy_option,
    reason_option,
    request_option,
)
from veiltab.curator.officer.persons import named_person
from veiltab.curator.officer.policy import MOST_DAYS, expiry
from veiltab.curator.officer.requests import view_of, view_requests
from veiltab.curator.officer.requests_text import requests_text
from veiltab.curator.officer.verdicts import Outcome, waits_for
from veiltab.curator.officer.verdicts import approve as approve_request
from veiltab.curator.officer.verdicts import deny as deny_request


@click.command(epilog="Example: veiltab curator requests study.toml --state state")
@with_own_state
@click.option("--all", "is_all", is_flag=True, help="Show all with their cards, those that have ended too.")
def requests(own_state: OpenedState, is_all: bool) -> None:
    """List the requests that wait for a person, with the epsilon card and what is left of the budget, then the others.

    As JSON, all are there, oldest first.
    """
    if wants_json():
        plain = {**budget_data(own_state), "requests": [view.as_dict() for view in view_requests(own_state)]}
        emit(plain, "")
    else:
        emit({}, _requests_text(own_state, is_all=is_all))


def _requests_text(own_state: OpenedState, *, is_all: bool) -> str:
    ids = own_state.store.decisions.waiting_for_a_person(time.time())
    every = own_state.store.releases.releases()
    waiting = [one for one in every if one.request.release_id in ids]
    under_way = [one for one in every if one.request.release_id not in ids and not one.state.finished]
    ended = [one for one in every if one.state.finished]
    if is_all:
        return requests_text([view_of(one, own_state) for one in (*waiting, *under_way, *ended)], own_state.ledger)
    return requests_text([view_of(one, own_state) for one in waiting], own_state.ledger, under_way, len(ended))


@click.command(epilog='Example: veiltab curator approve study.toml --state state --release 3f --person "Ana Diaz"')
@policy_option
@with_own_state
@optional_request_option
@click.option("--all", "is_all", is_flag=True, help="All requests that wait for this person.")
@held_option
@person_option
@reason_option
@click.option(
    "--expires-days",
    type=click.IntRange(1, MOST_DAYS),
    help="Days for which the key may be fetched; without it 30 from the result.",
)
def approve(
    own_state: OpenedState,
    prefix: str | None,
    is_all: bool,
    attributes: tuple[str, ...],
    person: str | None,
    reason: str,
    expires_days: int | None,
) -> None:
    """Approve held attributes of a request, or of all; the running service continues by itself.

    The policy may ask for several persons: each of them approves by a command of their own.
    """
    if (prefix is None) != is_all or (is_all and attributes):
        raise click.UsageError("Name one request by --release, or take --all of them without --attribute.")
    who, now = named_person(person, own_state.persons), int(time.time())
    expires = expiry(now, expires_days)
    if prefix is not None:
        release_id = own_state.store.releases.release_id(prefix)
        outcome = approve_request(
            own_state, release_id, _separated(attributes), person=who, reason=reason, expires=expires
        )
        emit(_outcome_data(outcome), _approval_text(outcome))
        return
    waiting_ids = sorted(own_state.store.decisions.waiting_for_a_person(now))
    waiting = [one for one in waiting_ids if waits_for(own_state, one, who)]
    if not waiting:
        raise _nothing_waits(who, waiting_ids)
    outcomes = [approve_request(own_state, one, person=who, reason=reason, expires=expires) for one in waiting]
    lines = [f"{one.release_id}  {_approval_text(one)}" for one in outcomes]
    emit({"releases": [_outcome_data(one) for one in outcomes]}, "\n".join(lines))


@click.command(
    epilog='Example: veiltab curator deny study.toml --state state --release 3f --person "Ana Diaz"'
    ' --reason "wages are not part of the agreement"'
)
@with_own_state
@request_option
@held_option
@person_option
@reason_option
def deny(own_state: OpenedState, prefix: str, attributes: tuple[str, ...], person: str | None, reason: str) -> None:
    """Deny held attributes of a request, or the whole of one that is not charged yet; nothing is charged for it."""
    release_id = own_state.store.releases.release_id(prefix)
    who = named_person(person, own_state.persons)
    outcome = deny_request(own_state, release_id, _separated(attributes), person=who, reason=reason)
    denied = "the request" if outcome.is_whole else ", ".join(outcome.denied)
    emit({"release": release_id, "denied": list(outcome.denied)}, f"Denied: {denied}")


def _nothing_waits(who: str, waiting: Sequence[str]) -> NotReadyError:
    """Return why `approve --all` finds nothing: nothing is held, or this person has approved all that is."""
    if waiting:
        return NotReadyError(f"{who} has approved all that waits", remedy="Another person must approve it as well.")
    return NotReadyError(
        "no request waits for a person",
        remedy="`veiltab curator requests` lists what has arrived. A request that was just made takes some seconds:"
        " the policies of all curators consider it before a person is asked.",
    )


def _separated(attributes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for one in attributes for name in listed(one))


def _outcome_data(outcome: Outcome) -> dict[str, object]:
    plain = {"release": outcome.release_id, "approved": list(outcome.approved)}
    return plain | ({"missing": outcome.missing} if outcome.missing else {})


def _approval_text(outcome: Outcome) -> str:
    lines = [f"Approved: {', '.join(outcome.approved)}"] if outcome.approved else []
    lines += [
        f"Recorded for {attribute}; {number} other {'persons' if number > 1 else 'person'} must approve it as well."
        for attribute, number in outcome.missing.items()
    ]
    return "\n".join(lines)
