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


@pytest.mark.parametrize("refusal", [None, DeniedError("no")], ids=["broken", "refused"])
async def test_a_stream_that_breaks_begins_anew_unless_it_is_refused(
    identity_of: Callable[[Party], Identity], refusal: DeniedError | None
) -> None:
    asked = 0

    async def answer(_request: Request, context: Context) -> AsyncIterator[Response]:
        nonlocal asked
        asked += 1
        async for response in half(len(DATA) if asked == 2 else 3):
            yield response
        if refusal is not None:
            raise refusal
        if asked == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE)

    if refusal is None:
        assert await fetched(identity_of, answer) == DATA
    else:
        with pytest.raises(DeniedError):
            await fetched(identity_of, answer)
    assert asked == (2 if refusal is None else 1)
