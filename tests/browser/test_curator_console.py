"""A release from the request to its result, decided in the console of a curator by two persons."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Console, Eye, Seat, curator_console, take_seat
from tests.protocol.world import ALICE, ROSA, World
from veiltab.common.errors import NotReadyError

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ANA, BEN, CEM, EVA = "Ana Diaz", "Ben Ode", "Cem Ak", "Eva Roth"
PURPOSE = "Income by region <script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def running(study: World) -> Iterator[Console]:
    with curator_console(study.local, [ANA, BEN, CEM]) as console:
        yield console


@pytest.fixture(scope="module")
def seats(chromium: Browser, running: Console) -> Iterator[dict[str, Seat]]:
    """Each person in a browser of their own."""
    with ExitStack() as stack:
        contexts = {person: stack.enter_context(chromium.new_context()) for person in (ANA, BEN)}
        yield {person: take_seat(context, running.links[person]) for person, context in contexts.items()}


def ask(study: World, purpose: str) -> str:
    answer = study.ask(("region", "income"), "--purpose", purpose, "--label", study.label(), epsilon="0.5")
    assert answer.code == 0, answer.errors
    return str(answer.data["release"]["id"])


def decide(page: Page, button: str, reason: str) -> None:
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name=button).click()


def test_a_release_is_refused_then_asked_again_approved_by_two_persons_and_read(
    study: World, seats: dict[str, Seat], eye: Eye
) -> None:
    ana, ben = seats[ANA], seats[BEN]
    refused = ask(study, PURPOSE)
    page = ana.wait_for("/", "Read and decide")
    eye.look_at(page, "requests")
    page.get_by_role("link", name="Read and decide").click()
    for said in (PURPOSE, "desk with server", "Foreseen error", "no rule matches", "of the budget"):
        expect(page.get_by_role("main")).to_contain_text(said)
    expect(page).to_have_title(re.compile("Request of rosa"))
    eye.look_at(page, "request")
    decide(page, "Refuse", "")
    expect(page.get_by_role("main")).to_contain_text("no reason was given for the refusal")
    eye.look_at(page, "refused")
    decide(ana.open(f"/releases/{refused}"), "Refuse", "Say which report it is for")
    expect(page.get_by_role("status")).to_contain_text("Refused: region")
    page = ana.wait_for(f"/releases/{refused}", "Say which report it is for")

    approved = ask(study, "Income by region, for the report on wages")
    ben.wait_for("/", "Read and decide")
    decide(ana.open(f"/releases/{approved}"), f"Approve as {ANA}", "as agreed with the board")
    expect(ana.page.get_by_role("status")).to_contain_text("1 other person must approve it as well")
    page = ana.open("/")
    expect(page.get_by_role("main")).to_contain_text("Somebody else decides now")
    eye.look_at(page, "half-approved")
    decide(ben.open(f"/releases/{approved}"), f"Approve as {BEN}", "seen")
    expect(ben.page.get_by_role("status")).to_contain_text("Approved: region")
    page = ben.wait_for(f"/releases/{approved}", "passes the test of all columns together", seconds=120)
    page = ben.wait_for(f"/releases/{approved}", "may fetch the keys")
    eye.look_at(page, "released")

    identity = study.local.identity_folder(*ROSA)
    common = ("researcher", "estimate", study.local.study_path, "--identity", identity)
    # A curator gives keys out before the researcher's service has read the last of the statuses.
    study.wait_until(lambda: study.command(*common, "--release", approved).code != NotReadyError.exit_code)
    answer = study.command(*common, "--release", approved)
    assert answer.code == 0, answer.errors
    assert answer.data["attributes"] == ["region", "income"]


def test_evidence_is_exported(study: World, seats: dict[str, Seat], tmp_path: Path) -> None:
    page = seats[ANA].open("/evidence")
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Export as {ANA}").click()
    download.value.save_as(tmp_path / "evidence.zip")
    authority = study.local.identity_folder(*ALICE) / "ca.pem"
    answer = study.command("verify", tmp_path / "evidence.zip", "--authority", authority)
    assert answer.code == 0, answer.text
    expect(seats[ANA].open("/audit").get_by_role("main")).to_contain_text("evidence exported")


@pytest.mark.parametrize(
    "path",
    ["/releases", "/budget", "/ledger", "/policy", "/parties?ask=yes", "/table?check=yes", "/audit", "/evidence"],
)
def test_every_page_can_be_read_by_everybody(seats: dict[str, Seat], eye: Eye, path: str) -> None:
    page = seats[ANA].open(path)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_have_count(1)
    eye.look_at(page, re.sub(r"\W.*", "", path[1:]))


def test_a_reader_comes_by_a_new_link_and_sees_no_form(
    study: World, chromium: Browser, seats: dict[str, Seat], eye: Eye
) -> None:
    asked = ask(study, "Income by region, once more")
    seats[ANA].wait_for(f"/releases/{asked}", "Your decision")
    place = (study.local.study_path, "--state", study.local.state_folder(*ALICE))
    answer = study.command("curator", "console", *place, "--links", "--reader", EVA)
    assert answer.code == 0, answer.text
    with chromium.new_context() as context:
        eva = take_seat(context, answer.data["links"][EVA])
        page = eva.open("/")
        expect(page.get_by_role("banner")).to_contain_text(f"{EVA} (reads)")
        expect(page.get_by_role("main")).to_contain_text("Income by region, once more")
        expect(page.get_by_role("link", name="Read and decide")).to_have_count(0)
        eye.look_at(page, "reader-requests")
        for path in (f"/releases/{asked}", "/ledger", "/policy", "/audit", "/evidence"):
            page = eva.open(path)
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
            expect(page.locator("main form[method=post]")).to_have_count(0)
            eye.look_at(page, f"reader-{path.split('/')[1]}")
    decide(seats[ANA].open(f"/releases/{asked}"), "Refuse", "it was asked to look at")


def test_the_policy_is_tried(seats: dict[str, Seat], eye: Eye) -> None:
    page = seats[ANA].open("/policy")
    page.get_by_label("Researcher").select_option("rita")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("main")).to_contain_text("region: refused by rule 1")
    eye.look_at(page, "policy-tried")


def test_the_pages_are_used_with_the_keyboard_alone(seats: dict[str, Seat]) -> None:
    page = seats[ANA].open("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_link_is_used_up_and_a_page_needs_its_session(
    running: Console, seats: dict[str, Seat], chromium: Browser, eye: Eye
) -> None:
    with chromium.new_context() as stranger:
        page = stranger.new_page()
        for address in (running.links[ANA], f"{seats[ANA].base}/", f"{seats[ANA].base}/ledger"):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 403
        eye.look_at(page, "no-session")
        page.goto(running.links[CEM])
        expect(page.get_by_role("button", name=f"Begin as {CEM}")).to_be_visible()
        eye.look_at(page, "enter")


def test_another_site_cannot_send_a_form(seats: dict[str, Seat]) -> None:
    """A page of another origin that knows everything but the form's token, and even that."""
    seat = seats[ANA]
    token = seat.open("/").locator("input[name=form_token]").first.get_attribute("value")
    page = seat.page.context.new_page()
    page.route(
        "http://elsewhere.example/", lambda route: route.fulfill(body="<h1>elsewhere</h1>", content_type="text/html")
    )
    page.goto("http://elsewhere.example/")
    page.evaluate(
        """([address, token]) => {
            const form = document.createElement("form");
            form.method = "post"; form.action = address;
            const field = document.createElement("input");
            field.name = "form_token"; field.value = token;
            form.append(field); document.body.append(form); form.submit();
        }""",
        [f"{seat.base}/leave", token],
    )
    page.wait_for_url(f"{seat.base}/leave")
    expect(page.get_by_role("main")).to_contain_text("You have no session here")
    page.close()
    expect(seat.open("/").get_by_role("button", name="Sign out")).to_be_visible()


def test_a_person_signs_out(seats: dict[str, Seat], eye: Eye) -> None:
    page = seats[BEN].open("/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Signed out")
    eye.look_at(page, "signed-out")
    answer = page.goto(f"{seats[BEN].base}/")
    assert answer is not None
    assert answer.status == 403
