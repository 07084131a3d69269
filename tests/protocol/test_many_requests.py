"""Thousands of requests, and hundreds that wait for a person: how long the others' releases take beside them."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import grpc
import psutil
import pytest

from tests.hostile.clients import call, code_of, connection, proposal
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World, made_world
from veiltab.common.rpc.parties.identity import Role
from veiltab.curator.planning.checks import MOST_OPEN_EACH

CROWD: tuple[Who, ...] = tuple((Role.RESEARCHER, f"crowd-{number}") for number in range(7))
"""As many researchers as leave room for one more at a curator."""
REQUESTS_EACH = 430
RELEASES = 9
NAMES = ("region", "income")


async def propose(world: World, place: int) -> Counter[grpc.StatusCode]:
    """Let one of the crowd propose all its requests to both curators; return how bob answered."""
    codes = Counter[grpc.StatusCode]()
    # The same bytes to both: another deadline would be another request under the same id.
    messages = [proposal(world.local, 1000 * (place + 1) + number) for number in range(REQUESTS_EACH)]
    for curator in (ALICE, BOB):
        async with connection(world.local, CROWD[place], curator) as channel:
            ask = call(channel, "CuratorService/ProposeRelease")
            codes = Counter([await code_of(ask(message, timeout=60)) for message in messages])
    return codes


def seconds_of_releases(world: World) -> float:
    """Return the median time of some releases, one after another."""
    seconds = []
    for _ in range(RELEASES):
        began = time.monotonic()
        with world.client() as client:
            client.request(NAMES, epsilon="1", label=world.label()).wait(120)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_three_thousand_requests_and_hundreds_that_wait(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    more = "".join(
        f'\n[[researcher]]\nname = "{name}"\nendpoint = "localhost:{port}"\n'
        for port, (_, name) in enumerate(CROWD, start=1)
    )
    world = made_world(tmp_path / "study", people=300, more=more)
    with world.local:
        world.start(ALICE, BOB, CLOUD, ROSA)
        seconds_of_releases(world)  # the first ones load what the later ones have
        alone = seconds_of_releases(world)

        async def crowd() -> Counter[grpc.StatusCode]:
            return sum(await asyncio.gather(*(propose(world, place) for place in range(len(CROWD)))), Counter())

        codes = asyncio.run(crowd())
        assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED}
        assert codes.total() >= 3000
        assert codes[grpc.StatusCode.OK] == len(CROWD) * MOST_OPEN_EACH
        beside = seconds_of_releases(world)
        bob = psutil.Process(world.local._running[BOB].pid)
        before = bob.cpu_times()
        time.sleep(10)
        idle = bob.cpu_times().user - before.user
    record_property("figure", f"{codes.total()} requests, {codes[grpc.StatusCode.OK]} of them wait")
    record_property(
        "figure",
        f"a release beside them takes {beside:.2f} s, {beside / alone:.2f} times that without them; an idle curator"
        f" {idle:.2f} s of CPU in 10 s",
    )
