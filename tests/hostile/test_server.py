"""A curator that abuses the server, over the wire: nothing it makes up stays in memory, on disk or in the state."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import psutil
import pytest

from tests.hostile.clients import Message, call, code_of, connection, message, number_of
from tests.protocol.world import BOB, CLOUD, World, made_world
from tests.worlds.loops import blocking

OPEN, UPLOAD = "IngestService/OpenRelease", "IngestService/UploadColumn"
INVALID = grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A study whose server alone runs."""
    world = made_world(tmp_path_factory.mktemp("world") / "study")
    with world.local:
        world.start(CLOUD)
        yield world


def announced(world: World, number: int, **changes: object) -> Message:
    """Return the announcement of a release that nobody asked for."""
    fields: dict[str, Any] = {
        "release_id": f"{number:032x}",
        "study_digest": world.local.study.digest,
        "researcher": "rosa",
        "columns": [message("Column", attribute="income", owner="bob", size=3)],
        "population": 1500,
        "sample": 100,
        "server_replacement": (1 << 64).to_bytes(9, "big"),
        "curator_replacement": bytes(9),
        "canaries": 0,
        "epsilon": "1",
        "scheme": number_of("Scheme", "SCHEME_WOR"),
        "sampling": number_of("SamplingMode", "SAMPLING_MODE_SEED"),
        "pad": number_of("PadKind", "PAD_KIND_CHACHA20"),
        "alignment": "ab" * 16,
        "deadline": int(time.time()) + 86_400,
    }
    return message("OpenReleaseRequest", spec=message("TableSpec", **(fields | changes)))


@blocking
async def answers(world: World, requests: list[Message]) -> list[grpc.StatusCode]:
    """Announce releases one after the other in bob's name; return how each was answered."""
    async with connection(world.local, BOB, CLOUD) as channel:
        return [await code_of(call(channel, OPEN)(request, timeout=20)) for request in requests]


def test_an_announcement_that_fits_the_study_is_taken(world: World) -> None:
    assert answers(world, [announced(world, 1)]) == [grpc.StatusCode.OK]


@pytest.mark.parametrize(
    "changes",
    [
        {"population": 2**50, "sample": 2**50},
        {"population": 2**64 - 1},
        {"sample": 2**64 - 1},
        {"stage": 2**64 - 1},
        {"deadline": 10**18},
        {"deadline": 2**63 - 1},
        {"deadline": -(2**63)},
        {"researcher": "nobody"},
        {"researcher": "r" * 1_000_000},
        {"release_id": "\x1b[2J" + "0" * 28},
        {"release_id": "0" * 1_000_000},
        {"epsilon": "0." + "1" * 900_000},
        {"population": 3},
    ],
    ids=",".join,
)
def test_what_no_release_of_the_study_can_be_is_refused(world: World, changes: dict[str, Any]) -> None:
    assert answers(world, [announced(world, 2, **changes)]) == [INVALID]


def test_one_curator_opens_only_so_many_releases(world: World) -> None:
    codes = answers(world, [announced(world, 1000 + number) for number in range(300)])
    refused = codes.index(grpc.StatusCode.UNAVAILABLE)
    assert 200 <= refused <= 256
    assert set(codes[refused:]) == {grpc.StatusCode.UNAVAILABLE}


def test_one_curator_reserves_only_so_many_bytes(world: World) -> None:
    huge = {"population": 2**32, "sample": 2**32}
    codes = answers(world, [announced(world, 5000 + number, **huge) for number in range(20)])
    assert grpc.StatusCode.UNAVAILABLE in codes


def test_uploads_to_made_up_releases_leave_no_memory_behind(world: World) -> None:
    server = psutil.Process(world.local._running[CLOUD].pid)

    async def upload(channel: grpc.aio.Channel, number: int) -> grpc.StatusCode:
        header = message("UploadHeader", release_id=f"{number:010d}" * 100_000, attribute="income")

        async def pieces() -> AsyncIterator[Message]:
            yield message("UploadColumnRequest", header=header)

        return await code_of(call(channel, UPLOAD)(pieces(), timeout=20))

    async def flood(first: int, last: int) -> set[grpc.StatusCode]:
        async with connection(world.local, BOB, CLOUD) as channel:
            return {await upload(channel, number) for number in range(first, last)}

    # What the first ones cost is the price of the code that they run.
    asyncio.run(flood(0, 50))
    before = server.memory_info().rss
    codes = asyncio.run(flood(50, 650))
    assert grpc.StatusCode.OK not in codes
    assert grpc.StatusCode.INTERNAL not in codes
    assert server.memory_info().rss - before < 64 * 2**20
