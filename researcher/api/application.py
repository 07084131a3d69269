"""Answers requests over HTTP: who asks, for what, within which limits.

The order is the argument: the shape of the request, then who asks, then whether the token is good for it, then the
body, then the work, of which so much is under way at a time. What is refused is a problem document (RFC 9457).
"""

import asyncio
import hashlib
import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError
from veiltab.common.web.answering import Application, Places, RefusedError, body_of, check_shape, unless_left
from veiltab.common.web.bodies import parse_form, parse_json
from veiltab.researcher.api.formats import MEDIA_TYPES
from veiltab.researcher.api.openapi import PROBLEM, description
from veiltab.researcher.api.report_link import PAGE_PATH, link_page
from veiltab.researcher.api.resource import Resource, answered, json_answer
from veiltab.researcher.api.tokens import OWN, Scope, Token, Tokens
from veiltab.researcher.api.vocabulary import Parameter, read

MOST_UNDER_WAY = 32
"""Requests that are worked at at a time; further ones are answered 503."""

MOST_WAITING = 12
"""Requests that wait for a release to be over; further ones are answered as it stands."""

MOST_COMPUTED = 2
"""Tables, analyses, reports and microdata that are computed at a time; others wait for their turn."""

MOST_OF_A_TOKEN = 4
"""Requests of one token that are worked at at a time, of which one is computed."""

MOST_FILES = 8
"""Files of microdata that are made or sent at a time."""

DESCRIPTION = "/openapi.json"

_HEADERS = {
    "Cache-Control": "private, no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_log = logging.getLogger(__name__)


class Api(Application):
    """Answers requests.

    Args:
        tokens: who may ask with a token.
        is_own: whether a certificate, as DER, is that of the party that is served; the TLS library has verified its
            issuer.
    """

    headers = _HEADERS

    def __init__(self, resources: Sequence[Resource], tokens: Tokens, is_own: Callable[[bytes], bool]) -> None:
        self._tokens, self._is_own = tokens, is_own
        self._description = description(resources)
        self._routes = [(re.compile(re.escape(one.path).replace(r"\{release\}", "([^/]+)")), one) for one in resources]
        self._places, self._waiting = Places(MOST_UNDER_WAY), Places(MOST_WAITING)
        self._files, self._computing = Places(MOST_FILES), asyncio.Semaphore(MOST_COMPUTED)
        self._shares = defaultdict[str, Places](lambda: Places(MOST_OF_A_TOKEN))
        self._turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(1))

    async def answer(self, request: Request, resources: ExitStack) -> Response:
        """Answer a request, with the ETag of what it is answered; 304 without a body if the caller has it already."""
        resources.enter_context(self._places)
        answer = await self._handle(request, resources)
        if answer.status_code != 200 or isinstance(answer, StreamingResponse):
            return answer
        tags = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
        tag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
        answer.headers["ETag"] = tag
        if tags & {tag, "*"}:
            del answer.headers["Content-Length"]
            return Response(None, 304, answer.headers)
        return answer

    def refused(self, request: Request, refusal: RefusedError) -> Response:  # noqa: ARG002 - of every application
        """Return a refusal as a problem document."""
        title = refusal.reason or HTTPStatus(refusal.status).phrase
        problem = {
            "type": f"urn:veiltab:problem:{title.lower().replace('_', '-').replace(' ', '-')}",
            "title": title,
            "status": refusal.status,
            "detail": refusal.problem,
            "where": refusal.where if refusal.reason else "request",
            "remedy": refusal.remedy,
        }
        return answered(json.dumps(problem), PROBLEM, refusal.status)

    async def _handle(self, request: Request, resources: ExitStack) -> Response:
        path, method = request.scope["path"], "GET" if request.method == "HEAD" else request.method
        if method == "GET" and PAGE_PATH.fullmatch(path):  # a link in a page elsewhere may lead here
            return link_page()
        sites = set(request.headers.getlist("sec-fetch-site"))
        if any(request.headers.getlist("origin")) or not sites <= {"none", "same-origin"}:
            raise RefusedError(403, "a page in a browser asked; this serves programs")
        if path == DESCRIPTION and method == "GET":
            return json_answer(self._description)
        caller = await self._caller(request)
        resource, names = self._routed(path, method)
        problem = f"the token has no scope {resource.scope.value}" if resource.scope not in caller.scopes else ""
        if caller.release and names != (caller.release,):
            problem = problem or "the token is good for one release alone, by its whole id"
        if problem:
            raise DeniedError(problem, where="Authorization", remedy="Ask for another token.")
        resources.enter_context(self._shares[caller.id])
        values = await _arguments(resource, request)
        _check_accepted(request, MEDIA_TYPES[values["format"].value] if "format" in values else resource.media_types[0])
        level = logging.INFO if resource.scope is Scope.READ else logging.WARNING  # it spends, or takes rows or counts
        _log.log(level, "token %s: %s", caller.label, resource.name)
        work = partial(resource.handle, *names, **values)
        if resource.scope is Scope.MICRODATA:
            resources.enter_context(self._files)
        if resource.is_computed:
            return await unless_left(request, self._computed(self._turns[caller.id], work))
        if values.get("wait") and self._waiting.is_full:
            work = partial(work, wait=0)
        elif values.get("wait"):
            resources.enter_context(self._waiting)
        return await run_in_threadpool(work)

    async def _computed(self, turn: asyncio.Semaphore, work: Callable[[], Response]) -> Response:
        async with turn, self._computing:
            return await run_in_threadpool(work)

    def _routed(self, path: str, method: str) -> tuple[Resource, tuple[str, ...]]:
        """Return what is asked for, and the name of the release in its path if there is one."""
        matches = [(one, match.groups()) for route, one in self._routes if (match := route.fullmatch(path))]
        if not matches:
            raise NotFoundError("there is nothing here", remedy=f"See {DESCRIPTION}.")
        route = next((route for route in matches if route[0].method == method), None)
        if route is None:
            allowed = ", ".join(sorted(one.method for one, _ in matches))
            raise RefusedError(405, f"this takes {allowed}", Allow=allowed)
        return route

    async def _caller(self, request: Request) -> Token:
        """Return what the caller may ask for."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        certificate = getattr(request.state, "client_certificate", None)
        if not kind and certificate and self._is_own(certificate):
            return OWN
        refused = partial(RefusedError, 401, WWW_Authenticate="Bearer")
        if kind.lower() != "bearer":
            raise refused("a token is missing", "Send it as Authorization: Bearer.")
        try:
            return await run_in_threadpool(self._tokens.check, token.strip())
        except DeniedError as error:
            raise refused(error.problem, error.remedy) from None


def _check_accepted(request: Request, media_type: str) -> None:
    """Refuse a request whose Accept leaves out what it would be answered, before any work."""
    kind = media_type.partition(";")[0]
    ranges = {one.partition(";")[0].strip() for one in request.headers.get("accept", "*/*").split(",")}
    if not ranges & {kind, f"{kind.partition('/')[0]}/*", "*/*"}:
        raise RefusedError(406, f"this is answered as {kind}, which Accept leaves out", "Send it, or another format.")


async def _arguments(resource: Resource, request: Request) -> dict[str, Any]:
    """Read the query, or the body."""
    query = parse_form(request.scope["query_string"]).values
    if query and resource.method != "GET":
        raise InvalidInputError("this takes a body, no query", where="request")
    check_shape(request, "application/json")
    if resource.method == "GET":
        return read(resource.parameters, query, Parameter.from_texts)
    body = parse_json(await body_of(request))
    if not isinstance(body, dict):
        raise InvalidInputError("the body is not a JSON object", where="body")
    return read(resource.parameters, body, Parameter.from_json)
