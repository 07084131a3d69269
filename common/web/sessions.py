"""One-time links and the sessions that they begin, in the memory of one console.

Invariants: a link begins one session, once, within ten minutes; a session belongs to the person of its link, and ends
after half an hour without a page, or eight hours after it began. Nothing is stored: when the console ends, every link
and session is worthless.

A session is known by two secrets. Its place is the first part of the path of each of its pages, and its cookie is sent
to paths below that place alone: browsers send cookies to every port of a host, so without the place another user of
the machine could listen on another port and be sent the cookie.
"""

import hmac
import secrets
from collections.abc import Callable, Iterator

from veiltab.common.dataclass import dataclass, field
from veiltab.common.web.links import LINK_SECONDS, Link, LinkFolder, new_token, token_digest

IDLE_SECONDS = 1800
TOTAL_SECONDS = 8 * 3600
COOKIE_PREFIX = "veiltab_"
"""How the name of a session's cookie begins."""


@dataclass(slots=True, kw_only=True)
class Session:
    """One person's session in one browser.

    Args:
        decides: whether that person may send forms, or only read.
        began: Unix seconds.
        used: when it was last used, Unix seconds.
        place: first part of its paths.
        form_token: what each of its forms carries.
        messages: what the next page says.
    """

    person: str
    decides: bool
    began: float
    used: float
    place: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    cookie_name: str = field(default_factory=lambda: f"{COOKIE_PREFIX}{secrets.token_hex(8)}")
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    messages: list[str] = field(default_factory=list)

    def has_form_token(self, token: str) -> bool:
        """Whether a form is one of this session's own."""
        return _is_same(token, self.form_token)


class Sessions:
    """All links and sessions of one console.

    Args:
        clock: returns Unix seconds.
        folder: where a command leaves links; None if it leaves none.
    """

    def __init__(self, clock: Callable[[], float], folder: LinkFolder | None) -> None:
        self._clock = clock
        self._folder = folder
        self._links: dict[bytes, Link] = {}
        self._sessions: dict[str, Session] = {}

    def new_link(self, person: str, *, decides: bool) -> str:
        """Return the token of a new link of a person."""
        token = new_token()
        self._links[token_digest(token)] = Link(person=person, decides=decides, expires=self._clock() + LINK_SECONDS)
        return token

    def link_of(self, token: str) -> Link | None:
        """Return the link of a token; None if it is unknown, used or too old."""
        digest = token_digest(token)
        if self._folder is not None and (saved := self._folder.take(digest)) is not None:
            self._links[digest] = saved
        link = self._links.get(digest)
        return link if link is not None and self._clock() < link.expires else None

    def begin(self, token: str) -> Session | None:
        """Use a link up and begin its session; None as `link_of`."""
        link = self.link_of(token)
        self._links.pop(token_digest(token), None)
        if link is None:
            return None
        session = Session(person=link.person, decides=link.decides, began=self._clock(), used=self._clock())
        self._sessions[session.place] = session
        return session

    def find(self, place: str, cookies: dict[str, str]) -> Session | None:
        """Return the live session at a place whose cookie is among some, and count this as a use of it."""
        session = self._sessions.get(place)
        if session is None or not _is_same(cookies.get(session.cookie_name, ""), session.secret):
            return None
        if not self.is_live(session):
            return None
        session.used = self._clock()
        return session

    def is_live(self, session: Session) -> bool:
        """Whether a session has not ended."""
        return self._sessions.get(session.place) is session and not self._is_over(session)

    def end(self, session: Session) -> bool:
        """End a session; whether it was still there."""
        return self._sessions.pop(session.place, None) is not None

    def end_those_over(self) -> Iterator[Session]:
        """End the sessions whose time is over, and yield each."""
        for session in [one for one in self._sessions.values() if self._is_over(one)]:
            self.end(session)
            yield session

    def end_all(self) -> Iterator[Session]:
        """End every session, and yield each."""
        for session in list(self._sessions.values()):
            self.end(session)
            yield session

    def _is_over(self, session: Session) -> bool:
        now = self._clock()
        return now >= session.began + TOTAL_SECONDS or now >= session.used + IDLE_SECONDS


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())
