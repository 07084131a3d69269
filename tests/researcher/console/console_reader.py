"""A researcher's console, as its pages are read."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from tests.common.web.browser import HOST, Browser
from tests.researcher.console.made_client import MadeClient
from veiltab.common.web.application import ConsoleApplication
from veiltab.researcher.client.client import Client
from veiltab.researcher.console.console import console_of


@dataclass
class Reader:
    """A browser that has entered the console of a client."""

    made: MadeClient
    browser: Browser
    base: str

    def get(self, path: str, status: int = 200) -> str:
        answer = self.browser.get(f"{self.base}{path}")
        assert answer.status == status, answer.text
        return answer.text

    def file(self, path: str) -> tuple[str, bytes]:
        """Return the name and the content of a file."""
        answer = self.browser.get(f"{self.base}{path}")
        assert answer.status == 200, answer.text
        found = re.fullmatch(r'attachment; filename="([a-z0-9._-]+)"', answer.headers["content-disposition"])
        assert found
        return found.group(1), answer.content

    def post(self, path: str, fields: dict[str, Any], status: int = 303) -> str:
        token = re.search(r'name="form_token" value="([^"]+)"', self.get("/"))
        assert token
        answer = self.browser.post(f"{self.base}{path}", fields | {"form_token": token.group(1)})
        assert answer.status == status, answer.text
        return answer.headers["location"].removeprefix(self.base) if status == 303 else answer.text


Enter = Callable[[MadeClient], Reader]


@pytest.fixture(scope="module", name="enter")
def enter_fixture() -> Iterator[Enter]:
    """Enter the consoles of clients; all of them end with the module."""
    ends = []

    def entered(made: MadeClient) -> Reader:
        context = console_of(cast("Client", made))
        ends.append(context)
        application = ConsoleApplication(context.__enter__(), HOST)
        browser, link = Browser(application), urlsplit(application.new_link("rosa"))
        answer = browser.post(f"{link.path}?{link.query}", {})
        assert answer.status == 303, answer.text
        return Reader(made=made, browser=browser, base=answer.headers["location"].rstrip("/"))

    yield entered
    for context in ends:
        context.__exit__(None, None, None)


@pytest.fixture(name="reader")
def reader_fixture(enter: Enter) -> Reader:
    return enter(MadeClient())


@pytest.fixture(scope="module", name="shared")
def shared_fixture(enter: Enter) -> Reader:
    """A reader for tests that leave the console as it was."""
    return enter(MadeClient())


def text_of(page: str) -> str:
    """Return what a person reads of a page, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())
