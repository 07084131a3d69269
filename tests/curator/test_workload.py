"""Tests of a release of several tables at one curator: its plan, its charge, its steps, its records."""

from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import refuses, request_with
from tests.curator.planned_tables import (  # noqa: F401 - fixtures
    ASKED,
    DEADLINE,
    OWN,
    QUESTION,
    REQUEST,
    SIZES,
    at,
    progress,
    release,
    workload_fixture,
)
from veiltab.common.core.mechanism import TwoSidedNoise
from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.errors import BudgetExceededError, DeniedError, InvalidInputError, VeiltabError
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.privacy.pricing.price import price_budget, price_within
from veiltab.common.release.guarantees import (
    keeps_what_was_asked,
    release_card,
    release_price,
    release_pure_epsilon,
    two_sided_release,
)
from veiltab.common.release.messages.release_messages import release_to_proto
from veiltab.common.release.modes import Sampling
from veiltab.common.release.receipts.canary_changes import most_canaries
from veiltab.common.release.receipts.canary_plan import MOST_PLANNED
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.common.rpc.chunks import MAX_MESSAGE
from veiltab.common.schemes import scheme_of
from veiltab.common.study.file import Study
from veiltab.common.study.limits import MAX_TABLES
from veiltab.curator.budget.allowance import Allowance
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.planning.checks import check_request
from veiltab.curator.planning.plan_questions import PlanAnswer, charge_question
from veiltab.curator.planning.planner import _LONGEST_LINE
from veiltab.curator.planning.plans import (
    answer_charge,
    answer_plan,
    canaries_of,
    charge_of,
    most_bytes,
    planned_release,
    typical_error,
)
from veiltab.curator.progress.release_record import End, Step, Wait
from veiltab.curator.progress.table_steps import next_step_of_tables
from veiltab.curator.records.store import CuratorStore

ALLOWANCE = Allowance(epsilon=Decimal(2), delta=Decimal("1e-6"))


def test_every_pair_is_planned_and_together_they_keep_what_was_asked(workload: ReleaseSpec) -> None:
    assert [workload.attributes(number) for number in range(6)] == list(combinations(SIZES, 2))
    assert (len(workload.repeated), workload.repeats, workload.sample) == (6, 2, 20_000)
    assert keeps_what_was_asked(workload)
    budget = price_budget(Decimal(1), Decimal("1e-6"))
    together = release_price(workload, lambda release: price_within(release, budget))
    assert budget.mu * Decimal("0.997") < together.mu <= budget.mu
    noisier = workload.table(0).mechanism.retention, workload.table(workload.again(0)).mechanism.retention
    assert noisier[0] < noisier[1]  # two repeats share what six tables share
    assert all(plan.canaries > 0 and plan.curator_replacement > 0 for plan in workload.tables)


def test_tables_with_less_noise_keep_it_no_more_and_their_card_says_what_they_cost(workload: ReleaseSpec) -> None:
    bold = replace(workload.tables[0], server_replacement=workload.tables[0].server_replacement // 2)
    less = replace(workload, tables=(bold, *workload.tables[1:]))
    assert not keeps_what_was_asked(less)
    analyst = next(bound for bound in release_card(less).bounds if bound.roles == Coalition.ANALYST.roles)
    assert analyst.epsilon is not None
    assert analyst.epsilon > Decimal("1.01")
    bold = replace(workload.repeated[5], server_replacement=workload.repeated[5].server_replacement // 2)
    assert not keeps_what_was_asked(replace(workload, repeated=(*workload.repeated[:5], bold)))


def test_tables_with_a_denied_attribute_are_left_out_and_the_others_stay_as_they_were(workload: ReleaseSpec) -> None:
    rest = planned_release(replace(QUESTION, columns=tuple(c for c in ASKED if c.attribute != "sex")))
    assert [column.attribute for column in rest.columns] == ["age", "job", "wage"]
    assert [rest.attributes(number) for number in range(3)] == list(combinations(("age", "job", "wage"), 2))
    for number, original in enumerate((1, 2, 5)):
        for before, after in ((workload.tables, rest.tables), (workload.repeated, rest.repeated)):
            assert replace(before[original], columns=()) == replace(after[number], columns=())
    whole, part = charge_of(workload, ALLOWANCE).price, charge_of(rest, ALLOWANCE).price
    assert whole is not None
    assert part is not None
    assert part.mu < whole.mu
    with refuses(DeniedError, where="tables"):
        planned_release(replace(QUESTION, columns=ASKED[:1]))


def test_no_more_tables_run_again_than_are_left() -> None:
    rest = planned_release(replace(QUESTION, columns=ASKED[2:]))
    assert (len(rest.tables), rest.repeats) == (1, 1)


def test_too_small_an_epsilon_is_refused() -> None:
    tiny = replace(REQUEST, epsilon=Decimal("0.01"))
    with pytest.raises(InvalidInputError, match="the error of a typical one would be"):
        planned_release(replace(QUESTION, request=tiny, population=500))


def test_canaries_that_would_fill_the_disks_of_curators_are_refused() -> None:
    columns, noise = QUESTION.columns[:2], TwoSidedNoise(cells=6, curator_replacement=0, server_replacement=2**40)
    for population, most in ((2_000, MOST_PLANNED), (20_000, 64 * 20_000)):
        scheme = scheme_of("wor", population=population, sample=population)
        assert canaries_of(replace(REQUEST, canaries=most), columns, scheme, noise) == most
        with pytest.raises(InvalidInputError, match=f"at most {most} canaries"):
            canaries_of(replace(REQUEST, canaries=most + 1), columns, scheme, noise)


def test_canaries_whose_changes_would_not_fit_a_message_are_refused() -> None:
    many = 64 * QUESTION.population
    with pytest.raises(InvalidInputError, match=r"at most \d+ canaries"):
        planned_release(replace(QUESTION, request=replace(REQUEST, canaries=many)))
    tables = [planned_release(QUESTION).table(number) for number in range(len(REQUEST.tables))]
    most = [most_canaries(table.columns, 1 - table.server_mechanism.retention) for table in tables]
    assert max(most) < many
    planned = planned_release(replace(QUESTION, request=replace(REQUEST, canaries=min(most))))
    assert {table.canaries for table in planned.tables} == {min(most)}
    with pytest.raises(InvalidInputError, match=f"at most {min(most)} canaries"):
        planned_release(replace(QUESTION, request=replace(REQUEST, canaries=min(most) + 1)))


def test_the_server_may_sample_each_table() -> None:
    request = replace(REQUEST, sampling=Sampling.SERVER, sample=10_000, repeats=0)
    sampled = planned_release(replace(QUESTION, request=request))
    assert (sampled.sample, sampled.table(0).published_rows, sampled.repeated) == (10_000, 10_000, ())


def test_the_plan_and_the_charge_travel_through_the_planning_process(workload: ReleaseSpec) -> None:
    assert read_canonical(PlanAnswer, answer_plan(canonical_text(QUESTION))).planned() == workload
    question = charge_question(workload, ALLOWANCE)
    assert answer_charge(canonical_text(question)) == canonical_text(charge_of(workload, ALLOWANCE))
    refused = replace(QUESTION, columns=ASKED[:1])
    with pytest.raises(VeiltabError, match="every table"):
        read_canonical(PlanAnswer, answer_plan(canonical_text(refused))).planned()


@pytest.mark.long
def test_as_many_tables_as_any_study_allows_are_planned_in_one_line() -> None:
    columns = tuple(
        Column(attribute=f"an-attribute-with-a-long-name-{number}", owner="alice" if number % 2 else "bob", size=2)
        for number in range(64)
    )
    names = tuple(column.attribute for column in columns)
    request = replace(REQUEST, attributes=names, tables=tuple(combinations(names, 2))[:MAX_TABLES], repeats=MAX_TABLES)
    question = replace(QUESTION, request=request, columns=columns, all_columns=columns, population=200_000)
    answer = answer_plan(canonical_text(question))
    planned = read_canonical(PlanAnswer, answer).planned()
    assert isinstance(planned, ReleaseSpec)
    assert (len(planned.tables), len(planned.repeated), planned.repeats) == (MAX_TABLES, MAX_TABLES, MAX_TABLES)
    assert len(answer) < _LONGEST_LINE
    assert len(release_to_proto(planned).SerializeToString()) < MAX_MESSAGE


def test_what_people_see_of_it_before_they_decide(workload: ReleaseSpec) -> None:
    assert 0 < typical_error(workload) < 0.05
    rows = [workload.table(number).uploaded_rows for number in range(12)]
    alices = [2, 1, 1, 1, 1, 0]
    first = sum(count * size for count, size in zip(alices, rows[:6], strict=True))
    again = sorted(count * size for count, size in zip(alices, rows[6:], strict=True))
    assert most_bytes(workload, "alice") == first + sum(again[-2:])
    assert most_bytes(replace(workload, repeated=(), repeats=0), "alice") == first


@pytest.mark.parametrize(
    ("changes", "rules", "problem"),
    [
        ({}, {}, ""),
        ({"attributes": ("age", "sex", "salary"), "tables": (("age", "sex"), ("salary",))}, {}, "study order"),
        ({"attributes": ("sex", "pay"), "tables": (("sex",), ("sex", "pay"))}, {}, "no attribute 'pay'"),
    ],
)
def test_what_a_study_does_not_allow(
    study: Study, changes: dict[str, Any], rules: dict[str, Any], problem: str
) -> None:
    fields = {"attributes": ("sex", "age", "salary"), "tables": (("sex", "age"), ("age", "salary"))} | changes
    request = request_with(deadline=DEADLINE, delta=Decimal("1e-6"), **fields)
    with pytest.raises(InvalidInputError, match=problem) if problem else nullcontext():
        check_request(request, replace(study, **rules), 1)


def test_the_charge_is_that_of_all_tables_with_every_repeat_at_the_worst(workload: ReleaseSpec) -> None:
    charge = charge_of(workload, ALLOWANCE)
    budget = ALLOWANCE.price
    assert budget is not None
    assert charge.price is not None
    prices = [price_within(workload.table(number).description, budget) for number in range(12)]
    squares = sum((price.mu**2 for price in prices[:6]), Decimal(0)) + 2 * max(price.mu for price in prices[6:]) ** 2
    assert squares <= charge.price.mu**2 < squares * Decimal("1.000001")
    assert (charge.epsilon, charge.is_enough_alone) == (release_pure_epsilon(workload), False)


def test_ten_releases_of_several_tables_take_all_their_prices(store: CuratorStore, workload: ReleaseSpec) -> None:
    ledger = Ledger(store.connection, Decimal(4), Decimal("1e-6"))
    charges = {}
    for number in range(10):
        one = replace(workload, release_id=f"{number:032x}")
        charges[one.release_id] = charge_of(one, ledger.budget.allowance)
        ledger.reserve(one, charges[one.release_id])
        ledger.reserve(one, charges[one.release_id])
        ledger.charge(one.release_id)
        ledger.charge(one.release_id)
    budget = ledger.budget.allowance.price
    assert budget is not None
    entries = {entry.release_id: entry for entry in ledger.chain.entries}
    assert {name: entry.price for name, entry in entries.items()} == {n: c.price for n, c in charges.items()}
    squares = sum((charge.price.mu**2 for charge in charges.values() if charge.price), Decimal(0))
    assert ledger.budget.share == pytest.approx(squares / budget.mu**2, abs=Decimal("1e-11"))
    assert ledger.budget.allowance.spent_share(ledger.budget.sums()) == ledger.budget.share
    for number in range(10, 12):
        ledger.reserve(replace(workload, release_id=f"{number:032x}"), charges["0" * 32])
    with pytest.raises(BudgetExceededError):
        ledger.reserve(replace(workload, release_id="c" * 32), charges["0" * 32])
    Ledger(store.connection, Decimal(4), Decimal("1e-6")).chain.verify()
    assert entries["0" * 32].facts["repeats"] == 2
    assert entries["0" * 32].tables == 6 + 2


def test_a_release_may_take_a_whole_budget(store: CuratorStore, workload: ReleaseSpec) -> None:
    ledger = Ledger(store.connection, workload.epsilon, workload.delta)
    ledger.reserve(workload, charge_of(workload, ledger.budget.allowance))
    ledger.charge(workload.release_id)
    assert Decimal("0.99") < ledger.budget.share <= 1


@pytest.mark.long
def test_coalitions_face_the_worst_tables_that_may_be_chosen(tmp_path: Path, workload: ReleaseSpec) -> None:
    def faced(charged: ReleaseSpec) -> dict[tuple[str, ...], Decimal | None]:
        store = CuratorStore(tmp_path / f"{charged.repeats}.sqlite")
        ledger = Ledger(store.connection, Decimal(4), Decimal("1e-6"))
        ledger.reserve(charged, charge_of(charged, ledger.budget.allowance))
        ledger.charge(charged.release_id)
        bounds = bounds_of_charges(ledger)
        store.close()
        return {bound.roles: bound.epsilon for bound in bounds}

    whole, once = faced(workload), faced(replace(workload, repeated=(), repeats=0))
    for coalition in (Coalition.DESK, Coalition.DESK_AND_SERVER, Coalition.ANALYST_AND_CURATORS):
        least, most = once[coalition.roles], whole[coalition.roles]
        assert least is not None
        assert most is not None
        assert least < most
    per_row = [two_sided_release(workload.table(number)).row_epsilon for number in range(12)]
    assert whole[Coalition.DESK_AND_CURATORS.roles] == sum(per_row[:6], 2 * max(per_row[6:]))
    card = {bound.roles: bound.epsilon for bound in release_card(workload).bounds}
    assert Decimal("0.95") < (card[Coalition.DESK.roles] or 0) <= workload.epsilon


def test_the_tables_open_once_everyone_has_charged(workload: ReleaseSpec) -> None:
    stored = release(workload, state=ReleaseState.CHARGED)
    assert next_step_of_tables(stored, OWN, (progress(),), {}, 1) is Step.OPEN_TABLES
    waits = Wait("curator bob: has not charged the release yet", ("bob",))
    assert next_step_of_tables(stored, OWN, (progress(charged=False),), {}, 1) == waits
    failed = progress(state=ReleaseState.FAILED, failure="why")
    assert next_step_of_tables(stored, OWN, (failed,), {}, 1) == End(
        ReleaseState.FAILED, "curator bob: why", by=frozenset({"curator bob"})
    )
