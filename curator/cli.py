"""`veiltab curator`: check a table, serve it, decide about requests, show the ledger."""

import functools
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import UTC, datetime
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
from veiltab.common.core.rounding import upward
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.privacy.card import card_of
from veiltab.common.release.guarantees import epsilon_card
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.identity import Party, Role
from veiltab.common.storage.files import check_owner
from veiltab.common.study.file import Study, load_study
from veiltab.curator.ledger import Ledger
from veiltab.curator.policy import policy_of
from veiltab.curator.progress import APPROVED, DENIED, HELD, CuratorRelease, GrantDecision
from veiltab.curator.release import foreseen_plan
from veiltab.curator.store import CuratorStore

policy_option = click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path), help="Policy file; without one, a person decides."
)

_HEADLINE = {"release_id", "researcher", "attributes", "epsilon"}
_BELOW = {field.name: field.name.replace("_", " ") for field in fields(ReleaseRequest) if field.name not in _HEADLINE}
_LABELS = _BELOW | {
    "waiting_for": "waits for",
    "failure": "failed",
    "note": "note",
    "root_mse": "expected root-mean-square error",
}
"""What is printed below a request's headline where there is something to print: its key, and what it is called."""


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
            budget = policy_of(study, name, policy_path).budget_within(study.budget_epsilon)
            ledger = Ledger(store.connection, budget, study.budget_delta)
            command(state=_State(study=study, name=name, store=store, ledger=ledger), **options)

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
    ledger = state.ledger
    listed = [_described(stored, state.study, state.store, state.name) for stored in state.store.releases()]
    data = {"budget": ledger.budget, "spent": ledger.spent, "remaining": ledger.remaining, "requests": listed}
    emit(as_json, data, _requests_text(listed, ledger))


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
    """Show every charge, and check the ledger's chain."""
    book = state.ledger
    entries = [{"number": e.number, "release": e.release_id, "epsilon": e.epsilon, **e.facts} for e in book.entries]
    data = {"budget": book.budget, "spent": book.spent, "remaining": book.remaining, "entries": entries}
    lines = [
        f"{e.number:4}  epsilon {upward(e.epsilon)}  {e.facts['researcher']}  {e.release_id}" for e in book.entries
    ]
    lines.append(f"Spent {upward(book.spent)} of {book.budget}; {book.remaining:.6f} left. The chain is whole.")
    emit(as_json, data, "\n".join(lines))


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


def _described(stored: CuratorRelease, study: Study, store: CuratorStore, name: str) -> dict[str, object]:
    request = stored.request
    own = {rule.name for rule in study.attributes_of(name)}
    decisions = {d.attribute: d.verdict for d in store.decisions(request.release_id)}
    return {
        **_asked(request),
        "state": stored.state.value,
        "own": {attribute: decisions.get(attribute, HELD) for attribute in request.attributes if attribute in own},
        "waiting_for": stored.waiting_for,
        "failure": stored.failure,
        **_expected(stored, study, store),
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
            "deadline": datetime.fromtimestamp(request.deadline, UTC).isoformat(),
        }
    )


def _expected(stored: CuratorRelease, study: Study, store: CuratorStore) -> dict[str, object]:
    """Return the epsilon card and the expected error, from the spec or as far as the plan can be foreseen."""
    if stored.spec is not None:
        return {"card": [list(row) for row in epsilon_card(stored.spec).rows()]}
    population = store.latest_population()
    if population is None:
        return {"card": [], "note": "The tables are not aligned yet; the card needs the number of common respondents."}
    try:
        plan = foreseen_plan(stored.request, population=population, cells=study.domain(stored.request.attributes).cells)
    except InvalidInputError as error:
        return {"card": [], "note": f"This cannot be planned: {error}"}
    card = card_of(plan.description, delta=plan.delta, one_time=stored.request.pad.is_one_time)
    return {"card": [list(row) for row in card.rows()], "sample": plan.sample, "root_mse": plan.root_mse()}


def _requests_text(listed: list[dict[str, object]], ledger: Ledger) -> str:
    lines = [f"Budget {ledger.budget}: spent {upward(ledger.spent)}, {ledger.remaining:.6f} left."]
    for request in listed:
        lines.append(
            f"\n{request['release']}  {request['state']}  {request['researcher']} asks for"
            f" {', '.join(map(str, _list(request['attributes'])))} at epsilon {request['epsilon']}"
        )
        lines.extend(
            f"  {label}: {'yes' if request[key] is True else request[key]}"
            for key, label in _LABELS.items()
            if request.get(key)
        )
        lines.extend(f"  decision here: {name} {verdict}" for name, verdict in _pairs(request["own"]))
        lines.extend(f"  {who}: {faces}" for who, faces in _list(request["card"]))
    if not listed:
        lines.append("No requests.")
    return "\n".join(lines)


def _pairs(value: object) -> list[tuple[str, str]]:
    return list(value.items()) if isinstance(value, dict) else []


def _list(value: object) -> list[list[str]]:
    return value if isinstance(value, list) else []
