"""`veiltab curator`: check a table, serve it, decide about requests, show the ledger."""

import time
from collections.abc import Sequence
from pathlib import Path
from secrets import token_bytes

import click

from veiltab.common.command.cli import EXIT_CODES, emit, json_option, listed
from veiltab.common.command.options import (
    ServeOptions,
    name_option,
    serve_options,
    study_argument,
)
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.study.file import load_study
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.ledger_text import entry_data, entry_text, purpose_of, spent_text, witness_text
from veiltab.curator.console.cli import console, console_link
from veiltab.curator.evidence.audit_cli import audit
from veiltab.curator.evidence.export_cli import evidence
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import table_options
from veiltab.curator.notify.cli import notify
from veiltab.curator.officer.opened import Standing
from veiltab.curator.officer.options import (
    held_option,
    named_person,
    optional_request_option,
    person_option,
    policy_option,
    reason_option,
    request_option,
    with_standing,
    work_options,
)
from veiltab.curator.officer.persons import person_name
from veiltab.curator.officer.policy import MOST_DAYS, expiry, policy_of
from veiltab.curator.officer.requests import view_of, view_requests
from veiltab.curator.officer.requests_text import requests_text
from veiltab.curator.officer.trial import hypothetical_request, try_policy
from veiltab.curator.officer.verdicts import Outcome, waits_for
from veiltab.curator.officer.verdicts import approve as approve_request
from veiltab.curator.officer.verdicts import deny as deny_request
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.peers.ring import PART_BYTES


@click.group(epilog=EXIT_CODES)
def curator() -> None:
    """Hold some columns, and decide who may learn what about them.

    Example: veiltab curator check study.toml --name alice --table alice.csv
    """


@curator.command(epilog="Example: veiltab curator check study.toml --name alice --table alice.csv")
@study_argument
@name_option
@table_options
@json_option
def check(study_path: Path, name: str, table: TableAddress, as_json: bool) -> int:
    """Check a table against the study and report its contents; the command sends nothing."""
    from veiltab.curator.check.inspection import inspect_table

    inspection = inspect_table(table, load_study(study_path), name)
    emit(as_json, inspection.as_dict(), inspection.as_text())
    return 0 if inspection.ok else InvalidInputError.exit_code


@curator.command(
    epilog="Example: veiltab curator serve study.toml --name alice --identity pki/curator-alice --state state"
    " --table alice.csv --policy policy.toml"
)
@serve_options
@table_options
@policy_option
@work_options
def serve(options: ServeOptions, table: TableAddress, policy_path: Path | None, work: WorkOptions) -> None:
    """Load the table, align it with the other curators', and take part in releases."""
    from veiltab.curator.party.serving import serve_curator

    serve_curator(options, table=table, policy_path=policy_path, work=work)


@curator.command(epilog="Example: veiltab curator requests study.toml --name alice --state state")
@with_standing
@click.option("--all", "is_all", is_flag=True, help="Show all with their cards, those that have ended too.")
@json_option
def requests(standing: Standing, is_all: bool, as_json: bool) -> None:
    """List the requests that wait for a person, with the epsilon card and what is left of the budget, then the others.

    As JSON, all are there, oldest first.
    """
    if as_json:
        plain = {**_budget(standing), "requests": [view.as_dict() for view in view_requests(standing)]}
        emit(as_json, plain, "")
    else:
        emit(as_json, {}, _requests_text(standing, is_all=is_all))


def _requests_text(standing: Standing, *, is_all: bool) -> str:
    ids = standing.store.decisions.waiting_for_a_person(time.time())
    every = standing.store.releases.releases()
    waiting = [one for one in every if one.request.release_id in ids]
    under_way = [one for one in every if one.request.release_id not in ids and not one.state.finished]
    ended = [one for one in every if one.state.finished]
    if is_all:
        return requests_text([view_of(one, standing) for one in (*waiting, *under_way, *ended)], standing.ledger)
    return requests_text([view_of(one, standing) for one in waiting], standing.ledger, under_way, len(ended))


@curator.command(
    epilog='Example: veiltab curator approve study.toml --name alice --state state --release 3f --person "Ana Diaz"'
)
@with_standing
@optional_request_option
@click.option("--all", "is_all", is_flag=True, help="All requests that wait for this person.")
@held_option
@person_option
@reason_option
@click.option("--expires-days", type=click.IntRange(1, MOST_DAYS), help="Days for which the key may be fetched.")
@json_option
def approve(
    standing: Standing,
    prefix: str | None,
    is_all: bool,
    attributes: tuple[str, ...],
    person: str | None,
    reason: str,
    expires_days: int | None,
    as_json: bool,
) -> None:
    """Approve held attributes of a request, or of all; the running service continues by itself.

    The policy may ask for several persons: each of them approves by a command of their own.
    """
    if (prefix is None) != is_all or (is_all and attributes):
        raise click.UsageError("Name one request by --release, or take --all of them without --attribute.")
    who, now = named_person(person, standing.persons), int(time.time())
    expires = expiry(now, expires_days)
    if prefix is not None:
        release_id = standing.store.releases.release_id(prefix)
        outcome = approve_request(
            standing, release_id, _separated(attributes), person=who, reason=reason, expires=expires
        )
        emit(as_json, _outcome_data(outcome), _approval_text(outcome))
        return
    held = sorted(standing.store.decisions.waiting_for_a_person(now))
    waiting = [one for one in held if waits_for(standing, one, who)]
    if not waiting:
        raise _nothing_waits(who, held)
    outcomes = [approve_request(standing, one, person=who, reason=reason, expires=expires) for one in waiting]
    lines = [f"{one.release_id}  {_approval_text(one)}" for one in outcomes]
    emit(as_json, {"releases": [_outcome_data(one) for one in outcomes]}, "\n".join(lines))


@curator.command(
    epilog='Example: veiltab curator deny study.toml --name alice --state state --release 3f --person "Ana Diaz"'
    ' --reason "wages are not part of the agreement"'
)
@with_standing
@request_option
@held_option
@person_option
@reason_option
@json_option
def deny(
    standing: Standing, prefix: str, attributes: tuple[str, ...], person: str | None, reason: str, as_json: bool
) -> None:
    """Deny held attributes of a request, or the whole of one that is not charged yet; nothing is charged for it."""
    release_id = standing.store.releases.release_id(prefix)
    who = named_person(person, standing.persons)
    outcome = deny_request(standing, release_id, _separated(attributes), person=who, reason=reason)
    denied = "the request" if outcome.is_whole else ", ".join(outcome.denied)
    emit(as_json, {"release": release_id, "denied": list(outcome.denied)}, f"Denied: {denied}")


def _nothing_waits(who: str, held: Sequence[str]) -> NotReadyError:
    """Return why `approve --all` finds nothing: nothing is held, or this person has approved all that is."""
    if held:
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
    said = [f"Approved: {', '.join(outcome.approved)}"] if outcome.approved else []
    said += [
        f"Recorded for {attribute}; {number} other {'persons' if number > 1 else 'person'} must approve it as well."
        for attribute, number in outcome.missing.items()
    ]
    return "\n".join(said)


@curator.command(epilog="Example: veiltab curator ledger study.toml --name alice --state state")
@with_standing
@json_option
def ledger(standing: Standing, as_json: bool) -> None:
    """Show every charge, check the ledger's chain, and say what each coalition faces of all of them together."""
    book = standing.ledger
    charges = [(entry, purpose_of(entry, standing.store)) for entry in book.entries]
    lines = [entry_text(entry, purpose) for entry, purpose in charges]
    lines.append(f"{spent_text(book)} The chain is whole.")
    entries = [entry_data(entry, purpose) for entry, purpose in charges]
    bounds = bounds_of_charges(book)
    lines.extend(f"  {bound.name}: {bound.faces}" for bound in bounds)
    lines += [f"  {N_IS_EXACT}"] if bounds else []
    together = [bound.as_dict() for bound in bounds]
    emit(as_json, {**_budget(standing), "entries": entries, "card": together}, "\n".join(lines))


def _budget(standing: Standing) -> dict[str, object]:
    book, path = standing.ledger, standing.policy_path
    return {
        "budget": book.budget,
        "delta": book.delta,
        "policy": None if path is None else str(path),
        "spent": book.spent,
        "share": book.share,
        **book.left.as_dict(),
    }


curator.add_command(audit)
curator.add_command(console)
curator.add_command(console_link)
curator.add_command(evidence)
curator.add_command(notify)


@curator.command(
    "clear-tosses",
    epilog="Example: veiltab curator clear-tosses study.toml --name alice --state state --peer bob",
)
@with_standing
@click.option("--peer", required=True, help="Name of the other curator.")
@person_option
@json_option
def clear_tosses(standing: Standing, peer: str, person: str | None, as_json: bool) -> None:
    """Take part in releases again with a curator by which too many ended that were charged."""
    name = person_name(named_person(person))
    cleared = standing.store.coins.clear_aborted(standing.study.curator(peer).name, person=name)
    emit(as_json, {"peer": peer, "cleared": cleared}, f"Cleared: {cleared} releases that ended by curator {peer}")


@curator.command(
    "allow-alignment",
    epilog="Example: veiltab curator allow-alignment study.toml --name alice --state state --peer bob",
)
@with_standing
@click.option("--peer", required=True, help="Name of the other curator.")
@person_option
@json_option
def allow_alignment(standing: Standing, peer: str, person: str | None, as_json: bool) -> None:
    """Align privately again with a curator that began too many private alignments, or is suspected to change ids."""
    name = person_name(named_person(person))
    began = standing.store.private.allow(standing.study.curator(peer).name, token_bytes(PART_BYTES), person=name)
    emit(as_json, {"peer": peer, "began": began}, f"Allowed: curator {peer}, which began {began} private alignments")


@curator.command(epilog="Example: veiltab curator witness study.toml --name alice --state state --clear bob")
@with_standing
@click.option("--clear", "cleared", metavar="PARTY", help="Go on although this party has seen what the ledger lacks.")
@person_option
@json_option
def witness(standing: Standing, cleared: str | None, person: str | None, as_json: bool) -> None:
    """Show which ledgers this curator remembers, and who has seen entries that its own ledger lacks.

    Either the ledger was rolled back, or somebody showed an invented one under this curator's name. Clear a party only
    if it was invented: what a restored backup forgot is spent.
    """
    doubts = standing.ledger.doubts
    if cleared is not None:
        doubts.set_aside(cleared, person=person_name(named_person(person)))
    own, others = standing.ledger.head[0], [each.name for each in standing.study.curators if each.name != standing.name]
    remembered = {name: standing.store.alignments.witness(name)[0] for name in others}
    plain = {"entries": own, "remembered": remembered, "lacking": [one.as_dict() for one in doubts.all()]}
    emit(as_json, plain, witness_text(own, remembered, doubts.all()))


@curator.group()
def policy() -> None:
    """Try the rules that decide about requests.

    Example: veiltab curator policy test study.toml --name alice --state state --researcher rosa --epsilon .5
    --attributes education
    """


@policy.command(
    epilog="Example: veiltab curator policy test study.toml --name alice --state state --policy policy.toml"
    " --researcher rosa --epsilon .5 --delta 1e-6 --attributes education"
)
@with_standing
@click.option("--researcher", required=True, help="Who would ask.")
@click.option("--epsilon", required=True, help="Nats.")
@click.option("--delta", help="Of the guarantee; without it epsilon is pure.")
@click.option("--attributes", required=True, help="What would be asked for, separated by commas.")
@click.option("--population", type=click.IntRange(min=1), help="Common respondents; by default those of the alignment.")
@json_option
def test(
    standing: Standing,
    researcher: str,
    epsilon: str,
    delta: str | None,
    attributes: str,
    population: int | None,
    as_json: bool,
) -> None:
    """Say which rules would decide about a request, what it would be charged, and what would be left."""
    if researcher not in {each.name for each in standing.study.researchers}:
        raise InvalidInputError("researcher is not in the study", where="--researcher")
    latest = standing.store.alignments.latest_alignment()
    respondents = population or (latest[0] if latest else None)
    if respondents is None:
        raise InvalidInputError(
            "the tables are not aligned yet", where="--population", remedy="Say how many they share."
        )
    request = hypothetical_request(
        researcher, tuple(attributes.split(",")), parse_epsilon(epsilon), None if delta is None else parse_delta(delta)
    )
    rules = policy_of(standing.study, standing.name, standing.policy_path)
    trial = try_policy(rules, request, standing.study, standing.name, standing.ledger, respondents)
    emit(as_json, trial.as_dict(), trial.as_text())
