"""A running server, and curators who send it what they should not."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from tests.protocol.village import FREE
from tests.protocol.wire import Ingest, Published, connection
from tests.protocol.world import ALICE, BOB, CLOUD, RITA, ROSA, World, made_world
from veiltab.common.core.domain import symbol_dtype
from veiltab.common.errors import (
    ConflictError,
)
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.messages.release_messages import spec_to_proto, state_from_proto
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.v1 import ingest_pb2, server_release_pb2

ROWS = 3000


@dataclass(frozen=True, kw_only=True)
class Parties:
    """Everyone's connection to the server."""

    world: World
    alice: Ingest
    bob: Ingest
    rosa: Published
    rita: Published

    def curator(self, column: Column) -> Ingest:
        return self.alice if column.owner == "alice" else self.bob

    async def send_all(self, spec: TableSpec, columns: dict[str, bytes], *, but: str = "") -> None:
        """Announce a release and send its columns, but for one."""
        for column in spec.columns:
            await self.curator(column).open(spec)
            if column.attribute != but:
                await self.curator(column).upload(spec, column.attribute, columns[column.attribute])

    async def ready(self, spec: TableSpec) -> None:
        """Wait until a release is published and its ciphertext deleted."""
        ciphertext = self.world.releases_folder() / spec.release_id / "ciphertext"
        for _ in range(500):
            answer = await self.rosa.state(spec.release_id)
            if state_from_proto(answer.state) is ReleaseState.READY and not ciphertext.exists():
                return
            assert not state_from_proto(answer.state).unsuccessful
            await asyncio.sleep(0.02)
        raise AssertionError(answer)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Nobody runs but the server."""
    world = made_world(tmp_path_factory.mktemp("uploads") / "study", people=10)
    with world.local:
        world.start(CLOUD)
        yield world


@asynccontextmanager
async def everyone(world: World) -> AsyncIterator[Parties]:
    """Connect all of them."""
    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(connection(world, who, CLOUD)) for who in (ALICE, BOB, ROSA, RITA)]
        alice, bob = map(Ingest.on, channels[:2])
        rosa, rita = map(Published.on, channels[2:])
        yield Parties(world=world, alice=alice, bob=bob, rosa=rosa, rita=rita)


@pytest.fixture
def spec(world: World) -> TableSpec:
    study = world.local.study
    columns = tuple(
        Column(attribute=rule.name, owner=rule.owner, size=rule.attribute.size)
        for rule in study.attributes
        if rule.name in FREE
    )
    plan = plan_release(population=ROWS, cells=36, epsilon=Decimal(4), sample=ROWS, noise_split=Decimal(0))
    return TableSpec(
        release_id=secrets.token_hex(16),
        study_digest=study.digest,
        researcher="rosa",
        columns=columns,
        population=ROWS,
        sample=ROWS,
        server_replacement=plan.mechanism.server_replacement,
        curator_replacement=0,
        canaries=0,
        epsilon=Decimal(4),
        scheme="wor",
        sampling=Sampling.SEED,
        pad=Pad.CHACHA20,
        alignment=secrets.token_hex(16),
        deadline=int(time.time()) + 3600,
    )


@pytest.fixture
def columns(spec: TableSpec) -> dict[str, bytes]:
    """What a column of uniform symbols looks like on the wire, one an attribute."""
    rng = np.random.default_rng(7)
    return {c.attribute: rng.integers(0, c.size, ROWS).astype(symbol_dtype(c.size)).tobytes() for c in spec.columns}


def held(parties: Parties, spec: TableSpec, attribute: str) -> bytes | None:
    """Return the ciphertext of a column at the server."""
    path = parties.world.releases_folder() / spec.release_id / "ciphertext" / attribute
    return path.read_bytes() if path.exists() else None


async def test_a_finished_column_may_come_again_but_only_with_the_same_bytes(
    world: World, spec: TableSpec, columns: dict[str, bytes]
) -> None:
    other = {name: bytes((symbol + 1) % 2 for symbol in column) for name, column in columns.items()}

    async with everyone(world) as parties:
        await parties.send_all(spec, columns, but="region")
        for _ in ("before publication", "after it"):
            assert (await parties.bob.upload(spec, "income", columns["income"])).complete
            with pytest.raises(ConflictError, match="other bytes were taken"):
                await parties.bob.upload(spec, "income", other["income"])
            if held(parties, spec, "income") is not None:
                assert held(parties, spec, "income") == columns["income"]
                await parties.alice.upload(spec, "region", columns["region"])
                await parties.ready(spec)
                published = parties.world.published(spec.release_id)
        assert held(parties, spec, "income") is None
        assert parties.world.published(spec.release_id) == published
        assert await parties.rosa.column(spec.release_id, "income") == published["income"]
        assert await parties.rosa.column(spec.release_id, "income") == published["income"]


def windows(columns: dict[str, bytes], length: int) -> list[bytes]:
    """Return pieces of the columns that no perturbed or unrelated bytes hold by chance."""
    return [column[start : start + length] for column in columns.values() for start in range(0, ROWS - length, length)]


async def said(channel: grpc.aio.Channel, method: MethodDescriptor, fields: dict[str, Any]) -> bytes:
    """Call any RPC with whatever fields its request has; return all bytes that come back, of a refusal too."""
    known = {name: value for name, value in fields.items() if name in method.input_type.fields_by_name}
    request = GetMessageClass(method.input_type)(**known)
    raw: Any = channel
    # On the wire a stream of one request is one request.
    call = raw.unary_stream(f"/{method.containing_service.full_name}/{method.name}")(
        request.SerializeToString(), timeout=5
    )
    try:
        return b"".join([response async for response in call])
    except grpc.aio.AioRpcError as error:
        return repr((error.details(), error.trailing_metadata())).encode()


async def test_no_rpc_of_the_server_returns_unperturbed_ciphertext(
    world: World, spec: TableSpec, columns: dict[str, bytes]
) -> None:
    methods = [
        method
        for module in (ingest_pb2, server_release_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    assert {method.name for method in methods} >= {"OpenRelease", "UploadColumn", "GetRelease", "FetchColumn"}

    async def everything(attribute: str) -> bytes:
        fields = {"release_id": spec.release_id, "attribute": attribute, "spec": spec_to_proto(spec)}
        heard = b""
        for who in (ALICE, BOB, ROSA, RITA):
            async with connection(world, who, CLOUD) as channel:
                for method in methods:
                    heard += await said(channel, method, fields)
        return heard

    async with everyone(world) as parties:
        await parties.send_all(spec, columns, but="region")
        for attribute in columns:
            heard = await everything(attribute)
            assert not any(piece in heard for piece in windows(columns, 16))
        await parties.alice.upload(spec, "region", columns["region"])
        await parties.ready(spec)
        published = parties.world.published(spec.release_id)
        for attribute in columns:
            heard = await everything(attribute)
            assert published[attribute] in heard, "what is served is seen by this test"
            # A row is kept with probability 0.6 or so: 128 in a row never are.
            assert not any(piece in heard for piece in windows(columns, 128))
