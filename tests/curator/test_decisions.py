"""When a curator applies its policy to a request, and with what it knows by then."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import refuses, request_with
from tests.curator.made_records import decide
from tests.worlds.states import curator_parts
from tests.worlds.studies import APPROVE_ALL
from veiltab.common.errors import BudgetExceededError, DeniedError, NotReadyError
from veiltab.common.study.file import Study
from veiltab.curator.officer.policy import Policy, load_policy
from veiltab.curator.planning.checks import agreed_columns
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.planning.planner import Planner
from veiltab.curator.planning.plans import ANSWERS
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.release.curator import Curator

ID = "0" * 31 + "1"
CHEAP = '[[rule]]\nmaximum_charge = 0.05\ndecision = "approve"\n'


@pytest.fixture
def parts(tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Curator]]:
    async def answered_here(_: Planner, kind: str, text: str, _tables: int) -> str:
        return ANSWERS[kind](text)

    monkeypatch.setattr(Planner, "_ask", answered_here)
    made = curator_parts(tmp_path, study)

    def begun(rules: str) -> Curator:
        (tmp_path / "policy.toml").write_text(rules)
        own = [rule.name for rule in study.attributes_of("alice")]
        names = [researcher.name for researcher in study.researchers]
        policy = load_policy(tmp_path / "policy.toml", researchers=names, attributes=own) if rules else Policy()
        return Curator(made.identity, study, tmp_path, made.store, made.ledger, policy, made.execution)

    yield begun
    made.store.close()


def decided(parts: Curator, request: Any) -> dict[str, str]:  # noqa: ANN401 - a request
    parts.store.releases.add(request, 1)
    asyncio.run(parts.decisions.apply_policy(request))
    return {decision.attribute: decision.verdict for decision in parts.store.decisions.decisions(ID)}


def is_considered(parts: Curator) -> bool:
    return parts.decisions.review(parts.store.releases.release(ID)).is_considered


def align(parts: Curator) -> None:
    """Let the tables be aligned."""
    parts.decisions._aligned = lambda: (1000, "b" * 32)


def test_the_rest_of_a_request_is_approved_by_what_protects_the_rest(
    parts: Callable[..., Any], study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("sex", "age", "salary")
    # They test the noise of twelve cells enough, and that of the six that alice has too little.
    request = request_with(attributes=names, partial=True, epsilon=Decimal("0.9"), canaries=1600)

    def check_rest(curator: Curator, granted: tuple[str, ...], population: int = 1000) -> None:
        columns = agreed_columns(request, study, frozenset(granted), frozenset(names) - frozenset(granted))
        question = plan_question(request, columns, study, population=population, alignment="b" * 32)
        asyncio.run(curator.decisions.check_rest(request, asyncio.run(curator.planner.spec(question))))

    curator = parts('[[rule]]\ndecision = "approve"\n')
    align(curator)
    assert decided(curator, request) == {"sex": APPROVED, "age": APPROVED}
    check_rest(curator, names)
    with refuses(DeniedError, where="curator alice"):
        check_rest(curator, ("sex", "age"))
    with refuses(DeniedError, where="curator alice"):
        check_rest(curator, names, population=200)
    lenient = parts('[[rule]]\ntested = "too little"\ndecision = "approve"\n')
    align(lenient)
    check_rest(lenient, ("sex", "age"))
    by_person = [replace(one, rule=None) for one in curator.store.decisions.decisions(ID)]
    monkeypatch.setattr(curator.store.decisions, "decisions", lambda _: by_person)
    with refuses(DeniedError, where="curator alice"):
        check_rest(lenient, ("sex", "age"))


def test_a_charge_is_looked_at_once_the_tables_are_aligned(parts: Callable[..., Any]) -> None:
    curator = parts(CHEAP)
    with pytest.raises(NotReadyError, match="has not aligned its table yet"):
        decided(curator, request_with(epsilon=Decimal("0.05")))
    assert not is_considered(curator)
    align(curator)
    assert decided(curator, request_with(epsilon=Decimal("0.05"))) == {"sex": APPROVED}


@pytest.mark.parametrize(("epsilon", "verdict"), [("0.05", APPROVED), ("0.0501", HELD)])
def test_the_charge_decides(parts: Callable[..., Any], epsilon: str, verdict: str) -> None:
    curator = parts(CHEAP)
    align(curator)
    assert decided(curator, request_with(epsilon=Decimal(epsilon))) == {"sex": verdict}
    assert is_considered(curator)


TOO_MUCH = {"epsilon": Decimal("1.1")}


@pytest.mark.parametrize(
    ("rules", "changes", "problem"),
    [
        (APPROVE_ALL, {"delta": Decimal("0.02")}, "above 1/n"),
        (APPROVE_ALL, TOO_MUCH, "of the budget of 1 there is 1"),
        ("", TOO_MUCH, "of the budget of 1 there is 1"),
        ("", {"scheme": "wr", "sample": 1000, "epsilon": Decimal("1e-10")}, "too small for so many draws"),
    ],
)
def test_what_nobody_can_grant_is_refused_before_anything_is_recorded(
    parts: Callable[..., Any], rules: str, changes: dict[str, object], problem: str
) -> None:
    curator = parts(rules)
    align(curator)
    with pytest.raises((DeniedError, BudgetExceededError), match=problem):
        decided(curator, request_with(**changes))
    assert not curator.store.decisions.decisions(ID)


def test_what_an_earlier_process_held_is_decided_by_the_new_policy(parts: Callable[..., Any]) -> None:
    curator = parts("")
    align(curator)
    assert decided(curator, request_with()) == {"sex": HELD}
    again = parts(APPROVE_ALL)
    assert not is_considered(again)
    align(again)
    assert decided(again, request_with()) == {"sex": APPROVED}


def test_what_a_person_approved_stays_approved(parts: Callable[..., Any]) -> None:
    curator = parts("")
    align(curator)
    assert decided(curator, request_with()) == {"sex": HELD}
    again = parts('[[rule]]\ndecision = "deny"\n')
    decide(again.store, APPROVED)
    align(again)
    assert decided(again, request_with()) == {"sex": APPROVED}


def test_what_is_denied_is_denied_whatever_the_plan(parts: Callable[..., Any]) -> None:
    curator = parts('[[rule]]\ndecision = "deny"\n')
    assert decided(curator, request_with(epsilon=Decimal(50))) == {"sex": DENIED}
    assert curator.decisions.review(curator.store.releases.release(ID)).denied == {"sex"}
