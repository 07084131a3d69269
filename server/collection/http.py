"""Reports of nodes over HTTPS, for clients that cannot do mutual TLS, into the store of those that can.

    GET  /v1/rounds/ROUND_ID            what the round asks, and whether it is open
    POST /v1/rounds/ROUND_ID/reports    counts one report and spends its token

The server shows a certificate, the client none: what admits a report is its token, as over gRPC, and the same
`RoundKeeper` decides about both. A body is read only for a round that is known here, and no further than a report of
that round is long.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from veiltab.common.errors import InvalidInputError, NotFoundError, UnavailableError, VeiltabError
from veiltab.common.observe.sinks import loopback_address
from veiltab.common.rpc.request import begin_request
from veiltab.common.rpc.status import http_status, refusal_of
from veiltab.server.collection.json_messages import error_to_json, most_bytes, report_from_json, round_to_json
from veiltab.server.collection.rounds import RoundKeeper

MOST_CONNECTIONS = 1024
"""Connections at a time; further ones are answered 503."""

MOST_UNDER_WAY = 768
"""Requests at a time, as many as calls of all nodes over gRPC; further ones are answered 503."""

SECONDS = 20.0
"""Longest that a request may take to arrive and to be answered, headers included."""

_log = logging.getLogger(__name__)
_HANDSHAKE_SECONDS = 5.0
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_AGAIN = {"Retry-After": "5"}
_CLOSE = {"Connection": "close"}
"""With a refusal: what is left of the request is not waited for."""

Answer = Callable[[Request], Awaitable[Response]]


def application(rounds: RoundKeeper, seconds: float = SECONDS) -> Starlette:
    """Return the ASGI application.

    Args:
        rounds: the server's part in rounds.
        seconds: longest that a request may take.
    """
    under_way = 0

    def answered(answer: Answer) -> Answer:
        async def respond(request: Request) -> Response:
            nonlocal under_way
            begin_request()
            under_way += 1
            try:
                _check_room(under_way)
                async with asyncio.timeout(seconds):
                    return await answer(request)
            except TimeoutError:
                return _refused(UnavailableError("the request took too long", remedy="Send it again."))
            except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the caller
                refusal, logged = refusal_of(error)
                if type(refusal) is VeiltabError:
                    _log.error("%s", logged, extra={"reason": refusal.reason})
                return _refused(refusal)
            finally:
                under_way -= 1

        return respond

    async def describe(request: Request) -> Response:
        spec, state = await asyncio.to_thread(rounds.round, request.path_params["round_id"])
        return _json(200, round_to_json(spec, state))

    async def report(request: Request) -> Response:
        round_id = request.path_params["round_id"]
        spec = await rounds.described(round_id)
        one = report_from_json(await _body(request, most_bytes(spec.randomiser)))
        await rounds.report(round_id, one.token, one.stratum, one.report)
        return _json(200, b'{"counted": true}')

    async def elsewhere(_request: Request, error: Exception) -> Response:
        # Starlette's own refusals: no such path, no such method.
        return _refused(NotFoundError("there is nothing here", remedy="See docs/http-reports.md."), error)

    return Starlette(
        routes=[
            Route("/v1/rounds/{round_id}", answered(describe), methods=["GET"]),
            Route("/v1/rounds/{round_id}/reports", answered(report), methods=["POST"]),
        ],
        exception_handlers={404: elsewhere, 405: elsewhere},
    )


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
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.CRITICAL,  # what a client sends wrong is answered, not logged
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=8192,
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
    try:
        tls.load_cert_chain(certificate, key)
    except OSError:  # of which SSLError is one
        raise InvalidInputError(
            "these are no certificate and its key",
            where=f"{certificate}, {key}",
            remedy="Give PEM files; the certificate's file holds the chain, the server's own first.",
        ) from None
    return tls


def bound(address: str) -> socket.socket:
    """Return a socket that listens; who connects waits until it is served.

    Args:
        address: as `loopback_address` reads it.

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
    """Leaves the signals of the process to the party that it is a part of, and does not wait long for handshakes."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on bound sockets."""
        loop, config = asyncio.get_running_loop(), self.config

        def connected() -> asyncio.Protocol:
            return _Patient(config=config, server_state=self.server_state, app_state={})

        self.servers = [
            await loop.create_server(
                connected,
                sock=one,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if config.ssl else None,
            )
            for one in sockets or ()
        ]
        self.started = True


class _Patient(H11Protocol):
    """Closes a connection on which no request is under way and none was just answered, which uvicorn would keep.

    A request under way ends by itself, within SECONDS; a connection that waits for the next one has uvicorn's timer,
    until its first byte comes. On every other, headers or the rest of a refused body do not come.
    """

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as its base has it
        """Begin to look."""
        super().connection_made(transport)
        self._look = self.loop.call_later(SECONDS, self._close_if_nothing_comes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._look.cancel()
        super().connection_lost(exc)

    def _close_if_nothing_comes(self) -> None:
        is_under_way = self.cycle is not None and not self.cycle.response_complete
        if is_under_way or self.timeout_keep_alive_task is not None:
            self._look = self.loop.call_later(SECONDS, self._close_if_nothing_comes)
        else:
            self.transport.abort()


def _check_room(under_way: int) -> None:
    if under_way > MOST_UNDER_WAY:
        raise UnavailableError("too many requests are under way", remedy="Ask again later.")


async def _body(request: Request, most: int) -> bytes:
    """Read the body of a request, of at most so many bytes."""
    pieces, total = [], 0
    try:
        async for piece in request.stream():
            total += len(piece)
            if total > most:
                raise InvalidInputError(f"a report of this round has at most {most} bytes", where="body")
            pieces.append(piece)
    except ClientDisconnect:
        raise UnavailableError("the client left") from None
    return b"".join(pieces)


def _json(status: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    return Response(body, status, _HEADERS | dict(headers), "application/json")


def _refused(error: VeiltabError, raised: Exception | None = None) -> Response:
    status = getattr(raised, "status_code", http_status(error))
    return _json(status, error_to_json(error), _CLOSE | (_AGAIN if status == 503 else {}))
