"""The policy: what is served, the rules of its file as it is now, and what they would make of a request."""

from functools import partial

from starlette.responses import Response

from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, VeiltabError
from veiltab.common.web.bodies import Form, whole_number
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.console.words import badge_of_verdict
from veiltab.curator.officer.open_state import OpenedState
from veiltab.curator.officer.policy import Policy, policy_of
from veiltab.curator.officer.policy_trial import Trial, hypothetical_request, try_policy
from veiltab.curator.records.served_files import ServedPolicy

_MOST_PEOPLE = 10**11 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialForm:
    """What was tried, as it was typed."""

    researcher: str
    attributes: tuple[str, ...]
    epsilon: str
    delta: str
    population: str


def policy_page(books: StateReader) -> Page:
    """Return the page of the policy."""
    return Page(path="/policy", label="Policy", show=partial(_show, books))


def _show(books: StateReader, visit: Visit) -> Response:
    own_state = books.own_state
    served = own_state.store.served.served_policy()
    policy, problem = _policy(own_state)
    form = _typed(visit.query, own_state)
    trial, trial_problem = None, ""
    if policy is not None and "epsilon" in visit.query.values:
        try:
            trial = _try(form, policy, own_state)
        except VeiltabError as error:
            trial_problem = str(error)
    return visit.render(
        "policy.html",
        served=served,
        path=own_state.policy_path,
        policy=policy,
        problem=problem,
        is_other=policy is not None and _is_other(policy, served),
        form=form,
        study=own_state.study,
        trial=trial,
        lines=() if trial is None or policy is None else _lines(trial, policy),
        trial_problem=trial_problem,
        ledger=own_state.ledger,
    )


def _policy(own_state: OpenedState) -> tuple[Policy | None, str]:
    """Return the policy of the file as it is now, or why it cannot be read."""
    try:
        return policy_of(own_state.study, own_state.name, own_state.policy_path), ""
    except VeiltabError as error:
        return None, str(error)


def _is_other(policy: Policy, served: ServedPolicy) -> bool:
    """Whether a policy is not the one that is served; by its numbers alone where no digest of that is known."""
    if served.digest:
        return policy.digest != served.digest
    return (len(policy.rules), policy.budget, policy.persons) != (served.rules, served.budget, served.persons)


def _typed(query: Form, own_state: OpenedState) -> TrialForm:
    study, latest = own_state.study, own_state.store.alignments.latest_alignment()
    own = tuple(rule.name for rule in study.attributes_of(own_state.name))
    return TrialForm(
        researcher=query.text("researcher", study.researchers[0].name),
        attributes=query.texts("attribute") or (() if query.values else own),
        epsilon=query.text("epsilon", "0.5"),
        delta=query.text("delta"),
        population=query.text("population", str(latest[0]) if latest else ""),
    )


def _try(form: TrialForm, policy: Policy, own_state: OpenedState) -> Trial:
    """Try a request as the command `veiltab curator policy test` does.

    Raises:
        InvalidInputError: a field that cannot be read, or a request that cannot be planned.
    """
    study = own_state.study
    population = whole_number(form.population, 0, _MOST_PEOPLE)
    if population is None:
        raise InvalidInputError("say how many respondents the tables have in common", where="respondents")
    request = hypothetical_request(
        form.researcher,
        tuple(rule.name for rule in study.attributes if rule.name in form.attributes),
        parse_epsilon(form.epsilon),
        parse_delta(form.delta) if form.delta else None,
    )
    return try_policy(policy, request, study, own_state.name, own_state.ledger, population)


def _lines(trial: Trial, policy: Policy) -> list[dict[str, object]]:
    """Return what would become of each attribute, and the rule that decides."""
    return [
        {
            "attribute": name,
            "badge": badge_of_verdict(verdict),
            "rule": rule,
            "text": policy.rules[rule - 1].text if rule else "",
        }
        for name, (verdict, rule) in trial.verdicts.items()
    ]
