"""The server's end of a TLS connection, against a client of Python's own."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.common.collection.rounds import study as poll
from veiltab.deploy.pki.certificates import init_pki
from veiltab.server.https.http import server_tls
from veiltab.server.https.places import Connection, Places
from veiltab.server.https.tls_connection import TlsConnection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the server's certificate."""
    path = tmp_path_factory.mktemp("pki")
    init_pki(poll(), path)
    return path / "server-cloud"


class Echo(asyncio.Protocol):
    """Sends back what it gets, in two pieces."""

    def __init__(self) -> None:
        self.data, self.lost = bytearray(), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TlsConnection)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.transport.write(data[:1])
        self.transport.write(data[1:])

    def connection_lost(self, exc: Exception | None) -> None:
        assert exc is None
        self.lost += 1


class OnePlace(Places):
    """Tells when the connection has left it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.has_left = asyncio.Event()

    def leave(self, connection: Connection) -> None:
        super().leave(connection)
        self.has_left.set()


def served(folder: Path, protocol: Echo, ask: Callable[[socket.socket], None]) -> None:
    """Serve one connection while another thread asks; at its end nothing of it is left."""

    async def scenario() -> None:
        near, far = socket.socketpair()
        near.settimeout(0)
        far.settimeout(10)
        places = OnePlace()
        tls = server_tls(folder / "cloud.pem", folder / "cloud.key")
        connection = TlsConnection(near, tls, lambda: protocol, places)
        places.take(connection, "client", 10)
        with far:
            await asyncio.to_thread(ask, far)
        await asyncio.wait_for(places.has_left.wait(), 10)
        await asyncio.sleep(0)
        assert list(places) == []
        assert near.fileno() == -1
        assert connection.is_closing()

    asyncio.run(scenario())


def client(folder: Path, connection: socket.socket) -> ssl.SSLSocket:
    """Establish TLS."""
    trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    return trusting.wrap_socket(connection, server_hostname="localhost", suppress_ragged_eofs=False)


def all_of(connection: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(2**16)
        assert piece
        data += piece
    return data


def test_what_is_written_at_a_time_comes_as_one_record(folder: Path) -> None:
    protocol = Echo()

    def ask(plain: socket.socket) -> None:
        with client(folder, plain) as connection:
            for message in (b"one", b"another"):
                connection.sendall(message)
                assert connection.recv(100) == message

    served(folder, protocol, ask)
    assert (bytes(protocol.data), protocol.lost) == (b"oneanother", 1)


def test_a_message_of_many_records_comes_whole(folder: Path) -> None:
    message = bytes(range(256)) * 300

    def ask(plain: socket.socket) -> None:
        with client(folder, plain) as connection:
            connection.sendall(message)
            assert all_of(connection, len(message)) == message

    served(folder, Echo(), ask)


def test_who_takes_no_answer_is_read_no_further(folder: Path) -> None:
    protocol = Echo()

    def ask(plain: socket.socket) -> None:
        sent = 0
        with client(folder, plain) as connection:
            connection.settimeout(0.05)
            with suppress(TimeoutError):
                while sent < 2**21:
                    connection.sendall(bytes(2**14))
                    sent += 2**14
            assert 0 < sent < 2**21
            connection.settimeout(10)
            assert set(all_of(connection, sent)) == {0}

    served(folder, protocol, ask)
    assert protocol.lost == 1


class Late(Echo):
    """Wants nothing for a while."""

    def data_received(self, data: bytes) -> None:
        if not self.data:
            self.transport.pause_reading()
            self.transport._loop.call_later(0.05, self.resume)
        super().data_received(data)
        self.transport.write(b"")

    def resume(self) -> None:
        assert len(self.data) <= 2**14
        assert self.transport._tls is not None
        assert self.transport._tls.incoming.pending <= 2**14
        self.transport.resume_reading()


def test_a_protocol_gets_nothing_while_it_wants_nothing_and_all_later(folder: Path) -> None:
    message = bytes(2**17)

    def ask(plain: socket.socket) -> None:
        with client(folder, plain) as connection:
            connection.sendall(message)
            assert all_of(connection, len(message)) == message

    served(folder, Late(), ask)


class Refusing(Echo):
    """Answers once, and ends."""

    def data_received(self, data: bytes) -> None:
        self.transport.pause_reading()
        super().data_received(data)
        self.transport.close()
        self.transport.write(b"never")


def test_an_answer_reaches_a_client_that_still_sends(folder: Path) -> None:
    def ask(plain: socket.socket) -> None:
        with client(folder, plain) as connection:
            for size in (1, 2**14, 2**14):
                connection.sendall(bytes(size))
            assert connection.recv(100) == b"\0"
            assert connection.recv(100) == b""  # and not an end without a word

    served(folder, Refusing(), ask)


@pytest.mark.parametrize(
    ("hello", "answer"),
    [(b"GET / HTTP/1.1\r\n\r\n", b""), (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", b"\x15")],
    ids=["no TLS", "a handshake that is none: an alert"],
)
def test_what_is_no_tls_is_ended(folder: Path, hello: bytes, answer: bytes) -> None:
    protocol = Echo()

    def ask(plain: socket.socket) -> None:
        plain.sendall(hello)
        assert plain.recv(100)[:1] == answer
        assert plain.recv(100) == b""

    served(folder, protocol, ask)
    assert (bytes(protocol.data), protocol.lost) == (b"", 0)


@pytest.mark.parametrize("first", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_who_leaves_early_leaves_nothing_behind(folder: Path, first: bytes) -> None:
    protocol = Echo()
    served(folder, protocol, lambda plain: plain.sendall(first))
    assert protocol.lost == 0


def test_who_leaves_without_a_word_leaves_nothing_behind(folder: Path) -> None:
    protocol = Echo()

    def ask(plain: socket.socket) -> None:
        with client(folder, plain) as connection:
            connection.sendall(b"x")
            assert connection.recv(1) == b"x"

    served(folder, protocol, ask)
    assert protocol.lost == 1


class Failing(Echo):
    """Has a defect."""

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - its base's
        raise RuntimeError


def test_a_defect_ends_its_connection(folder: Path) -> None:
    protocol = Failing()

    def ask(plain: socket.socket) -> None:
        with client(folder, plain) as connection:
            connection.sendall(b"x")
            with pytest.raises((ConnectionError, ssl.SSLError)):
                connection.recv(1)

    served(folder, protocol, ask)
    assert protocol.lost == 1


def test_no_client_gets_a_ticket_with_which_it_would_be_known_again(folder: Path) -> None:
    def ask(plain: socket.socket) -> None:
        trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        with trusting.wrap_socket(plain, server_hostname="localhost") as connection:
            assert connection.version() == "TLSv1.2"
            assert connection.session is not None
            assert not connection.session.has_ticket

    served(folder, Echo(), ask)
