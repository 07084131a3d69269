"""A console's pages: what each shows and does, and how its templates become HTML."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from veiltab.common.core.texts.spelling import is_seen
from veiltab.common.dataclass import dataclass, field
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.web.bodies import Form
from veiltab.common.web.sessions import Session

FRAME = Path(__file__).parent
"""The folder of the templates and assets that every console has."""


class Journal(Protocol):
    """Where a console records who entered it; a session that cannot be recorded does not begin."""

    def session_began(self, person: str, decides: bool) -> None:  # noqa: FBT001 - run by position
        """Record that a person entered, to decide or to read."""

    def session_ended(self, person: str, reason: str) -> None:
        """Record that a person's session is over, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request to a page of somebody whose session is known.

    Args:
        form: what was sent with it; empty unless something is to be done.
    """

    session: Session
    parameters: Mapping[str, str]
    query: Form
    form: Form
    frame: "Frame"
    page: "Page"

    @property
    def person(self) -> str:
        """Who visits."""
        return self.session.person

    @property
    def decides(self) -> bool:
        """Whether that person may send forms, or only read."""
        return self.session.decides

    def render(self, template: str, *, status: int = 200, **values: object) -> Response:
        """Return a page of this session; see `Frame.render`."""
        return self.frame.render(template, status=status, session=self.session, here=self.page.path, **values)

    def go_to(self, path: str, message: str = "") -> Response:
        """Send the browser to a page of this session, which then says the message.

        Args:
            path: such as "/ledger".
            message: for the person; empty for none.
        """
        if message:
            self.session.messages.append(message)
        return RedirectResponse(f"/{self.session.place}{path}", status_code=303)

    def download(self, name: str, content: bytes, media_type: str) -> Response:
        """Return a file that the browser saves.

        Args:
            name: of plain letters, digits, dots and dashes.
            content: its bytes.
        """
        return Response(
            content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a console. Its functions run in threads, several at a time.

    Args:
        path: such as "/ledger" or "/releases/{release}".
        show: returns the page.
        act: does what a form asks for, and mostly goes to a page; None if the page has no form that changes anything.
        label: in the navigation; empty if it does not stand there.
    """

    path: str
    show: Callable[[Visit], Response]
    act: Callable[[Visit], Response] | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """What a console consists of.

    Args:
        title: whose it is, such as "Curator alice".
        folder: with templates/ of its own, beside those of every console.
        pages: in the order of the navigation; the first has the path "/".
        filters: functions of its templates, beside those of every console.
    """

    title: str
    study: str
    folder: Path
    pages: tuple[Page, ...]
    journal: Journal
    filters: Mapping[str, Callable[..., object]] = field(default_factory=dict)


class Frame:
    """Renders the templates of one console: escaped, and refusing what is not there."""

    def __init__(self, console: Console) -> None:
        self._templates = Environment(
            loader=FileSystemLoader([console.folder / "templates", FRAME / "templates"]),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_legible,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update({"moment": moment, "delta_text": delta_text, **console.filters})
        self._templates.globals.update(console=console, n_is_exact=N_IS_EXACT)
        for name in self._templates.list_templates():  # so that no reader of a first page waits for it
            self._templates.get_template(name)

    def render(self, template: str, *, status: int = 200, session: Session | None = None, **values: object) -> Response:
        """Return a page.

        Args:
            session: of the reader, if there is one.
        """
        messages = []
        if session is not None:
            messages, session.messages = session.messages, []
        base = "" if session is None else f"/{session.place}"
        html = self._templates.get_template(template).render(session=session, base=base, messages=messages, **values)
        return HTMLResponse(html, status_code=status)


def moment(seconds: float | None) -> Markup:
    """Return a time for people and for machines; empty if it is not known."""
    if seconds is None:
        return Markup()
    when = datetime.fromtimestamp(seconds, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        when.isoformat(timespec="seconds"), f"{when.day} {when:%b %Y, %H:%M} UTC"
    )


def _legible(value: object) -> object:
    """Replace characters that are not seen, or that turn the text around them: names and purposes come from others."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(one if is_seen(one) or one in "\r\n\t" else "\N{REPLACEMENT CHARACTER}" for one in value)
