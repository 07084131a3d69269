"""The page of links of two curators that link each other's rows, before and after."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Eye, Seat, curator_console, take_seat
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.linkage.linking import HUB, SPOKE, LinkOptions, linkage_report, prepare
from veiltab.play.local.processes import LocalStudy
from veiltab.play.registers.people import made_registers

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ANA = "Ana Diaz"


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[LocalStudy]:
    local, _ = prepare(LinkOptions(out=tmp_path / "study", people=1000), made_registers(1000, "browser"))
    with local:
        yield local


def start(local: LocalStudy, name: str) -> None:
    """Start a curator and wait until it serves, in a thread: the browser has this one's loop."""
    local.start(Role.CURATOR, name)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(local.wait_for, Role.CURATOR, name).result()


def test_links_are_seen_at_a_spoke_and_at_the_hub(linked: LocalStudy, chromium: Browser, eye: Eye) -> None:
    start(linked, SPOKE)
    with ExitStack() as stack:

        def seat_of(name: str) -> Seat:
            link = stack.enter_context(curator_console(linked, [ANA], name)).links[ANA]
            return take_seat(stack.enter_context(chromium.new_context()), link)

        spoke = seat_of(SPOKE)
        page = spoke.wait_for("/links", f"curator {HUB}: no connection")
        expect(page.get_by_role("main")).to_contain_text("Nobody is linked yet")
        eye.look_at(page, "links-none")
        start(linked, HUB)
        page = spoke.wait_for("/links", "Linked people", seconds=240)
        passes = linkage_report(linked, SPOKE)["passes"]
        assert page.get_by_role("rowheader").all_inner_texts()[: len(passes)] == [
            f"{number} {one['key']}" for number, one in enumerate(passes, 1)
        ]
        expect(page.locator("main svg")).to_be_visible()
        expect(page.get_by_role("main")).to_contain_text("estimated recall")
        expect(page.get_by_role("main")).to_contain_text("began 1 of 3")
        eye.look_at(page, "links-spoke")
        hub = seat_of(HUB)
        page = hub.wait_for("/links", "The hub does not learn whom it is linked with", seconds=60)
        eye.look_at(page, "links-hub")
