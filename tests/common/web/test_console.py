"""A console of two pages, what it refuses, and what it shows."""

import re
from html import unescape

import pytest

from tests.common.web.browser import OWN_PAGE
from tests.common.web.served_console import PURPOSE, House, house_fixture  # noqa: F401 - fixtures
from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.web.links import check_persons
from veiltab.common.web.sessions import IDLE_SECONDS, TOTAL_SECONDS


def test_a_person_enters_reads_acts_and_leaves(house: House) -> None:
    browser, link = house.browser(), house.link()
    shown = browser.get(link)
    assert shown.status == 200
    assert "Begin as Ana Diaz" in shown.text
    assert house.notebook.lines == []
    ana = house.enter()
    assert house.notebook.lines == ["Ana Diaz came"]
    answer = ana.post("/", {"what": "x"})
    assert (answer.status, answer.headers["location"]) == (303, f"{ana.place}/")
    assert house.done == ["Ana Diaz: x"]
    assert "Done: x" in ana.get("/").text
    assert "Done: x" not in ana.get("/").text
    assert ana.post("/leave", {}).status == 200
    assert ana.get("/").status == 403
    assert house.notebook.lines == ["Ana Diaz came", "Ana Diaz left: signed out"]


def test_the_cookie_goes_to_this_session_alone(house: House) -> None:
    answer = house.browser().post(house.link(), {})
    place = answer.headers["location"]
    name, _, rest = answer.headers["set-cookie"].partition("=")
    secret, *attributes = rest.split("; ")
    assert re.fullmatch(r"veiltab_[0-9a-f]{16}", name)
    assert len(secret) == 43
    assert {one.lower() for one in attributes} == {"httponly", f"path={place}".lower(), "samesite=strict"}
    assert len(place) == 34


@pytest.mark.parametrize(
    "foreign",
    ["foo", "a,b=1", "expires", "path", "=", "", 'q="a', "\x80=\x80", "$Version=1", "veiltab_other=1", "veiltab_"],
)
def test_cookies_of_other_services_change_nothing(house: House, foreign: str) -> None:
    ana = house.enter()
    ((name, secret),) = ana.browser.cookies.values()
    for cookies in (f"{foreign}; {name}={secret}", f"{name}={secret};{foreign}"):
        assert ana.browser.send("GET", f"{ana.place}/", headers={"Cookie": cookies, **OWN_PAGE}).status == 200
    assert ana.browser.send("GET", f"{ana.place}/", headers={"Cookie": foreign, **OWN_PAGE}).status == 403


def test_every_answer_has_the_headers(house: House) -> None:
    ana = house.enter()
    paths = ("/", "/assets/style.css", "/enter?link=x", f"{ana.place}/", f"{ana.place}/kept/a", f"{ana.place}/none")
    for path in paths:
        headers = ana.browser.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
        assert (headers["referrer-policy"], headers["x-frame-options"]) == ("no-referrer", "DENY")
        assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"


def test_texts_of_others_are_shown_and_not_run(house: House) -> None:
    ana = house.enter()
    text = ana.get("/").text
    assert "<script>alert" not in text
    assert "<img" not in text
    shown = re.search(r'<p id="purpose">(.*?)</p>', text)
    assert shown
    assert unescape(shown.group(1)) == re.sub(
        "[\N{RIGHT-TO-LEFT OVERRIDE}\N{HANGUL FILLER}]", "\N{REPLACEMENT CHARACTER}", PURPOSE
    )
    for what in (PURPOSE, "conflict"):
        sent = ana.post("/", {"what": what})
        page = sent if sent.status != 303 else ana.get("/")
        assert "<script>alert" not in page.text
        assert "<b>release" not in page.text
    assert "<script>" not in house.browser().get(house.link("<script>alert(1)</script>")).text


@pytest.mark.parametrize("persons", [[], [""], ["Ana "], ["Ana Díaz", "ana diaz"], ["Ana", "Ana\N{HANGUL FILLER}"]])
def test_persons_who_cannot_be_told_apart_are_refused(persons: list[str]) -> None:
    with refuses(InvalidInputError, where="--person"):
        check_persons(persons)
    check_persons(["Ana Díaz", "Ben Ode"])


def test_a_page_has_no_style_or_script_in_itself(house: House) -> None:
    ana = house.enter()
    for text in (ana.get("/").text, ana.browser.get("/").text, ana.browser.get(house.link()).text):
        assert not re.search(r"<style|<[^>]*\s(?:style|on\w+)=|javascript:|<script(?![^>]*\ssrc=)", text)
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', text)


def test_a_refusal_says_where_what_and_what_next_and_a_fault_says_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    ana = house.enter()
    conflict = ana.post("/", {"what": "conflict"})
    assert conflict.status == 409
    assert "it is decided" in conflict.text
    assert "Look again." in conflict.text
    fault = ana.post("/", {"what": "fault"})
    assert fault.status == 500
    assert "secret" not in fault.text + caplog.text
    incident = re.search(r"incident [0-9a-f]{8}", fault.text)
    assert incident
    assert f"{incident.group()}: ZeroDivisionError at " in caplog.text


def test_of_a_full_disk_the_page_says_so_and_the_log_names_the_file(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    full = house.enter().post("/", {"what": "full"})
    assert full.status == 503
    assert "This party&#39;s disk is full" in full.text
    assert "ledger.sqlite" not in full.text
    assert "secret" not in full.text + caplog.text
    assert "disk is full: ledger.sqlite" in caplog.text


def test_a_session_that_cannot_be_recorded_does_not_begin(house: House) -> None:
    house.notebook.refusal = UnavailableError("this party's disk is full")
    answer = house.browser().post(house.link(), {})
    assert answer.status == 503
    assert "set-cookie" not in answer.headers


def test_a_session_ends_where_nobody_uses_it(house: House) -> None:
    ana, ben = house.enter(), house.enter("Ben Ode")
    house.now += IDLE_SECONDS - 1
    assert ben.get("/").status == 200
    house.now += 1
    assert ana.get("/").status == 403
    assert ben.get("/").status == 200
    assert house.notebook.lines[2:] == ["Ana Diaz left: its time was over"]


def test_a_session_ends_however_much_it_is_used(house: House) -> None:
    ana, ben = house.enter(), house.enter("Ben Ode")
    for _ in range(TOTAL_SECONDS // (IDLE_SECONDS - 1)):
        house.now += IDLE_SECONDS - 1
        assert ana.get("/").status == 200
    house.now += IDLE_SECONDS - 1
    assert ana.get("/").status == 403
    assert ben.get("/").status == 403
    assert sorted(house.notebook.lines[2:]) == ["Ana Diaz left: its time was over", "Ben Ode left: its time was over"]


def test_the_end_of_the_console_ends_its_sessions(house: House) -> None:
    house.enter()
    house.application.end()
    assert house.notebook.lines == ["Ana Diaz came", "Ana Diaz left: the console stopped"]
