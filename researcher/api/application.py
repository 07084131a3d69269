"""Answers requests over HTTP: who asks, for what, within which limits.

The order is the argument: the shape of the request, then who asks, then whether the token is good for it, then the
body, then the work, of which so much is under way at a time. What is refused is a problem document (RFC 9457).
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError, UnavailableError, VeiltabError
from veiltab.common.https.http_limits import SECONDS, Message, Receive, Send
from veiltab.common.https.json_bodies import decoded
from veiltab.common.rpc.call_id import begin_request
from veiltab.common.rpc.statuses import http_status, refusal_of
from veiltab.common.web.forms import parse_form
from veiltab.researcher.api.openapi import PROBLEM, description
from veiltab.researcher.api.report_link import PAGE_PATH, link_page
from veiltab.researcher.api.resource import Answer, Resource, json_answer
from veiltab.researcher.api.tokens import Scope, Tokens
from veiltab.researcher.api.vocabulary import Parameter, read

MOST_BODY = 64 * 1024
"""Bytes of a request's body."""

MOST_UNDER_WAY = 32
"""Requests that are worked at at a time; further ones are answered 503."""

MOST_WAITING = 12
"""Requests that wait for a release to be over; further ones are answered as it stands."""

MOST_COMPUTED = 2
"""Tables, analyses, reports and microdata that are computed at a time; others wait for their turn."""

DESCRIPTION = "/openapi.json"

_HEADERS = {
    "Cache-Control": "private, no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_CHUNK = 1 << 18
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """A request that is refused with a status of HTTP's own."""

    def __init__(self, status: int, problem: str, remedy: str = "", **headers: str) -> None:
        super().__init__(problem)
        self.status, self.problem, self.remedy = status, problem, remedy
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Api:
    """Answers requests; an ASGI application.

    Args:
        tokens: who may ask with a token.
        is_own: whether a certificate, as DER, is that of the party that is served; the TLS library has verified its
            issuer.
    """

    def __init__(self, resources: Sequence[Resource], tokens: Tokens, is_own: Callable[[bytes], bool]) -> None:
        self._tokens, self._is_own = tokens, is_own
        self._description, self._link_page = json_answer(description(resources)), link_page()
        self._routes = [(re.compile(re.escape(one.path).replace(r"\{release\}", "([^/]+)")), one) for one in resources]
        self._under_way = self._waiting = 0
        self._threads = ThreadPoolExecutor(MOST_UNDER_WAY)
        self._computing = asyncio.Semaphore(MOST_COMPUTED)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begin_request()
        answer = await self._answer(scope, receive)
        is_head = scope["method"] == "HEAD"
        try:
            await _send(answer, send, is_head=is_head)
        finally:
            await self._in_thread(answer.after)

    async def _answer(self, scope: Message, receive: Receive) -> Answer:
        if self._under_way >= MOST_UNDER_WAY:
            return _refused(UnavailableError("too many requests are under way", remedy="Ask again later."))
        self._under_way += 1
        try:
            return _tagged(await self._asked(scope, receive), scope)
        except RefusedError as error:
            return _problem(
                error.status, HTTPStatus(error.status).phrase, ("request", error.problem, error.remedy), error.headers
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the caller
            refusal, logged = refusal_of(error)
            if refusal is not error:
                _log.error("%s", logged, extra={"reason": refusal.reason})
            return _refused(refusal)
        finally:
            self._under_way -= 1

    async def _asked(self, scope: Message, receive: Receive) -> Answer:
        headers = _headers(scope)
        path, method = scope["path"], "GET" if scope["method"] == "HEAD" else scope["method"]
        if method == "GET" and PAGE_PATH.fullmatch(path):  # a link in a page elsewhere may lead here
            return self._link_page
        if headers.get("origin") or headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            raise RefusedError(403, "a page in a browser asked; this serves programs")
        if path == DESCRIPTION and method == "GET":
            return self._description
        caller, scopes, release = await self._caller(scope, headers)
        resource, names = self._routed(path, method)
        if resource.scope not in scopes:
            raise DeniedError(
                f"the token has no scope {resource.scope.value}", where="Authorization", remedy="Ask for another token."
            )
        if release and names != (release,):
            raise DeniedError(
                "the token is good for one release alone, by its whole id",
                where="Authorization",
                remedy="Ask for another token.",
            )
        given = await self._given(resource, scope, headers, receive)
        _log.info("%s: %s", caller, resource.name)
        work = partial(resource.handle, *names, **given)
        if resource.is_computed:
            async with self._computing:
                return await self._in_thread(work)
        if not given.get("wait"):
            return await self._in_thread(work)
        if self._waiting >= MOST_WAITING:
            return await self._in_thread(partial(work, wait=0))
        self._waiting += 1
        try:
            return await self._in_thread(work)
        finally:
            self._waiting -= 1

    def _routed(self, path: str, method: str) -> tuple[Resource, tuple[str, ...]]:
        """Return what is asked for, and the name of the release in its path if there is one."""
        found = [(one, match.groups()) for route, one in self._routes if (match := route.fullmatch(path))]
        if not found:
            raise NotFoundError("there is nothing here", remedy=f"See {DESCRIPTION}.")
        route = next((route for route in found if route[0].method == method), None)
        if route is None:
            allowed = ", ".join(sorted(one.method for one, _ in found))
            raise RefusedError(405, f"this takes {allowed}", Allow=allowed)
        return route

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _caller(self, scope: Message, headers: dict[str, str]) -> tuple[str, frozenset[Scope], str]:
        """Return who asks, for the log, what the caller may ask for, and of which release alone; "" for all."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        certificate = scope.get("state", {}).get("client_certificate")
        if kind.lower() == "bearer":
            try:
                known = await self._in_thread(partial(self._tokens.check, token.strip()))
            except DeniedError as error:
                raise RefusedError(401, error.problem, error.remedy, WWW_Authenticate="Bearer") from None
            return f"token {known.label}", known.scopes, known.release
        if not kind and certificate and self._is_own(certificate):
            return "the party's own certificate", frozenset(Scope), ""
        raise RefusedError(401, "a token is missing", "Send it as Authorization: Bearer.", WWW_Authenticate="Bearer")

    async def _given(
        self, resource: Resource, scope: Message, headers: dict[str, str], receive: Receive
    ) -> dict[str, Any]:
        """Read the query, or the body."""
        query = parse_form(scope["query_string"]).values
        if resource.method == "GET":
            if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
                raise RefusedError(400, "a question came with a body")
            return read(resource.parameters, query, Parameter.from_texts)
        if query:
            raise InvalidInputError("this takes a body, no query", where="request")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, "the body is not application/json")
        return read(resource.parameters, await _body(headers, receive), Parameter.from_json)


async def _body(headers: dict[str, str], receive: Receive) -> dict[str, Any]:
    """Read a JSON object, within limits of length and time."""
    length = headers.get("content-length", "")
    if not re.fullmatch(r"[0-9]{1,9}", length):
        raise RefusedError(411, "the body does not say how long it is")
    if int(length) > MOST_BODY:
        raise RefusedError(413, f"the body is longer than {MOST_BODY:,} bytes")
    body, is_whole = b"", False
    try:
        async with asyncio.timeout(SECONDS):
            while not is_whole:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise UnavailableError("the client left")
                body += message.get("body", b"")
                is_whole = not message.get("more_body", False)
    except TimeoutError:
        raise RefusedError(408, "the body came too slowly") from None
    found = decoded(body)
    if not isinstance(found, dict):
        raise InvalidInputError("the body is no JSON object", where="body")
    return found


def _headers(scope: Message) -> dict[str, str]:
    """Return the headers of a request; one that comes twice is refused where it would decide something."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in {"authorization", "content-length", "content-type"}:
            raise RefusedError(400, f"the header {name} came twice")
        found[name] = value.decode("latin-1")
    return found


def _tagged(answer: Answer, scope: Message) -> Answer:
    """Return an answer with its ETag; 304 without a body if the caller has it already."""
    if isinstance(answer.body, Path) or answer.status != 200:
        return answer
    tag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
    known = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
    headers = {**answer.headers, "ETag": tag}
    if tag in {one.strip().removeprefix("W/") for one in known.split(",")}:
        return Answer(body=b"", media_type=answer.media_type, status=304, headers=headers)
    return Answer(body=answer.body, media_type=answer.media_type, headers=headers)


def _refused(error: VeiltabError) -> Answer:
    """Return a refusal as a problem document."""
    status = http_status(error)
    again = {"Retry-After": "5"} if status == 503 else {}
    return _problem(status, error.reason, (error.where, error.problem, error.remedy), again)


def _problem(status: int, title: str, texts: tuple[str, str, str], headers: Mapping[str, str]) -> Answer:
    """Return a problem document; the texts say where, what was wrong, and what to do next."""
    where, detail, remedy = texts
    kind = title.lower().replace("_", "-").replace(" ", "-")
    problem = {
        "type": f"urn:veiltab:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
        "where": where,
        "remedy": remedy,
    }
    return Answer(body=json.dumps(problem).encode(), media_type=PROBLEM, status=status, headers=headers)


async def _send(answer: Answer, send: Callable[[Message], Awaitable[None]], *, is_head: bool) -> None:
    """Send an answer; a file in pieces."""
    body, is_file = answer.body, isinstance(answer.body, Path)
    length = body.stat().st_size if isinstance(body, Path) else len(body)
    headers = {**_HEADERS, "Content-Type": answer.media_type, **answer.headers}
    if answer.status != 304:
        headers["Content-Length"] = str(length)
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    if isinstance(body, Path) and not is_head:
        with await asyncio.to_thread(body.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, _CHUNK):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    plain = b"" if is_head or is_file else body
    await send({"type": "http.response.body", "body": plain})
