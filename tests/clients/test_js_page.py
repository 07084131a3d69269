"""People answer on the page of the JavaScript client, in a real browser, at a real server that allows its origin."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.conftest import Eye
from tests.clients.test_js import Served, sum_of
from tests.protocol.polling import Asked, made_poll
from tests.protocol.world import CLOUD
from veiltab.play.local.processes import free_ports

NODES = 20

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serve files; yield the origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.fixture(scope="module")
def origin(client: Path) -> Iterator[str]:
    if shutil.which("chromium") is None:
        pytest.skip("no chromium here; on Debian: apt-get install chromium")
    with site(client) as found:
        yield found


@pytest.fixture(scope="module")
def served(origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    poll = made_poll(tmp_path_factory.mktemp("poll") / "study", budget="100")
    (port,) = free_ports(1)
    poll.local.options[CLOUD] = ("--http", f"localhost:{port}", "--advanced", f"allow-origin={origin}")
    with poll.local:
        poll.start()
        yield Served(poll=poll, url=f"https://localhost:{port}")


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Browser]:
    """A browser; it starts after the server, whose start needs a loop of its own."""
    assert served.url
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield found
        found.close()


def asked_on_page(
    served: Served, client: Path, *, oracle: str = "krr", rate: str = "1", authority: str = "ca.pem"
) -> Asked:
    """Open a round, and write the question beside the page.

    Args:
        authority: what the page takes for its certificate, of the server's files.
    """
    asked = served.poll.opened(NODES, oracle=oracle, rate=rate)
    question = {
        "server": served.url,
        "round": asked.spec.round_id,
        "study_digest": asked.spec.study_digest,
        "question": asked.spec.question,
        "text": "Which number is yours?",
        "categories": [str(number) for number in range(1, 21)],
        "budget_epsilon": "100",
        "share_epsilon": "100",
        "study": served.poll.local.study.id,
        "authority": served.ca.with_name(authority).read_text("ascii"),
    }
    (client / "page" / "question.json").write_text(dumps(question))
    return asked


def opened(browser: Browser, origin: str, token: str) -> Page:
    """Open the page as a person with a device of their own; the study's authority stands for a public one."""
    return loaded(browser.new_context(ignore_https_errors=True), origin, token)


def loaded(context: BrowserContext, origin: str, token: str) -> Page:
    """Open the page in a tab of a device."""
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{origin}/page/index.html#token={token}&stratum=north")
    return page


def test_twenty_people_count_once_each_and_a_reload_changes_nothing(
    browser: Browser, served: Served, client: Path, origin: str, tmp_path: Path
) -> None:
    asked, eye, sent = asked_on_page(served, client, oracle="ss"), Eye(folder=tmp_path), list[str]()
    for number, token in enumerate(asked.tokens["north"]):
        page = opened(browser, origin, token.hex())
        page.get_by_label("7", exact=True).check()
        if number == 0:
            eye.look_at(page, "question")
        # Every second one loses the connection before the message leaves, and loads the page again.
        is_cut = number % 2 == 1
        context = page.context
        context.set_offline(is_cut)
        page.get_by_role("button", name="Add noise and send").click()
        message = page.locator("#message")
        expect(message).to_contain_text("subset")
        expect(page.locator("#meaning")).to_contain_text("You chose “7”. The message speaks for “")
        body = message.inner_text()
        if is_cut:
            expect(page.get_by_role("status")).to_contain_text("on its way")
            assert sum(asked.reports()) == number
            # In a tab that is closed first, the message cannot leave before the page is loaded again.
            page.close()
            context.set_offline(False)
            page = loaded(context, origin, token.hex())
            expect(page.locator("#message")).to_have_text(body)
        expect(page.get_by_role("status")).to_have_text("Your message was counted. Thank you.")
        if number == 0:
            eye.look_at(page, "sent")
        # Another reload sends nothing, and asks nothing.
        page.reload()
        expect(page.get_by_role("status")).to_have_text("Your message was counted. Thank you.")
        expect(page.get_by_role("button")).to_have_count(0)
        sent.append(body)
        page.context.close()
    assert asked.reports() == [NODES, 0]
    assert asked.counts() == sum_of(asked, sent)


def test_a_coin_that_says_nothing_sends_nothing(browser: Browser, served: Served, client: Path, origin: str) -> None:
    asked = asked_on_page(served, client, rate="0.000000000000000001")
    page = opened(browser, origin, asked.tokens["north"][0].hex())
    page.get_by_label("7", exact=True).check()
    page.get_by_role("button", name="Add noise and send").click()
    expect(page.locator("#meaning")).to_contain_text("nothing is sent")
    expect(page.get_by_role("status")).to_contain_text("You are done")
    assert asked.reports() == [0, 0]
    page.context.close()


def test_a_round_that_the_study_s_authority_does_not_vouch_for_is_not_asked(
    browser: Browser, served: Served, client: Path, origin: str
) -> None:
    asked = asked_on_page(served, client, authority="cloud.pem")
    page = opened(browser, origin, asked.tokens["north"][0].hex())
    expect(page.get_by_role("status")).to_contain_text("Researcher rosa did not sign this round")
    assert not page.locator("#form").is_visible()
    page.context.close()


def test_a_link_without_a_token_says_so(browser: Browser, served: Served, client: Path, origin: str) -> None:
    asked_on_page(served, client)
    page = browser.new_context(ignore_https_errors=True).new_page()
    page.goto(f"{origin}/page/index.html")
    expect(page.get_by_role("status")).to_have_text("Your link has no token. Open the whole link that you were sent.")
    page.context.close()


def test_pages_of_another_origin_neither_read_nor_report(browser: Browser, served: Served, client: Path) -> None:
    asked = asked_on_page(served, client)
    url, token = f"{served.url}/v1/rounds/{asked.spec.round_id}", asked.tokens["north"][0].hex()
    body = dumps({"token": token, "stratum": "north", "report": {"category": "00000007"}})
    ask = "async ([url, how]) => { try { return (await fetch(url, how)).status } catch (error) { return error.name } }"
    with site(client) as hostile:
        page = opened(browser, hostile, token)
        assert page.evaluate(ask, [url, {}]) == "TypeError"
        assert page.evaluate(ask, [f"{url}/reports", {"method": "POST", "body": body}]) == "TypeError"
        # A browser sends this one and shows no answer; the token is not spent all the same.
        assert page.evaluate(ask, [f"{url}/reports", {"method": "POST", "body": body, "mode": "no-cors"}]) == 0
        page.context.close()
    assert asked.reports() == [0, 0]
