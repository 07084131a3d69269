"""A link's token reads one release alone; the page that uses it says nothing of any and runs one script."""

import base64
import hashlib
import re
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from tests.researcher.api.asking import Program
from tests.researcher.made_client import FAILED, LINKED, WAGES, WAITING, MadeClient
from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError, NotReadyError, VeiltabError
from veiltab.researcher.api.report_link import report_link
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.cli import researcher
from veiltab.researcher.client.client import Client
from veiltab.researcher.report.microdata_page import render
from veiltab.researcher.report.presentation import card_of, microdata_report, report_page

PAGE = f"/releases/{WAGES}/report"
WRITTEN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def with_link(program: Program, release: str, *scopes: Scope) -> Program:
    """Take a token of one release."""
    program.token = program.tokens.add("board", frozenset(scopes or {Scope.READ}), 1, release)[1]
    return program


@pytest.mark.parametrize("release", [WAGES, LINKED])
def test_a_link_reads_the_report_that_the_command_writes(program: Program, release: str) -> None:
    answer = with_link(program, release).ask(f"/v1/releases/{release}/report")
    client = cast("Client", program.made)
    known, study = client.release(release), client.study
    if release == WAGES:
        written = report_page(study, known.status(), known.estimate())
    else:
        written = render(microdata_report(study, known.synthesise(seed="report"), card_of(known.status())))
    assert WRITTEN.sub("", answer.text) == WRITTEN.sub("", written)
    assert "script-src" not in answer.headers["content-security-policy"]


def test_a_token_of_one_release_reads_that_release(program: Program) -> None:
    with_link(program, WAGES)
    for what in ("", "/table", "/codebook", "/analysis?question=sex"):
        assert program.ask(f"/v1/releases/{WAGES}{what}").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/study",
        "/v1/plan?attributes=sex&population=100&epsilon=1",
        "/v1/releases",
        f"/v1/releases/{LINKED}",
        f"/v1/releases/{LINKED}/report",
        f"/v1/releases/{WAITING}",
        f"/v1/releases/{'0' * 32}",
        f"/v1/releases/{WAGES[:-1]}",
        f"/v1/releases/{WAGES}0",
        "/v1/releases/wages",
        "/v1/releases/",
        f"/v1/releases/{LINKED}/microdata",
        f"/v1/releases/{LINKED}/certificate",
    ],
)
def test_and_no_other_whatever_its_scopes(program: Program, path: str) -> None:
    before = list(program.made.calls)
    assert with_link(program, WAGES, *Scope).ask(path).status_code in {403, 404}
    assert program.made.calls == before, "it was refused before the researcher's service was asked"
    assert program.ask("/v1/releases", "POST", json={"epsilon": "1"}).status_code == 403
    assert program.made.asked == []


def test_a_release_that_is_there_is_refused_as_one_that_is_not(program: Program) -> None:
    with_link(program, WAGES)
    there, not_there = (program.ask(f"/v1/releases/{one}").json() for one in (LINKED, "0" * 32))
    assert there == not_there
    assert there["remedy"]


def test_a_link_of_microdata_alone_gives_no_report(program: Program) -> None:
    with_link(program, LINKED, Scope.MICRODATA)
    assert program.ask(f"/v1/releases/{LINKED}/report").status_code == 403
    assert program.ask(f"/v1/releases/{LINKED}/microdata?rows=10&attributes=sex&attributes=age").status_code == 200


def test_a_link_ends_as_every_token_does(program: Program) -> None:
    with_link(program, WAGES)
    program.tokens.revoke("board")
    answer = program.ask(f"/v1/releases/{WAGES}/report")
    assert (answer.status_code, answer.json()["detail"]) == (401, "the token is revoked")
    assert answer.json()["remedy"]
    program.token = program.tokens.add("later", frozenset({Scope.READ}), 1, WAGES)[1]
    program.now[0] += 86_400
    answer = program.ask(f"/v1/releases/{WAGES}/report")
    assert (answer.status_code, answer.json()["detail"]) == (401, "the token is expired")
    assert {one.release for one in program.tokens.all()} == {WAGES}


def test_the_page_is_the_same_for_every_release_and_asks_nobody(program: Program) -> None:
    page = program.ask(PAGE)
    for path in (f"/releases/{LINKED}/report", f"/releases/{'0' * 32}/report", "/releases/nobody/report"):
        assert program.ask(path).content == page.content
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert program.ask(PAGE, headers=elsewhere).content == page.content, "the link stands in a mail's page"
    assert program.ask(PAGE, "HEAD").status_code == 200
    assert program.made.calls == []
    assert program.ask(PAGE, "POST").status_code == 401
    for path in (f"/releases/{WAGES}/report/", f"/releases/{WAGES}", f"/releases/{WAGES}/table", "/releases//report"):
        assert program.ask(path).status_code == 401


def test_a_browser_runs_the_page_s_own_script_alone_and_sends_its_address_to_nobody(program: Program) -> None:
    page = program.ask(PAGE)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = dict(one.strip().split(" ", 1) for one in page.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "connect-src": "'self'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert page.headers["referrer-policy"] == "no-referrer"
    assert not re.search(r'(?:src|href|action)="(?!data:)', page.text)


def test_a_link_has_its_token_where_no_browser_sends_it() -> None:
    address = report_link("https://rosa.example.org:7480", WAGES, "vt-x")
    assert address == f"https://rosa.example.org:7480{PAGE}#vt-x"


@pytest.mark.parametrize(
    ("words", "error", "where"),
    [
        (("--release", "nobody"), NotFoundError, "release"),
        (("--release", WAITING), NotReadyError, f"release {WAITING}"),
        (("--release", FAILED), DeniedError, f"release {FAILED}"),
        (("--release", WAGES, "--at", "https://Rosa.example.org/"), InvalidInputError, "--at"),
        (("--release", WAGES, "--at", "rosa.example.org"), InvalidInputError, "--at"),
        (("--release", WAGES, "--label", "For the board"), InvalidInputError, "--label"),
        (("--release", WAGES, "--days", "0"), InvalidInputError, "--days"),
    ],
)
def test_a_link_that_would_open_nothing_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], error: type[VeiltabError], where: str
) -> None:
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(MadeClient()))
    common = ("study.toml", "--identity", str(tmp_path), "--state", str(tmp_path), "--label", "board")
    ran = CliRunner().invoke(
        researcher, ["token", "add", *common, "--at", "https://rosa.example.org", *words], standalone_mode=False
    )
    assert isinstance(ran.exception, error)
    assert ran.exception.where == where
    listed = CliRunner().invoke(researcher, ["token", "list", "--state", str(tmp_path)], standalone_mode=False)
    assert isinstance(listed.exception, NotFoundError) or listed.output == "No tokens yet.\n"
