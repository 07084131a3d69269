"""The frame of everything that answers over HTTP: consoles, a researcher's service, reports of nodes.

A request is answered or refused, and holds what it was given until the last byte of its answer is sent. A body is read
within limits of length and time, and only once an application asks for it.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, Self, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.rpc.call_id import begin_request
from veiltab.common.rpc.statuses import http_status, refusal_of

SECONDS = 20.0
"""Longest that a request may take to arrive, headers included."""

MOST_BODY = 64 * 1024
"""Bytes of a form, or of a body of JSON."""

SENDING_SECONDS = 60.0
BYTES_A_SECOND = 1e6
"""Longest that a client may take for an answer, beside what its bytes take at this rate."""

_PIECE = 1 << 18
Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        where: what of the request or of the party's state is meant.
        reason: of an error of the house; empty for a refusal of HTTP's own.
        headers: of the answer, with _ for -.
    """

    def __init__(
        self, status: int, problem: str, remedy: str = "", *, where: str = "", reason: str = "", **headers: str
    ) -> None:
        super().__init__(problem)
        self.status, self.problem, self.remedy, self.where, self.reason = status, problem, remedy, where, reason
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Places:
    """Counts what is under way, up to a limit; entered once for each."""

    def __init__(self, most: int) -> None:
        self._most, self.count = most, 0

    @property
    def is_full(self) -> bool:
        """Whether there is no further place."""
        return self.count >= self._most

    def __enter__(self) -> Self:
        """Take a place.

        Raises:
            UnavailableError: there is none.
        """
        if self.is_full:
            raise UnavailableError("too many requests are under way", remedy="Ask again later.")
        self.count += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Give a place back."""
        self.count -= 1


class Application:
    """An ASGI application that answers each request, or says why not.

    Args:
        headers: of every answer that does not have them.
    """

    headers: Mapping[str, str]

    async def answer(self, request: Request, resources: ExitStack) -> Response:
        """Answer a request, or raise its refusal.

        Args:
            resources: left once the answer is sent.
        """
        raise NotImplementedError

    def refused(self, request: Request, refusal: RefusedError) -> Response:
        """Return what is shown of a refusal."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begin_request()
        request = Request(scope, receive)
        with ExitStack() as resources:
            try:
                response = await self.answer(request, resources)
            except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the caller
                refusal = _refusal_of(error)
                response = self.refused(request, refusal)
                response.headers.update(refusal.headers)
            for name, value in self.headers.items():
                response.headers.setdefault(name, value)
            size = int(response.headers.get("content-length", 0))
            async with asyncio.timeout(SENDING_SECONDS + size / BYTES_A_SECOND):  # the server then ends the connection
                await response(scope, receive, _in_pieces(send))


def _in_pieces(send: Send) -> Send:
    """Return what sends a long body by pieces: the next one waits until its client has taken those before it."""

    async def send_pieces(message: Message) -> None:
        body = message.get("body", b"")
        while len(body) > _PIECE:
            await send({"type": "http.response.body", "body": body[:_PIECE], "more_body": True})
            body = body[_PIECE:]
        await send({**message, "body": body} if body else message)

    return send_pieces


async def unless_left(request: Request, coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Do some work, whose client may leave before its end.

    Raises:
        UnavailableError: the client left; the work is cancelled.
    """
    working, leaving = asyncio.ensure_future(coroutine), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise UnavailableError("the client left")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def check_shape(request: Request, media_type: str) -> None:
    """Refuse a body that a request should not have, one of unknown or unreasonable length, and one of another type."""
    headers = request.headers
    if twice := [name for name in ("authorization", "content-length", "content-type") if headers.getlist(name)[1:]]:
        raise RefusedError(400, f"the header {twice[0]} came twice")
    length = headers.get("content-length")
    if request.method != "POST":
        if length not in {None, "0"} or "transfer-encoding" in headers:
            raise RefusedError(400, "a question came with a body")
        return
    if length is None or "transfer-encoding" in headers:
        raise RefusedError(411, "the body does not say how long it is")
    if not (length.isascii() and length.isdecimal()):
        raise RefusedError(400, "the length of the body is not a number")
    if int(length[:20]) > MOST_BODY:
        raise RefusedError(413, f"the body is longer than {MOST_BODY:,} bytes")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise RefusedError(415, f"the body is not {media_type}")


async def body_of(request: Request, most: int = MOST_BODY, seconds: float | None = SECONDS) -> bytes:
    """Read the body of a request, of at most so many bytes, within so many seconds.

    Raises:
        InvalidInputError: it is longer.
        RefusedError: it comes too slowly.
        UnavailableError: the client left.
    """
    body = b""
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise InvalidInputError(f"the body is longer than {most:,} bytes", where="body")
    except TimeoutError:
        raise RefusedError(408, "the body came too slowly") from None
    except ClientDisconnect:
        raise UnavailableError("the client left") from None
    return body


def _refusal_of(error: Exception) -> RefusedError:
    if isinstance(error, RefusedError):
        return error
    refusal, logged = refusal_of(error)
    if refusal is not error:
        _log.error("%s", logged, extra={"reason": refusal.reason})
    status = http_status(refusal)
    again = {"Retry_After": "5"} if status == 503 else {}
    words = refusal.problem, refusal.remedy
    return RefusedError(status, *words, where=refusal.where, reason=refusal.reason, **again)
