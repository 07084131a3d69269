"""What the tutorial's reader does in a browser, and pictures of what is seen there."""

import io
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page, sync_playwright

BROWSER = shutil.which("chromium")
_SCREEN = {"width": 1000, "height": 700}
_PATIENCE = 300_000.0
"""Milliseconds after which a page is not coming."""

_LINK = re.compile(r"http://127\.0\.0\.1\S+")


@dataclass(frozen=True, kw_only=True)
class Camera:
    """Keeps pictures of pages.

    Args:
        folder: where; None keeps none.
    """

    folder: Path | None

    def take(self, seen: Page | Locator, name: str) -> None:
        """Keep a picture of what a page, or a part of one, shows."""
        if self.folder is not None:
            picture = Image.open(io.BytesIO(seen.screenshot()))
            few = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
            few.save(self.folder / f"{name}.png", optimize=True)


@contextmanager
def browser_page() -> Iterator[Page]:
    """Open a page of a real browser, in its light colours."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport=_SCREEN, color_scheme="light")  # type: ignore[arg-type]
        page.set_default_timeout(_PATIENCE)
        yield page
        browser.close()


def approve_in_browser(screen: str, person: str, camera: Camera) -> None:
    """Open the link that a curator's console printed, read the request that waits, and approve it."""
    with browser_page() as page:
        page.goto(_LINK.findall(screen)[0])
        page.get_by_role("button", name=f"Begin as {person}").click()
        camera.take(page, "console-requests")
        page.get_by_role("link", name="Read and decide").click()
        camera.take(page.locator("section", has_text="What it costs"), "console-card")
        page.get_by_role("button", name=f"Approve as {person}").click()
        page.get_by_text("Approved: ").wait_for()


def look_at_report(path: Path, camera: Camera) -> None:
    """Open a report, on a wide screen and on a phone's: on neither is it wider than the screen."""
    with browser_page() as page:
        for width in (1000, 390):
            page.set_viewport_size({"width": width, "height": 700})
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
        page.set_viewport_size({"width": 1000, "height": 700})
        camera.take(page.locator('section:has(h2:text-is("Mean of hours")) figure .wide'), "report")
