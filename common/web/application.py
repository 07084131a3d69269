"""A console as an ASGI application: one-time links, sessions, pages, and nothing else.

The order is the argument: the address, then the shape, then who asks, then where the form comes from, then its body.
Nothing is read of a body, and nothing of the party's state, before the session is known.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path

from veiltab.common.command.cli import note
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.web.answering import Application, RefusedError, body_of, check_shape
from veiltab.common.web.bodies import Form, parse_form
from veiltab.common.web.links import LinkFolder, check_persons, entrance, print_links
from veiltab.common.web.pages import FRAME, Console, Frame, Visit
from veiltab.common.web.serving import address_of, bound, serve
from veiltab.common.web.sessions import COOKIE_PREFIX, Session, Sessions

MOST_HEADER_BYTES = 16 * 1024
MOST_PATH_BYTES = 4 * 1024
FORM_SECONDS = 10.0
_FORM = "application/x-www-form-urlencoded"
_MEDIA_TYPES = {".css": "text/css", ".svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:;"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_READS = "your link lets you read everything here; it lets you decide and send nothing"
_log = logging.getLogger(__name__)


class ConsoleApplication(Application):
    """Answers the requests to a console.

    Args:
        host: the address under which it answers, such as 127.0.0.1:8000.
        clock: returns Unix seconds.
        links: where a command leaves links while the console runs; None if it leaves none.
    """

    headers = _HEADERS

    def __init__(
        self, console: Console, host: str, clock: Callable[[], float] = time.time, links: LinkFolder | None = None
    ) -> None:
        self._journal, self._host, self._frame = console.journal, host, Frame(console)
        self._sessions = Sessions(clock, links)
        self._assets = {f"/assets/{path.name}": path for path in (FRAME / "assets").iterdir()}
        self._pages = [(compile_path(page.path)[0], page) for page in console.pages]

    def new_link(self, person: str, *, decides: bool = True) -> str:
        """Return the address at which a person begins a session: once, and within ten minutes."""
        return entrance(self._host, self._sessions.new_link(person, decides=decides))

    def end(self) -> None:
        """End every session, and record it."""
        for session in self._sessions.end_all():
            self._record_end(session, "the console stopped")

    async def answer(self, request: Request, resources: ExitStack) -> Response:  # noqa: ARG002 - of every application
        """Answer one request."""
        self._check_address(request)
        check_shape(request, _FORM)
        path: str = request.scope["path"]
        if path.startswith("/assets/"):
            if path not in self._assets or request.method == "POST":
                raise RefusedError(404, "there is no such page")
            asset = self._assets[path]
            return Response(asset.read_bytes(), media_type=_MEDIA_TYPES[asset.suffix])
        place, _, page = path[1:].partition("/")
        if place == "enter":
            return await self._enter(request, page)
        for over in self._sessions.end_those_over():
            await run_in_threadpool(self._record_end, over, "its time was over")
        session = self._sessions.find(place, _cookies_of(request))
        if session is None:
            raise _no_session()
        request.state.session = session
        return await self._serve(request, session, f"/{page}")

    def refused(self, request: Request, refusal: RefusedError) -> Response:
        """Return a page of what was wrong."""
        session = getattr(request.state, "session", None)
        problem = f"{refusal.problem[:1].upper()}{refusal.problem[1:]}."
        return self._frame.render(
            "refused.html",
            status=refusal.status,
            session=session if session and self._sessions.is_live(session) else None,
            problem=f"{refusal.where}: {refusal.problem}." if refusal.where else problem,
            remedy=refusal.remedy,
        )

    async def _enter(self, request: Request, below: str) -> Response:
        """Show whose session a link begins; begin it when its form comes back, so that no preview of a link uses it."""
        token = (parse_form(request.scope["query_string"]).texts("link") or ("",))[0]
        link = None if below else self._sessions.link_of(token)
        if link is None:
            raise _no_session()
        if request.method != "POST":
            return self._frame.render("enter.html", whose=link, link=token)
        self._check_origin(request)
        session = self._sessions.begin(token)
        if session is None:
            raise _no_session()
        try:
            await run_in_threadpool(self._journal.session_began, session.person, session.decides)
        except BaseException:
            self._sessions.end(session)
            raise
        place = f"/{session.place}/"
        response = RedirectResponse(place, status_code=303)
        response.set_cookie(session.cookie_name, session.secret, path=place, httponly=True, samesite="strict")
        return response

    async def _serve(self, request: Request, session: Session, path: str) -> Response:
        self._check_origin(request)
        form = Form()
        if request.method == "POST":
            if not (session.decides or path == "/leave"):
                raise RefusedError(403, _READS)
            form = parse_form(await body_of(request, seconds=FORM_SECONDS))
            if not any(session.has_form_token(token) for token in form.texts("form_token")[:1]):
                raise RefusedError(403, "this form is not of your session, or is too old", "Open its page again.")
            if not self._sessions.is_live(session):  # it may end before the form has come
                raise _no_session()
            if path == "/leave":
                return await self._leave(session)
        matches = ((page, match) for pattern, page in self._pages if (match := pattern.match(path)))
        page, match = next(matches, (None, None))
        if page is None or match is None:
            raise RefusedError(404, "there is no such page")
        function = page.act if request.method == "POST" else page.show
        if function is None:
            raise RefusedError(405, "nothing can be sent to this page")
        query = parse_form(request.scope["query_string"])
        names = match.groupdict()
        visit = Visit(session=session, parameters=names, query=query, form=form, frame=self._frame, page=page)
        return await run_in_threadpool(function, visit)

    async def _leave(self, session: Session) -> Response:
        if self._sessions.end(session):
            await run_in_threadpool(self._record_end, session, "signed out")
        response = self._frame.render("left.html")
        response.delete_cookie(session.cookie_name, path=f"/{session.place}/", httponly=True, samesite="strict")
        return response

    def _record_end(self, session: Session, reason: str) -> None:
        try:
            self._journal.session_ended(session.person, reason)
        except Exception:  # noqa: BLE001 - a full disk, or a database that refuses
            _log.warning("the end of a session is not recorded")  # and it is over all the same

    def _check_address(self, request: Request) -> None:
        """Refuse a request that was not addressed to this console by its own name, or whose head is unreasonable.

        Against DNS rebinding: a page elsewhere whose name leads to the loopback interface sends its own name.
        """
        if request.headers.getlist("host") != [self._host]:
            raise RefusedError(421, "this console answers under its own address only")
        if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > MOST_PATH_BYTES:
            raise RefusedError(414, "the address is too long")
        if sum(len(name) + len(value) for name, value in request.headers.raw) > MOST_HEADER_BYTES:
            raise RefusedError(431, "the request has too many headers")
        if request.method not in {"GET", "HEAD", "POST"}:
            raise RefusedError(405, "this console shows pages and takes forms")

    def _check_origin(self, request: Request) -> None:
        """Refuse what a page of another site, or of another port of this machine, has sent.

        A browser says so in Sec-Fetch-Site, and in Origin unless the page asks not to. Each of several headers counts.
        """
        sites, origins = (set(request.headers.getlist(name)) for name in ("sec-fetch-site", "origin"))
        own = f"http://{self._host}"
        if request.method == "POST":
            is_own = sites <= {"same-origin"} and origins <= {"null", own} and (bool(sites) or origins == {own})
        else:
            is_own = sites <= {"none", "same-origin"}
        if not is_own:
            raise RefusedError(403, "this request comes from another page")


def serve_console(console: Console, persons: Mapping[str, bool], *, port: int, folder: LinkFolder) -> None:
    """Serve a console on the loopback interface until a signal, and print a one-time link for each person.

    Args:
        persons: who may enter -> whether to decide, or only to read.
        port: 0 takes a free one.
        folder: where a command leaves links while the console runs.

    Raises:
        InvalidInputError: no person, one twice or without a name, or a port that is not free.
    """
    check_persons(list(persons))
    log_to_stderr()
    with closing(bound(f"127.0.0.1:{port}", option="--port")) as listener:
        host = address_of(listener)
        application = ConsoleApplication(console, host, links=folder)
        with folder.opened(host):
            links = {person: application.new_link(person, decides=decides) for person, decides in persons.items()}
            print_links(links)
            note("Ctrl-C ends the console.")
            asyncio.run(serve(application, listener, ends_with_terminal=True, most_beside_body=8 * MOST_HEADER_BYTES))
            application.end()


def _cookies_of(request: Request) -> dict[str, str]:
    """Return the cookies of consoles in a request.

    The browser sends those of every other service of this machine as well, whatever their form.
    """
    pairs = (one.strip().partition("=") for one in request.headers.get("cookie", "").split(";"))
    return {name: value for name, _, value in pairs if name.startswith(COOKIE_PREFIX)}


def _no_session() -> RefusedError:
    return RefusedError(
        403,
        "you have no session here",
        "A link works once and for ten minutes, a session ends after half an hour without a page. Ask the person who"
        " runs the console for a new link.",
    )
