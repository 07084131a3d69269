"""Serves an ASGI application: the port, TLS, and what a connection may do.

uvicorn serves the application, which says what is answered. A port that strangers reach stands behind a proxy, which
limits the connections of each address: here they have a limit together alone.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from veiltab.common.errors import InvalidInputError
from veiltab.common.process.signals import PartySignals
from veiltab.common.rpc.address import loopback_address
from veiltab.common.rpc.connections import connection_opened
from veiltab.common.web.answering import SECONDS, Application

MOST_CONNECTIONS = 2048
"""Connections at a time; a request on a further one is answered with 503."""

MOST_BESIDE_BODY = 8192
"""Bytes of a request beside its body: request line, headers, sizes of chunks, trailers."""

_HANDSHAKE_SECONDS = 5.0
_END_SECONDS = 3.0
"""How long a client may take to close, once it was told that this was all."""

_IDLE_SECONDS = 5
"""How long a connection may wait for the next request after an answer."""

_BODY_SECONDS = 2 * SECONDS
"""The application ends a request before that, with an answer."""


@asynccontextmanager
async def serving(
    application: Application,
    listener: socket.socket,
    tls: ssl.SSLContext | None = None,
    most_beside_body: int = MOST_BESIDE_BODY,
) -> AsyncIterator[None]:
    """Answer requests while the block lasts; those under way at its end are answered.

    Args:
        listener: a socket that listens; it is closed at the end.
        tls: with the certificate that clients see; None for the loopback interface.
        most_beside_body: bytes of a request beside its body, before its connection ends.
    """
    config = uvicorn.Config(
        application,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=logging.CRITICAL,  # what a client sends wrong is answered, not logged
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=MOST_CONNECTIONS,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    server = _Server(config, tls, most_beside_body)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving


async def serve(
    application: Application,
    listener: socket.socket,
    tls: ssl.SSLContext | None = None,
    *,
    ends_with_terminal: bool = False,
    most_beside_body: int = MOST_BESIDE_BODY,
) -> None:
    """Answer requests as `serving` until a signal ends the process.

    Args:
        ends_with_terminal: whether SIGHUP ends it too.
    """
    over = asyncio.Event()
    with PartySignals(stop=over.set, may_restart=lambda: ends_with_terminal):
        async with serving(application, listener, tls, most_beside_body):
            await over.wait()


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the server's side of TLS 1.2 or newer, with a certificate and no question for the client's.

    Raises:
        InvalidInputError: the files cannot be read, or do not belong together.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    # A node comes once: tickets for a next connection would be made for nothing, and known again if it comes twice.
    tls.num_tickets = 0  # of TLS 1.3
    tls.options |= ssl.OP_NO_TICKET  # of TLS 1.2
    try:
        tls.load_cert_chain(certificate, key)
    except OSError:  # of which SSLError is one
        raise InvalidInputError(
            "these are not a certificate and its key",
            where=f"{certificate}, {key}",
            remedy="Give PEM files; the certificate's file holds the chain, the server's own first.",
        ) from None
    return tls


def bound(address: str, *, option: str = "--http", shared: bool = False) -> socket.socket:
    """Return a socket that listens; who connects waits until it is served.

    Args:
        address: as `loopback_address` reads it.
        shared: whether other processes of this server may listen there too; each gets some of the connections.

    Raises:
        InvalidInputError: it is none, or cannot be bound.
    """
    host, port = loopback_address(address, option)
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise InvalidInputError("this host is not known here", where=f"{option} {address}") from None
    family, kind, protocol, _, place = places[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Without other processes a second server would share the port in silence.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
    try:
        listener.bind(place)
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInputError(
            f"this address cannot be bound ({error.strerror})",
            where=f"{option} {address}",
            remedy="Stop the other process, or name another address.",
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """Return where a socket listens, as HOST:PORT."""
    host, port, *_ = listener.getsockname()
    return f"{f'[{host}]' if ':' in host else host}:{port}"


class _Server(uvicorn.Server):
    """Leaves the signals of the process to the party that it is a part of, and gives a handshake little time."""

    def __init__(self, config: uvicorn.Config, tls: ssl.SSLContext | None, most_beside_body: int) -> None:
        super().__init__(config)
        self._most_beside_body = most_beside_body
        patience = {"ssl_handshake_timeout": _HANDSHAKE_SECONDS, "ssl_shutdown_timeout": _END_SECONDS}
        self._tls: dict[str, Any] = {"ssl": tls, **patience} if tls else {}

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on bound sockets."""
        create = asyncio.get_running_loop().create_server
        backlog = self.config.backlog
        self.servers = [await create(self._connected, sock=one, backlog=backlog, **self._tls) for one in sockets or ()]
        self.started = True

    def _connected(self) -> "_Patient":
        protocol = _Patient(config=self.config, server_state=self.server_state, app_state={})
        protocol.most_beside_body = self._most_beside_body
        return protocol


class _Patient(HttpToolsProtocol):
    """Says how long a client may take to send a request, and ends connections that send what no client of ours does.

    Headers, trailers and further requests that nobody has answered yet would be kept in memory, however many come.
    """

    most_beside_body = MOST_BESIDE_BODY
    _beside_body = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as its base has it
        """Wait for a request."""
        super().connection_made(transport)
        if transport.get_extra_info("ssl_object"):
            connection_opened("https")
        self._expect(SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._expect(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the request has too much beside its body."""
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > self.most_beside_body:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin with a request, once the one before it is answered."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            raise ConnectionAbortedError
        super().on_message_begin()
        channel = self.transport.get_extra_info("ssl_object")
        self.scope["state"]["client_certificate"] = channel and channel.getpeercert(binary_form=True)
        self._expect(SECONDS)

    def on_headers_complete(self) -> None:
        """Begin to answer, while the body may still come: the application ends a request that is late."""
        super().on_headers_complete()
        self._expect(_BODY_SECONDS)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._beside_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request: it is the server's turn."""
        self._beside_body = 0
        self._expect(None)
        super().on_message_complete()

    def _expect(self, seconds: float | None) -> None:
        """Close the connection unless its client does its next part in time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
