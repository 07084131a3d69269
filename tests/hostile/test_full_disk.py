"""A disk that fills up under a party: every release is ready once there is room again, and is charged once."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile.small_disk import SmallDisk, small_disk
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, Who, World, launcher, made_world
from veiltab.common.release.state import ReleaseState

PARTIES = [CLOUD, ALICE, ROSA]


@contextmanager
def world_on(folder: Path, party: Who, how: tuple[str, ...] | None = None) -> Iterator[tuple[World, SmallDisk]]:
    """Start a study of which one party, perhaps started otherwise, has a small disk."""
    world = made_world(folder / "study")
    world.local.launcher = launcher(PACE)
    with small_disk(world.local.state_folder(*party)) as disk, world.local:
        world.start(party, how=how)
        world.start(*(other for other in (ALICE, BOB, CLOUD, ROSA) if other != party))
        yield world, disk


def check_ready_and_charged_once(world: World, release_id: str) -> None:
    with world.client() as client:
        assert client.release(release_id).wait(timeout=60).state is ReleaseState.READY
    for curator in ("alice", "bob"):
        assert world.charges(curator).count(release_id) == 1


def asked_until_taken(world: World, between: Callable[[], None]) -> str:
    """Ask for a release, do something, and go on asking until it is taken; return its id."""
    between_done = False
    end = time.monotonic() + 60
    while True:
        answer = world.ask(["region", "income"], "--label", "full")
        if answer.code == 0:
            if not between_done:
                time.sleep(1)
                between()
            return str(answer.data["release"]["id"])
        assert answer.code == 4, answer.errors
        assert "Traceback" not in answer.errors
        assert time.monotonic() < end
        if not between_done:
            between()
            between_done = True


@pytest.mark.long
@pytest.mark.parametrize("party", PARTIES, ids=lambda party: party[1])
def test_a_disk_that_is_full_before_a_release(tmp_path: Path, party: Who) -> None:
    with world_on(tmp_path, party) as (world, disk):

        def free_what_was_noticed() -> None:
            world.wait_until(lambda: "disk is full" in world.log(party), seconds=40)
            disk.free()

        disk.fill()
        release_id = asked_until_taken(world, free_what_was_noticed)
        check_ready_and_charged_once(world, release_id)
        check_log(world, party)


WAITS = {
    CLOUD: "veiltab.server.records.store:ServerStore.complete_columns:1:4",
    ALICE: "veiltab.curator.records.keys:Keys.spend_keys:1:4",
    ROSA: "veiltab.researcher.records.store:ResearcherStore.set_spec:1:4",
}
"""Where each party rests for four seconds in the middle of its first release."""


@pytest.mark.long
@pytest.mark.parametrize("party", PARTIES, ids=lambda party: party[1])
def test_a_disk_that_fills_up_in_the_middle_of_a_release(tmp_path: Path, party: Who) -> None:
    with world_on(tmp_path, party, launcher(PACE, WAITS[party])) as (world, disk):
        release_id = str(world.ask(["region", "income"], "--label", "full").data["release"]["id"])
        world.wait_until(lambda: release_id in world.charges("bob"))
        time.sleep(1)
        disk.fill()
        # Long enough for the rest to end and for several attempts in vain.
        time.sleep(8)
        assert world.local._running[party].poll() is None, world.log(party)[-2000:]
        disk.free()
        check_ready_and_charged_once(world, release_id)
        check_log(world, party)


def check_log(world: World, party: Who) -> None:
    """The operator learns which disk it was, and nobody sees where in the code it was noticed."""
    log = world.log(party)
    assert "disk is full" in log
    assert str(world.local.state_folder(*party)) in log
    assert "Traceback" not in log
