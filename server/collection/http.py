"""Reports of nodes over HTTPS, for clients that cannot do mutual TLS: the port, TLS, and what a connection may do.

The server shows a certificate, the client none, so whoever reaches the port can connect. uvicorn serves the
application of `http_application`, which says what is answered.
"""

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.sinks import loopback_address
from veiltab.common.rpc.connections import connection_opened
from veiltab.server.collection.http_application import SECONDS, application
from veiltab.server.collection.http_options import MOST_CONNECTIONS
from veiltab.server.collection.rounds import RoundKeeper

MOST_OPEN = 2 * MOST_CONNECTIONS
"""Connections at a time that are accepted, also before TLS is established; further ones wait."""

MOST_BESIDE_BODY = 8192
"""Bytes of a request beside its body: request line, headers, sizes of chunks, trailers."""

_HANDSHAKE_SECONDS = 5.0
_SHUTDOWN_SECONDS = 3.0
_FULL_SECONDS = 0.01
_TLS_RECORD = 2**14
"""Bytes of the buffer of a connection: TLS sends no more at once, and asyncio would keep 256 KiB for each."""


@asynccontextmanager
async def serving_reports(rounds: RoundKeeper, listener: socket.socket, tls: ssl.SSLContext) -> AsyncIterator[None]:
    """Take reports over HTTPS while the block lasts; those under way at its end are answered.

    Args:
        rounds: the server's part in rounds.
        listener: a socket that listens; it is closed at the end.
        tls: with the certificate that clients see.
    """
    server = _Server(
        uvicorn.Config(
            application(rounds),
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.CRITICAL,  # what a client sends wrong is answered, not logged
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=5,
            ssl_context_factory=lambda _config, _default: tls,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the server's side of TLS 1.2 or newer, with a certificate and no question for the client's.

    Raises:
        InvalidInputError: the files cannot be read, or do not belong together.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    # A node comes once: tickets for a next connection would be made for nothing.
    tls.num_tickets = 0
    try:
        tls.load_cert_chain(certificate, key)
    except OSError:  # of which SSLError is one
        raise InvalidInputError(
            "these are no certificate and its key",
            where=f"{certificate}, {key}",
            remedy="Give PEM files; the certificate's file holds the chain, the server's own first.",
        ) from None
    return tls


def bound(address: str, *, shared: bool = False) -> socket.socket:
    """Return a socket that listens; who connects waits until it is served.

    Args:
        address: as `loopback_address` reads it.
        shared: whether other processes of this server may listen there too; each gets some of the connections.

    Raises:
        InvalidInputError: it is none, or cannot be bound.
    """
    host, port = loopback_address(address, "--http")
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise InvalidInputError("this host is not known here", where=f"--http {address}") from None
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
            where=f"--http {address}",
            remedy="Stop the other process, or name another address.",
        ) from None
    return listener


class _Server(uvicorn.Server):
    """Leaves the signals of the process to the party that it is a part of, and accepts no more than it has room for.

    Whoever reaches the port makes a connection here, and asyncio keeps a buffer for each from its first moment on.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on bound sockets."""
        sslproto.SSLProtocol.max_size = _TLS_RECORD
        self.servers = []
        self._handshakes = set[asyncio.Task[None]]()
        self._accepting = [asyncio.create_task(self._accept(one)) for one in sockets or ()]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end what is under way."""
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        await super().shutdown(sockets)

    async def _accept(self, listener: socket.socket) -> None:
        """Accept connections while there is room; the others wait in the system's queue."""
        loop = asyncio.get_running_loop()
        listener.settimeout(0)
        listener.listen(self.config.backlog)
        while True:
            if len(self._handshakes) + len(self.server_state.connections) >= MOST_OPEN:
                await asyncio.sleep(_FULL_SECONDS)
                continue
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # this process has too many files open
                await asyncio.sleep(_FULL_SECONDS)
                continue
            task = loop.create_task(self._connect(connection))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)
            # Those that are here have their turn, too.
            await asyncio.sleep(0)

    async def _connect(self, connection: socket.socket) -> None:
        """Establish TLS, within a time."""

        def connected() -> asyncio.Protocol:
            return _Patient(config=self.config, server_state=self.server_state, app_state={})

        with suppress(OSError):  # such as an end, or too long a wait
            await asyncio.get_running_loop().connect_accepted_socket(
                connected,
                connection,
                ssl=self.config.ssl,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
            )


class _Patient(HttpToolsProtocol):
    """Ends connections that uvicorn would keep: those that stall, and those that send what no client of ours does.

    A request under way ends by itself, within SECONDS; a connection that waits for the next one has uvicorn's timer,
    until its first byte comes. On every other, headers or the rest of a refused body do not come. Headers, trailers
    and further requests that nobody has answered yet would be kept in memory, however many come.
    """

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401 - those of its base
        super().__init__(**parts)
        self._beside_body = 0

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as its base has it
        """Begin to look."""
        super().connection_made(transport)
        connection_opened("https")
        self._look = self.loop.call_later(SECONDS, self._close_if_nothing_comes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the request has too much beside its body."""
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > MOST_BESIDE_BODY:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin with a request, once the one before it is answered."""
        if self._is_under_way:
            self.transport.abort()
            raise ConnectionAbortedError
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._beside_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._beside_body = 0
        super().on_message_complete()

    @property
    def _is_under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_if_nothing_comes(self) -> None:
        if self._is_under_way or self.timeout_keep_alive_task is not None:
            self._look = self.loop.call_later(SECONDS, self._close_if_nothing_comes)
        else:
            self.transport.abort()
