"""A service that tests call with certificates of every role."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc

from tests.worlds.parties import BOB, RITA
from veiltab.common.rpc.authorisation import Context, Handler, caller
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.server import Registration, build_server
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.v1 import curator_pb2

Identities = Callable[[Party], Identity]


@asynccontextmanager
async def called(
    identity_of: Identities,
    services: Sequence[Registration],
    caller: Party = RITA,
    peers: Sequence[Party] = (RITA,),
    **more: Any,  # noqa: ANN401 - of build_server
) -> AsyncIterator[grpc.aio.Channel]:
    """Connect a caller to a server of bob, who knows some peers."""
    async with (
        build_server(identity_of(BOB), peers, services, "localhost:0", **more) as server,
        connect(identity_of(caller), BOB, f"localhost:{server.port}") as channel,
    ):
        yield channel


GET = "/veiltab.v1.CuratorService/GetProposal"


PEERS = [Party(study="survey", role=role, name="known") for role in Role]


def registered(path: str, handler: Handler) -> Registration:
    _, service, name = path.split("/")
    return lambda server: server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {name: handler})]
    )


def answering(behaviour: Callable[[Any, Any], Any], path: str = GET) -> list[Registration]:
    return [
        registered(
            path,
            grpc.unary_unary_rpc_method_handler(
                behaviour, curator_pb2.GetProposalRequest.FromString, curator_pb2.GetProposalResponse.SerializeToString
            ),
        )
    ]


async def who(_request: object, context: Context) -> curator_pb2.GetProposalResponse:
    return curator_pb2.GetProposalResponse(waiting_for=caller(context).uri)


async def ask(channel: grpc.aio.Channel, path: str = GET, seconds: float | None = 5.0) -> str:
    """Call a method as gRPC itself would, and return the response's text; raises VeiltabError."""
    method = channel.unary_unary(
        path, curator_pb2.GetProposalRequest.SerializeToString, curator_pb2.GetProposalResponse.FromString
    )
    try:
        return (await method(curator_pb2.GetProposalRequest(), timeout=seconds)).waiting_for
    except grpc.aio.AioRpcError as error:
        raise error_from_rpc(error, "curator bob") from None


def raw(channel: grpc.aio.Channel) -> Any:  # noqa: ANN401 - what is sent and received are bytes, which gRPC's types lack
    return channel
