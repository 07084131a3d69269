"""Answers say what the Python client says; what is refused is refused before work, and others are served."""

import asyncio
import copy
import io
import threading
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.researcher.api.asking import OWN, Program, made_program
from tests.researcher.made_client import CHARGED_STUDY, COUNTS, WAGES, MadeClient, N, statuses
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.common.web.answering import MOST_BODY
from veiltab.researcher.api.application import DESCRIPTION, MOST_OF_A_TOKEN, MOST_UNDER_WAY, MOST_WAITING
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.client.release import Release
from veiltab.researcher.microdata.provenance import WARNING, Provenance
from veiltab.researcher.status.release_status import Status


def of_wages(program: Program) -> Release:
    return program.made.release(WAGES)


def test_a_table_has_the_numbers_of_the_frame_in_every_format(reader: Program) -> None:
    frame = of_wages(reader).frame()
    cells = pd.DataFrame(reader.ask("/v1/releases/wages/table").json()["rows"])
    asked = {kind: reader.ask(f"/v1/releases/wages/table?format={kind}") for kind in ("csv", "parquet", "arrow")}
    frames = {
        "json": cells,
        "csv": pd.read_csv(io.BytesIO(asked["csv"].content)),
        "parquet": pd.read_parquet(io.BytesIO(asked["parquet"].content)),
        "arrow": pa.ipc.open_stream(asked["arrow"].content).read_pandas(),
    }
    for kind, found in frames.items():
        for name in ("estimate", "se", "low", "high", "projected"):
            np.testing.assert_array_equal(found[name], frame[name], err_msg=f"{kind} {name}")
    assert asked["arrow"].headers["content-type"] == "application/vnd.apache.arrow.stream"


def test_sdmx_has_codes_of_the_codebook(reader: Program) -> None:
    found = pd.read_csv(io.BytesIO(reader.ask("/v1/releases/wages/table?format=sdmx-csv").content))
    book = reader.ask("/v1/releases/wages/codebook").json()
    ids = [one["id"] for one in book["dimensions"]]
    numbers = ["OBS_VALUE", "SE", "LOW", "HIGH", "PROJECTED"]
    assert list(found.columns) == ["STRUCTURE", "STRUCTURE_ID", "ACTION", *ids, *numbers]
    frame = of_wages(reader).frame()
    np.testing.assert_array_equal(found["OBS_VALUE"], frame["estimate"])
    for dimension in book["dimensions"]:
        names = {code["id"]: code["name"] for code in dimension["codes"]}
        assert [names[one] for one in found[dimension["id"]]] == list(frame[dimension["attribute"]])


def test_an_analysis_is_that_of_the_client(reader: Program) -> None:
    answer = reader.ask("/v1/releases/wages/analysis?question=share+of+salary+given+sex").json()
    assert answer["title"] == "share of salary given sex"
    frame = of_wages(reader).frame()
    shares = frame["estimate"].to_numpy().reshape(2, 2)
    estimates = [row["estimate"] for row in answer["rows"]]
    np.testing.assert_allclose(estimates, (shares / shares.sum(axis=1, keepdims=True)).ravel())
    total = reader.ask("/v1/releases/wages/analysis", params={"question": "total of sex=f, sex=m"}).json()
    assert sum(row["estimate"] for row in total["rows"]) == pytest.approx(N)
    both = reader.ask("/v1/releases/wages/analysis?question=mean+of+salary+and+sex")
    assert (both.status_code, both.json()["title"]) == (400, "INVALID_INPUT")


def test_wrong_links_are_undone_where_a_program_asks_for_it(reader: Program) -> None:
    address = "/v1/releases/wages/table"
    plain = reader.ask(address).json()
    assert "links" not in plain
    assert reader.ask(address, params={"linkage_error": "none"}).json() == plain
    found = reader.ask(address, params={"linkage_error": "0.1:0.01"}).json()
    expected = of_wages(reader).estimate(linkage_error="0.1:0.01").raw
    assert [cell["estimate"] for cell in found["rows"]] == expected.tolist()
    assert found["links"][0].startswith("Corrected for wrong links: of the links with bob a share of 0.1")
    asked = {"question": "share of salary given sex", "linkage_error": "0.1:0"}
    shares = reader.ask("/v1/releases/wages/analysis", params=asked).json()
    assert any(remark.startswith("Corrected for wrong links") for remark in shares["remarks"])
    assert [one["covered"] for one in (plain, found, shares)] == [True, False, False]
    whole = expected.reshape(2, 2)
    for row, share in zip(shares["rows"], (whole / whole.sum(axis=1, keepdims=True)).ravel(), strict=True):
        assert row["estimate"] == pytest.approx(share)
        assert row["low"] < row["estimate"] < row["high"]
    for text in ("5%", "estimated", "/etc/passwd"):
        refused = reader.ask(address, params={"linkage_error": text})
        assert (refused.status_code, refused.json()["title"]) == (400, "INVALID_INPUT")


def test_people_who_are_absent_are_left_out_or_shown(tmp_path: Path) -> None:
    study = study_from_bytes(CHARGED_STUDY.replace(b"complete = true\n", b""), "study.toml")
    counts = {**COUNTS, WAGES: (5000, 2000, 3000, 2000, 4000, 4000)}
    lacking = MadeClient(study=study, releases_known=(lacking_wages(study),), counts=counts)
    reader = next(made_program(tmp_path, made=lacking)).with_scopes(Scope.READ)
    left_out = reader.ask("/v1/releases/wages/table").json()
    assert left_out["codebook"]["salary"] == ["low", "high"]
    assert left_out["remarks"][0].startswith("n = 20,000 rows of alice; about ")
    assert sum(row["estimate"] for row in left_out["rows"]) == pytest.approx(1)
    shown = reader.ask("/v1/releases/wages/table?absent=shown").json()
    assert shown["codebook"]["salary"] == ["low", "high", "absent"]
    assert shown["remarks"] == []
    people = sum(row["estimate"] for row in shown["rows"] if row["labels"]["salary"] != "absent")
    for row in left_out["rows"]:
        (same,) = (other for other in shown["rows"] if other["labels"] == row["labels"])
        assert row["estimate"] == pytest.approx(same["estimate"] / people)
        assert row["estimate_rows"] == pytest.approx(same["estimate_rows"])
    asked = {"question": "share of salary by sex"}
    rows = [
        reader.ask("/v1/releases/wages/analysis", params=asked | more).json()["rows"]
        for more in ({}, {"absent": "left-out"}, {"absent": "shown"})
    ]
    assert (rows[0], [len(some) for some in rows]) == (rows[1], [4, 4, 6])
    refused = reader.ask("/v1/releases/wages/table?absent=counted")
    assert (refused.status_code, refused.json()["title"]) == (400, "INVALID_INPUT")
    assert "about " in reader.ask("/v1/releases/wages/report").text


def lacking_wages(study: Study) -> Status:
    """Return the release of wages where bob may lack people of alice."""
    (wages, *_) = statuses(study)
    assert wages.spec is not None
    sizes = {"sex": 2, "salary": 3}
    columns = tuple(replace(one, size=sizes[one.attribute]) for one in wages.spec.columns)
    return replace(wages, spec=replace(wages.spec, columns=columns))


def test_releases_come_in_pages(reader: Program) -> None:
    every = [one["release"]["id"] for one in reader.ask("/v1/releases").json()["releases"]]
    assert len(every) == 5
    found, path = list[str](), "/v1/releases?limit=2"
    while path:
        answer = reader.ask(path)
        found += [one["release"]["id"] for one in answer.json()["releases"]]
        assert (answer.json()["next"] is None) == ("link" not in answer.headers)
        path = answer.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert found == every
    for limit in ("0", "101", "x"):
        assert reader.ask(f"/v1/releases?limit={limit}").status_code == 400
    assert reader.ask("/v1/releases?after=nix").status_code == 400


def test_what_has_not_changed_is_not_sent_again(reader: Program) -> None:
    first = reader.ask("/v1/releases/wages/table")
    tag = first.headers["etag"]
    again = reader.ask("/v1/releases/wages/table", headers={"If-None-Match": f'"other", W/{tag}'})
    assert reader.ask("/v1/releases/wages/table", headers={"If-None-Match": "*"}).status_code == 304
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = reader.ask("/v1/releases/wages/table?confidence=.9", headers={"If-None-Match": tag})
    assert other.status_code == 200
    head = reader.ask("/v1/releases/wages/table", "HEAD")
    assert (head.content, head.headers["etag"]) == (b"", tag)
    assert int(head.headers["content-length"]) == len(first.content)


def test_a_request_reaches_the_client_as_it_was_written(program: Program) -> None:
    program.with_scopes(Scope.REQUEST)
    body = {"attributes": ["sex", "salary"], "epsilon": "0.5", "delta": "1e-6", "purpose": "<b>", "sampling": "server"}
    answer = program.ask("/v1/releases", "POST", json=body)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/releases/{answer.json()['release']['id']}"
    (asked,) = program.made.asked
    assert {name: str(getattr(value, "value", value)) for name, value in asked.items()} == {
        "attributes": "('sex', 'salary')",
        "epsilon": "0.5",
        "delta": "0.000001",
        "purpose": "<b>",
        "sampling": "server",
    }


BODIES: list[tuple[dict[str, Any], int]] = [
    ({"content": b"{", "headers": {"Content-Type": "application/json"}}, 400),
    ({"content": b"[" * 5000, "headers": {"Content-Type": "application/json"}}, 400),
    ({"content": b"\xff", "headers": {"Content-Type": "application/json"}}, 400),
    ({"content": b'{"epsilon": "1", "epsilon": "2"}', "headers": {"Content-Type": "application/json"}}, 400),
    ({"json": ["epsilon"]}, 400),
    ({"json": {"epsilon": 0.5}}, 400),
    ({"json": {"epsilon": "NaN"}}, 400),
    ({"json": {"epsilon": "1", "lifetime_seconds": True}}, 400),
    ({"json": {}}, 400),
    ({"json": {"epsilon": "1", "self": 1}}, 400),
    ({"json": {"epsilon": "1" * MOST_BODY}}, 413),
    ({"data": {"epsilon": "1"}}, 415),
    ({"content": b'{"epsilon": "1"}', "headers": {"Content-Type": "text/plain"}}, 415),
    ({"json": {"epsilon": "1"}, "headers": {"Origin": "https://elsewhere.example"}}, 403),
    ({"json": {"epsilon": "1"}, "headers": [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "none")]}, 403),
    ({"json": {"epsilon": "1"}, "params": {"epsilon": "1"}}, 400),
]


@pytest.mark.parametrize(("sent", "status"), BODIES)
def test_other_bodies_ask_for_nothing(program: Program, sent: dict[str, Any], status: int) -> None:
    program.with_scopes(Scope.REQUEST)
    assert program.ask("/v1/releases", "POST", **copy.deepcopy(sent)).status_code == status
    assert program.made.asked == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/releases/nix", 404),
        ("/v1/releases/wages/nix", 404),
        ("/v1/../v1/study", 200),
        ("/v1/releases/..%2F..%2Fetc%2Fpasswd", 404),
        ("/v1/releases/wages/table?attributes=nix", 400),
        ("/v1/releases/wages/table?nix=1", 400),
        ("/v1/releases/wages/table?confidence=1", 400),
        ("/v1/releases/wages/table?confidence=.9&confidence=.8", 400),
        ("/v1/releases/wages/table?format=xls", 400),
        ("/v1/releases/wages/table?attributes=%ff", 400),
        ("/v1/releases/wages/analysis?question=logistic+salary~", 400),
        ("/v1/plan?epsilon=1", 400),
        ("/v1/plan?shape=nix&epsilon=1", 400),
        ("/v1/releases?" + "&".join(["after=a"] * 200), 400),
        ("/etc/passwd", 404),
        ("/", 404),
    ],
)
def test_other_addresses_are_refused_in_words(reader: Program, path: str, status: int) -> None:
    answer = reader.ask(path)
    assert answer.status_code == status
    assert status == 200 or answer.json()["detail"]


def test_a_release_that_waits_has_no_table(reader: Program) -> None:
    answer = reader.ask(f"/v1/releases/{3:032x}/table?attributes=sex")
    assert (answer.status_code, answer.json()["title"], answer.headers["retry-after"]) == (503, "NOT_READY", "5")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "POST"])
def test_other_methods_are_refused(reader: Program, method: str) -> None:
    answer = reader.ask("/v1/study", method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_without_a_token_nothing_but_the_description_is_said(program: Program) -> None:
    assert program.ask(DESCRIPTION).json()["openapi"] == "3.1.0"
    for path in ("/v1/study", "/v1/releases/wages", "/v1/nix", "/"):
        assert program.ask(path).status_code == 401
    for header in ("Basic cm9zYTpyb3Nh", "Bearer", "Bearer x", "bearer vt-00000000-" + "A" * 43, "Token"):
        assert program.ask("/v1/study", headers={"Authorization": header}).status_code == 401
    assert program.made.calls == []


@pytest.mark.parametrize(("certificate", "status"), [(OWN, 200), (b"another party's", 401)])
async def test_the_partys_own_certificate_is_enough(program: Program, certificate: bytes, status: int) -> None:
    assert await asked(program, "/v1/study", state={"client_certificate": certificate}) == status


def test_an_analyst_cannot_ask_for_releases(tmp_path: Path) -> None:
    for program in made_program(tmp_path, Role.ANALYST):
        program.with_scopes(*Scope)
        assert "post" not in program.ask(DESCRIPTION).json()["paths"]["/v1/releases"]
        assert program.ask("/v1/releases", "POST", json={"epsilon": "1"}).status_code == 405


def test_too_many_at_a_time_are_told_to_come_again(reader: Program) -> None:
    reader.api._places.count = MOST_UNDER_WAY
    answer = reader.ask("/v1/study")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    reader.api._places.count -= 1
    assert reader.ask("/v1/study").status_code == 200


def test_microdata_say_their_seed_and_leave_no_file(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.with_scopes(Scope.MICRODATA)
    asked = {"rows": 100, "seed": "a\r\nSet-Cookie: b", "attributes": ["sex", "age"]}
    answer = program.ask("/v1/releases/linked/microdata", params=asked)
    assert answer.status_code == 200
    assert answer.headers["veiltab-seed"] == "a%0D%0ASet-Cookie%3A%20b"
    assert answer.headers["veiltab-warning"] == WARNING
    monkeypatch.setattr(Provenance, "remark", "Some pairs are lost.")
    answer = program.ask("/v1/releases/linked/microdata", params=asked)
    assert answer.headers["veiltab-warning"] == f"{WARNING} Some pairs are lost."
    assert "set-cookie" not in answer.headers
    assert len(pd.read_csv(io.BytesIO(answer.content))) == 100
    again = program.ask("/v1/releases/linked/microdata", params=asked)
    assert again.content == answer.content
    parquet = program.ask("/v1/releases/linked/microdata", params=asked | {"format": "parquet"})
    assert len(pd.read_parquet(io.BytesIO(parquet.content))) == 100
    copies = pd.read_csv(io.BytesIO(program.ask("/v1/releases/linked/microdata", params=asked | {"copies": 2}).content))
    assert list(copies["copy"]) == [1] * 100 + [2] * 100
    assert program.ask("/v1/releases/linked/microdata?rows=2000001").status_code == 400
    assert program.ask("/v1/releases/linked/microdata?rows=1000001&copies=2").status_code == 400
    monkeypatch.undo()


def test_an_unexpected_failure_says_nothing_of_its_values(reader: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(reader.made), "releases", Mock(side_effect=RuntimeError("secret 4711")))
    answer = reader.ask("/v1/releases")
    assert answer.status_code == 500
    assert "4711" not in answer.text
    assert "incident" in answer.json()["detail"]
    assert reader.ask("/v1/study").status_code == 200


async def test_those_who_wait_keep_nobody_from_an_answer(reader: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    over, plain = threading.Event(), MadeClient.status

    def slow(self: MadeClient, name: str, *, seconds: float = 0.0) -> Status:
        assert not seconds or over.wait(30)
        return plain(self, name)

    monkeypatch.setattr(MadeClient, "status", slow)
    transport, headers = httpx.ASGITransport(reader.api), {"Authorization": f"Bearer {reader.token}"}
    async with httpx.AsyncClient(transport=transport, base_url="https://desk", headers=headers) as client:
        path = f"/v1/releases/{3:032x}?wait=30"
        bearers = [{"Authorization": f"Bearer {reader.with_scopes(Scope.READ).token}"} for _ in range(MOST_WAITING)]
        waiting = [asyncio.create_task(client.get(path, headers=one)) for one in bearers]
        while reader.api._waiting.count < MOST_WAITING:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.01)
        assert (await client.get(path)).json()["release"]["state"] == "requested"
        assert (await client.get("/v1/study")).status_code == 200
        assert not any(one.done() for one in waiting)
        over.set()
        assert {one.status_code for one in await asyncio.gather(*waiting)} == {200}


def test_no_more_is_computed_than_a_service_has_room_for(program: Program) -> None:
    program.with_scopes(Scope.MICRODATA)
    answer = program.ask("/v1/releases/linked/microdata?rows=1000000&replicates=100")
    assert (answer.status_code, answer.json()["where"]) == (400, "rows")


async def asked(
    program: Program, path: str, token: str = "", *, leaves: asyncio.Event | None = None, **scope: object
) -> int:
    """Ask, with a token if there is one; return the status. The client leaves once the event is set."""
    sent: list[Any] = []
    requests = [{"type": "http.request", "body": b""}]

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        if not requests:
            await (leaves or asyncio.Event()).wait()
        return requests.pop() if requests else {"type": "http.disconnect"}

    headers = [(b"authorization", b"Bearer " + token.encode())] if token else []
    scope |= {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    await program.api(scope, receive, send)
    return int(sent[0]["status"])


async def test_a_greedy_token_keeps_no_other_from_an_answer(reader: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    over, plain = threading.Event(), Release.estimate

    def slow(self: Release, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - of the product
        assert over.wait(30)
        return plain(self, *given, **more)

    monkeypatch.setattr(Release, "estimate", slow)
    greedy, other = reader.token, reader.with_scopes(Scope.READ).token
    report, leave = f"/v1/releases/{WAGES}/report", asyncio.Event()
    asking = [asyncio.create_task(asked(reader, report, greedy, leaves=leave)) for _ in range(3 * MOST_OF_A_TOKEN)]
    await asyncio.sleep(0.2)
    assert [one.result() for one in asking if one.done()] == [503] * 2 * MOST_OF_A_TOKEN
    assert await asyncio.wait_for(asked(reader, f"/v1/releases/{WAGES}/codebook", other), 10) == 200
    assert await asked(reader, "/v1/study", greedy) == 503
    leave.set()
    await asyncio.wait(asking, timeout=10)
    assert reader.api._places.count == 0, "whose client left has no place"
    assert await asyncio.wait_for(asked(reader, "/v1/study", greedy), 10) == 200
    over.set()


def test_a_report_is_made_once_for_all_who_ask(reader: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()

    def page(*_: object) -> str:
        made.append(f"<p>{len(made)}</p>")
        return made[-1]

    monkeypatch.setattr("veiltab.researcher.api.handlers.report_page", page)
    first = reader.ask(f"/v1/releases/{WAGES}/report").text
    assert reader.with_scopes(Scope.READ).ask(f"/v1/releases/{WAGES}/report").text == first
    assert made == [first]


def test_who_spends_or_takes_is_in_the_log(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    program.with_scopes(Scope.READ, Scope.MICRODATA, Scope.REQUEST)
    program.ask("/v1/study")
    program.ask("/v1/releases/linked/microdata?rows=10&attributes=sex")
    program.ask("/v1/releases", "POST", json={"epsilon": "1"})
    lines = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert lines == ["token t0: getMicrodata", "token t0: askForRelease"]


@pytest.mark.parametrize(
    "body",
    [b'{"epsilon": "1", "lifetime_seconds": ' + b"9" * 4200 + b"}", b'{"epsilon": "1", "label": "\\ud800"}'],
)
def test_values_that_no_protocol_carries_are_refused(program: Program, body: bytes) -> None:
    program.with_scopes(Scope.REQUEST)
    answer = program.ask("/v1/releases", "POST", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, program.made.asked) == (400, [])


@pytest.mark.parametrize("epsilon", ["1e999", "1e99", "1e-24", "1e-999", "1e-13", "1e13", "0", "1e-12", "1e12"])
def test_no_number_breaks_a_plan(reader: Program, epsilon: str) -> None:
    plan = {"attributes": "sex", "population": "1000", "epsilon": epsilon}
    assert reader.ask("/v1/plan", params=plan).status_code in {200, 400}


@pytest.mark.parametrize(
    ("accept", "form", "status"),
    [
        ("text/csv", "json", 406),
        ("application/json", "csv", 406),
        ("application/json;q=0.9, text/csv", "csv", 200),
        ("text/*", "csv", 200),
        ("*/*", "parquet", 200),
        ("application/vnd.sdmx.data+csv", "sdmx-csv", 200),
    ],
)
def test_accept_says_what_may_come(reader: Program, accept: str, form: str, status: int) -> None:
    answer = reader.ask("/v1/releases/wages/table", params={"format": form}, headers={"Accept": accept})
    assert answer.status_code == status


def test_what_accept_leaves_out_is_not_asked_for(program: Program) -> None:
    program.with_scopes(Scope.REQUEST)
    sent = program.ask("/v1/releases", "POST", json={"epsilon": "1"}, headers={"Accept": "text/csv"})
    assert (sent.status_code, program.made.asked) == (406, [])
