import asyncio
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from time import perf_counter
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.common.rpc.called_services import GET, Identities, called, raw, registered
from tests.worlds.parties import BOB, RITA
from veiltab.common.command.running import run_party
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.chunks import MAX_MESSAGE
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.server import Limits, PartyServer, Registration, build_server

OK, TOO_LONG = grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED


async def health(channel: grpc.aio.Channel) -> int:
    stub: Any = HealthStub(channel)
    status: int = (await stub.Check(HealthCheckRequest(), timeout=5.0)).status
    return status


def answering(behaviour: Callable[[Any, Any], Any]) -> list[Registration]:
    """A service of bytes."""
    return [registered(GET, grpc.unary_unary_rpc_method_handler(behaviour))]


async def test_a_taken_port_is_named(identity_of: Identities) -> None:
    async with build_server(identity_of(BOB), [RITA], [], "localhost:0") as first:
        with pytest.raises(InvalidInputError, match="another process may have the port") as refusal:
            build_server(identity_of(BOB), [RITA], [], f"localhost:{first.port}")
        assert refusal.value.where == f"localhost:{first.port}"


async def test_plain_text_and_a_missing_client_certificate_get_nowhere(identity_of: Identities) -> None:
    async with build_server(identity_of(BOB), [RITA], [], "localhost:0") as server:
        async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await health(channel)
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(("length", "expected"), [(1 << 20, OK), (MAX_MESSAGE, OK), (MAX_MESSAGE + 1, TOO_LONG)])
async def test_the_server_refuses_a_message_that_a_client_should_not_send(
    length: int, expected: grpc.StatusCode, identity_of: Identities
) -> None:
    async def echo(request: bytes, _context: object) -> bytes:
        return request[:1]

    identity = identity_of(RITA)
    credentials = grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
    options = [("grpc.ssl_target_name_override", BOB.dns_name), ("grpc.max_send_message_length", -1)]
    async with (
        build_server(identity_of(BOB), [RITA], answering(echo), "localhost:0") as server,
        grpc.aio.secure_channel(f"localhost:{server.port}", credentials, options=options) as channel,
    ):
        call = raw(channel).unary_unary(GET)(bytes(length), timeout=5.0)
        assert await call.code() is expected
        assert await health(channel) == HealthCheckResponse.SERVING


async def test_too_many_calls_are_shed_and_then_served_again(identity_of: Identities) -> None:
    release = asyncio.Event()

    async def wait(_request: bytes, _context: object) -> bytes:
        await release.wait()
        return b""

    async with called(identity_of, answering(wait), limits=Limits(calls=2)) as channel:
        calls = [raw(channel).unary_unary(GET)(b"", timeout=5.0) for _ in range(2)]
        await asyncio.sleep(0.3)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await health(channel)
        assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        release.set()
        await asyncio.gather(*calls)
        await asyncio.sleep(0.1)
        assert await health(channel) == HealthCheckResponse.SERVING


async def test_stop_lets_a_call_under_way_finish(identity_of: Identities) -> None:
    started = asyncio.Event()

    async def slow(_request: bytes, _context: object) -> bytes:
        started.set()
        await asyncio.sleep(0.4)
        return b"done"

    server = build_server(identity_of(BOB), [RITA], answering(slow), "localhost:0")
    await server.start()
    async with connect(identity_of(RITA), BOB, f"localhost:{server.port}") as channel:
        call = raw(channel).unary_unary(GET)(b"", timeout=5.0)
        await started.wait()
        await server.stop()
        assert await call == b"done"
        with pytest.raises(grpc.aio.AioRpcError):
            await health(channel)


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The dispositions of the process that tests: a party's end leaves it those of a process that ends."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_server_in_order(number: signal.Signals, identity_of: Identities) -> None:
    server = build_server(identity_of(BOB), [RITA], [], "localhost:0")
    running = asyncio.ensure_future(run_party(identity_of(BOB), server, asyncio.sleep(60)))
    await wait_until_serving(identity_of(RITA), BOB, f"localhost:{server.port}", within=5.0)
    os.kill(os.getpid(), number)
    await asyncio.wait_for(running, 5.0)
    assert _refused(server.port)


def _refused(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("localhost", port)) != 0


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if wanted < 1500:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
@pytest.mark.usefixtures("many_files")
async def test_500_half_open_connections_keep_nobody_waiting(identity_of: Identities) -> None:
    async def half_open(server: PartyServer) -> list[socket.socket]:
        loop, sockets = asyncio.get_running_loop(), []
        for index in range(500):
            client = socket.socket()
            client.setblocking(False)  # noqa: FBT003 - the standard library's signature
            await loop.sock_connect(client, ("127.0.0.1", server.port))
            if index % 2:  # the first bytes of a TLS record, and no more
                await loop.sock_sendall(client, b"\x16\x03\x01")
            sockets.append(client)
        return sockets

    loop = asyncio.get_running_loop()
    async with build_server(identity_of(BOB), [RITA], [], "127.0.0.1:0", limits=Limits(handshake=2.0)) as server:
        sockets = await half_open(server)
        for _ in range(5):
            begun = perf_counter()
            async with connect(identity_of(RITA), BOB, f"127.0.0.1:{server.port}") as channel:
                assert await health(channel) == HealthCheckResponse.SERVING
            assert perf_counter() - begun < 1.0
        # The server gives each up when its handshake takes too long.
        for client in sockets:
            with closing(client):
                assert await asyncio.wait_for(_ended(loop, client), 6.0)


async def _ended(loop: asyncio.AbstractEventLoop, client: socket.socket) -> bool:
    try:
        while await loop.sock_recv(client, 4096):
            pass
    except ConnectionResetError:
        pass
    return True
