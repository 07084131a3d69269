"""The report of a release in a real browser: a link that is clicked, loaded again, revoked, and broken."""

from collections.abc import Iterator
from functools import partial
from html import escape

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Eye
from tests.protocol.served import Served, http_beside
from tests.protocol.world import World

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ELSEWHERE = "http://elsewhere.example/mail"


@pytest.fixture(scope="module")
def served(study: World) -> Iterator[Served]:
    with http_beside(study) as found:
        yield found


@pytest.fixture(scope="module")
def release(study: World) -> str:
    """A release of two attributes, approved by the persons of alice."""
    label = study.label()
    options = ("--purpose", "to show it", "--label", label)
    asked = study.ask(("region", "income"), *options, epsilon="0.5").data["release"]["id"]
    for person in ("Ana Diaz", "Ben Ode"):
        study.wait_until(partial(_approved, study, asked, person))
    done = study.ask(("region", "income"), *options, "--wait", epsilon="0.5")
    assert done.code == 0, done.errors
    return label


def _approved(study: World, release_id: str, person: str) -> bool:
    """Approve a release, and return whether alice held it already."""
    return study.curator_command("approve", "alice", "--release", release_id, "--person", person).code == 0


@pytest.fixture
def page(chromium: Browser, served: Served) -> Iterator[Page]:
    assert served.url
    with chromium.new_context(ignore_https_errors=True) as context:
        found = context.new_page()
        found.set_default_timeout(60_000)
        yield found


def link_of(served: Served, label: str, release: str) -> str:
    made = served.link(label, release)
    assert made.code == 0, made.errors
    return str(made.data["link"])


def click(page: Page, link: str) -> None:
    """Click a link that stands in a page of another site."""
    page.route(
        ELSEWHERE,
        lambda route: route.fulfill(body=f'<a href="{escape(link)}">the report</a>', content_type="text/html"),
    )
    page.goto(ELSEWHERE)
    page.get_by_role("link", name="the report").click()


def test_a_link_shows_the_report_again_and_again_until_it_is_revoked(
    served: Served, release: str, page: Page, eye: Eye
) -> None:
    sent, said = list[tuple[str, str]](), list[str]()
    page.on("request", lambda request: sent.append((request.url, request.headers.get("referer", ""))))
    page.on("console", lambda message: said.append(message.text))
    link = link_of(served, "board", release)
    click(page, link)
    for _ in range(2):
        page.locator("figure svg").first.wait_for()
        expect(page.get_by_role("heading", level=1)).to_contain_text("region, income")
        page.reload()
    page.locator("figure svg").first.wait_for()
    eye.look_at(page, "report-link")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(24, 32, 41)")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    page.emulate_media(media="screen", color_scheme="light")
    assert said == [], "the browser refused nothing of the report's"
    token = link.partition("#")[2]
    ours = [(url, referer) for url, referer in sent if url.startswith(served.url)]
    assert len(ours) >= 6
    for url, referer in ours:
        assert token not in url.partition("#")[0] + referer
    tokens = ("researcher", "token")
    listed = served.world.command(*tokens, "list", "--state", served.state).data["tokens"]
    assert [(one["state"], one["scopes"]) for one in listed if one["label"] == "board"] == [("good", ["read"])]
    assert served.world.command(*tokens, "revoke", "--state", served.state, "--label", "board").code == 0
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("The report cannot be shown")
    expect(page.get_by_role("status")).to_have_text(
        "The token is revoked. Ask the researcher for another token or link."
    )
    assert page.locator("figure").count() == 0
    eye.look_at(page, "report-revoked")


def test_what_is_wrong_with_a_link_is_said(served: Served, release: str, page: Page) -> None:
    link = link_of(served, "whole", release)
    status = page.get_by_role("status")
    for broken in (link[:-1], link.partition("#")[0], f"{link}A"):
        page.goto(broken)
        expect(status).to_contain_text("Open the link as it was sent to you")
    page.goto(link[:-1] + ("A" if link[-1] != "A" else "B"))
    expect(status).to_have_text("This token is not known here. Ask the researcher for another token or link.")
    page.goto("about:blank")
    head, _, token = link.partition("/report#")
    page.goto(f"{head.rpartition('/')[0]}/{'0' * 32}/report#{token}")
    expect(status).to_contain_text("good for one release alone")
    page.goto(link)
    page.locator("figure svg").first.wait_for()
    page.goto(link[:-1])
    expect(status).to_contain_text("Open the link as it was sent to you")


def test_without_a_script_the_page_says_why_it_is_empty(chromium: Browser, served: Served, release: str) -> None:
    with chromium.new_context(ignore_https_errors=True, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(link_of(served, "plain", release))
        expect(page.get_by_role("main")).to_contain_text("This page needs JavaScript")


def test_a_service_that_is_gone_is_said(served: Served, release: str, page: Page) -> None:
    page.goto(link_of(served, "gone", release))
    page.locator("figure svg").first.wait_for()
    page.route("**/v1/**", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("status")).to_have_text("The service does not answer. Try again later.")
