"""Plans, charges and cards that a process of its own makes, once each."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psutil
import pytest

from tests.conftest import request_with
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.guarantees import guaranteed_epsilon, release_card
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import requested_columns
from veiltab.common.study.file import Study
from veiltab.curator.budget.allowance import Allowance
from veiltab.curator.planning.plan_questions import PlanInput, charge_question, plan_question, seconds_for
from veiltab.curator.planning.planner import _WORKER, Planner, stored_card, stored_charge, stored_plan
from veiltab.curator.planning.plans import ANSWERS, charge_of, planned_release
from veiltab.curator.records.store import CuratorStore

ENDLESS = """
from veiltab.curator.planning import plan_questions, plans

def spin(text):
    while True:
        pass

plan_questions.SECONDS = {seconds}
plans.ANSWERS["plan"] = plans.ANSWERS["charge"] = spin
plans.serve_questions()
"""


def endless(seconds: float) -> tuple[str, ...]:
    """Return how to start a worker whose every plan and price takes for ever, with so much processor time."""
    return sys.executable, "-c", ENDLESS.format(seconds=seconds)


Ask = Callable[..., PlanInput]


@pytest.fixture
def ask(study: Study, store: CuratorStore) -> Ask:
    def asked(**changes: Any) -> PlanInput:  # noqa: ANN401 - fields of a request
        request = request_with(**changes)
        store.releases.add(request, 1)
        columns = requested_columns(request, study)
        return plan_question(request, columns, study, population=1000, alignment="ab" * 16)

    return asked


async def test_the_plan_is_the_one_that_every_curator_computes_and_is_stored(store: CuratorStore, ask: Ask) -> None:
    questions = [ask(), ask(release_id="f" * 32, delta=Decimal("1e-6"))]
    planner = Planner(store)
    for question in questions:
        spec = await planner.spec(question)
        assert spec == planned_release(question) == stored_plan(store, question)
        await planner.make_card(spec)
        assert stored_card(store, spec) == release_card(spec).bounds
        worker = planner._worker._process
        assert worker is not None
        worker.kill()  # as the system may, while it has no question
        await worker.wait()
    await planner.close()
    without = Planner(store)
    for question in questions:
        await without.make_card(await without.spec(question))
    assert without._worker._process is None


BUDGETS = [Allowance(epsilon=Decimal(3), delta=delta) for delta in (None, Decimal("1e-5"))]


def spec_asked(ask: Ask, **changes: Any) -> ReleaseSpec:  # noqa: ANN401 - fields of a request
    return planned_release(ask(**changes))


@pytest.mark.parametrize("allowance", BUDGETS)
async def test_a_charge_is_worked_out_by_the_worker_and_stored(
    store: CuratorStore, ask: Ask, allowance: Allowance
) -> None:
    spec = spec_asked(ask, delta=Decimal("1e-6"))
    planner = Planner(store)
    charge = await planner.charge(spec, allowance)
    assert charge == charge_of(spec, allowance)
    await planner.close()
    assert await planner.charge(spec, allowance) == charge
    assert planner._worker._process is None
    other = Allowance(epsilon=Decimal(2), delta=Decimal("1e-5"))
    assert await planner.charge(spec, other) == charge_of(spec, other)
    await planner.close()


@pytest.mark.parametrize("allowance", BUDGETS)
async def test_each_kind_is_priced_once(store: CuratorStore, ask: Ask, allowance: Allowance) -> None:
    kinds = [{"delta": Decimal("1e-6")}] * 2 + [{"delta": Decimal("1e-7")}, {"epsilon": Decimal("0.5")}, {}]
    specs = [spec_asked(ask, release_id=f"{number:032x}", **kind) for number, kind in enumerate(kinds)]
    asked = list[str]()
    planner = Planner(store)

    async def answered(kind: str, text: str, _: int) -> str:
        asked.append(kind)
        return ANSWERS[kind](text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "_ask", answered)
        for spec in specs:
            charge = await planner.charge(spec, allowance)
            assert charge == charge_of(spec, allowance)
            assert stored_charge(store, charge_question(spec, allowance)) == charge
    assert asked == ["charge"] * 4


@pytest.mark.parametrize(("allowance", "delta"), [(BUDGETS[0], None), (BUDGETS[1], Decimal("1e-6"))])
async def test_what_takes_too_long_to_price_is_charged_by_its_pure_epsilon(
    store: CuratorStore, ask: Ask, monkeypatch: pytest.MonkeyPatch, allowance: Allowance, delta: Decimal | None
) -> None:
    spec = spec_asked(ask, delta=delta)
    monkeypatch.setattr("veiltab.curator.planning.planner._WORKER", endless(0.2))
    planner = Planner(store)
    charge = await planner.charge(spec, allowance)
    exact = charge_of(spec, allowance)
    assert charge == allowance.charge_of_pure_epsilon(guaranteed_epsilon(spec.table(0)))
    assert charge.epsilon >= exact.epsilon
    assert allowance.share(charge) >= allowance.share(exact)
    await planner.close()
    assert await planner.charge(spec, allowance) == charge
    assert not planner._charges  # the next release of the kind is priced anew


async def test_what_cannot_be_planned_is_refused_every_time_and_asked_once(store: CuratorStore, ask: Ask) -> None:
    question = ask(scheme="wr", sample=1000, epsilon=Decimal("1e-10"))
    planner = Planner(store)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"scheme wr: the epsilon is too small.*Ask for a larger"):
            await planner.spec(question)
        await planner.close()
    assert planner._worker._process is None
    with pytest.raises(InvalidInputError, match="too small"):
        stored_plan(store, question)


async def test_what_takes_too_long_is_ended_and_the_next_question_is_answered(
    store: CuratorStore, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ask(), ask(release_id="f" * 32)
    planner = Planner(store)
    with monkeypatch.context() as another:
        another.setattr("veiltab.curator.planning.planner._WORKER", endless(0.2))
        with pytest.raises(InvalidInputError, match="takes more than 10 s of processor time"):
            await planner.spec(first)
    assert await planner.spec(second) == planned_release(second)
    await planner.close()
    with pytest.raises(InvalidInputError, match="takes more than 10 s"):
        stored_plan(store, first)


def first_children_beside(before: set[psutil.Process]) -> set[psutil.Process]:
    """Wait until this process has another child."""
    while not (children := set(psutil.Process().children()) - before):
        time.sleep(0.01)
    return children


async def end(planner: Planner, task: asyncio.Task[object], workers: set[psutil.Process]) -> None:
    """Cancel a question and close the planner; no worker is left."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await planner.close()
    _, alive = await asyncio.to_thread(psutil.wait_procs, workers, 20)
    assert alive == []


async def test_a_question_about_several_tables_has_longer_and_keeps_no_question_about_one_waiting(
    store: CuratorStore, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"attributes": ("sex", "age", "salary"), "tables": (("sex", "age"), ("age", "salary"))}
    several = ask(**asked, delta=Decimal("1e-6"))
    one = ask(release_id="f" * 32, researcher="rita")
    assert seconds_for(0) < seconds_for(2) < seconds_for(1000)
    planner = Planner(store)
    before = set(psutil.Process().children())
    with monkeypatch.context() as another:
        another.setattr("veiltab.curator.planning.planner._WORKER", endless(1000))
        task = asyncio.create_task(planner.spec(several))
        workers = await asyncio.to_thread(first_children_beside, before)
    assert await planner.spec(one) == planned_release(one)
    assert not task.done()
    await end(planner, task, workers)
    assert stored_plan(store, several) is None


def test_a_process_whose_asker_is_gone_ends_without_a_word(study: Study) -> None:
    request = request_with()
    columns = requested_columns(request, study)
    question = plan_question(request, columns, study, population=1000, alignment="ab" * 16)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as nobody:  # noqa: PTH123 - a descriptor
        ended = subprocess.run(
            _WORKER,
            input=f"plan 0 {question.text}\n".encode(),
            stdout=nobody,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, b"")
