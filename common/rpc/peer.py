"""One peer of a party: a channel, a stub, and how long an answer may take."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Generic, Protocol, TypeVar

import grpc

from veiltab.common.errors import TransferError, UnavailableError, VeiltabError
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.chunks import ShortChunks, verify
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.rpc.statuses import NO_CONNECTION, error_from_rpc
from veiltab.common.rpc.waiting.retries import repeated
from veiltab.common.study.members import RELAYED
from veiltab.v1.release_pb2 import Chunk


class ChunkMessage(Protocol):
    """A response that carries a chunk of a stream and the stream's length."""

    @property
    def total(self) -> int:
        """Length of the whole stream in bytes."""

    @property
    def chunk(self) -> Chunk:
        """The chunk; absent when nothing is left."""

    def HasField(self, field_name: str, /) -> bool:  # noqa: N802 - protobuf's name
        """Return whether the message has the chunk."""


Stub = TypeVar("Stub")
Request = TypeVar("Request")
Response = TypeVar("Response")
Piece = TypeVar("Piece", bound=ChunkMessage)

ASK_SECONDS = 5.0
"""Longest time for one question, its repeats included; the driver that asks tries again after that."""

STREAM_SECONDS = 1800.0
"""Longest time for one stream."""

MOST = 1 << 34
"""Most bytes of a stream for which nothing says less."""

PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds that a driver waits after each failed attempt; the last one repeats."""


async def pause_after(attempt: int) -> None:
    """Wait after the attempt of this number, counted from 0, before the next."""
    await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])


class Peer(Generic[Stub]):
    """One peer.

    Args:
        channel: leads to it, and to nobody else; see `connect`.
        stub: the generated class of the service that is asked.
        endpoint: where the channel leads, to say so where there is no connection.
    """

    def __init__(
        self, party: Party, channel: grpc.aio.Channel, stub: Callable[[grpc.aio.Channel], Stub], endpoint: str = ""
    ) -> None:
        self.party = party
        self._endpoint = endpoint
        self.stub = stub(channel)
        self._channel = channel

    @classmethod
    def at(
        cls, endpoint: str, party: Party, identity: Identity, stub: Callable[[grpc.aio.Channel], Stub]
    ) -> "Peer[Stub]":
        """Return a party as one with this identity calls it at its endpoint; see `connect`."""
        return cls(party, connect(identity, party, endpoint), stub, endpoint)

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()

    async def ask(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        *,
        within: float = ASK_SECONDS,
        once: bool = False,
    ) -> Response:
        """Call an RPC of the stub; see `call`."""
        try:
            return await call(method, request, peer=self.party, within=within, once=once)
        except UnavailableError as error:
            raise self._with_endpoint(error) from error

    def error_of(self, error: grpc.aio.AioRpcError) -> VeiltabError:
        """Return why a call of another kind failed."""
        return self._with_endpoint(error_from_rpc(error, str(self.party)))

    def _with_endpoint(self, error: VeiltabError) -> VeiltabError:
        """Say where the peer is called if there is no connection."""
        if error.problem != NO_CONNECTION or not self._endpoint:
            return error
        way = "by way of the relay, which must run too" if self._endpoint == RELAYED else f"at {self._endpoint}"
        remedy = f"{error.remedy} It is called {way}."
        return UnavailableError(error.problem, where=error.where, remedy=remedy)

    async def stream(  # noqa: PLR0913 - what a stream may be
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Request, Piece],
        request: Request,
        total: int | None = None,
        *,
        offset: int = 0,
        most: int = MOST,
        has_digests: bool = True,
        check: Callable[[Piece], None] = lambda _: None,
    ) -> AsyncIterator[bytes]:
        """Yield the bytes that an RPC of the stub streams, in order, each chunk verified, to their very end.

        Args:
            total: length of the stream in bytes if it is known beforehand; else what the peer says first counts.
            offset: bytes that are here already; the request says it too.
            most: bytes that the stream may have at all.
            has_digests: whether the digests of chunks are checked.
            check: raises if a response is not to be taken.

        Raises:
            TransferError: the stream is longer than it may be, a chunk is damaged, missing, repeated or out of order,
                too many are short, the total changes or differs, or the stream ends before it or runs past it. What was
                yielded before is sound.
            VeiltabError: as the peer refused; UnavailableError if the connection broke: resume at the byte reached.
        """
        position, ended, short, peer = offset, False, ShortChunks(), str(self.party)
        responses = method(request, timeout=STREAM_SECONDS)
        try:
            async for response in responses:
                check(response)
                total = response.total if total is None else total
                if total > most:
                    raise TransferError(f"a stream is longer than the {most} bytes that it may have", where=peer)
                if response.total != total:
                    raise TransferError("a stream's length is not what it was", where=peer)
                if ended:
                    raise TransferError("a stream goes on after its end", where=peer)
                if not response.HasField("chunk"):
                    ended = True
                    continue
                data = verify(response.chunk, position, has_digest=has_digests)
                short.take(data)
                position += len(data)
                if position > total:
                    raise TransferError("a stream runs past its length", where=peer)
                yield data
        except grpc.aio.AioRpcError as error:
            raise self.error_of(error) from None
        finally:
            # A peer whose stream is refused must not go on to fill what gRPC reads ahead.
            responses.cancel()
        if position != total:
            raise TransferError("a stream ended before its length was reached", where=peer, remedy="Resume it.")

    async def fetch(self, method: grpc.aio.UnaryStreamMultiCallable[Request, Piece], request: Request) -> bytes:
        """Return all bytes that an RPC of the stub streams; a stream that breaks begins anew, as a question does."""

        async def whole(_remaining: float) -> bytes:
            return b"".join([data async for data in self.stream(method, request)])

        return await repeated(whole, ASK_SECONDS)
