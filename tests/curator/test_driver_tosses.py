"""Tosses that hang, and who is counted for them."""

import asyncio
import logging
from dataclasses import replace
from decimal import Decimal
from typing import NoReturn
from unittest.mock import Mock

import pytest

from tests.conftest import request_with
from tests.curator.driver_world import (  # noqa: F401 - fixtures
    ID,
    World,
    carried_to,
    driver_fixture,
    refuse_toss,
    world_fixture,
)
from veiltab.common.core.coin import commitment
from veiltab.common.errors import UnavailableError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import requested_columns
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.planning.plans import planned_release


def test_a_charge_and_the_commitment_to_a_share_of_the_coin_are_one_record(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    world.follow()
    driver, coin = world.driver, f"release/{ID}"
    with world.patch.context() as broken:
        broken.setattr(driver.curator.store.coins, "commit", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert not driver.curator.ledger.chain.is_charged(ID)
    assert driver.curator.store.coins.own_share(coin, b"") == b""  # none was kept
    assert not world.answers.progress(ID, "bob").commitment
    assert world.step()
    share = driver.curator.store.coins.own_share(coin, b"")
    assert world.answers.progress(ID, "bob").commitment == commitment(coin, "alice", share)


def test_what_another_curator_committed_to_with_its_charge_goes_into_the_toss(world: World) -> None:
    carried_to(world, ReleaseState.CHARGED)
    world.bob = replace(world.bob, charged=True, commitment=b"c" * 32)
    world.step()
    assert world.shown == {"bob": b"c" * 32}


def warned(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_toss_that_hangs_is_logged_once_and_counted_when_the_release_ends(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    carried_to(world, ReleaseState.CHARGED)
    world.follow()
    refuse_toss(world)
    assert not world.step()
    assert not warned(caplog)
    world.store.connection.execute("UPDATE release SET since = since - 61")
    for _ in range(3):
        assert not world.step()
    (hangs,) = warned(caplog)
    assert (hangs.message, vars(hangs)["curator"]) == ("a toss of a charged release hangs", "bob")
    assert not world.store.coins.aborted()
    world.patch.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_001)
    assert world.step()
    assert world.state() is ReleaseState.EXPIRED
    assert world.store.coins.aborted() == {"curator bob": 1}
    assert world.ledger.budget.spent == Decimal("0.1")


def test_a_draw_that_waits_for_something_else_than_its_toss_is_not_logged_as_one_that_hangs(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    carried_to(world, ReleaseState.CHARGED)
    world.follow()

    async def no_worker(*_: object) -> NoReturn:
        raise UnavailableError("the Dask scheduler has no worker", where="tls://scheduler:8786")

    world.store.coins.set_opening_received(f"release/{ID}", "bob")
    world.patch.setattr(world.curator.coins, "awaited", lambda _coin: frozenset[str]())
    world.patch.setattr(world.curator.sampler, "draw", no_worker)
    world.store.connection.execute("UPDATE release SET since = since - 61")
    assert not world.step()
    assert "has no worker" in world.stored.waiting_for
    assert not warned(caplog)


def test_a_toss_that_comes_to_its_end_is_not_counted(world: World) -> None:
    carried_to(world, ReleaseState.CHARGED)
    world.follow()
    toss = world.curator.coins.toss
    refuse_toss(world)
    assert not world.step()
    world.patch.setattr(world.curator.coins, "toss", toss)
    world.store.coins.set_opening_received(f"release/{ID}", "bob")  # as a toss does at its end
    carried_to(world, ReleaseState.UPLOADING)
    assert not world.curator.coins.withheld(f"release/{ID}")


def test_another_process_counts_the_toss_that_a_curator_aborted(world: World) -> None:
    carried_to(world, ReleaseState.CHARGED)
    world.follow()
    refuse_toss(world)
    assert not world.step()
    world.curator.runs.clear()
    world.patch.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_001)
    assert world.step()
    assert world.store.coins.aborted() == {"curator bob": 1}


def test_nothing_is_paid_for_with_a_curator_that_aborts_tosses_until_a_person_clears_it(world: World) -> None:
    for number in range(2, 5):
        release_id = f"{number:032x}"
        world.ask(request_with(release_id=release_id))
        world.store.coins.add_aborted(release_id, "curator bob", "the deadline passed")
    world.ask(request_with(sample=400))
    for _ in range(3):
        world.step()
    stored = world.stored
    assert stored.state is ReleaseState.DENIED
    assert stored.failure.startswith(
        "curator bob: 3 releases that were charged ended without a result by it; the last one: the deadline passed"
    )
    assert "`veiltab curator repair tosses bob`" in stored.failure
    assert world.ledger.budget.remaining == 1
    assert world.store.coins.clear_aborted("curator bob", person="Ana Diaz") == 3
    another = request_with(release_id="f" * 32, sample=400)
    world.ask(another)
    spec = planned_release(
        plan_question(
            another,
            requested_columns(another, world.curator.study),
            world.curator.study,
            population=1000,
            alignment="ab" * 16,
        )
    )
    asyncio.run(world.driver.executor._reserve(spec, Stage()))
    assert world.ledger.chain.standing("f" * 32)[0]
