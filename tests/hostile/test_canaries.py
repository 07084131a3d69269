"""A curator that asks the server for rows that are no canaries, too early, or of releases that are not its own."""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import grpc
import numpy as np
import pytest

from tests.hostile.clients import Message, call, code_of, connection, message, number_of
from tests.protocol.wire import Ingest
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, made_world
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.release.messages.release_messages import spec_to_proto
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.table_spec import Column, TableSpec

PUBLICATION, CANARIES = "IngestService/GetPublication", "IngestService/FetchCanaries"
KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
ROWS, COUNT = 1200, 300
REGION = Column(attribute="region", owner="alice", size=3)
INCOME = Column(attribute="income", owner="bob", size=3)
OK = grpc.StatusCode.OK
EARLY = grpc.StatusCode.FAILED_PRECONDITION
DENIED = grpc.StatusCode.PERMISSION_DENIED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
TAKEN = grpc.StatusCode.ALREADY_EXISTS
UNKNOWN = grpc.StatusCode.NOT_FOUND


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A study whose server alone runs."""
    world = made_world(tmp_path_factory.mktemp("world") / "study", people=10)
    with world.local:
        world.start(CLOUD)
        yield world


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A release of these tests', and whoever asks the server about it."""

    world: World
    spec: TableSpec
    alice: grpc.aio.Channel
    bob: grpc.aio.Channel
    rosa: grpc.aio.Channel

    async def upload(self, *columns: Column) -> None:
        """Send some columns as their curators do."""
        for column in columns:
            curator = Ingest.on(self.alice if column.owner == "alice" else self.bob)
            await curator.open(self.spec)
            symbols = np.random.default_rng(5).integers(0, column.size, self.spec.uploaded_rows, np.uint8)
            await curator.upload(self.spec, column.attribute, symbols.tobytes())

    async def published(self) -> dict[str, bytes]:
        """Upload what is missing, and wait for the publication; return the columns."""
        await self.upload(*self.spec.columns)
        ready = number_of("ReleaseState", "RELEASE_STATE_READY")
        asker = self.alice if self.spec.columns_of("alice") else self.bob
        for _ in range(500):
            if (await self.publication(asker)).state == ready:
                return self.world.published(self.spec.release_id)
            await asyncio.sleep(0.02)
        raise AssertionError("the release is not published")

    async def publication(self, asker: grpc.aio.Channel, release_id: str | None = None) -> Message:
        """Ask what was published."""
        request = message(
            "GetPublicationRequest", release_id=self.spec.release_id if release_id is None else release_id
        )
        return await call(asker, PUBLICATION)(request, timeout=20)

    async def canaries(
        self, asker: grpc.aio.Channel, key: bytes = KEY, offset: int = 0, **changes: str
    ) -> list[Message]:
        fields: dict[str, Any] = {"release_id": self.spec.release_id, "places_key": key, "offset": offset}
        request = message("FetchCanariesRequest", **(fields | changes))
        return [answer async for answer in call(asker, CANARIES)(request, timeout=20)]


Play = Callable[[Callable[[Scene], Awaitable[None]]], None]


@pytest.fixture
def play(world: World) -> Play:
    """Run a scene with a release of alice's and bob's."""
    return lambda scene: asyncio.run(_played(world, scene, (REGION, INCOME)))


@pytest.fixture
def play_with_bob_alone(world: World) -> Play:
    """Run a scene with a release of bob's."""
    return lambda scene: asyncio.run(_played(world, scene, (INCOME,)))


async def _played(world: World, scene: Callable[[Scene], Awaitable[None]], columns: tuple[Column, ...]) -> None:
    spec = TableSpec(
        release_id=secrets.token_hex(16),
        study_digest=world.local.study.digest,
        researcher="rosa",
        columns=columns,
        population=ROWS,
        sample=ROWS,
        server_replacement=2**63,
        curator_replacement=0,
        canaries=COUNT,
        epsilon=Decimal(4),
        scheme="wor",
        sampling=Sampling.SEED,
        pad=Pad.CHACHA20,
        alignment=secrets.token_hex(16),
        deadline=int(time.time()) + 3600,
    )
    async with AsyncExitStack() as stack:
        alice, bob, rosa = [
            await stack.enter_async_context(connection(world.local, who, CLOUD)) for who in (ALICE, BOB, ROSA)
        ]
        await scene(Scene(world=world, spec=spec, alice=alice, bob=bob, rosa=rosa))


def data(answers: list[Message]) -> bytes:
    return b"".join(answer.chunk.data for answer in answers)


def test_a_key_before_the_publication_is_not_answered_nor_recorded(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        assert await code_of(scene.canaries(scene.bob, OTHER)) is UNKNOWN
        assert await code_of(scene.publication(scene.bob)) is UNKNOWN
        await scene.upload(INCOME)
        assert await code_of(scene.canaries(scene.bob, OTHER)) is EARLY
        assert dict((await scene.publication(scene.bob)).digests) == {}
        columns = await scene.published()
        places = CanaryPlaces.of(KEY, rows=ROWS + COUNT, canaries=COUNT).all()
        for asker, attribute in ((scene.alice, "region"), (scene.bob, "income")):
            expected = bytes(columns[attribute][place] for place in places.tolist())
            assert data(await scene.canaries(asker)) == expected
            digests = dict((await scene.publication(asker)).digests)
            plain = {hashlib.sha256(column).digest() for column in columns.values()}
            assert set(digests) == set(columns)
            assert plain.isdisjoint(digests.values()), "a curator could test guesses of the noise with a plain digest"

    play(scene)


def test_another_key_is_refused_and_names_who_came_first(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.published()
        first = data(await scene.canaries(scene.alice))
        for number in range(20):
            with pytest.raises(grpc.aio.AioRpcError, match="curator alice sent another key") as refusal:
                await scene.canaries(scene.bob, bytes([number] * 32))
            assert refusal.value.code() is TAKEN
        assert await code_of(scene.canaries(scene.alice, OTHER)) is TAKEN
        assert len(data(await scene.canaries(scene.bob))) == COUNT
        assert data(await scene.canaries(scene.alice)) == first

    play(scene)


def test_of_many_keys_at_once_one_is_answered(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.published()
        keys = [bytes([number] * 32) for number in range(16)]
        askers = (scene.alice, scene.bob)
        codes = await asyncio.gather(*(code_of(scene.canaries(askers[n % 2], key)) for n, key in enumerate(keys)))
        assert sorted(codes, key=str) == sorted([OK] + [TAKEN] * 15, key=str)
        winner = keys[codes.index(OK)]
        assert len(data(await scene.canaries(scene.alice, winner))) == COUNT

    play(scene)


@pytest.mark.parametrize("key", [b"", KEY[:31], KEY + b"x", bytes(2**20)], ids=len)
def test_a_key_of_another_length_is_refused_and_not_recorded(play: Play, key: bytes) -> None:
    async def scene(scene: Scene) -> None:
        await scene.published()
        assert await code_of(scene.canaries(scene.bob, key)) is INVALID
        assert await code_of(scene.canaries(scene.alice)) is OK

    play(scene)


def test_anothers_release_is_closed(play_with_bob_alone: Play) -> None:
    async def scene(scene: Scene) -> None:
        columns = await scene.published()
        for outsider in (scene.alice, scene.rosa):
            assert await code_of(scene.publication(outsider)) is DENIED
            assert await code_of(scene.canaries(outsider, OTHER)) is DENIED
        assert len(data(await scene.canaries(scene.bob))) == COUNT
        assert set((await scene.publication(scene.bob)).digests) == set(columns) == {"income"}
        for strange in ("0" * 32, "", "../" * 10, "\x1b[2J" * 8, "0" * 1_000_000):
            assert await code_of(scene.publication(scene.bob, strange)) in {UNKNOWN, INVALID}
            assert await code_of(scene.canaries(scene.bob, release_id=strange)) in {UNKNOWN, INVALID}

    play_with_bob_alone(scene)


def test_offsets_begin_within_the_stream(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.published()
        whole = data(await scene.canaries(scene.bob))
        for offset in (0, 1, 77, COUNT - 1, COUNT):
            answers = await scene.canaries(scene.bob, offset=offset)
            assert data(answers) == whole[offset:]
            assert {answer.total for answer in answers} == {COUNT}
        assert [answer.HasField("chunk") for answer in await scene.canaries(scene.bob, offset=COUNT)] == [False]
        for offset in (COUNT + 1, 2**63, 2**64 - 1):
            assert await code_of(scene.canaries(scene.bob, offset=offset)) is INVALID

    play(scene)


def test_more_canaries_than_the_server_has_rows_for_are_refused(world: World) -> None:
    async def scene(scene: Scene) -> None:
        spec = message("TableSpec")
        spec.ParseFromString(spec_to_proto(scene.spec).SerializeToString())
        for canaries, refused in ((2**32 - ROWS, False), (2**32 - ROWS + 1, True), (2**33, True), (2**64 - 1, True)):
            spec.release_id, spec.canaries = secrets.token_hex(16), canaries
            answer = call(scene.bob, "IngestService/OpenRelease")(message("OpenReleaseRequest", spec=spec), timeout=20)
            # This machine's disk may have no room for the most that are allowed.
            assert await code_of(answer) in ({INVALID} if refused else {OK, UNAVAILABLE})

    asyncio.run(_played(world, scene, (INCOME,)))
