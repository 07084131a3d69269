"""A console as an ASGI application: one-time links, sessions, pages, and nothing else."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from veiltab.common.rpc.statuses import http_status, refusal_of
from veiltab.common.web.forms import Form
from veiltab.common.web.guard import (
    SECURITY_HEADERS,
    RefusedRequestError,
    check_address,
    check_form_token,
    check_origin,
    check_shape,
    cookies_of,
    read_form,
    read_query,
)
from veiltab.common.web.links import LinkFolder, entrance
from veiltab.common.web.pages import FRAME, Console, Frame, Page, Visit
from veiltab.common.web.sessions import Session, Sessions

_MEDIA_TYPES: Mapping[str, str] = {".css": "text/css", ".svg": "image/svg+xml"}
_NO_SESSION = (
    "You have no session here. A link works once and for ten minutes, a session ends after half an hour without a page."
    " Ask the person who runs the console for a new link."
)
_READS = "Your link lets you read everything here. It lets you decide and send nothing."
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class ConsoleApplication:
    """Answers the requests to a console; see `guard` for what is refused, and in which order.

    Args:
        host: the address under which it answers, such as 127.0.0.1:8000.
        clock: returns Unix seconds.
        links: where a command leaves links while the console runs; None if it leaves none.
    """

    def __init__(
        self, console: Console, host: str, clock: Callable[[], float] = time.time, links: LinkFolder | None = None
    ) -> None:
        self._console = console
        self._host = host
        self._frame = Frame(console)
        self._sessions = Sessions(clock, links)
        self._assets = {
            f"/assets/{path.name}": (path.read_bytes(), _MEDIA_TYPES[path.suffix])
            for path in (FRAME / "assets").iterdir()
        }
        self._pages = [(compile_path(page.path)[0], page) for page in console.pages]

    def new_link(self, person: str, *, decides: bool = True) -> str:
        """Return the address at which a person begins a session: once, and within ten minutes."""
        return entrance(self._host, self._sessions.new_link(person, decides=decides))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end with the server."""
        match scope["type"]:
            case "http":
                response = await self._answer(Request(scope, receive))
                response.headers.update(SECURITY_HEADERS)
                await response(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case kind:
                raise NotImplementedError(kind)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._frame.compile_all()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for session in self._sessions.end_all():
            await self._record_end(session, "the console stopped")
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, request: Request) -> Response:
        try:
            check_address(request, self._host)
            check_shape(request)
            first, _, _ = request.url.path[1:].partition("/")
            match first:
                case "assets":
                    return self._asset(request)
                case "enter":
                    return await self._enter(request)
                case place:
                    return await self._visit(request, place)
        except RefusedRequestError as refusal:
            return self._refused(refusal)

    def _asset(self, request: Request) -> Response:
        asset = self._assets.get(request.url.path)
        if asset is None or request.method == "POST":
            raise RefusedRequestError(404, "There is no such page.")
        content, media_type = asset
        return Response(content, media_type=media_type)

    async def _enter(self, request: Request) -> Response:
        """Show whose session a link begins; begin it when its form comes back, so that no preview of a link uses it."""
        token = (read_query(request).texts("link") or ("",))[0]
        link = self._sessions.link_of(token)
        if request.url.path != "/enter" or link is None:
            raise RefusedRequestError(403, _NO_SESSION)
        if request.method != "POST":
            return self._frame.render("enter.html", whose=link, link=token)
        check_origin(request, self._host)
        session = self._sessions.begin(token)
        if session is None:
            raise RefusedRequestError(403, _NO_SESSION)
        try:
            await _run(self._console.journal.session_began, session.person, session.decides)
        except RefusedRequestError:
            self._sessions.end(session)
            raise
        response = RedirectResponse(f"/{session.place}/", status_code=303)
        response.set_cookie(
            session.cookie_name, session.secret, path=f"/{session.place}/", httponly=True, samesite="strict"
        )
        return response

    async def _visit(self, request: Request, place: str) -> Response:
        for over in self._sessions.end_those_over():
            await self._record_end(over, "its time was over")
        session = self._sessions.find(place, cookies_of(request))
        if session is None:
            raise RefusedRequestError(403, _NO_SESSION)
        try:
            return await self._serve(request, session)
        except RefusedRequestError as refusal:
            return self._refused(refusal, session if self._sessions.is_live(session) else None)

    async def _serve(self, request: Request, session: Session) -> Response:
        check_origin(request, self._host)
        form = Form()
        path = request.url.path.removeprefix(f"/{session.place}")
        if request.method == "POST":
            if not (session.decides or path == "/leave"):
                raise RefusedRequestError(403, _READS)
            form = await read_form(request)
            check_form_token(form, session)
            if not self._sessions.is_live(session):  # it may end before the form has come
                raise RefusedRequestError(403, _NO_SESSION)
        if path == "/leave" and request.method == "POST":
            return await self._leave(session)
        for pattern, page in self._pages:
            if matched := pattern.match(path):
                return await self._show(request, session, page, matched.groupdict(), form)
        raise RefusedRequestError(404, "There is no such page.")

    async def _leave(self, session: Session) -> Response:
        if self._sessions.end(session):
            await self._record_end(session, "signed out")
        response = self._frame.render("left.html")
        response.delete_cookie(session.cookie_name, path=f"/{session.place}/", httponly=True, samesite="strict")
        return response

    async def _show(
        self, request: Request, session: Session, page: Page, parameters: Mapping[str, str], form: Form
    ) -> Response:
        function = page.act if request.method == "POST" else page.show
        if function is None:
            raise RefusedRequestError(405, "Nothing can be sent to this page.")
        visit = Visit(
            session=session, parameters=parameters, query=read_query(request), form=form, frame=self._frame, page=page
        )
        return await _run(function, visit)

    def _refused(self, refusal: RefusedRequestError, session: Session | None = None) -> Response:
        return self._frame.render(
            "refused.html", status=refusal.status, session=session, problem=refusal.problem, remedy=refusal.remedy
        )

    async def _record_end(self, session: Session, reason: str) -> None:
        try:
            await _run(self._console.journal.session_ended, session.person, reason)
        except RefusedRequestError:
            _log.warning("the end of a session is not recorded")  # and it is over all the same


async def _run(function: Callable[..., Result], *arguments: object) -> Result:
    """Run a function of the console in a thread.

    Raises:
        RefusedRequestError: it refuses, or fails; a failure says nothing of its values.
    """
    try:
        return await run_in_threadpool(function, *arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the page
        refusal, logged = refusal_of(error)
        if refusal is not error:
            _log.error("a page failed: %s", logged)
    sentence = f"{refusal.problem[:1].upper()}{refusal.problem[1:]}."
    problem = f"{refusal.where}: {refusal.problem}." if refusal.where else sentence
    raise RefusedRequestError(http_status(refusal), problem, refusal.remedy)
