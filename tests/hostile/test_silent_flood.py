"""Whoever reaches the port for reports over HTTPS can open connections and say nothing: honest nodes still report."""

import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.common.collection.rounds import report_to_json
from tests.protocol.polling import Poll, made_poll
from tests.protocol.world import CLOUD
from veiltab.common.collection.oracles import Category
from veiltab.common.process.protection import allow_open_files
from veiltab.common.web.serving import _HANDSHAKE_SECONDS, MOST_CONNECTIONS
from veiltab.play.local.processes import free_ports

pytestmark = pytest.mark.long

FULL, OPEN, MOST = MOST_CONNECTIONS + 500, 4 * MOST_CONNECTIONS, 50_000
"""Connections of a flood: so many take every place; it keeps so many, the latest; and makes no more than so many."""

AT_ONCE, PAUSE = 15, 0.01
"""A flood makes so many connections at a time, and rests for so many seconds: it keeps each for over 5 seconds."""

PATIENCE = _HANDSHAKE_SECONDS / 2
"""Seconds that a node waits: for less than it takes until the server ends silent connections for their age."""

NODES = 20


@pytest.fixture(scope="module")
def poll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Poll, int]]:
    """A study of nodes whose server takes reports over HTTPS, and the port."""
    allow_open_files()
    poll = made_poll(tmp_path_factory.mktemp("poll") / "study")
    (port,) = free_ports(1)
    poll.local.options[CLOUD] = ("--http", f"127.0.0.1:{port}")
    with poll.local:
        poll.start()
        yield poll, port


def connected(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(source, 0))


def trusting(poll: Poll) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(poll.local.identity_folder(*CLOUD) / "ca.pem"))


@contextmanager
def flood(connect: Callable[[int], socket.socket]) -> Iterator[None]:
    """Make connections while the block lasts."""
    opened, is_full, is_over = deque[socket.socket](), threading.Event(), threading.Event()

    def work() -> None:
        for number in range(MOST):
            with suppress(OSError):  # the server has closed it already
                opened.append(connect(number))
            if len(opened) > FULL:
                is_full.set()
            if len(opened) > OPEN:
                opened.popleft().close()
            if number % AT_ONCE == 0 and is_over.wait(PAUSE):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert is_full.wait(120)
        yield
        assert thread.is_alive()
    finally:
        is_over.set()
        thread.join()
        for one in opened:
            one.close()


def report(port: int, tls: ssl.SSLContext, round_id: str, token: bytes) -> bytes:
    """Report as a node does, over a connection of its own; return how the answer begins."""
    body = report_to_json(token, "north", Category(symbol=7))
    head = f"POST /v1/rounds/{round_id}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with tls.wrap_socket(connected(port, "127.0.0.1"), server_hostname="localhost") as connection:
        connection.sendall(head.encode() + body)
        return connection.recv(15)


@pytest.mark.parametrize(
    "sources",
    [("127.0.0.2",), ("127.0.0.1",), tuple(f"127.0.{number}.2" for number in range(250))],
    ids=["another address", "the nodes' own address", "many addresses"],
)
def test_honest_nodes_report_during_a_flood(poll: tuple[Poll, int], sources: tuple[str, ...]) -> None:
    study, port = poll
    asked, tls = study.opened(NODES), trusting(study)
    with flood(lambda number: connected(port, sources[number % len(sources)])):
        answers = [report(port, tls, asked.spec.round_id, token) for token in asked.tokens["north"]]
    assert answers == NODES * [b"HTTP/1.1 200 OK"]
    assert asked.reports()[0] == NODES
