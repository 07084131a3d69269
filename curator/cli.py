"""`veiltab curator`: check a table, serve it, decide about requests, show the ledger."""

import functools
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, emit, json_option
from veiltab.common.command.options import (
    ServeOptions,
    name_option,
    serve_options,
    state_option,
    study_argument,
)
from veiltab.common.core.rounding import parse_delta, parse_epsilon, upward
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.privacy.card import Bound
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec, requested_columns
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.workload import WorkloadSpec
from veiltab.common.rpc.identity import Party, Role
from veiltab.common.storage.files import check_owner
from veiltab.common.study.file import Study, load_study
from veiltab.curator.coalitions import bounds_of_charges
from veiltab.curator.ledger import Entry, Ledger, percent
from veiltab.curator.planning import (
    card_bounds,
    charge_question,
    planned,
    store_card,
    stored_card,
    stored_charge,
    stored_plan,
)
from veiltab.curator.policy import Policy, policy_of
from veiltab.curator.progress import APPROVED, DENIED, HELD, CuratorRelease, GrantDecision
from veiltab.curator.release import plan_of, plan_question
from veiltab.curator.store import CuratorStore
from veiltab.curator.trial import hypothetical_request, try_policy
from veiltab.curator.workload import most_bytes, typical_error

policy_option = click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path), help="Policy file; without one, a person decides."
)

_ELSEWHERE = {"release_id", "researcher", "attributes", "epsilon", "tables"}
_BELOW = {field.name: field.name.replace("_", " ") for field in fields(ReleaseRequest) if field.name not in _ELSEWHERE}
_LABELS = _BELOW | {
    "waiting_for": "waits for",
    "failure": "failed",
    "note": "note",
    "root_mse": "expected root-mean-square error",
    "typical_error": "expected total variation distance of a typical table",
    "repeats": "tables that run a second time, chosen after the first results",
}
"""What is printed below a request's headline where there is something to print: its key, and what it is called."""

_SHOWN = 3
"""Tables that are named for people; of more it is said how many there are."""

request_option = click.option("--release", "release_id", required=True, help="Id of the request.")
held_option = click.option(
    "--attribute", "attributes", multiple=True, help="Only these attributes; by default all that are held."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The state that a curator's commands read beside the running process."""

    study: Study
    name: str
    store: CuratorStore
    ledger: Ledger
    policy_path: Path | None
    """The file of the option, or else that of the process that served last."""


def with_state(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the state of the curator whom its options name, as its argument `state`."""

    @study_argument
    @name_option
    @state_option
    @policy_option
    @functools.wraps(command)
    def opened(study_path: Path, name: str, state_folder: Path, policy_path: Path | None, **options: object) -> None:
        study = load_study(study_path)
        study.curator(name)
        path = state_folder / "curator.sqlite"
        if not path.exists():
            raise NotFoundError("no curator has run on this folder", where=str(state_folder))
        check_owner(state_folder, Party(study=study.id, role=Role.CURATOR, name=name).uri)
        with closing(CuratorStore(path)) as store:
            served, _, budget = store.served_policy()
            # Without the option, the budget is the one that is served, whatever the file says by now.
            policy = Policy(budget=budget) if policy_path is None else policy_of(study, name, policy_path)
            ledger = Ledger(store.connection, policy.budget_within(study.budget_epsilon), study.budget_delta)
            used = policy_path or served
            command(state=_State(study=study, name=name, store=store, ledger=ledger, policy_path=used), **options)

    return opened


@click.group(epilog=EXIT_CODES)
def curator() -> None:
    """Hold some columns, and decide who may learn what about them.

    Example: veiltab curator check study.toml --name alice --table alice.csv
    """


@curator.command(epilog="Example: veiltab curator check study.toml --name alice --table alice.csv")
@study_argument
@name_option
@click.option("--table", "table_path", required=True, type=click.Path(path_type=Path), help=".csv or .parquet file.")
@json_option
def check(study_path: Path, name: str, table_path: Path, as_json: bool) -> int:
    """Check a table against the study and report its contents; the command sends nothing."""
    from veiltab.curator.inspection import inspect_table

    inspection = inspect_table(table_path, load_study(study_path), name)
    emit(as_json, inspection.as_dict(), inspection.as_text())
    return 0 if inspection.ok else InvalidInputError.exit_code


@curator.command(
    epilog="Example: veiltab curator serve study.toml --name alice --identity pki/curator-alice --state state"
    " --table alice.csv --policy policy.toml"
)
@serve_options
@click.option("--table", "table_path", required=True, type=click.Path(path_type=Path), help=".csv or .parquet file.")
@policy_option
def serve(options: ServeOptions, table_path: Path, policy_path: Path | None) -> None:
    """Load the table, align it with the other curators', and take part in releases."""
    from veiltab.curator.serving import serve_curator

    serve_curator(options, table_path=table_path, policy_path=policy_path)


@curator.command(epilog="Example: veiltab curator requests study.toml --name alice --state state")
@with_state
@json_option
def requests(state: _State, as_json: bool) -> None:
    """List the requests, with the epsilon card and what is left of the budget before anyone decides."""
    listed = [_described(stored, state) for stored in state.store.releases()]
    plain = [{**request, "card": [bound.as_dict() for bound in _card(request)]} for request in listed]
    emit(as_json, {**_budget(state), "requests": plain}, _requests_text(listed, state.ledger))


@curator.command(epilog="Example: veiltab curator approve study.toml --name alice --state state --release 3f... ")
@with_state
@request_option
@held_option
@click.option("--expires-days", type=click.IntRange(min=1), help="Days for which the key may be fetched.")
@json_option
def approve(
    state: _State,
    release_id: str,
    attributes: tuple[str, ...],
    expires_days: int | None,
    as_json: bool,
) -> None:
    """Approve held attributes of a request; the running service continues by itself."""
    expires = None if expires_days is None else int(time.time()) + expires_days * 86_400
    decided = _decide(state.store, release_id, attributes, APPROVED, expires)
    emit(as_json, {"release": release_id, "approved": decided}, f"Approved: {', '.join(decided)}")


@curator.command(epilog="Example: veiltab curator deny study.toml --name alice --state state --release 3f... ")
@with_state
@request_option
@held_option
@json_option
def deny(state: _State, release_id: str, attributes: tuple[str, ...], as_json: bool) -> None:
    """Deny held attributes of a request, or the whole of one that is not charged yet; nothing is charged for it."""
    held = [d for d in state.store.decisions(release_id) if d.verdict == HELD]
    if not held and not attributes:
        state.store.deny(release_id, "a person denied the request")
        emit(as_json, {"release": release_id, "denied": []}, "Denied: the request")
        return
    decided = _decide(state.store, release_id, attributes, DENIED, None)
    emit(as_json, {"release": release_id, "denied": decided}, f"Denied: {', '.join(decided)}")


@curator.command(epilog="Example: veiltab curator ledger study.toml --name alice --state state")
@with_state
@json_option
def ledger(state: _State, as_json: bool) -> None:
    """Show every charge, check the ledger's chain, and say what each coalition faces of all of them together."""
    book = state.ledger
    lines = [_entry_text(entry) for entry in book.entries]
    lines.append(f"{_spent_text(book)} The chain is whole.")
    entries = [_entry_data(entry) for entry in book.entries]
    bounds = bounds_of_charges(book, state.store)
    lines.extend(f"  {bound.name}: {bound.faces}" for bound in bounds)
    together = [bound.as_dict() for bound in bounds]
    emit(as_json, {**_budget(state), "entries": entries, "card": together}, "\n".join(lines))


def _budget(state: _State) -> dict[str, object]:
    book, path = state.ledger, state.policy_path
    return {
        "budget": book.budget,
        "delta": book.delta,
        "policy": None if path is None else str(path),
        "spent": book.spent,
        "share": book.share,
        "remaining": book.remaining,
    }


def _spent_text(book: Ledger) -> str:
    if book.delta is None:
        return f"Spent {upward(book.spent)} of {book.budget}; {book.remaining:.6f} left."
    return (
        f"Spent epsilon {upward(book.spent)} at delta {book.delta}, {percent(book.share)} of the budget of"
        f" {book.budget}; one more release may have {book.remaining:.6f}."
    )


def _entry_data(entry: Entry) -> dict[str, object]:
    price = {} if entry.price is None else {"mu": entry.price.mu, "slack": entry.price.slack}
    return {
        "number": entry.number,
        "release": entry.release_id,
        **entry.facts,
        "time": _time_of(entry),
        "epsilon": Decimal(str(entry.facts.get("epsilon", entry.epsilon))),
        "pure_epsilon": entry.epsilon,
        **price,
        "share": entry.share,
    }


def _entry_text(entry: Entry) -> str:
    facts = entry.facts
    asked = Decimal(str(facts["epsilon"])) if facts.get("delta") and "epsilon" in facts else entry.epsilon
    delta = f", delta {facts['delta']}" if facts.get("delta") else ""
    tables = f"{entry.tables} tables of " if entry.tables else ""
    return (
        f"{entry.number:4}  {_time_of(entry) or 'time unknown'}  {facts['researcher']}"
        f"  {tables}{', '.join(map(str, _list(facts['attributes'])))}  epsilon {upward(asked)}{delta}"
        f"  charge {percent(entry.share)}  {entry.release_id}"
    )


def _time_of(entry: Entry) -> str | None:
    seconds = entry.facts.get("time")
    return datetime.fromtimestamp(seconds, UTC).isoformat() if isinstance(seconds, int) else None


@curator.command(
    "clear-tosses",
    epilog="Example: veiltab curator clear-tosses study.toml --name alice --state state --peer bob",
)
@with_state
@click.option("--peer", required=True, help="Name of the other curator.")
@json_option
def clear_tosses(state: _State, peer: str, as_json: bool) -> None:
    """Take part in releases again with a curator that withheld its part of a coin too often."""
    cleared = state.store.clear_aborted_tosses(state.study.curator(peer).name)
    emit(as_json, {"peer": peer, "cleared": cleared}, f"Cleared: {cleared} tosses of curator {peer}")


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
@with_state
@click.option("--researcher", required=True, help="Who would ask.")
@click.option("--epsilon", required=True, help="Nats.")
@click.option("--delta", help="Of the guarantee; without it epsilon is pure.")
@click.option("--attributes", required=True, help="What would be asked for, separated by commas.")
@click.option("--population", type=click.IntRange(min=1), help="Common respondents; by default those of the alignment.")
@json_option
def test(
    state: _State,
    researcher: str,
    epsilon: str,
    delta: str | None,
    attributes: str,
    population: int | None,
    as_json: bool,
) -> None:
    """Say which rules would decide about a request, what it would be charged, and what would be left."""
    if researcher not in {each.name for each in state.study.researchers}:
        raise InvalidInputError("researcher is not in the study", where="--researcher")
    latest = state.store.latest_alignment()
    respondents = population or (latest[0] if latest else None)
    if respondents is None:
        raise InvalidInputError(
            "the tables are not aligned yet", where="--population", remedy="Say how many they share."
        )
    request = hypothetical_request(
        researcher, tuple(attributes.split(",")), parse_epsilon(epsilon), None if delta is None else parse_delta(delta)
    )
    rules = policy_of(state.study, state.name, state.policy_path)
    trial = try_policy(rules, request, state.study, state.name, state.ledger, respondents)
    emit(as_json, trial.as_dict(), trial.as_text())


def _decide(
    store: CuratorStore, release_id: str, attributes: tuple[str, ...], verdict: str, expires: int | None
) -> list[str]:
    stored = store.release(release_id)
    held = [d.attribute for d in store.decisions(release_id) if d.verdict == HELD]
    chosen = [name for listed in attributes for name in listed.split(",")] or held
    over = time.time() > stored.request.deadline
    if over or stored.state is not ReleaseState.REQUESTED or not chosen or not set(chosen) <= set(held):
        decided = {d.attribute: d.verdict for d in store.decisions(release_id) if d.verdict != HELD}
        known = ", ".join(f"{name} is {verdict}" for name, verdict in decided.items())
        raise InvalidInputError(
            "these attributes are not held"
            + (f" ({known})" if known else "")
            + ("; the deadline passed" if over else ""),
            where=f"release {release_id}",
            remedy=f"Held: {', '.join(held) or 'none'}. `veiltab curator requests` shows what waits.",
        )
    store.decide(
        release_id,
        tuple(GrantDecision(attribute=name, verdict=verdict, expires=expires, decided_by="person") for name in chosen),
    )
    return chosen


def _described(stored: CuratorRelease, state: _State) -> dict[str, object]:
    request = stored.request
    own = {rule.name for rule in state.study.attributes_of(state.name)}
    decisions = {d.attribute: d.verdict for d in state.store.decisions(request.release_id)}
    return {
        **_asked(request),
        "state": stored.state.value,
        "own": {attribute: decisions.get(attribute, HELD) for attribute in request.attributes if attribute in own},
        "waiting_for": stored.waiting_for,
        "failure": stored.failure,
        **_expected(stored, state),
    }


def _asked(request: ReleaseRequest) -> dict[str, object]:
    """Return every field of a request by its name; the id is what commands call the release."""
    asked = {field.name: getattr(request, field.name) for field in fields(request)}
    plain = {name: value.value if isinstance(value, Enum) else value for name, value in asked.items()}
    return (
        {"release": plain.pop("release_id")}
        | plain
        | {
            "attributes": list(request.attributes),
            "tables": [list(table) for table in request.tables],
            "deadline": datetime.fromtimestamp(request.deadline, UTC).isoformat(),
        }
    )


def _expected(stored: CuratorRelease, state: _State) -> dict[str, object]:
    """Return the epsilon card, the charge and the expected error, from the spec or as the plan can be foreseen."""
    if stored.planned is not None:
        return _facts(stored.planned, state)
    latest = state.store.latest_alignment()
    if latest is None:
        return {"card": (), "note": "The tables are not aligned yet; the card needs the number of common respondents."}
    population, digest = latest
    columns = requested_columns(stored.request, state.study)
    question = plan_question(stored.request, columns, state.study, population=population, alignment=digest)
    try:
        spec = stored_plan(state.store, question) or planned(question)
    except InvalidInputError as error:
        return {"card": (), "note": f"This cannot be planned: {error}"}
    facts = _facts(spec, state) | {"sample": spec.sample}
    if isinstance(spec, WorkloadSpec):
        return facts | {"typical_error": typical_error(spec), "bytes": most_bytes(spec, state.name)}
    return facts | {"root_mse": plan_of(spec).root_mse()}


def _facts(spec: ReleaseSpec | WorkloadSpec, state: _State) -> dict[str, object]:
    """Return a plan's card and charge; a card that was not made yet is made and stored here."""
    bounds = stored_card(state.store, spec)
    if bounds is None:
        bounds = card_bounds(spec)
        store_card(state.store, spec, bounds)
    question = charge_question(spec, state.ledger.allowance)
    charge = stored_charge(state.store, question) or question.charge()
    return {"card": bounds, "charge": state.ledger.allowance.share(charge)}


def _requests_text(listed: list[dict[str, object]], ledger: Ledger) -> str:
    lines = [f"Budget {ledger.budget}: spent {upward(ledger.spent)}, {ledger.remaining:.6f} left."]
    for request in listed:
        lines.append(
            f"\n{request['release']}  {request['state']}  {request['researcher']} asks for"
            f" {', '.join(map(str, _list(request['attributes'])))} at epsilon {request['epsilon']}"
        )
        lines.extend(f"  {label}: {_shown(request[key])}" for key, label in _LABELS.items() if request.get(key))
        if tables := _list(request["tables"]):
            named = "; ".join(" x ".join(table) for table in tables[:_SHOWN])
            lines.append(f"  tables: {len(tables)}{', for example' if len(tables) > _SHOWN else ':'} {named}")
        if isinstance(size := request.get("bytes"), int):
            lines.append(f"  bytes sent from here: {size:,}")
        if isinstance(charge := request.get("charge"), Decimal):
            lines.append(f"  charge: {percent(charge)} of the budget")
        lines.extend(
            f"  decision here: {name} {'was held' if verdict == HELD and request['failure'] else verdict}"
            for name, verdict in _pairs(request["own"])
        )
        lines.extend(f"  {bound.name}: {bound.faces}" for bound in _card(request))
    if not listed:
        lines.append("No requests.")
    return "\n".join(lines)


def _shown(fact: object) -> str:
    """Return a fact for people: an error with three digits, and whether something is so in words."""
    match fact:
        case bool():
            return "yes"
        case float():
            return f"{fact:.3g}"
        case _:
            return str(fact)


def _card(request: dict[str, object]) -> tuple[Bound, ...]:
    bounds = request["card"]
    return bounds if isinstance(bounds, tuple) else ()


def _pairs(value: object) -> list[tuple[str, str]]:
    return list(value.items()) if isinstance(value, dict) else []


def _list(value: object) -> list[list[str]]:
    return value if isinstance(value, list) else []
