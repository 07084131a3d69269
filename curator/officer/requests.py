"""A curator's requests as people see them: who asks for what and why, what it would cost, and what was decided."""

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from veiltab.common.dataclass import dataclass, fields, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.release.floors import USUAL
from veiltab.common.release.guarantees import release_card
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import requested_columns
from veiltab.common.study.missing import presence_sentence
from veiltab.curator.budget.allowance import Charge
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.budget.remaining import Kind, Rest
from veiltab.curator.officer.open_state import OpenedState
from veiltab.curator.officer.verdicts import approvals_by_attribute
from veiltab.curator.planning.plan_questions import charge_question, plan_question
from veiltab.curator.planning.planner import store_card, stored_card, stored_charge, stored_plan
from veiltab.curator.planning.plans import charge_of, most_bytes, plan_of, planned_release, typical_error
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import Approval, CuratorRelease, GrantDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeStatus:
    """How far the decision about an attribute of this curator's is.

    Args:
        decision: what was decided; held where nobody has decided yet.
        approvals: what different persons approved of it, oldest first.
        missing: how many other persons must still approve it; 0 unless it is held.
    """

    decision: GrantDecision
    approvals: tuple[Approval, ...]
    missing: int

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        decision = {one.name: getattr(self.decision, one.name) for one in fields(self.decision)}
        return {
            **decision,
            "time": moment(self.decision.time),
            "expires": moment(self.decision.expires),
            "approvals": [
                {"person": one.person, "time": moment(one.time), "reason": one.reason, "expires": moment(one.expires)}
                for one in self.approvals
            ],
            "missing": self.missing,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a release costs and is worth, as it is planned, or as the plan can be foreseen.

    Args:
        card: the epsilon card, by coalition; empty if there is no plan.
        note: why there is no plan.
        unusual: what it gives less than usual, in words.
        charge: the part of the budget that it takes.
        rest_after: what one more release of the same kind could have after it; None once it is decided about.
        budget_note: what its part of the budget does not say, until it is decided about.
        sample: rows, where the plan is foreseen.
        root_mse: expected root-mean-square distance of one table that is foreseen, all its cells together.
        cell_root_mse: expected root-mean-square error of one cell of it.
        typical_error: expected total variation distance of a typical table of several that are foreseen.
        bytes: most that leaves this curator for several tables that are foreseen.
        n: rows of the latest alignment, which are those of the hub; None if there is none.
        matched: how many of them are of people in this curator's table; None at the hub.
        presence: which neighbours a guarantee is about, and who learns of whose presence.
    """

    card: tuple[Bound, ...] = ()
    note: str | None = None
    unusual: tuple[str, ...] = ()
    charge: Decimal | None = None
    rest_after: Rest | None = None
    budget_note: str | None = None
    sample: int | None = None
    root_mse: float | None = None
    cell_root_mse: float | None = None
    typical_error: float | None = None
    bytes: int | None = None
    n: int | None = None
    matched: int | None = None
    presence: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: what is known."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        rest = values.pop("rest_after")
        return (
            {name: value for name, value in values.items() if value is not None}
            | ({} if rest is None else rest.as_dict("remaining_after"))
            | {"card": [bound.as_dict() for bound in self.card]}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """A request as the people of one curator see it.

    Args:
        release: as this curator has recorded it.
        own: this curator's attributes of it, in the request's order.
        outlook: what it costs and is worth.
    """

    release: CuratorRelease
    own: tuple[AttributeStatus, ...]
    outlook: Outlook

    @property
    def request(self) -> ReleaseRequest:
        """What is asked for."""
        return self.release.request

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            **plain_request(self.request),
            "state": self.release.state.value,
            "own": {one.decision.attribute: one.decision.verdict for one in self.own},
            "decisions": [one.as_dict() for one in self.own],
            "waiting_for": self.release.waiting_for,
            "failure": self.release.failure,
            **self.outlook.as_dict(),
        }


def view_requests(own_state: OpenedState) -> tuple[RequestView, ...]:
    """Return all requests, oldest first."""
    return tuple(view_of(release, own_state) for release in own_state.store.releases.releases())


def view_of(release: CuratorRelease, own_state: OpenedState) -> RequestView:
    """Return one request, or a table of several; what is foreseen of it is worked out here if nobody did before."""
    outlook = replace(_outlook(release, own_state), presence=presence_sentence(own_state.study))
    return RequestView(release=release, own=attribute_statuses(release, own_state), outlook=outlook)


def attribute_statuses(release: CuratorRelease, own_state: OpenedState) -> tuple[AttributeStatus, ...]:
    """Return how far the decisions about this curator's attributes of a request are, in the request's order."""
    release_id = release.request.release_id
    decisions = {one.attribute: one for one in own_state.store.decisions.decisions(release_id)}
    approvals = approvals_by_attribute(own_state.store, release_id)
    own = {rule.name for rule in own_state.study.attributes_of(own_state.name)}
    return tuple(
        _status(
            decisions.get(name) or GrantDecision(attribute=name, verdict=HELD, expires=None, decided_by=""),
            approvals.get(name, ()),
            own_state.persons,
        )
        for name in release.request.attributes
        if name in own
    )


def plain_request(request: ReleaseRequest) -> dict[str, Any]:
    """Return every field of a request by its name; the id is what commands call the release."""
    values = {field.name: getattr(request, field.name) for field in fields(request)}
    plain = {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}
    return (
        {"release": plain.pop("release_id")}
        | plain
        | {
            "attributes": list(request.attributes),
            "tables": [list(table) for table in request.tables],
            "deadline": moment(request.deadline),
        }
    )


def moment(seconds: int | None) -> str | None:
    """Return a time as ISO 8601 has it, in UTC; None where none is recorded."""
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None


def _status(decision: GrantDecision, approvals: tuple[Approval, ...], persons: int) -> AttributeStatus:
    missing = max(0, persons - len(approvals)) if decision.verdict == HELD else 0
    return AttributeStatus(decision=decision, approvals=approvals, missing=missing)


def _outlook(release: CuratorRelease, own_state: OpenedState) -> Outlook:
    outlook, latest = _cost(release, own_state), own_state.store.alignments.latest_alignment()
    if latest is None:
        return outlook
    is_hub = own_state.name == own_state.study.hub
    return replace(outlook, n=latest[0], matched=None if is_hub else own_state.store.alignments.matched())


def _cost(release: CuratorRelease, own_state: OpenedState) -> Outlook:
    if release.planned is not None:
        return Outlook(**_facts(release.planned, release, own_state))
    latest = own_state.store.alignments.latest_alignment()
    if latest is None:
        return Outlook(note="The tables are not aligned yet; the card needs the number of rows.")
    population, digest = latest
    columns = requested_columns(release.request, own_state.study)
    question = plan_question(release.request, columns, own_state.study, population=population, alignment=digest)
    try:
        spec = stored_plan(own_state.store, question) or planned_release(question)
    except InvalidInputError as error:
        return Outlook(note=f"This cannot be planned: {error}")
    facts = _facts(spec, release, own_state) | {"sample": spec.sample}
    if spec.only_table is None:
        return Outlook(**facts, typical_error=typical_error(spec), bytes=most_bytes(spec, own_state.name))
    plan = plan_of(spec.only_table)
    return Outlook(**facts, root_mse=plan.root_mse(), cell_root_mse=plan.cell_root_mse())


def _facts(spec: ReleaseSpec, release: CuratorRelease, own_state: OpenedState) -> dict[str, Any]:
    """Return a plan's card and charge; a card that was not made yet is made and stored here."""
    store, ledger = own_state.store, own_state.ledger
    bounds = stored_card(store, spec)
    if bounds is None:
        bounds = release_card(spec).bounds
        store_card(store, spec, bounds)
    allowance = ledger.budget.allowance
    charge = stored_charge(store, charge_question(spec, allowance)) or charge_of(spec, allowance)
    is_open = release.state is ReleaseState.REQUESTED
    kind = Kind.of(spec.population, (table.cells for table in spec.each_table()))
    return {
        "card": bounds,
        "unusual": tuple(f"{lack.gives}; a usual rule {lack.demand}" for lack in USUAL.lacks(spec)),
        "charge": ledger.budget.allowance.share(charge),
        "rest_after": ledger.budget.rest_after(charge, kind) if is_open else None,
        "budget_note": _budget_note(ledger, charge) if is_open else None,
    }


def _budget_note(ledger: Ledger, charge: Charge) -> str | None:
    """Say that the budget does not hold a charge now, or why it holds one whose price is above the whole budget."""
    if not ledger.budget.holds(charge):
        return "The budget does not hold it now: once all approve, it is denied, or waits for what others reserved."
    if ledger.budget.allowance.share(charge) > 1:
        return (
            "Its price is more than the budget, which holds it all the same: its own guarantee keeps the budget"
            ' (docs/accounting.md, "Ledger").'
        )
    return None
