"""Callers who take what many share and give nothing for it: places, connections, memory."""

import asyncio
import contextlib
import socket
import time
from pathlib import Path

import grpc
import psutil
import pytest

from tests.hostile.clients import call, code_of, connection, message, unsent
from tests.protocol.polling import FLEET, Asked, Poll, made_poll, poll_fixture  # noqa: F401 - a fixture
from tests.protocol.world import CLOUD
from tests.worlds.loops import blocking
from veiltab.common.core.randomness import SystemSource

REPORT = "CollectionService/Report"
STREAMS = 100
"""Calls that one connection may carry."""


def server(poll: Poll) -> psutil.Process:
    return psutil.Process(poll.local._running[CLOUD].pid)


async def reported(poll: Poll, asked: Asked, nodes: int) -> list[grpc.StatusCode]:
    """Let some honest nodes report once each, over connections of their own; return how each was answered."""

    async def report(token: bytes) -> grpc.StatusCode:
        symbol = asked.spec.randomiser.randomise(0, SystemSource())
        async with connection(poll.local, FLEET, CLOUD) as channel:
            request = message("ReportRequest").FromString(asked.request(token, symbol).SerializeToString())
            return await code_of(call(channel, REPORT)(request, timeout=15))

    return await asyncio.gather(*(report(token) for token in asked.tokens["north"][:nodes]))


async def test_honest_nodes_report_while_a_thousand_calls_send_nothing(poll: Poll) -> None:
    asked = poll.opened(5)
    async with contextlib.AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(connection(poll.local, FLEET, CLOUD)) for _ in range(10)]
        stalled = [unsent(channel, REPORT, 19) for channel in channels for _ in range(STREAMS)]
        await asyncio.gather(*(channel.channel_ready() for channel in channels))
        await asyncio.sleep(1)
        assert await reported(poll, asked, 5) == [grpc.StatusCode.OK] * 5
        for one in stalled:
            one.cancel()


async def test_a_call_that_sends_nothing_is_ended_long_before_its_deadline(poll: Poll) -> None:
    async with connection(poll.local, FLEET, CLOUD) as channel:
        stalled = unsent(channel, REPORT, 19)
        assert await asyncio.wait_for(stalled.code(), 20) is grpc.StatusCode.UNAVAILABLE


def half_open(address: tuple[str, int], number: int) -> list[socket.socket]:
    """Open connections and begin a TLS handshake on none of them."""
    return [socket.create_connection(address, timeout=20) for _ in range(number)]


@blocking
async def healthy(poll: Poll) -> grpc.StatusCode:
    """Return how the server answers a new connection that asks for its health."""
    async with connection(poll.local, FLEET, CLOUD) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        return await code_of(check(b"", timeout=20))


def test_half_open_connections_leave_no_memory_behind(poll: Poll) -> None:
    host, port = poll.local.endpoint(*CLOUD).split(":")

    before = server(poll).memory_info().rss
    for _ in range(3):
        opened = half_open((host, int(port)), 500)
        assert healthy(poll) is grpc.StatusCode.OK
        for one in opened:
            one.close()
    # What was freed goes back to the system from time to time.
    end = time.monotonic() + 60
    while server(poll).memory_info().rss - before > 20 * 2**20:
        assert time.monotonic() < end, "the memory of connections that are closed stays taken"
        time.sleep(0.5)


@pytest.mark.long
def test_more_half_open_connections_than_a_shell_allows_files_keep_nobody_out(tmp_path: Path) -> None:
    poll = made_poll(tmp_path / "study")
    with poll.local:
        poll.start(("prlimit", "--nofile=1024:8192", *poll.local.launcher))
        port = int(poll.local.endpoint(*CLOUD).split(":")[1])
        opened = half_open(("localhost", port), 1500)
        assert healthy(poll) is grpc.StatusCode.OK
        # Nobody had to go for this one to come.
        assert all(is_open(one) for one in opened)
        for one in opened:
            one.close()


def is_open(one: socket.socket) -> bool:
    """Whether the other end has not closed a connection."""
    one.settimeout(0)
    try:
        return bool(one.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
