"""A study of real processes, consoles of its curators, and a real browser that looks at them."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped] # ships no types
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from tests.protocol.village import FREE, TWO, Rules
from tests.protocol.world import World, made_world
from tests.worlds.studies import APPROVE_ALL
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.local.processes import LocalStudy

ASK_A_PERSON = 'persons = 2\n[[rule]]\nresearcher = "rita"\ndecision = "deny"\n'
NARROW: ViewportSize = {"width": 390, "height": 844}
WIDE: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two curators, the server and two researchers, all running; alice's requests wait for two persons."""
    _chromium()
    world = made_world(
        tmp_path_factory.mktemp("browser") / "study",
        people=4000,
        owners={name: TWO[name] for name in FREE},
        rules=Rules(budget="3"),
        policies={"alice": ASK_A_PERSON, "bob": APPROVE_ALL},
    )
    with world.local:
        world.local.start_all()
        yield world


@pytest.fixture(scope="session")
def chromium(study: World) -> Iterator[Browser]:
    """A browser; it starts after the study, whose start needs a loop of its own."""
    assert study.local.study.curators
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


def _chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("no chromium here; on Debian: apt-get install chromium")
    return found


@dataclass(frozen=True, kw_only=True)
class Console:
    """A console that runs.

    Args:
        links: person -> one-time link.
    """

    links: dict[str, str]


@contextmanager
def curator_console(local: LocalStudy, persons: Sequence[str], name: str = "alice") -> Iterator[Console]:
    """Run a curator's console until the block ends."""
    named = [word for person in persons for word in ("--person", person)]
    paths: dict[str, Path] = {
        "--state": local.state_folder(Role.CURATOR, name),
        "--identity": local.identity_folder(Role.CURATOR, name),
    }
    options = [str(word) for option in paths.items() for word in option]
    log = local.folder / f"console-{time.monotonic_ns()}.log"
    command = [*local.launcher, "curator", "console", str(local.study_path), *options, *named, "--json"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            assert line, log.read_text()
            yield Console(links=json.loads(line)["links"])
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


@dataclass(frozen=True, kw_only=True)
class Seat:
    """A person's browser, in a session of their own.

    Args:
        page: the page that is open.
        base: address of the session, without its last slash.
    """

    page: Page
    base: str

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.base}{path}")
        return self.page

    def wait_for(self, path: str, text: str, seconds: float = 60) -> Page:
        """Open a page again and again until it shows a text."""
        end = time.monotonic() + seconds
        while text not in self.open(path).inner_text("body"):
            assert time.monotonic() < end, self.page.inner_text("body")
            time.sleep(0.3)
        return self.page


def take_seat(context: BrowserContext, link: str) -> Seat:
    """Begin a session in a browser of its own."""
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.goto(link)
    page.get_by_role("button", name="Begin as").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return Seat(page=page, base=page.url.rstrip("/"))


@dataclass(frozen=True, kw_only=True)
class Eye:
    """Looks at pages as their readers do.

    Args:
        folder: for the pictures.
    """

    folder: Path

    def look_at(self, page: Page, name: str) -> None:
        """Check a page for whoever uses a screen reader, the dark, or a phone, and take its pictures."""
        schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(WIDE)
            self._check(page, f"{name}-{scheme}")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(NARROW)
        self._check(page, f"{name}-390")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], name
        page.set_viewport_size(WIDE)

    def _check(self, page: Page, name: str) -> None:
        page.screenshot(path=self.folder / f"{name}.png", full_page=True)
        found = Axe().run(page)
        assert found.violations_count == 0, f"{name}: {found.generate_report()}"


@pytest.fixture(scope="session")
def eye(tmp_path_factory: pytest.TempPathFactory) -> Eye:
    """Pictures go to the folder that VEILTAB_PICTURES names, if it does."""
    named = os.environ.get("VEILTAB_PICTURES")
    folder = Path(named) if named else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return Eye(folder=folder)
