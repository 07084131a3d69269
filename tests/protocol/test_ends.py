"""SIGTERM at random moments: in a release, right after a SIGHUP, on a full disk. The party ends within ten seconds."""

import random
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.hostile.small_disk import SmallDisk, small_disk
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, Who, World, launcher, made_world
from veiltab.common.errors import UnavailableError

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
PARTIES = (ALICE, BOB, CLOUD, ROSA)
NAMES = ("region", "income")
MOMENTS = 12
WITHIN = 10.0
LONGEST = 2.0
"""Seconds of which the moments are drawn."""


@contextmanager
def running(folder: Path, *, small: bool) -> Iterator[tuple[World, SmallDisk | None]]:
    """Start a study; its server has a small disk or not."""
    world = made_world(folder / "study", people=300)
    world.local.launcher = launcher(PACE)
    disk_of_server = small_disk(world.local.state_folder(*CLOUD)) if small else nullcontext()
    with disk_of_server as disk, world.local:
        world.start(*PARTIES)
        yield world, disk


def begin_release(world: World) -> str:
    """Ask for a release; return its id, or nothing if the service is away."""
    try:
        with world.client(timeout=2) as client:
            return str(client.request(NAMES, epsilon="1", label=world.label()).id)
    except UnavailableError:
        return ""


def seconds_to_end(world: World, who: Who) -> float:
    """Send SIGTERM and return how long the party takes to end; it ends in order, or never began to serve."""
    process = world.local._running[who]
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(WITHIN) in {0, -signal.SIGTERM}, world.log(who)[-2000:]
    return time.monotonic() - began


@pytest.mark.parametrize("after", ["while releases run", "after SIGHUP", "on a full disk"])
def test_a_party_ends_at_any_moment(tmp_path: Path, after: str, record_property: Callable[[str, object], None]) -> None:
    seed = secrets.token_hex(4)
    print(f"seed {seed}")  # noqa: T201 - of the moments
    chance = random.Random(seed)  # noqa: S311 - as above
    releases, seconds = [], []
    with running(tmp_path, small=after == "on a full disk") as (world, disk):
        for _ in range(MOMENTS):
            who = CLOUD if disk else chance.choice(PARTIES)
            releases.append(begin_release(world))
            time.sleep(chance.uniform(0, LONGEST))
            if disk:
                world.local.wait_for(*who)  # on a full disk it would not begin
                disk.fill()
                time.sleep(chance.uniform(0, LONGEST))
            if after == "after SIGHUP":
                world.local.wait_for(*who)
                world.local._running[who].send_signal(signal.SIGHUP)
                time.sleep(chance.uniform(0, LONGEST))
            seconds.append(seconds_to_end(world, who))
            if disk:
                disk.free()
            world.local.start(*who)
        for who in PARTIES:
            world.local.wait_for(*who)
        with world.client() as client:
            for release_id in filter(None, releases):
                client.release(release_id).wait(120)
    record_property("figure", f"{MOMENTS} moments {after}")
    record_property("figure", f"ended within {max(seconds):.1f} s")
