"""Reports over HTTPS: the same rules and counts as over gRPC, and nothing for whoever brings no token."""

import asyncio
import errno
import json
import logging
from collections.abc import AsyncIterator
from unittest.mock import Mock

import numpy as np
import pytest

from tests.common.collection.rounds import (
    GOOD_PAYLOADS,
    ID,
    OTHER_ID,
    report_to_json,
    round_with,
    support_of,
)
from tests.server.collection.https_reports import PATH, REPORTS, Asked, answers, client_of, rounds_fixture  # noqa: F401 - fixtures
from tests.server.collection.test_rounds import SOUTHERN, TOKENS, opened
from veiltab.common.collection.oracles import Category, Report
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import kinds
from veiltab.common.rpc.statuses import HTTP_STATUS
from veiltab.server.https import application as http_application
from veiltab.server.https.json_messages import most_bytes, report_from_json
from veiltab.server.rounds.rounds import RoundKeeper


def reason(asked: Asked) -> tuple[int, str]:
    """Return the status of a refusal and its reason."""
    return asked[0], asked[1]["error"]["reason"]


@pytest.mark.parametrize("oracle", GOOD_PAYLOADS)
def test_a_report_is_counted_as_over_grpc(rounds: RoundKeeper, oracle: str) -> None:
    spec = opened(rounds, round_with(oracle))
    body = report_to_json(TOKENS[0], "north", GOOD_PAYLOADS[oracle])
    again = report_to_json(TOKENS[0], "north", GOOD_PAYLOADS[oracle])
    first, second = answers(rounds, ("POST", REPORTS, body), ("POST", REPORTS, again))
    assert first == (200, {"counted": True})
    assert reason(second) == (409, "TOKEN_SPENT")
    expected = np.zeros((2, 20), "<i8")
    expected[0][support_of(spec.randomiser, GOOD_PAYLOADS[oracle])] += 1
    rounds.close_round(ID, "rosa")
    assert rounds.counts(ID, "rosa") == expected.tobytes()


@pytest.mark.parametrize("report", GOOD_PAYLOADS.values())
def test_json_says_what_the_protocol_says(report: Report) -> None:
    one = report_from_json(report_to_json(TOKENS[0], "north", report))
    assert (one.token, one.stratum) == (TOKENS[0], "north")
    assert one.report == report == report_from_proto(report_to_proto(ID, TOKENS[0], "north", report))


@pytest.mark.parametrize("oracle", GOOD_PAYLOADS)
def test_the_length_of_a_report_does_not_depend_on_what_it_says(oracle: str) -> None:
    randomiser = round_with(oracle).randomiser
    rng = np.random.default_rng(1)
    reports = [randomiser.randomise(int(rng.integers(20)), SystemSource()) for _ in range(200)]
    lengths = {len(report_to_json(TOKENS[0], "north", report)) for report in reports}
    assert len(set(map(repr, reports))) > 1
    assert len(lengths) == 1
    assert max(lengths) <= most_bytes(randomiser)


def test_a_round_is_described_without_a_certificate(rounds: RoundKeeper) -> None:
    spec = opened(rounds)
    ((status, message),) = answers(rounds, ("GET", PATH, b""))
    assert status == 200
    assert message["state"] == "open"
    told = message["round"]
    assert {name: int(value) for name, value in told["parameters"].items()} == dict(spec.parameters)
    assert all(isinstance(value, str) for value in told["parameters"].values())  # 2^64 is none of JavaScript's numbers
    assert told | {"parameters": 0} == json.loads(spec.to_json()) | {"parameters": 0}


def test_what_the_researcher_signed_is_told_beside_the_round(rounds: RoundKeeper) -> None:
    said = {"text": "t", "signature": "00", "certificate": "c"}
    rounds.open_round(round_with(), "rosa", json.dumps(said))
    assert answers(rounds, ("GET", f"{PATH}/signed", b"")) == [(200, said)]


GOOD = report_to_json(TOKENS[0], "north", Category(symbol=7))


BAD: dict[str, tuple[bytes, int, str]] = {
    "no body": (b"", 400, "INVALID_INPUT"),
    "no JSON": (b"{", 400, "INVALID_INPUT"),
    "no UTF-8": (b'{"token": "\xff"}', 400, "INVALID_INPUT"),
    "another encoding": (GOOD.decode().encode("utf-16"), 400, "INVALID_INPUT"),
    "a deep nest": (b"[" * 900, 400, "INVALID_INPUT"),
    "a list": (b"[]", 400, "INVALID_INPUT"),
    "a field too few": (b'{"token": "' + b"0" * 32 + b'", "stratum": "north"}', 400, "INVALID_INPUT"),
    "a field too many": (GOOD[:-1] + b', "x": 1}', 400, "INVALID_INPUT"),
    "a field twice": (GOOD[:-1] + b', "stratum": "south"}', 400, "INVALID_INPUT"),
    "a token that is a number": (GOOD.replace(b'"' + TOKENS[0].hex().encode() + b'"', b"1"), 400, "INVALID_INPUT"),
    "a short token": (GOOD.replace(b"01010101", b"0101", 1), 400, "INVALID_INPUT"),
    "capital digits": (GOOD.replace(b"00000007", b"0000000A"), 400, "INVALID_INPUT"),
    "a category without zeros": (GOOD.replace(b"00000007", b"07"), 400, "INVALID_INPUT"),
    "a category that is a number": (GOOD.replace(b'"00000007"', b"7"), 400, "INVALID_INPUT"),
    "a category too many": (GOOD.replace(b"00000007", b"00000014"), 400, "INVALID_INPUT"),
    "two payloads": (GOOD.replace(b'{"category"', b'{"bits": "00", "category"'), 400, "INVALID_INPUT"),
    "another oracle's payload": (report_to_json(TOKENS[0], "north", GOOD_PAYLOADS["oue"]), 400, "INVALID_INPUT"),
    "a body beyond the round's": (GOOD + b" " * 2000, 400, "INVALID_INPUT"),
    "another stratum": (GOOD.replace(b"north", b"south"), 403, "DENIED"),
    "no such stratum": (GOOD.replace(b"north", b"<b>"), 400, "INVALID_INPUT"),
    "a token of nobody": (GOOD.replace(b"01", b"aa"), 403, "DENIED"),
    "a token of the other stratum": (report_to_json(SOUTHERN, "north", Category(symbol=7)), 403, "DENIED"),
}


def test_what_is_no_report_is_refused_and_nothing_counts(rounds: RoundKeeper) -> None:
    opened(rounds)
    *found, good = answers(rounds, *(("POST", REPORTS, body) for body, _, _ in BAD.values()), ("POST", REPORTS, GOOD))
    assert dict(zip(BAD, map(reason, found), strict=True)) == {
        what: (status, expected) for what, (_, status, expected) in BAD.items()
    }
    for _, message in found:  # nothing of what was sent comes back
        assert not {"<b>", TOKENS[0].hex(), SOUTHERN.hex()} & set(json.dumps(message).replace("\\", '"').split('"'))
    assert good[0] == 200
    assert rounds.status(ID, "rosa").reports == (1, 0)


def test_other_paths_and_methods_and_closed_rounds_are_refused(rounds: RoundKeeper) -> None:
    opened(rounds)
    rounds.close_round(ID, "rosa")
    *found, closed = answers(
        rounds,
        ("GET", "/", b""),
        ("GET", f"/v1/rounds/{OTHER_ID}", b""),
        ("POST", f"/v1/rounds/{OTHER_ID}/reports", b"x" * 10_000_000),
        ("GET", "/v1/rounds/..%2f..%2fetc", b""),
        ("GET", f"{PATH}/more", b""),
        ("POST", f"{REPORTS}/more", GOOD),
        ("GET", REPORTS, b""),
        ("DELETE", PATH, b""),
        ("POST", REPORTS, GOOD),
    )
    assert [status for status, _ in found] == [404, 404, 404, 404, 404, 404, 405, 405]
    assert reason(closed) == (410, "ROUND_CLOSED")


async def test_a_body_is_read_no_further_than_a_report_is_long(rounds: RoundKeeper) -> None:
    most, sent = most_bytes(opened(rounds).randomiser), list[int]()

    async def endless() -> AsyncIterator[bytes]:
        for number in range(1000):
            sent.append(number)
            yield bytes(most // 2)

    async with client_of(rounds) as client:
        padded = [GOOD.ljust(size) for size in (most + 1, most)]
        refused, counted = [await client.post(REPORTS, content=body) for body in padded]
        ended = await client.post(REPORTS, content=endless())
    assert [one.status_code for one in (refused, counted, ended)] == [400, 200, 400]
    assert len(sent) <= 4
    # What is left of a refused request is not waited for.
    assert [one.headers.get("Connection") for one in (refused, counted, ended)] == ["close", None, "close"]


def test_every_refusal_has_a_status() -> None:
    assert set(HTTP_STATUS) <= set(kinds())
    assert HTTP_STATUS.keys() >= {kind for kind in kinds() if kind.reason in {"TOKEN_SPENT", "ROUND_CLOSED", "DENIED"}}


async def never() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.sleep(3600)


async def test_a_body_that_does_not_come_holds_a_place_for_a_while(rounds: RoundKeeper) -> None:
    opened(rounds)
    async with client_of(rounds, seconds=0.05) as client:
        assert (await client.post(REPORTS, content=never())).status_code == 503


async def test_one_request_too_many_is_asked_to_come_again(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(http_application, "MOST_UNDER_WAY", 0)
    async with client_of(rounds) as client:
        response = await client.post(REPORTS, content=GOOD)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")


async def test_bodies_that_do_not_come_take_no_place_of_those_that_come(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(http_application, "MOST_UNDER_WAY", 1)
    async with client_of(rounds, seconds=0.2) as client, asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(client.post(REPORTS, content=never()))
        await asyncio.sleep(0.01)
        bodies = [report_to_json(token, "north", Category(symbol=7)) for token in TOKENS[:2]]
        assert [(await client.post(REPORTS, content=body)).status_code for body in bodies] == [200, 200]


def test_an_incident_keeps_its_text_to_itself(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened(rounds)

    monkeypatch.setattr(rounds._store, "record", Mock(side_effect=RuntimeError("the value is 7")))
    with caplog.at_level(logging.INFO):
        status, message = answers(rounds, ("POST", REPORTS, GOOD))[0]
    assert status == 500
    assert "incident" in message["error"]["problem"]
    assert "the value" not in json.dumps(message) + caplog.text


def test_a_full_disk_is_said_to_nodes_and_its_file_to_the_log(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened(rounds)

    full = OSError(errno.ENOSPC, "No space left on device", "rounds.sqlite")
    monkeypatch.setattr(rounds._store, "record", Mock(side_effect=full))
    status, message = answers(rounds, ("POST", REPORTS, GOOD))[0]
    assert (status, message["error"]["problem"]) == (503, "this party's disk is full")
    assert "rounds.sqlite" not in json.dumps(message)
    assert "disk is full: rounds.sqlite" in caplog.text
