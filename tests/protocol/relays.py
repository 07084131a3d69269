"""A study whose parties are called through a relay, and an HTTP proxy of the tests' own."""

import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tests.protocol.test_linked_release import THREE
from tests.protocol.world import ALICE, BOB, CLOUD, RELAY, ROSA, World
from veiltab.researcher.client.release import Release

PARTIES = (RELAY, ALICE, BOB, CLOUD, ROSA)


def asked(world: World) -> Release:
    with world.client() as client:
        return client.request(THREE, workload="linked", epsilon=4, delta="1e-6", canaries=20, label=world.label())


def check_ready(world: World, release_id: str) -> None:
    with world.client() as client:
        assert client.release(release_id).wait(200).state.value == "ready"
    assert [world.charges(curator).count(release_id) for curator in ("alice", "bob")] == [1, 1]


class HttpProxy(ThreadingHTTPServer):
    """Passes connections on for whom it knows.

    Args:
        user: USER:PASSWORD that it asks for; empty asks for none.
        says: what it answers instead, whatever is asked.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, user: str = "", says: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), _Connect)
        self.user, self.says = user, says
        self.asked = set[str]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Connect(BaseHTTPRequestHandler):
    server: HttpProxy

    def do_CONNECT(self) -> None:
        if self.server.says:
            self.wfile.write(self.server.says)
            return
        wanted = f"Basic {b64encode(self.server.user.encode()).decode()}" if self.server.user else None
        if self.headers["Proxy-Authorization"] != wanted:
            self.send_error(407)
            return
        self.server.asked.add(self.path)
        host, _, port = self.path.rpartition(":")
        try:
            behind = socket.create_connection((host, int(port)))
        except OSError:
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        with behind:
            other = Thread(target=_pump, args=(behind, self.connection), daemon=True)
            other.start()
            _pump(self.connection, behind)
            other.join()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(user: str = "", says: bytes = b"") -> Iterator[HttpProxy]:
    """Run an HTTP proxy."""
    with HttpProxy(user, says) as proxy:
        thread = Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
