from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import TypeAlias

import grpc
import pytest

from tests.worlds.parties import RITA, ROSA
from veiltab.common.errors import DeniedError
from veiltab.common.rpc.chunks import chunk_messages
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.rpc.peer import Peer
from veiltab.common.rpc.server import build_server
from veiltab.v1.researcher_pb2 import FetchStudyRequest as Request
from veiltab.v1.researcher_pb2 import FetchStudyResponse as Response

DATA = b"[study]\n"

Context: TypeAlias = "grpc.aio.ServicerContext[Request, Response]"
Streaming = Callable[[Request, Context], AsyncIterator[Response]]


def stub(channel: grpc.aio.Channel) -> SimpleNamespace:
    path = "/veiltab.v1.ResearcherService/FetchStudy"
    return SimpleNamespace(FetchStudy=channel.unary_stream(path, Request.SerializeToString, Response.FromString))


async def fetched(identity_of: Callable[[Party], Identity], behaviour: Streaming) -> bytes:
    handler = grpc.unary_stream_rpc_method_handler(behaviour, Request.FromString, Response.SerializeToString)
    service = grpc.method_handlers_generic_handler("veiltab.v1.ResearcherService", {"FetchStudy": handler})

    serving = [lambda server: server.add_generic_rpc_handlers([service])]
    async with build_server(identity_of(ROSA), [RITA], serving, "localhost:0") as server:
        rosa = Peer.at(f"localhost:{server.port}", ROSA, identity_of(RITA), stub)
        try:
            return await rosa.fetch(rosa.stub.FetchStudy, Request())
        finally:
            await rosa.close()


async def half(pieces: int) -> AsyncIterator[Response]:
    for chunk in chunk_messages(DATA[:pieces]):
        yield Response(total=len(DATA), chunk=chunk)


async def test_a_stream_that_breaks_begins_anew(identity_of: Callable[[Party], Identity]) -> None:
    asked = 0

    async def second_time(_request: Request, context: Context) -> AsyncIterator[Response]:
        nonlocal asked
        asked += 1
        async for response in half(len(DATA) if asked == 2 else 3):
            yield response
        if asked == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE)

    assert await fetched(identity_of, second_time) == DATA
    assert asked == 2


async def test_a_stream_that_is_refused_is_not_asked_for_again(identity_of: Callable[[Party], Identity]) -> None:
    asked = 0

    async def refusing(_request: Request, _context: Context) -> AsyncIterator[Response]:
        nonlocal asked
        asked += 1
        async for response in half(3):
            yield response
        raise DeniedError("no")

    with pytest.raises(DeniedError):
        await fetched(identity_of, refusing)
    assert asked == 1
