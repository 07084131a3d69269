"""What reports of nodes over HTTPS are answered: an ASGI application, into the store of the reports over gRPC.

    GET  /v1/rounds/ROUND_ID            what the round asks, and whether it is open
    POST /v1/rounds/ROUND_ID/reports    counts one report and spends its token

What admits a report is its token, as over gRPC, and the same `RoundKeeper` decides about both. A body is read only for
a round that is known here, and no further than a report of that round is long. Two paths need no framework.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import NamedTuple

from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError, UnavailableError, VeiltabError
from veiltab.common.https.http_limits import SECONDS, Application, Message, Receive, Send
from veiltab.common.rpc.call_id import begin_request
from veiltab.common.rpc.statuses import http_status, refusal_of
from veiltab.server.https.json_messages import error_to_json, most_bytes, report_from_json, round_to_json
from veiltab.server.rounds.rounds import RoundKeeper

MOST_UNDER_WAY = 768
"""Whole requests at a time, as many as calls of all nodes over gRPC; further ones are answered 503."""

_log = logging.getLogger(__name__)
_PATH = re.compile(r"/v1/rounds/([^/]+)(/reports)?")
_HEADERS = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_AGAIN = (b"retry-after", b"5")
_CLOSE = (b"connection", b"close")
"""With a refusal: what is left of the request is not waited for."""


class _Response(NamedTuple):
    """What a request is answered."""

    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = _HEADERS


def application(rounds: RoundKeeper, seconds: float = SECONDS, origin: str = "") -> Application:
    """Return the ASGI application.

    Args:
        rounds: the server's part in rounds.
        seconds: longest that a request may take to arrive and to be answered.
        origin: of the one site whose pages may read the answers; those of every other are refused. Empty: nothing is
            said of origins, so that a browser shows the answers to pages of this address alone.
    """
    room = _Room()
    shared = [(b"access-control-allow-origin", origin.encode()), (b"vary", b"origin")] if origin else []

    async def respond(scope: Message, receive: Receive, send: Send) -> None:
        begin_request()
        try:
            _check_origin(scope, origin)
            async with asyncio.timeout(seconds):
                response = await _response(rounds, room, scope, receive)
        except TimeoutError:
            response = _refused(UnavailableError("the request took too long", remedy="Send it again."))
        except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the caller
            refusal, logged = refusal_of(error)
            if refusal is not error:
                _log.error("%s", logged, extra={"reason": refusal.reason})
            response = _refused(refusal)
        headers = [*response.headers, *shared, (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    return respond


def _check_origin(scope: Message, allowed: str) -> None:
    """Refuse a request that a page of another site makes; programs that are no browsers name no origin."""
    if allowed and any(name == b"origin" and value != allowed.encode() for name, value in scope["headers"]):
        raise DeniedError(
            "pages of this site may not report here", where="Origin", remedy="Ask the operator about --allow-origin."
        )


class _Room:
    """Counts requests that are whole and not answered; one whose body has not come takes a connection alone."""

    def __init__(self) -> None:
        self._under_way = 0

    def __enter__(self) -> None:
        if self._under_way >= MOST_UNDER_WAY:
            raise UnavailableError("too many requests are under way", remedy="Ask again later.")
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1


async def _response(rounds: RoundKeeper, room: _Room, scope: Message, receive: Receive) -> _Response:
    """Answer a request, or raise its refusal."""
    path = _PATH.fullmatch(scope["path"])
    match scope["method"], path and path.groups():
        case "POST", (round_id, "/reports"):
            spec = await rounds.described(round_id)
            body = await _body(receive, most_bytes(spec.randomiser))
            with room:
                one = report_from_json(body)
                await rounds.report(round_id, one.token, one.stratum, one.report)
            return _Response(200, b'{"counted": true}')
        case "GET" | "HEAD", (round_id, None):
            with room:
                return _Response(200, round_to_json(*await asyncio.to_thread(rounds.round, round_id)))
        case _, at:
            return _refused(
                NotFoundError("there is nothing here", remedy="See docs/http-reports.md."), 405 if at else 404
            )


async def _body(receive: Receive, most: int) -> bytes:
    """Read the body of a request, of at most so many bytes."""
    body, is_whole = b"", False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise UnavailableError("the client left")
        body += message.get("body", b"")
        is_whole = not message.get("more_body", False)
        if len(body) > most:
            raise InvalidInputError(f"the report is longer than the {most} bytes of this round", where="body")
    return body


def _refused(error: VeiltabError, status: int | None = None) -> _Response:
    status = status or http_status(error)
    return _Response(status, error_to_json(error), (*_HEADERS, _CLOSE, *((_AGAIN,) if status == 503 else ())))
