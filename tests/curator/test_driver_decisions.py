"""Who decides about a request, and what ends it before it is charged."""

import asyncio
import time
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import pytest

from tests.conftest import request_with, reserve, spec_with
from tests.curator.driver_world import AWAY, ID, REQUEST, World, carried_to, drive, driver_fixture, world_fixture  # noqa: F401 - fixtures
from tests.curator.made_records import decide, deny
from veiltab.common.errors import DeniedError, NotReadyError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.officer.policy import Policy
from veiltab.curator.progress.progress import APPROVED, DENIED
from veiltab.curator.progress.release_record import Progress
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.curator.table.table import Table


def test_another_plan_ends_the_release_with_nothing_charged(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    world.bob = replace(world.bob, spec_digest=spec_with(sample=399).digest(), reserved=True)
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert (world.ledger.budget.spent, world.ledger.budget.remaining) == (Decimal(0), Decimal(1))


def test_another_sample_ends_the_release_before_anything_is_encrypted(world: World) -> None:
    carried_to(world, ReleaseState.CHARGED)
    world.follow()
    world.bob = replace(world.bob, sample_check=b"another")
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert not world.curator.encryption(ID).ciphertext("sex").exists()
    assert world.store.connection.execute("SELECT count(*) FROM spent_key").fetchone()[0] == 0
    assert world.ledger.budget.spent == Decimal("0.1")


def asked_under_another_file(world: World) -> None:
    """Let the study file have been exchanged at all parties since the request was made."""
    world.store.connection.execute("UPDATE release SET study_digest = ?", ["0" * 64])


@pytest.mark.parametrize("state", [ReleaseState.REQUESTED, ReleaseState.APPROVED, ReleaseState.PLANNED])
def test_a_request_that_was_made_under_another_study_file_costs_nothing(world: World, state: ReleaseState) -> None:
    world.ask(REQUEST, world.curator.study.digest)
    while world.state() is not state:
        world.step()
    asked_under_another_file(world)
    for _ in range(3):
        world.follow()
        world.step()
    assert (world.state(), world.ledger.budget.remaining) == (ReleaseState.FAILED, Decimal(1))
    assert world.stored.failure.startswith(f"release {ID}: the request was made under another study file")


def test_what_is_charged_goes_on_whatever_study_file_it_was_asked_under(world: World) -> None:
    world.ask(REQUEST, world.curator.study.digest)
    carried_to(world, ReleaseState.CHARGED)
    asked_under_another_file(world)
    carried_to(world, ReleaseState.READY)


@pytest.mark.parametrize(
    ("partial", "why"), [(False, "denied: salary (by bob)"), (True, "this is not what was approved")]
)
def test_a_denial_elsewhere_denies_it_here(world: World, why: str, *, partial: bool) -> None:
    carried_to(world, ReleaseState.APPROVED, request_with(partial=partial))
    world.curator.decisions.policy = Policy()
    world.bob = replace(world.bob, granted=frozenset(), denied=frozenset({"salary"}))
    assert world.step()
    assert world.state() is ReleaseState.DENIED
    assert why in world.stored.failure
    assert world.ledger.budget.remaining == 1


def held(world: World, *requests: Any) -> None:  # noqa: ANN401 - requests
    """Let alice hold some requests for a person."""
    world.curator.decisions.policy = Policy()
    for request in requests:
        world.ask(request)
        drive(world, request.release_id)


def test_what_is_held_is_planned_once_and_by_all_curators_alike(world: World) -> None:
    held(world, request_with())
    for _ in range(3):
        drive(world)
    assert world.questions == ["plan", "charge", "card"]
    assert "a person decides about sex" in world.stored.waiting_for
    decide(world.store, APPROVED)
    assert world.step()
    assert world.step()
    assert world.state() is ReleaseState.PLANNED
    assert world.questions == ["plan", "charge", "card"]  # what was foreseen is what is granted


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"scheme": "wr", "sample": 1000, "epsilon": Decimal("1e-10")}, "the epsilon is too small for so many draws"),
        ({"epsilon": Decimal("1.1")}, "of the budget of 1 there is 1.000000 left"),
    ],
)
def test_what_cannot_be_planned_or_paid_is_not_held(world: World, changes: dict[str, object], failure: str) -> None:
    world.bob = replace(world.bob, state=ReleaseState.READY)  # it has no use for the seed
    held(world, request_with(**changes))
    assert world.state() is ReleaseState.DENIED
    assert failure in world.stored.failure


async def run_for(world: World, rounds: int) -> None:
    """Run the driver until it has looked for releases so many times."""
    looked = 0
    unfinished = world.driver._unfinished

    def counted() -> tuple[str, ...]:
        nonlocal looked
        looked += 1
        return unfinished()

    async def idle(*_: object) -> None:
        await asyncio.sleep(1000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("veiltab.curator.release.driver.Peers", lambda *_: world)
        patch.setattr("veiltab.curator.release.driver.ServerLink", lambda *_: world)
        patch.setattr("veiltab.curator.release.driver._LOOK_AGAIN_SECONDS", 0.01)
        patch.setattr(world.curator.alignment, "run", idle)
        patch.setattr(world, "run", idle, raising=False)
        patch.setattr(world.driver, "_unfinished", counted)
        patch.setattr(world.curator, "submitted", asyncio.Event())
        running = asyncio.create_task(world.driver.run(cast("Table", None)))
        async with asyncio.timeout(20):
            while looked < rounds:  # noqa: ASYNC110 - the looks are counted
                await asyncio.sleep(0.01)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def test_a_curator_at_work_erases_what_was_forgotten(world: World) -> None:
    store = world.store
    store.coins.own_share("coin", b"a share to be forgotten, 32 bytes")
    store.coins.forget_coin("coin")
    asyncio.run(run_for(world, 3))
    assert not store.coins.has_traces


def test_requests_that_are_held_cost_an_idle_curator_nothing(world: World) -> None:
    ids = [f"{number:032x}" for number in range(1, 33)]
    held(world, *(request_with(release_id=release_id) for release_id in ids))
    questions, looks = len(world.questions), world.looks
    assert questions == 32 + 1 + 32  # plans, the charge of the one kind that they are, and cards
    asyncio.run(run_for(world, 20))
    assert (len(world.questions), world.looks) == (questions, looks)
    decide(world.store, DENIED, release_id=ids[3])
    asyncio.run(run_for(world, 20))
    assert world.looks > looks
    assert world.store.releases.release(ids[3]).state is ReleaseState.DENIED
    assert len(world.questions) == questions


def test_what_is_held_is_followed_until_a_person_decides(world: World) -> None:
    held(world, request_with())
    asyncio.run(run_for(world, 3))
    assert not world.forgotten
    deny(world.store, ID)
    asyncio.run(run_for(world, 3))
    assert ID in world.forgotten


def test_a_held_request_expires_and_ends_where_it_ended_elsewhere(world: World) -> None:
    other = "f" * 32
    held(world, request_with(), request_with(release_id=other, deadline=int(time.time()) + 2))
    world.bob = replace(world.bob, state=ReleaseState.DENIED, failure="why")
    asyncio.run(run_for(world, 20))
    assert (world.state(), world.stored.failure) == (ReleaseState.DENIED, "curator bob: why")
    assert ID not in world.curator.asks_a_person
    assert world.store.releases.release(other).state in {ReleaseState.DENIED, ReleaseState.EXPIRED}


def test_a_held_request_ends_once_the_budget_is_gone_and_is_not_planned_again(world: World) -> None:
    small, ledger = "f" * 32, world.ledger
    held(world, request_with(), request_with(release_id=small, epsilon=Decimal("0.01")))
    world.bob = replace(world.bob, state=ReleaseState.READY)
    other = spec_with(release_id="e" * 32, epsilon=Decimal("0.95"))
    reserve(ledger, other)
    asyncio.run(run_for(world, 20))
    assert world.state() is ReleaseState.REQUESTED  # what is reserved may be given back
    ledger.charge(other.release_id)
    questions = len(world.questions)
    asyncio.run(run_for(world, 20))
    assert world.state() is ReleaseState.DENIED
    assert "of the budget of 1 there is 0.05" in world.stored.failure
    assert world.store.releases.release(small).state is ReleaseState.REQUESTED
    assert len(world.questions) == questions


def test_no_person_is_asked_before_the_alignment_shows_whether_the_budget_holds_a_request(world: World) -> None:
    def result() -> tuple[int, str]:
        raise NotReadyError("has not aligned its table yet")

    world.curator.decisions.policy = Policy()
    world.ask(request_with(epsilon=Decimal(2)))
    with world.patch.context() as early:
        early.setattr(world.curator.alignment, "result", result)
        assert not world.step()
    assert "not aligned" in world.stored.waiting_for
    assert world.step()
    assert world.state() is ReleaseState.DENIED  # the budget is 1
    assert not world.store.decisions.decisions(ID)
    assert not world.curator.asks_a_person


def test_no_person_is_asked_before_every_curator_has_considered_the_request(world: World) -> None:
    world.curator.decisions.policy = Policy()
    world.ask(request_with())
    for bob in (replace(world.bob, considered=False), AWAY):
        world.is_bob_there = bob is not AWAY
        world.bob = bob if isinstance(bob, Progress) else world.bob
        assert not world.step()
        assert not asyncio.run(world.driver._waits_for_a_person(world.stored))
    world.is_bob_there, world.bob = True, replace(world.bob, considered=True)
    drive(world)
    assert world.curator.asks_a_person == {ID}


@pytest.mark.parametrize(("epsilon", "attributes"), [("0.5", None), ("1.1", None), ("1.1", ("salary",))])
def test_a_request_that_no_budget_holds_is_refused_at_once_whoever_decides_about_it(
    world: World, epsilon: str, attributes: tuple[str, ...] | None
) -> None:
    asked = {} if attributes is None else {"attributes": attributes}
    world.ask(request_with(epsilon=Decimal(epsilon), **asked))
    world.bob = replace(world.bob, considered=False, decided=False)
    world.step()
    assert world.state() is (ReleaseState.APPROVED if epsilon == "0.5" else ReleaseState.DENIED)


def test_what_a_person_denies_in_another_process_ends_at_once(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    world.bob = replace(world.bob, state=ReleaseState.UPLOADING)
    with closing(CuratorStore(world.curator.folder.parent / "curator.sqlite")) as elsewhere:
        assert world.store.has_changed_elsewhere()
        assert not world.store.has_changed_elsewhere()
        deny(elsewhere, ID)
        assert world.store.has_changed_elsewhere()
    drive(world)
    assert world.state() is ReleaseState.DENIED
    assert not world.uploads


def test_so_many_requests_of_a_researcher_are_open_and_so_many_in_all(driver: CuratorDriver) -> None:
    digest, deadline = driver.curator.study.digest, int(time.time()) + 1000

    def request(number: int, researcher: str) -> Any:  # noqa: ANN401 - a request
        return request_with(release_id=f"{number:032x}", researcher=researcher, deadline=deadline)

    for number in range(32):
        RpcAnswers(driver.curator).propose(request(number, "rosa"), digest)
    with pytest.raises(DeniedError, match=r"32 requests of researcher rosa are open here.*Wait until some end"):
        RpcAnswers(driver.curator).propose(request(99, "rosa"), digest)
    RpcAnswers(driver.curator).propose(request(0, "rosa"), digest)  # it is known
    RpcAnswers(driver.curator).propose(request(1000, "rita"), digest)
    driver.curator.store.releases.set_state(f"{7:032x}", ReleaseState.EXPIRED)
    RpcAnswers(driver.curator).propose(request(99, "rosa"), digest)
    for number in range(256 - 33):
        driver.curator.store.releases.add(request(2000 + number, f"r{number}"), 1)
    with pytest.raises(DeniedError, match=r"256 requests are open here.*Ask again later"):
        RpcAnswers(driver.curator).propose(request(98, "rita"), digest)
