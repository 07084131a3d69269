"""The console of a researcher and of an analyst in a real browser."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import uvicorn
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Eye, Seat, console, take_seat
from tests.browser.made_wages import FAILED, LINKED, SMALL, WAGES, WAITING, wages_client
from tests.protocol.world import ROSA, World
from tests.researcher.console.made_client import MadeClient
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.web.application import ConsoleApplication
from veiltab.common.web.serving import LOOPBACK
from veiltab.researcher.client.client import Client
from veiltab.researcher.console.console import console_of

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TWO = "attributes=education&attributes=wage"
MANY = "population=24000&delta=1e-6"
PAGES = {
    "releases": "/",
    "ready": f"/releases/{WAGES}",
    "linked": f"/releases/{LINKED}",
    "waiting": f"/releases/{WAITING}",
    "denied": f"/releases/{FAILED}",
    "small": f"/releases/{SMALL}/table",
    "table": f"/releases/{WAGES}/table?{TWO}",
    "whole": f"/releases/{WAGES}/table?attributes=age&attributes=education&attributes=wage&confidence=0.99",
    "given": f"/releases/{WAGES}/table?attributes=wage&given=education",
    "ratio": f"/releases/{LINKED}/table?attributes=wage&given=region&contrast=ratio&reference=region%3Deast",
    "modelled": f"/releases/{LINKED}/table?attributes=age&attributes=education&attributes=wage",
    "microdata": f"/releases/{LINKED}/microdata",
    "plan": "/plan",
    "plan-epsilon": f"/plan?find=epsilon&shape=table&{TWO}&{MANY}&error=.004",
    "plan-linked": f"/plan?find=error&shape=linked&{TWO}&attributes=age&{MANY}&epsilon=1",
    "plan-in-vain": "/plan?find=epsilon&shape=table&cells=24&population=100&error=.0001",
    "plan-mistaken": "/plan?find=error&shape=table&cells=24&population=many&epsilon=1",
    "ask": "/ask",
    "ask-priced": "/ask?shape=table&attributes=education&attributes=region&population=24000&epsilon=.5&delta=1e-6",
    "unknown": "/releases/nobody",
    "not-ready": f"/releases/{WAITING}/table",
}


@contextmanager
def seat_at(chromium: Browser, made: MadeClient) -> Iterator[Seat]:
    """Run the console of a client in memory, and take a seat at it."""
    with console_of(cast("Client", made)) as shown, socket.socket() as listener, chromium.new_context() as context:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        application = ConsoleApplication(shown, f"{LOOPBACK}:{listener.getsockname()[1]}")
        server = uvicorn.Server(uvicorn.Config(application, access_log=False, log_config=None))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield take_seat(context, application.new_link(made.party.name))
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(scope="module")
def seat(chromium: Browser) -> Iterator[Seat]:
    with seat_at(chromium, wages_client()) as rosa:
        yield rosa


@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_read_by_everybody(seat: Seat, eye: Eye, name: str) -> None:
    page = seat.open(PAGES[name])
    if name in {"linked", "modelled", "ready"}:
        page = seat.wait_without(PAGES[name], "[data-look-again]")
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    eye.look_at(page, f"desk-{name}")


def test_a_picture_has_its_colours_and_its_texts(seat: Seat) -> None:
    """The content policy allows no style inside of a page; a browser would say so in its console."""
    said: list[str] = []
    seat.page.on("console", lambda message: said.append(message.text))
    page = seat.open(PAGES["table"])
    marks = page.locator(".chart .wide svg [stroke='#16324f']")
    assert marks.count() > 10
    expect(page.locator(".chart .wide svg text").first).to_have_css("font-size", "10px")
    assert said == []


def test_a_slider_moves_its_number_and_computes_the_answer(seat: Seat) -> None:
    page = seat.open("/plan?find=error&shape=table&cells=24&population=45222&epsilon=1&delta=1e-6")
    before = page.locator(".answer .value").inner_text()
    slider = page.get_by_role("slider", name="Epsilon, slider")
    slider.focus()
    for _ in range(5):
        slider.press("PageUp")
    expect(page.locator(".answer .value")).not_to_have_text(before)
    assert float(page.get_by_role("textbox", name="Epsilon nats").input_value()) > 1
    expect(page.get_by_role("slider", name="Epsilon, slider")).to_be_focused()


def test_a_plan_needs_no_script(chromium: Browser, seat: Seat) -> None:
    cookies = seat.page.context.cookies()
    with chromium.new_context(java_script_enabled=False) as context:
        context.add_cookies(cookies)  # type: ignore[arg-type] # the same fields
        page = context.new_page()
        page.goto(f"{seat.base}/plan")
        assert page.locator("input[type=range]").count() == 0
        page.get_by_role("textbox", name="Epsilon nats").fill("2")
        page.get_by_role("button", name="Compute").click()
        expect(page.locator(".answer .value")).to_contain_text("Error")


def test_microdata_are_drawn_and_saved(seat: Seat, eye: Eye, tmp_path: Path) -> None:
    page = seat.open(PAGES["microdata"])
    page.get_by_label("region").uncheck()
    page.get_by_role("textbox", name="Rows").fill("500")
    page.get_by_role("button", name="Draw").click()
    link = page.get_by_role("link", name="linked-microdata.parquet")
    link.wait_for(timeout=60_000)
    eye.look_at(page, "desk-drawn")
    with page.expect_download() as saved:
        link.click()
    saved.value.save_as(tmp_path / saved.value.suggested_filename)
    assert (tmp_path / "linked-microdata.parquet").read_bytes()[:4] == b"PAR1"


def test_an_analyst_reads_and_has_no_way_to_ask(chromium: Browser, eye: Eye) -> None:
    with seat_at(chromium, wages_client(Role.ANALYST)) as ana:
        page = ana.open("/")
        assert page.get_by_role("link", name=re.compile("Ask")).count() == 0
        eye.look_at(page, "desk-analyst")
        ana.open("/ask")
        expect(page.get_by_role("main")).to_contain_text("no such page")
        expect(ana.open(PAGES["table"]).get_by_text("measured", exact=True)).to_be_visible()


def test_a_release_is_asked_for_decided_and_read(study: World, chromium: Browser, eye: Eye) -> None:
    """From the price to the picture, with real parties: two persons of alice approve it."""
    words = ("researcher", "console", study.local.study_path, "--name", "rosa")
    with (
        console(study.local, *words, "--identity", study.local.identity_folder(*ROSA)) as running,
        chromium.new_context() as context,
    ):
        rosa = take_seat(context, running.links["rosa"])
        page = rosa.open("/ask")
        for name in ("region", "employed"):
            page.get_by_label(name).check()
        page.get_by_role("textbox", name="Epsilon nats").fill("0.5")
        page.get_by_role("textbox", name="Respondents n").fill("4000")
        assert page.get_by_role("button", name="Ask for this release").count() == 0
        page.get_by_role("button", name="Show what it costs").click()
        expect(page.get_by_role("main")).to_contain_text("of every curator's budget")
        page.get_by_label("Purpose").fill("Who works where <script>alert(1)</script>")
        label = study.label()
        page.get_by_label(re.compile("^Label")).fill(label)
        page.get_by_role("button", name="Ask for this release").click()
        expect(page.get_by_role("status")).to_contain_text("The curators were asked.")
        path = page.url.removeprefix(rosa.base)
        page = rosa.wait_for(path, "Waits for")
        eye.look_at(page, "desk-asked")
        for person in ("Ana Diaz", "Ben Ode"):
            answer = study.curator_command("approve", "alice", "--release", label_id(path), "--person", person)
            assert answer.code == 0, answer.errors
        page = rosa.wait_for(path, "Show the table", seconds=120)
        page.get_by_role("button", name="Show the table").click()
        expect(page.get_by_text("measured", exact=True)).to_be_visible(timeout=30_000)
        assert page.locator(".chart .wide svg").count() == 2
        eye.look_at(page, "desk-result")


def test_a_page_that_looks_again_lets_its_reader_go_on(chromium: Browser) -> None:
    """A page whose bounds are computed loads itself again, unless its reader has begun something else."""
    with seat_at(chromium, wages_client()) as seat:
        seat.page.add_init_script("window.loads = Number(sessionStorage.loads || 0) + 1; sessionStorage.loads = loads")
        seat.page.route(
            f"**/releases/{LINKED}",
            lambda route: route.fulfill(response=(answer := route.fetch()), body=_with_a_wait(answer.text())),
        )
        page = seat.open(f"/releases/{LINKED}")
        page.wait_for_event("load", timeout=20_000)
        box = page.get_by_label("region")
        ticked = box.is_checked()
        box.click()
        page.wait_for_timeout(300)
        if box.is_checked() == ticked:  # the click fell on a page that was going
            box.click()
        loads = int(page.evaluate("loads"))
        page.wait_for_timeout(2_500)
        assert page.evaluate("loads") == loads


def _with_a_wait(html: str) -> str:
    return html.replace('<main id="main">', '<main id="main"><p data-look-again="1">wait</p>')


def label_id(path: str) -> str:
    """Return the release that a page is about."""
    return path.rsplit("/", 1)[1]
