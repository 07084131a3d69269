"""The pages of releases: all of them, and one with its facts, its guarantees and its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from starlette.responses import Response

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.state import ReleaseState
from veiltab.common.web.forms import whole_number
from veiltab.common.web.pages import Visit
from veiltab.researcher.console.desk import Desk
from veiltab.researcher.console.downloads import file_name
from veiltab.researcher.status.release_status import Status

_ON_A_PAGE = 20
_FEW_ATTRIBUTES = 3
"""A table of so many attributes is shown whole."""

_TABLES_LISTED = 200

_STEPS = {
    ReleaseState.REQUESTED: "Every curator decides",
    ReleaseState.APPROVED: "Approved by every curator",
    ReleaseState.PLANNED: "Respondents matched, sample and noise agreed",
    ReleaseState.CHARGED: "Charged to the curators' budgets",
    ReleaseState.UPLOADING: "Encrypted columns on their way to the server",
    ReleaseState.PERTURBING: "Noise added by the server, and tested",
    ReleaseState.READY: "Keys given, rows counted: the result is here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a release.

    Args:
        kind: good, wait or bad, as in the style sheet; empty for what is still to come.
        details: what there is to say of it.
        when: Unix seconds; None if it is not recorded.
    """

    text: str
    kind: str = ""
    details: Sequence[str] = ()
    when: float | None = None


class ReleasePages:
    """Shows releases."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def show_all(self, visit: Visit) -> Response:
        """Show a page of the releases, newest first."""
        releases = self._desk.releases()
        pages = max(1, -(-len(releases) // _ON_A_PAGE))
        number = _page_number(visit.query.text("page", "1"), pages)
        shown = releases[(number - 1) * _ON_A_PAGE : number * _ON_A_PAGE]
        rows = [self._desk.status(one.release_id) for one in shown]
        return visit.render(
            "releases.html", rows=rows, badge=badge, size=_size, may_ask=self._desk.may_ask, number=number, pages=pages
        )

    def show(self, visit: Visit) -> Response:
        """Show one release."""
        desk = self._desk
        status = desk.status(visit.parameters["release"])
        is_ready = status.state is ReleaseState.READY
        card = desk.card(status) if is_ready else None
        owners = {rule.name: rule.owner for rule in desk.study.attributes}
        respondents, difference = "", ""
        if is_ready:
            try:
                respondents = desk.release(status).respondents()
            except InvalidInputError as error:
                difference = str(error)
        return visit.render(
            "release.html",
            release=status,
            facts=_facts(status),
            badge=badge,
            steps=steps(status),
            is_ready=is_ready,
            has_certificate=is_ready and desk.may_ask,
            card=card,
            respondents=respondents,
            difference=difference,
            tables=status.tables[:_TABLES_LISTED],
            attributes=status.measured_attributes,
            ticked=_first_table(status, owners),
            owners=owners,
        )

    def download_certificate(self, visit: Visit) -> Response:
        """Send the certificate of a release, of all its tables."""
        status = self._desk.ready(visit.parameters["release"])
        text = self._desk.client.certificate(status.release_id)
        return visit.download(file_name(status, "", suffix=".certificate"), text.encode(), "application/octet-stream")

    def download_study(self, visit: Visit) -> Response:
        """Send the study file under which a release was asked for."""
        status = self._desk.status(visit.parameters["release"])
        data = self._desk.client.study_file(status.study_digest)
        return visit.download(file_name(status, "study", suffix=".toml"), data, "application/toml")


def _first_table(status: Status, owners: Mapping[str, str]) -> tuple[str, ...]:
    """Return the attributes of the table to show first: all of few, else one of each of two curators."""
    names = status.measured_attributes
    if not status.tables and len(names) <= _FEW_ATTRIBUTES:
        return names
    others = [name for name in names[1:] if owners.get(name) != owners.get(names[0])]
    return (names[0], *(others or names[1:])[:1])


def badge(state: ReleaseState) -> str:
    """Return the kind of a state, as in the style sheet."""
    if state.unsuccessful:
        return "bad"
    return "good" if state.finished else "wait"


def steps(status: Status) -> tuple[Step, ...]:
    """Return the steps of a release: those behind it, the one it is at, and those to come."""
    parties = tuple(f"{party}: {state.value}" for party, (state, _) in sorted(status.parties.items()))
    began = Step(text="Asked", kind="good", when=status.created or None)
    if status.state.unsuccessful:
        return (began, Step(text=f"Ended: {status.state.value}", kind="bad", details=(status.failure, *parties)))
    order = list(_STEPS)
    at = order.index(status.state)
    shown = [began]
    for place, state in enumerate(order):
        if place < at or status.state is ReleaseState.READY:
            shown.append(
                Step(text=_STEPS[state], kind="good", details=_took(status) if place == len(order) - 1 else ())
            )
        elif place == at:
            progress = (status.progress,) if status.progress else ()
            shown.append(Step(text=_STEPS[state], kind="wait", details=(*progress, *(status.waiting_lines or parties))))
        else:
            shown.append(Step(text=_STEPS[state]))
    return tuple(shown)


def _took(status: Status) -> tuple[str, ...]:
    total = status.seconds.get("total")
    return () if total is None else (f"It took {total:,.1f} s from its start.",)


def _facts(status: Status) -> list[tuple[str, str]]:
    """Return what there is to say of a release in numbers."""
    asked = f"{status.epsilon} at delta {delta_text(Decimal(status.delta))}" if status.delta else f"{status.epsilon}"
    facts = [("Asked for: epsilon", asked)]
    if status.spec is not None:
        spec, table = status.spec, status.spec.only_table
        facts += [("Respondents n", f"{spec.population:,}"), ("Sampled rows m", f"{spec.sample:,}")]
        if table is None:
            facts.append(("Tables", f"{len(spec.tables):,}, up to {spec.repeats:,} of them a second time"))
        else:
            facts += [
                ("Cells K", f"{table.cells:,}"),
                ("Gamma (exact, of what ran)", f"{float(table.mechanism.gamma):,.6g}"),
                ("A row is replaced with probability", f"{float(1 - table.mechanism.retention):.6g}"),
                ("Pure epsilon of what ran", f"{guaranteed_epsilon(table):.6g}"),
            ]
    if any(status.bytes.values()):
        facts.append(("Bytes over all links", f"{sum(status.bytes.values()):,}"))
    return facts


def _size(status: Status) -> str:
    """Return n of a release that is ready; empty otherwise."""
    return "" if status.spec is None else f"{status.spec.population:,}"


def _page_number(text: str, pages: int) -> int:
    number = whole_number(text, 1, pages)
    if number is None:
        raise InvalidInputError(f"there are pages 1 to {pages}", where="page")
    return number
