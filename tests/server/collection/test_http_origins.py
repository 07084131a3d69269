"""Pages of one site may report if the operator names it; those of every other are refused before anything counts."""

import httpx
import pytest

from tests.common.collection.rounds import ID, report_to_json
from tests.conftest import refuses
from tests.server.collection.https_reports import PATH, REPORTS, client_of, rounds_fixture  # noqa: F401 - a fixture
from tests.server.collection.test_rounds import TOKENS, opened
from tests.worlds.loops import blocking
from veiltab.common.collection.oracles import Category
from veiltab.common.errors import InvalidInputError
from veiltab.common.web.http_options import http_options
from veiltab.server.rounds.rounds import RoundKeeper

SITE = "https://poll.example.org"
GOOD = report_to_json(TOKENS[0], "north", Category(symbol=7))
SHOWN = "access-control-allow-origin"


@blocking
async def asked(rounds: RoundKeeper, allowed: str, *origins: str | None) -> list[tuple[httpx.Response, httpx.Response]]:
    """Describe the round and report, as pages of some origins: a header for each line, and none of None."""
    async with client_of(rounds, origin=allowed) as client:
        headers = [[] if lines is None else [("Origin", one) for one in lines.split("\n")] for lines in origins]
        return [
            (await client.get(PATH, headers=one), await client.post(REPORTS, content=GOOD, headers=one))
            for one in headers
        ]


def test_other_sites_are_refused_and_spend_no_token(rounds: RoundKeeper) -> None:
    opened(rounds)
    others = ("https://evil.example.org", "null", f"{SITE}.evil.org", f"{SITE}:444", SITE.replace("https", "http"), "")
    several = (f"{SITE}\nnull", f"null\n{SITE}")
    for described, reported in asked(rounds, SITE, *others, *several):
        for one in (described, reported):
            assert (one.status_code, one.json()["error"]["reason"]) == (403, "DENIED")
            assert one.headers[SHOWN] == SITE  # so that a browser shows it to no other
    assert rounds.status(ID, "rosa").reports == (0, 0)
    ((described, reported),) = asked(rounds, SITE, SITE)
    assert (described.status_code, reported.status_code) == (200, 200)
    assert {one.headers[SHOWN] for one in (described, reported)} == {SITE}
    assert {one.headers["vary"] for one in (described, reported)} == {"origin"}


def test_programs_that_are_no_browsers_report_as_before(rounds: RoundKeeper) -> None:
    opened(rounds)
    ((described, reported),) = asked(rounds, SITE, None)
    assert (described.status_code, reported.status_code) == (200, 200)


def test_without_the_option_no_origin_may_read(rounds: RoundKeeper) -> None:
    opened(rounds)
    ((described, reported),) = asked(rounds, "", SITE)
    assert (described.status_code, reported.status_code) == (200, 200)
    assert not [name for one in (described, reported) for name in one.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "poll.example.org",
        "http://poll.example.org",
        f"{SITE}/",
        f"{SITE}/page",
        "https://POLL.example.org",
        f"{SITE} https://other.org",
        f"{SITE}\r\nx: y",
        "http://localhost.evil.org",
    ],
)
def test_what_is_no_origin_over_https_is_refused(origin: str) -> None:
    with refuses(InvalidInputError, where="allow-origin") as refused:
        http_options("7443", None, None, origin)
    assert "http://localhost:PORT" in refused.value.remedy


@pytest.mark.parametrize("origin", [SITE, f"{SITE}:8443", "http://localhost:8000", "http://127.0.0.1"])
def test_origins_over_https_and_of_a_trial_are_taken(origin: str) -> None:
    options = http_options("7443", None, None, origin)
    assert options is not None
    assert options.origin == origin


def test_an_origin_needs_an_address() -> None:
    with refuses(InvalidInputError, where="--http"):
        http_options(None, None, None, SITE)
