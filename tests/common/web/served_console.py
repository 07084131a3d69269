"""A console that tests serve."""

import errno
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.responses import Response

from tests.common.web.browser import HOST, Browser, Guest, enter, link_of
from veiltab.common.errors import ConflictError, UnavailableError
from veiltab.common.web.application import ConsoleApplication
from veiltab.common.web.links import LinkFolder
from veiltab.common.web.pages import Console, Page, Visit

PURPOSE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}evil\N{HANGUL FILLER}"


@dataclass
class Notebook:
    """A journal that a test reads, and that can refuse."""

    lines: list[str] = field(default_factory=list)
    refusal: UnavailableError | None = None

    def session_began(self, person: str, decides: bool) -> None:  # noqa: FBT001 - the product's signature
        if self.refusal is not None:
            raise self.refusal
        self.lines.append(f"{person} came" if decides else f"{person} came to read")

    def session_ended(self, person: str, reason: str) -> None:
        self.lines.append(f"{person} left: {reason}")


@dataclass
class House:
    """A console under test: what was done there, its clock, and its browsers."""

    folder: Path
    now: float = 1_000_000.0
    done: list[str] = field(default_factory=list)
    notebook: Notebook = field(default_factory=Notebook)

    def __post_init__(self) -> None:
        templates = self.folder / "templates"
        templates.mkdir()
        (templates / "first.html").write_text(
            '{% extends "base.html" %}{% from "forms.html" import token %}{% block title %}First{% endblock %}'
            '{% block content %}<p id="purpose">{{ purpose }}</p>'
            '<form method="post">{{ token(session) }}</form>{% endblock %}'
        )
        pages = (
            Page(path="/", label="First", show=self._show, act=self._act),
            Page(path="/kept/{name}", label="", show=self._keep),
        )
        self.application = ConsoleApplication(
            Console(title="Curator alice", study="Wages", folder=self.folder, pages=pages, journal=self.notebook),
            HOST,
            lambda: self.now,
            self.links,
        )

    @property
    def links(self) -> LinkFolder:
        return LinkFolder(self.folder / "state" / "console", lambda: self.now)

    def _show(self, visit: Visit) -> Response:
        return visit.render("first.html", purpose=PURPOSE)

    def _act(self, visit: Visit) -> Response:
        match what := visit.form.text("what"):
            case "conflict":
                raise ConflictError("it is decided", where="<b>release</b>", remedy="Look again.")
            case "fault":
                raise ZeroDivisionError("the secret is 7")
            case "full":
                raise OSError(errno.ENOSPC, "the secret is 7", "ledger.sqlite")
            case _:
                self.done.append(f"{visit.person}: {what}")
                return visit.go_to("/", f"Done: {what}")

    def _keep(self, visit: Visit) -> Response:
        return visit.download("a.txt", visit.parameters["name"].encode(), "text/plain")

    def browser(self) -> Browser:
        return Browser(self.application)

    def link(self, person: str = "Ana Diaz") -> str:
        return link_of(self.application, person)

    def enter(self, person: str = "Ana Diaz") -> Guest:
        return enter(self.application, person)


@pytest.fixture(name="house")
def house_fixture(tmp_path: Path) -> House:
    return House(tmp_path)
