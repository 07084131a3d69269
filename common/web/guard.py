"""What every request to a console must pass before a page sees it, and the headers of every answer.

The order is the argument: the address, then the shape, then who asks, then where the form comes from, then its body.
Nothing is read of a body, and nothing of the party's state, before the session is known.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.types import Message

from veiltab.common.errors import InvalidInputError
from veiltab.common.web.forms import Form, parse_form
from veiltab.common.web.sessions import COOKIE_PREFIX, Session

MOST_BODY_BYTES: Final = 64 * 1024
MOST_HEADER_BYTES: Final = 16 * 1024
MOST_PATH_BYTES: Final = 4 * 1024
BODY_SECONDS: Final = 10.0
FORM_TOKEN: Final = "form_token"  # noqa: S105 - the name of the field
"""Name of the hidden field of every form."""

_FORM = "application/x-www-form-urlencoded"

SECURITY_HEADERS: Final[Mapping[str, str]] = {
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


class RefusedRequestError(Exception):
    """A request that is refused.

    Args:
        problem: a sentence for the person.
        remedy: what to do next; may be empty.
    """

    def __init__(self, status: int, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.remedy = remedy


def check_address(request: Request, host: str) -> None:
    """Refuse a request that was not addressed to this console by its own name, or whose head is unreasonable.

    Against DNS rebinding: a page elsewhere whose name leads to the loopback interface sends its own name.
    """
    if request.headers.getlist("host") != [host]:
        raise RefusedRequestError(421, "This console answers under its own address only.")
    if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > MOST_PATH_BYTES:
        raise RefusedRequestError(414, "The address is too long.")
    if sum(len(name) + len(value) for name, value in request.headers.raw) > MOST_HEADER_BYTES:
        raise RefusedRequestError(431, "The request has too many headers.")


def check_shape(request: Request) -> None:
    """Refuse methods other than GET, HEAD and POST, and bodies of unknown or unreasonable length."""
    length = request.headers.get("content-length")
    match request.method:
        case "GET" | "HEAD":
            if length not in {None, "0"} or "transfer-encoding" in request.headers:
                raise RefusedRequestError(400, "A page is asked for without a body.")
        case "POST":
            if length is None or "transfer-encoding" in request.headers:
                raise RefusedRequestError(411, "A form says how long it is.")
            if not (length.isascii() and length.isdecimal()):
                raise RefusedRequestError(400, "The length of the form is not a number.")
            if int(length[:20]) > MOST_BODY_BYTES:
                raise RefusedRequestError(413, "The form is too long.")
            if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM:
                raise RefusedRequestError(415, "This is no form.")
        case _:
            raise RefusedRequestError(405, "This console shows pages and takes forms.")


def check_origin(request: Request, host: str) -> None:
    """Refuse what a page of another site, or of another port of this machine, has sent.

    A browser says so in Sec-Fetch-Site, and in Origin unless the page asks it not to.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = f"http://{host}"
    if request.method == "POST":
        is_own = site in {None, "same-origin"} and origin in {None, "null", own} and (site is not None or origin == own)
    else:
        is_own = site in {None, "none", "same-origin"}
    if not is_own:
        raise RefusedRequestError(403, "This request comes from another page.")


def cookies_of(request: Request) -> dict[str, str]:
    """Return the cookies of consoles in a request.

    The browser sends those of every other service of this machine as well, whatever their form.
    """
    pairs = (one.strip().partition("=") for one in request.headers.get("cookie", "").split(";"))
    return {name: value for name, _, value in pairs if name.startswith(COOKIE_PREFIX)}


def read_query(request: Request) -> Form:
    """Read the query of an address.

    Raises:
        RefusedRequestError: it cannot be read.
    """
    return _parsed(request.scope["query_string"])


async def read_form(request: Request) -> Form:
    """Read the body of a form whose shape was checked.

    Raises:
        RefusedRequestError: it is longer than it says, comes too slowly, or cannot be read.
    """
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _body(request.receive)
    except TimeoutError:
        raise RefusedRequestError(408, "The form came too slowly.") from None
    return _parsed(body)


def check_form_token(form: Form, session: Session) -> None:
    """Refuse a form that is not one of the session's own."""
    if not any(session.has_form_token(token) for token in form.values.get(FORM_TOKEN, ())[:1]):
        raise RefusedRequestError(403, "This form is not of your session, or is too old. Open its page again.")


def _parsed(encoded: bytes) -> Form:
    try:
        return parse_form(encoded)
    except InvalidInputError as error:
        raise RefusedRequestError(400, f"{error.problem.capitalize()}.") from None


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedRequestError(400, "The form was cut short.")
        body += message.get("body", b"")
        if len(body) > MOST_BODY_BYTES:
            raise RefusedRequestError(413, "The form is too long.")
        if not message.get("more_body", False):
            return bytes(body)
