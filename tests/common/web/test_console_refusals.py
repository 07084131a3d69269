"""What a console refuses, and links that open it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

import pytest

from tests.common.web.browser import HOST, OWN_PAGE, Guest, enter_by, link_of, path_of
from tests.common.web.served_console import House, house_fixture  # noqa: F401 - fixtures
from veiltab.common.errors import NotReadyError
from veiltab.common.web.links import LINK_SECONDS
from veiltab.common.web.sessions import IDLE_SECONDS, TOTAL_SECONDS

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("end", ["signed out", "idle", "eight hours"])
def test_a_form_that_comes_after_the_end_of_its_session_does_nothing(house: House, end: str) -> None:
    ana = house.enter()
    body = f"form_token={ana.token()}&what=x".encode()

    def parts() -> Iterator[bytes]:
        yield body[:-1]
        if end == "signed out":
            assert thread_of(lambda: ana.post("/leave", {}).status) == 200
        house.now += {"signed out": 0, "idle": IDLE_SECONDS, "eight hours": TOTAL_SECONDS}[end]
        yield body[-1:]

    headers = {**OWN_PAGE, "Content-Type": FORM, "Content-Length": str(len(body))}
    answer = ana.browser.send("POST", f"{ana.place}/", headers=headers, body=parts())
    assert (answer.status, house.done) == (403, [])
    assert "You have no session here" in answer.text
    assert "<nav" not in answer.text


def thread_of(function: Callable[[], int]) -> int:
    """Return what a function returns that needs an event loop of its own."""
    with ThreadPoolExecutor() as threads:
        return threads.submit(function).result()


@dataclass(frozen=True)
class Bad:
    """A request to be refused.

    Args:
        status: of the answer.
        method: of HTTP.
        path: "{place}" stands for the session, "{token}" for its form token, "{other}" for another session's.
        body: as `path`.
        headers: besides those of the console's own page; None takes one away.
        cookie: whether the session's cookie is sent.
    """

    status: int
    method: str = "POST"
    path: str = "{place}/"
    body: str | list[bytes] | Iterator[bytes] = "form_token={token}&what=x"
    headers: dict[str, str | None] = field(default_factory=dict)
    cookie: bool = True


def _get(status: int, path: str = "{place}/", **changes: object) -> Bad:
    return Bad(status, method="GET", path=path, body="", **changes)  # type: ignore[arg-type]


BAD = {
    "no link": _get(403, "/enter"),
    "an invented link": Bad(403, path="/enter?link=" + "A" * 43, body=""),
    "two links": _get(403, "/enter?link=a&link=b"),
    "a link in no text": _get(400, "/enter?link=%ff"),
    "a page below the entrance": _get(403, "/enter/x?link=a"),
    "no session": _get(403, "/"),
    "no session, sent": Bad(403, path="/", cookie=False),
    "an invented place": _get(403, "/" + "A" * 32 + "/"),
    "no cookie": _get(403, cookie=False),
    "no cookie, sent": Bad(403, cookie=False),
    "another session's cookie": Bad(403, path="{other_place}/"),
    "a cookie that cannot be read": _get(403, cookie=False, headers={"Cookie": '\x80=;;="\\x;$Path=1'}),
    "an empty cookie": _get(403, cookie=False, headers={"Cookie": "{cookie_name}="}),
    "an oversized cookie": _get(431, headers={"Cookie": "a=" + "b" * 20_000}),
    "many headers": _get(431, headers={f"X-{number}": "y" * 50 for number in range(400)}),
    "another host": _get(421, headers={"Host": "rebound.example:8000"}),
    "another host, sent": Bad(421, headers={"Host": "rebound.example:8000"}),
    "a host by another name": _get(421, headers={"Host": "localhost:8000"}),
    "another host's asset": _get(421, "/assets/style.css", headers={"Host": "rebound.example"}),
    "another origin": Bad(403, headers={"Origin": "https://elsewhere.example", "Sec-Fetch-Site": None}),
    "another origin that says it is the same site": Bad(403, headers={"Origin": "http://127.0.0.1:9999"}),
    "the origin by https": Bad(403, headers={"Origin": f"https://{HOST}"}),
    "two origins, its own first": Bad(403, headers={"Origin": f"http://{HOST}\nhttps://elsewhere.example"}),
    "two sites, its own first": _get(403, headers={"Sec-Fetch-Site": "same-origin\ncross-site"}),
    "another site": Bad(403, headers={"Sec-Fetch-Site": "cross-site"}),
    "another port of this machine": Bad(403, headers={"Sec-Fetch-Site": "same-site"}),
    "typed by hand": Bad(403, headers={"Sec-Fetch-Site": "none"}),
    "nothing about its origin": Bad(403, headers={"Sec-Fetch-Site": None, "Origin": None}),
    "an opaque origin alone": Bad(403, headers={"Sec-Fetch-Site": None, "Origin": "null"}),
    "a page asked for by another site": _get(403, headers={"Sec-Fetch-Site": "cross-site"}),
    "no form token": Bad(403, body="what=x"),
    "a wrong form token": Bad(403, body="form_token=" + "A" * 43 + "&what=x"),
    "another session's form token": Bad(403, body="form_token={other}&what=x"),
    "a form token in the address": Bad(403, path="{place}/?form_token={token}", body="what=x"),
    "a form token in a header": Bad(403, body="what=x", headers={"X-Csrf-Token": "{token}"}),
    "a form token that is no ASCII": Bad(403, body="form_token=%E2%82%AC&what=x"),
    "leaving without a form token": Bad(403, path="{place}/leave", body=""),
    "leaving by a link": _get(404, "{place}/leave"),
    "10 MB": Bad(413, body=[b"what=" + b"x" * 1_000_000] * 10),
    "10 MB without a session": Bad(413, path="/", body=[b"x" * 1_000_000] * 10, cookie=False),
    "64 KiB and a byte": Bad(413, body=[b"x" * (64 * 1024 + 1)]),
    "a body without end": Bad(411, body=repeat(b"a"), headers={"Transfer-Encoding": "chunked"}),
    "a length and a body without end": Bad(411, headers={"Transfer-Encoding": "chunked"}),
    "a length that is no number": Bad(400, headers={"Content-Length": "ten"}),
    "too many fields": Bad(400, body="form_token={token}&" + "&".join(f"f{number}=" for number in range(101))),
    "bytes that are no text": Bad(400, body=[b"form_token=\xff\xfe&what=x"]),
    "escapes that are no text": Bad(400, body="form_token={token}&what=%ff%fe"),
    "a control character": Bad(400, body="form_token={token}&what=%00"),
    "an escape sequence": Bad(400, body="form_token={token}&what=%1b%5b2J"),
    "a field given twice": Bad(400, body="form_token={token}&what=x&what=y"),
    "no fields": Bad(400, body="nothing"),
    "JSON": Bad(415, body='{{"what": "x"}}', headers={"Content-Type": "application/json"}),
    "plain text": Bad(415, headers={"Content-Type": "text/plain"}),
    "several parts": Bad(415, headers={"Content-Type": "multipart/form-data; boundary=x"}),
    "no type": Bad(415, headers={"Content-Type": None}),
    "a page asked for with a body": _get(400, headers={"Content-Length": "5"}),
    "a page asked for with a body of no length": _get(400, headers={"Transfer-Encoding": "chunked"}),
    "a body longer than it says": Bad(400, body=repeat(b"a" * 1000), headers={"Content-Length": "9"}),
    "PUT": Bad(405, method="PUT"),
    "an invented method": Bad(405, method="FETCH"),
    "a method in small letters": Bad(405, method="post"),
    "a form for a page that takes none": Bad(405, path="{place}/kept/a"),
    "a page that is not there": _get(404, "{place}/none"),
    "a page below a page": _get(404, "{place}/kept/a/b"),
    "a query that cannot be read": _get(400, "{place}/?%ff"),
    "an asset that is not there": _get(404, "/assets/none.css"),
    "a file above the assets": _get(404, "/assets/../application.py"),
    "a file above the assets, escaped": _get(404, "/assets/%2e%2e%2fapplication.py"),
    "a template": _get(404, "/assets/%2e%2e/templates/base.html"),
    "a form for an asset": Bad(404, path="/assets/style.css"),
    "a long address": _get(414, "{place}/?a=" + "b" * 5000),
}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, Guest, Guest]:
    house = House(tmp_path_factory.mktemp("console"))
    return house, house.enter(), house.enter("Ben Ode")


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_refused_and_changes_nothing(crowd: tuple[House, Guest, Guest], name: str) -> None:
    bad, (house, ana, ben) = BAD[name], crowd
    ((cookie_name, _),) = ana.browser.cookies.values()
    known = {
        "place": ana.place,
        "token": ana.token(),
        "other_place": ben.place,
        "other": ben.token(),
        "cookie_name": cookie_name,
    }
    browser = ana.browser if bad.cookie else house.browser()
    body = [bad.body.format_map(known).encode()] if isinstance(bad.body, str) else bad.body
    wanted: dict[str, str | None] = dict(bad.headers)
    if bad.method != "GET":
        length = str(sum(map(len, body))) if isinstance(body, list) else None
        wanted = {**OWN_PAGE, "Content-Type": FORM, "Content-Length": length, **bad.headers}
    headers = {name: value.format_map(known) for name, value in wanted.items() if value is not None}
    answer = browser.send(bad.method, bad.path.format_map(known), headers=headers, body=body)
    assert answer.status == bad.status, answer.text
    assert "set-cookie" not in answer.headers
    assert house.done == []
    assert house.notebook.lines == ["Ana Diaz came", "Ben Ode came"]
    # Whoever was there is still there.
    assert ana.get("/").status == ben.get("/").status == 200


@pytest.mark.parametrize("path", ["/", "/kept/a", "/none"])
def test_a_reader_sees_pages_and_sends_nothing(house: House, path: str) -> None:
    link = link_of(house.application, "Eva Roth", decides=False)
    assert "You may read everything in it, and decide nothing." in house.browser().get(link).text
    eva = enter_by(house.application, link)
    assert "Eva Roth (reads)" in eva.get("/").text
    assert eva.get("/kept/a").status == 200
    token = eva.token()
    answer = eva.browser.post(f"{eva.place}{path}", {"form_token": token, "what": "x"})
    assert (answer.status, answer.is_body_read, house.done) == (403, False, [])
    assert "lets you decide and send nothing" in answer.text
    assert eva.get("/").status == 200
    assert eva.post("/leave", {}).status == 200
    assert eva.get("/").status == 403
    assert house.notebook.lines == ["Eva Roth came to read", "Eva Roth left: signed out"]


def test_a_link_that_a_command_leaves_begins_a_session_beside_the_others(house: House) -> None:
    ana = house.enter()
    with house.links.opened(HOST):
        ben, eva = (path_of(house.links.leave(name, decides=name == "Ben Ode")) for name in ("Ben Ode", "Eva Roth"))
        assert "Begin as Ben Ode" in house.browser().get(ben).text
        assert enter_by(house.application, ben).post("/", {"what": "x"}).status == 303
        assert enter_by(house.application, eva).post("/", {"what": "x"}).status == 403
        assert house.browser().post(ben, {}).status == house.browser().post(eva, {}).status == 403
    assert house.done == ["Ben Ode: x"]
    assert ana.get("/").status == 200


def test_only_a_console_that_runs_gets_links_and_none_of_an_earlier_one(house: House) -> None:
    with pytest.raises(NotReadyError, match="no console runs on this state folder"):
        house.links.leave("Ana Diaz", decides=True)
    with house.links.opened(HOST):
        link = path_of(house.links.leave("Ana Diaz", decides=True))
    with pytest.raises(NotReadyError, match="no console runs on this state folder"):
        house.links.leave("Ana Diaz", decides=True)
    with house.links.opened(HOST):
        assert house.browser().get(link).status == 403
        assert path_of(house.links.leave("Ana Diaz", decides=True)) != link


def test_a_link_is_left_as_a_digest_in_a_folder_of_its_owner_alone(house: House) -> None:
    folder = house.folder / "state" / "console"
    with house.links.opened(HOST):
        token = house.links.leave("Ana Diaz", decides=True).partition("link=")[2]
        assert folder.stat().st_mode & 0o077 == 0
        assert token not in "".join(path.name + path.read_text() for path in folder.iterdir())


def test_a_link_works_once(house: House) -> None:
    link = house.link()
    assert house.browser().post(link, {}).status == 303
    assert house.browser().post(link, {}).status == house.browser().get(link).status == 403
    assert house.notebook.lines == ["Ana Diaz came"]


def test_a_link_works_for_ten_minutes_also_one_that_a_command_leaves(house: House) -> None:
    with house.links.opened(HOST):
        early, late = ((house.link(), path_of(house.links.leave("Ana Diaz", decides=True))) for _ in range(2))
        house.now += LINK_SECONDS - 1
        assert [house.browser().post(link, {}).status for link in early] == [303, 303]
        house.now += 1
        assert [house.browser().post(link, {}).status for link in late] == [403, 403]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
def test_a_link_is_used_by_its_own_page_alone(house: House, site: str | None) -> None:
    link = house.link()
    answer = house.browser().post(link, {}, headers={} if site is None else {"Sec-Fetch-Site": site})
    assert answer.status == 403
    assert house.browser().post(link, {}).status == 303


@pytest.mark.parametrize("path", ["/", "/enter?link=x", "/" + "A" * 32 + "/", "{place}/"])
def test_nothing_is_read_of_a_body_before_the_session_is_known(house: House, path: str) -> None:
    answer = house.browser().post(path.format(place=house.enter().place), {"what": "x"})
    assert answer.status == 403
    assert not answer.is_body_read
