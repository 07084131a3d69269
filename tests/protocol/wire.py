"""Raw RPCs with a party's own certificate, past the product's clients."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc

from tests.protocol.world import Who, World
from tests.worlds.parties import CLOUD
from veiltab.common.command.parties import with_way
from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.errors import DeniedError, UnavailableError
from veiltab.common.release.messages.release_messages import spec_to_proto
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.chunks import chunk_messages
from veiltab.common.rpc.parties.identity import Party, load_identity
from veiltab.common.rpc.peer import Peer
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.v1 import curator_pb2, curator_pb2_grpc, ingest_pb2, ingest_pb2_grpc
from veiltab.v1 import server_release_pb2 as release_pb2
from veiltab.v1 import server_release_pb2_grpc as release_pb2_grpc
from veiltab.v1.release_pb2 import Chunk

T = TypeVar("T")
SECONDS = 20.0


@asynccontextmanager
async def connection(
    world: World, caller: Who, peer: Who, identity_folder: Path | None = None
) -> AsyncIterator[grpc.aio.Channel]:
    """Connect one party to another, with the caller's certificate or one from another folder."""
    identity = load_identity(identity_folder or world.local.identity_folder(*caller), *caller)
    identity = with_way(world.local.study, identity)
    party = Party(study=world.local.study.id, role=peer[0], name=peer[1])
    channel = connect(identity, party, world.local.endpoint(*peer))
    try:
        yield channel
    finally:
        await channel.close()


async def answer(call: Awaitable[T]) -> T:
    """Return a call's response, or raise the veiltab error of its refusal; nothing is repeated."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise error_from_rpc(error, "the peer") from None


async def said_clearly(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call while a refusal comes as a broken connection: gRPC loses the words when a stream is cut short."""
    for _ in range(9):
        try:
            return await call()
        except UnavailableError as error:
            if error.problem != "the connection broke":
                raise
            await asyncio.sleep(0.1)
    return await call()


async def whole(method: "grpc.aio.UnaryStreamMultiCallable[T, Any]", request: T) -> bytes:
    """Return the bytes of a stream, or raise the veiltab error of its refusal."""
    peer: Peer[None] = Peer(CLOUD, cast("Any", None), lambda _: None)
    return b"".join([data async for data in peer.stream(method, request)])


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """The server's side for curators."""

    stub: "ingest_pb2_grpc.IngestServiceAsyncStub"

    @classmethod
    def on(cls, channel: grpc.aio.Channel) -> "Ingest":
        """Return the calls on a connection."""
        return cls(stub=ingest_pb2_grpc.IngestServiceStub(channel))

    async def open(self, spec: TableSpec) -> ingest_pb2.OpenReleaseResponse:
        request = ingest_pb2.OpenReleaseRequest(spec=spec_to_proto(spec))
        return await answer(self.stub.OpenRelease(request, timeout=SECONDS))

    async def upload(
        self,
        spec: TableSpec,
        attribute: str,
        column: bytes,
        *,
        pieces: Sequence[Chunk] | None = None,
        noise: bytes | None = None,
    ) -> ingest_pb2.UploadColumnResponse:
        """Send a column, or other chunks under its digest; announce its release before, unless its noise is known."""
        header = ingest_pb2.UploadHeader(
            release_id=spec.release_id,
            attribute=attribute,
            spec_digest=spec.digest(),
            column_digest=sha256(column).digest(),
            noise_digest=(await self.open(spec)).noise_digest if noise is None else noise,
        )
        sent = list(chunk_messages(column)) if pieces is None else pieces
        return await self.send([ingest_pb2.UploadColumnRequest(header=header), *map(_message, sent)])

    async def send(self, messages: Sequence[ingest_pb2.UploadColumnRequest]) -> ingest_pb2.UploadColumnResponse:
        """Send any messages as an upload."""

        async def stream() -> AsyncIterator[ingest_pb2.UploadColumnRequest]:
            for message in messages:
                yield message

        return await said_clearly(lambda: answer(self.stub.UploadColumn(stream(), timeout=SECONDS)))


def _message(chunk: Chunk) -> ingest_pb2.UploadColumnRequest:
    return ingest_pb2.UploadColumnRequest(chunk=chunk)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The server's side for researchers."""

    stub: "release_pb2_grpc.ReleaseServiceAsyncStub"

    @classmethod
    def on(cls, channel: grpc.aio.Channel) -> "Published":
        """Return the calls on a connection."""
        return cls(stub=release_pb2_grpc.ReleaseServiceStub(channel))

    async def state(self, release_id: str) -> release_pb2.GetReleaseResponse:
        """Ask how a release stands."""
        return await answer(self.stub.GetRelease(release_pb2.GetReleaseRequest(release_id=release_id), timeout=SECONDS))

    async def column(self, release_id: str, attribute: str) -> bytes:
        """Fetch a perturbed column."""
        request = release_pb2.FetchColumnRequest(release_id=release_id, attribute=attribute)
        return await whole(self.stub.FetchColumn, request)


async def fetch_key(
    channel: grpc.aio.Channel, release_id: str, attribute: str, published: bytes | None = None
) -> bytes:
    """Fetch the key of a column from a curator.

    Args:
        channel: to the curator.
        release_id: of a release that the server does not sample.
        attribute: with at most 256 symbols.
        published: the column, in which the canaries are found; None if the release has none or no key is to come.
    """
    stub = curator_pb2_grpc.CuratorServiceStub(channel)
    digests: Mapping[str, bytes] = {}
    canaries = b""
    with suppress(DeniedError):  # so is the key, and its words count
        receipt = curator_pb2.GetReceiptRequest(release_id=release_id)
        stated = await answer(stub.GetReceipt(receipt, timeout=SECONDS))
        digests = stated.digests
        if published is not None:
            key = places_key(stated.canary_key)
            places = CanaryPlaces.of(key, rows=len(published), canaries=stated.receipts[0].canaries).all()
            canaries = bytes(published[place] for place in places)
    held = curator_pb2.ColumnDigests(published=digests.get(attribute, b""), canaries=sha256(canaries).digest())
    request = curator_pb2.GetKeysRequest(release_id=release_id, columns={attribute: held})
    return (await answer(stub.GetKeys(request, timeout=SECONDS))).keys[attribute]
