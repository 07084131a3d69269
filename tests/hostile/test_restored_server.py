"""A copy of the server's state, made before a release or while it is perturbed, and put back once it is published."""

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from tests.hostile.clients import call, connection, message, number_of
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, World, launcher, made_world
from tests.worlds.loops import blocking

NAMES = ["region", "income"]


@blocking
async def fetched(world: World, release_id: str) -> dict[str, bytes]:
    """Wait until a release is published, and fetch its columns with the researcher's certificate alone."""
    ready = number_of("ReleaseState", "RELEASE_STATE_READY")

    async with connection(world.local, ROSA, CLOUD) as channel:
        asked = message("GetReleaseRequest", release_id=release_id)
        for _ in range(300):
            if (await call(channel, "ReleaseService/GetRelease")(asked, timeout=10)).state == ready:
                break
            await asyncio.sleep(0.1)
        columns = {}
        for name in NAMES:
            request = message("FetchColumnRequest", release_id=release_id, attribute=name)
            answers = call(channel, "ReleaseService/FetchColumn")(request, timeout=10)
            columns[name] = b"".join([answer.chunk.data async for answer in answers])
        return columns


@pytest.mark.long
def test_a_copy_from_before_a_release_publishes_it_no_second_time(tmp_path: Path) -> None:
    """No curator knows that its columns arrived: each would send them again, to a server that has another noise."""
    world = made_world(tmp_path / "study")
    world.local.launcher = launcher(PACE)
    state, copy = world.local.state_folder(*CLOUD), tmp_path / "copy"
    unsure = launcher(PACE, "veiltab.curator.records.releases:Releases.set_bytes_uploaded:1")
    with world.local:
        world.start(CLOUD, ROSA)
        world.local.kill(*CLOUD, signal.SIGTERM)
        shutil.copytree(state, copy)
        world.start(CLOUD)
        world.start(ALICE, BOB, how=unsure)
        release_id = str(world.ask(NAMES, epsilon="1").data["release"]["id"])
        world.wait_for_kill(ALICE)
        world.wait_for_kill(BOB)
        assert all(len(column) > 50 for column in fetched(world, release_id).values())
        world.local.kill(*CLOUD, signal.SIGKILL)
        shutil.rmtree(state)
        shutil.copytree(copy, state)
        world.start(CLOUD, ALICE, BOB)
        for curator in ("alice", "bob"):
            world.wait_for_state(curator, release_id, "failed")
        with world.store("alice") as alice:
            failure = alice.releases.release(release_id).failure
        assert "server cloud: states another noise for this release than before" in failure
        with world.server_store() as server:
            assert not any(one.complete for one in server.sessions()), "no column came a second time"
    assert world.charges("alice").count(release_id) == world.charges("bob").count(release_id) == 1
