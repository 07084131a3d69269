"""A browser that speaks ASGI: it sends any bytes, keeps cookies by path, and says whether its body was read."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import unescape
from http.cookies import SimpleCookie
from itertools import chain, repeat
from urllib.parse import unquote_to_bytes, urlencode, urlsplit

from starlette.types import ASGIApp, Message

from veiltab.common.web.application import ConsoleApplication

HOST = "127.0.0.1:8000"
OWN_PAGE = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"}
"""What a browser says of itself when a form of the console's own is sent."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back.

    Args:
        status: of HTTP.
        headers: names in small letters.
        content: the body.
        is_body_read: whether the console read of the request's body.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    is_body_read: bool

    @property
    def text(self) -> str:
        return self.content.decode()


@dataclass
class Browser:
    """Sends requests to a console, one after the other.

    Args:
        application: the console.
        cookies: path -> name and value of the cookie for what lies below it.
    """

    application: ASGIApp
    cookies: dict[str, tuple[str, str]] = field(default_factory=dict)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("GET", path, headers=headers or {})

    def post(self, path: str, fields: Mapping[str, str | list[str]], headers: Mapping[str, str] = OWN_PAGE) -> Answer:
        return self.send_form(path, urlencode(fields, doseq=True).encode(), headers)

    def send_form(self, path: str, body: bytes, headers: Mapping[str, str] = OWN_PAGE) -> Answer:
        form = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
        return self.send("POST", path, headers=form | dict(headers), body=[body])

    def send(self, method: str, target: str, *, headers: Mapping[str, str], body: Iterable[bytes] = ()) -> Answer:
        """Send exactly these headers, one for each line of a value, and the host's and the cookies' unless given."""
        path, _, query = target.partition("?")
        sent = {"host": HOST} | {name.lower(): value for name, value in headers.items()}
        if cookies := [f"{name}={value}" for below, (name, value) in self.cookies.items() if path.startswith(below)]:
            sent.setdefault("cookie", "; ".join(cookies))
        raw = [(name.encode(), one.encode("latin-1")) for name, value in sent.items() for one in value.split("\n")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode(errors="replace"),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": raw,
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 40_000),
        }
        parts = chain(((part, True) for part in body), repeat((b"", False)))
        messages: list[Message] = []
        reads: list[int] = []

        async def receive() -> Message:
            await asyncio.sleep(0)  # what sends a file listens for the end of the connection meanwhile
            part, more = next(parts)
            reads.append(len(part))
            return {"type": "http.request", "body": part, "more_body": more}

        async def send(message: Message) -> None:
            messages.append(message)

        asyncio.run(self.application(scope, receive, send))  # type: ignore[arg-type]
        start, *rest = messages
        answered = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        self._keep(answered.get("set-cookie", ""))
        content = b"".join(message.get("body", b"") for message in rest)
        return Answer(status=start["status"], headers=answered, content=content, is_body_read=bool(reads))

    def _keep(self, set_cookie: str) -> None:
        for name, morsel in SimpleCookie(set_cookie).items():
            self.cookies[morsel["path"]] = (name, morsel.value)


@dataclass
class Guest:
    """A browser with a session.

    Args:
        browser: of the person.
        place: first part of the session's paths, with its slash.
    """

    browser: Browser
    place: str

    def get(self, path: str) -> Answer:
        return self.browser.get(f"{self.place}{path}")

    def post(self, path: str, fields: Mapping[str, str | list[str]]) -> Answer:
        return self.browser.post(f"{self.place}{path}", {"form_token": self.token(), **fields})

    def token(self) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.get("/").text)
        assert found
        return unescape(found.group(1))


def link_of(application: ConsoleApplication, person: str, *, decides: bool = True) -> str:
    """Return the path and query of a new link."""
    return path_of(application.new_link(person, decides=decides))


def path_of(link: str) -> str:
    address = urlsplit(link)
    assert address.netloc == HOST
    return f"{address.path}?{address.query}"


def enter(application: ConsoleApplication, person: str, *, decides: bool = True) -> Guest:
    """Use a new link of a person."""
    return enter_by(application, link_of(application, person, decides=decides))


def enter_by(application: ConsoleApplication, link: str) -> Guest:
    browser = Browser(application)
    answer = browser.post(link, {})
    assert answer.status == 303, answer.text
    return Guest(browser=browser, place=answer.headers["location"].rstrip("/"))
