"""Reports over HTTPS: the same rules and counts as over gRPC, and nothing for whoever brings no token."""

import asyncio
import errno
import json
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import numpy as np
import pytest

from tests.common.collection.rounds import BAD_PAYLOADS, GOOD_PAYLOADS, ID, OTHER_ID, round_with
from tests.common.collection.rounds import study as poll
from tests.server.collection.test_rounds import SOUTHERN, TOKENS, opened
from veiltab.common.collection.oracles import Category, Report
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import InvalidInputError, kinds
from veiltab.common.rpc.statuses import HTTP_STATUS
from veiltab.deploy.pki.certificates import init_pki
from veiltab.server.https import application as http_application
from veiltab.server.https import http
from veiltab.server.https.application import application
from veiltab.server.https.http import MOST_BESIDE_BODY, bound, server_tls, serving_reports
from veiltab.server.https.json_messages import most_bytes, report_from_json, report_to_json
from veiltab.server.party.serving import _both
from veiltab.server.release.releases import Releases
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import CollectionStore

PATH = f"/v1/rounds/{ID}"
REPORTS = f"{PATH}/reports"
Asked = tuple[int, dict[str, Any]]


@pytest.fixture
def rounds(tmp_path: Path) -> Iterator[RoundKeeper]:
    store = CollectionStore(tmp_path / "state")
    yield RoundKeeper(poll(), store, retention_days=1)
    store.close()


@asynccontextmanager
async def client_of(rounds: RoundKeeper, seconds: float = 20.0) -> AsyncIterator[httpx.AsyncClient]:
    """Connect a client to the application without a network, while the server counts."""
    counting = asyncio.create_task(rounds.run())
    transport = httpx.ASGITransport(app=application(rounds, seconds))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="https://cloud") as client:
            yield client
    finally:
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting


def answers(rounds: RoundKeeper, *requests: tuple[str, str, bytes]) -> list[Asked]:
    """Send (method, path, body) one after the other; return statuses and what the answers say."""

    async def scenario() -> list[Asked]:
        async with client_of(rounds) as client:
            found = [await client.request(method, path, content=body) for method, path, body in requests]
        return [(one.status_code, one.json()) for one in found]

    return asyncio.run(scenario())


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
    spec.randomiser.add_support(GOOD_PAYLOADS[oracle], expected[0])
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


@pytest.mark.parametrize("oracle", BAD_PAYLOADS)
def test_what_no_node_could_have_sent_is_refused(rounds: RoundKeeper, oracle: str) -> None:
    opened(rounds, round_with(oracle))
    bodies = [report_to_json(TOKENS[0], "north", report) for report in BAD_PAYLOADS[oracle].values()]
    assert {reason(one) for one in answers(rounds, *(("POST", REPORTS, body) for body in bodies))} == {
        (400, "INVALID_INPUT")
    }


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


def test_a_body_is_read_no_further_than_a_report_is_long(rounds: RoundKeeper) -> None:
    most, sent = most_bytes(opened(rounds).randomiser), list[int]()

    async def endless() -> AsyncIterator[bytes]:
        for number in range(1000):
            sent.append(number)
            yield bytes(most // 2)

    async def scenario() -> list[httpx.Response]:
        async with client_of(rounds) as client:
            padded = [GOOD.ljust(size) for size in (most + 1, most)]
            answered = [await client.post(REPORTS, content=body) for body in padded]
            return [*answered, await client.post(REPORTS, content=endless())]

    refused, counted, ended = asyncio.run(scenario())
    assert [one.status_code for one in (refused, counted, ended)] == [400, 200, 400]
    assert len(sent) <= 4
    # What is left of a refused request is not waited for.
    assert [one.headers.get("Connection") for one in (refused, counted, ended)] == ["close", None, "close"]


def test_every_refusal_has_a_status() -> None:
    assert set(HTTP_STATUS) <= set(kinds())
    assert HTTP_STATUS.keys() >= {kind for kind in kinds() if kind.reason in {"TOKEN_SPENT", "ROUND_CLOSED", "DENIED"}}


def test_a_body_that_does_not_come_holds_a_place_for_a_while(rounds: RoundKeeper) -> None:
    opened(rounds)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    async def scenario() -> int:
        async with client_of(rounds, seconds=0.05) as client:
            return (await client.post(REPORTS, content=never())).status_code

    assert asyncio.run(scenario()) == 503


def test_one_request_too_many_is_asked_to_come_again(rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(rounds)
    monkeypatch.setattr(http_application, "MOST_UNDER_WAY", 0)

    async def scenario() -> httpx.Response:
        async with client_of(rounds) as client:
            return await client.post(REPORTS, content=GOOD)

    response = asyncio.run(scenario())
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")


def test_bodies_that_do_not_come_take_no_place_of_those_that_come(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(http_application, "MOST_UNDER_WAY", 1)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    async def scenario() -> list[int]:
        async with client_of(rounds, seconds=0.2) as client, asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(client.post(REPORTS, content=never()))
            await asyncio.sleep(0.01)
            bodies = [report_to_json(token, "north", Category(symbol=7)) for token in TOKENS[:2]]
            return [(await client.post(REPORTS, content=body)).status_code for body in bodies]

    assert asyncio.run(scenario()) == [200, 200]


def test_an_incident_keeps_its_text_to_itself(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened(rounds)

    def fail(_: object) -> None:
        raise RuntimeError("the value is 7")

    monkeypatch.setattr(rounds._store, "record", fail)
    with caplog.at_level(logging.INFO):
        status, message = answers(rounds, ("POST", REPORTS, GOOD))[0]
    assert status == 500
    assert "incident" in message["error"]["problem"]
    assert "the value" not in json.dumps(message) + caplog.text


def test_a_full_disk_is_said_to_nodes_and_its_file_to_the_log(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened(rounds)

    def fail(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "rounds.sqlite")

    monkeypatch.setattr(rounds._store, "record", fail)
    status, message = answers(rounds, ("POST", REPORTS, GOOD))[0]
    assert (status, message["error"]["problem"]) == (503, "this party's disk is full")
    assert "rounds.sqlite" not in json.dumps(message)
    assert "disk is full: rounds.sqlite" in caplog.text


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    """The folder of the server's certificate."""
    init_pki(poll(), tmp_path / "pki")
    return tmp_path / "pki" / "server-cloud"


def on_a_port(rounds: RoundKeeper, identity: Path, ask: Callable[[int], None]) -> None:
    """Serve real TLS while another thread asks."""

    async def scenario() -> None:
        counting = asyncio.create_task(rounds.run())
        listener = bound("127.0.0.1:0")
        tls = server_tls(identity / "cloud.pem", identity / "cloud.key")
        async with serving_reports(rounds, listener, tls):
            await asyncio.to_thread(ask, listener.getsockname()[1])
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting

    before = threading.active_count()
    asyncio.run(scenario())
    assert threading.active_count() <= before + 1


def test_connections_begin_with_tls_of_today_and_are_not_known_again(identity: Path) -> None:
    tls = server_tls(identity / "cloud.pem", identity / "cloud.key")
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (tls.num_tickets, bool(tls.options & ssl.OP_NO_TICKET), tls.verify_mode) == (0, True, ssl.CERT_NONE)


def test_a_client_without_a_certificate_reports_over_tls(rounds: RoundKeeper, identity: Path) -> None:
    opened(rounds)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))

    def ask(port: int) -> None:
        with httpx.Client(verify=trusting, base_url=f"https://localhost:{port}") as client:
            for token in TOKENS[:3]:
                body = report_to_json(token, "north", Category(symbol=7))
                assert client.post(REPORTS, content=body).json() == {"counted": True}
            # Neither are requests added up, nor is a body a part of what may stand beside it.
            found = [client.get(PATH) for _ in range(MOST_BESIDE_BODY // 80)]
            assert {one.status_code for one in found} == {200}
            assert "server" not in found[0].headers  # whoever attacks it learns no version
            assert client.post(REPORTS, content=bytes(MOST_BESIDE_BODY + 1000)).status_code == 400
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}{PATH}")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://localhost:{port}{PATH}")  # does not trust the study's authority

    on_a_port(rounds, identity, ask)
    assert rounds.status(ID, "rosa").reports == (3, 0)


def test_only_processes_of_one_server_share_a_port() -> None:
    with bound("127.0.0.1:0", shared=True) as first:
        address = f"127.0.0.1:{first.getsockname()[1]}"
        with bound(address, shared=True) as second:
            assert second.getsockname() == first.getsockname()
        with pytest.raises(InvalidInputError, match="cannot be bound"):
            bound(address)
    with bound("127.0.0.1:0") as alone, pytest.raises(InvalidInputError, match="cannot be bound"):
        bound(f"127.0.0.1:{alone.getsockname()[1]}", shared=True)


SILENT: dict[str, tuple[bytes, bytes]] = {
    "half of the headers": (b"POST / HTTP/1.1\r\nHost:", b""),
    "a refused body whose rest does not come": (
        f"POST /v1/rounds/{OTHER_ID}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode(),
        b"x",
    ),
    "a byte after an answer": (f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), b"G"),
}


@pytest.mark.parametrize("what", SILENT)
def test_who_says_no_more_loses_the_connection(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    opened(rounds)
    monkeypatch.setattr(http, "SECONDS", 0.05)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    first, then = SILENT[what]

    def ask(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
            trusting.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(first)
            with suppress(ConnectionError, ssl.SSLError):  # closed, in whichever way
                if then:
                    assert connection.recv(65_536).startswith(b"HTTP/1.1 ")
                    connection.sendall(then)
                while connection.recv(65_536):
                    pass

    on_a_port(rounds, identity, ask)


def test_a_client_has_time_for_its_request_after_the_handshake(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(http, "_HANDSHAKE_SECONDS", 0.05)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))

    def ask(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            socket.create_connection(("127.0.0.1", port), timeout=10) as silent,
            trusting.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            with suppress(ConnectionError):  # closed, in whichever way
                assert silent.recv(1) == b""
            connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert connection.recv(15) == b"HTTP/1.1 200 OK"

    on_a_port(rounds, identity, ask)


FLOODS: dict[str, tuple[str, str]] = {
    "headers": (f"GET {PATH} HTTP/1.1\r\nHost: x\r\n", f"X: {'x' * 1000}\r\n"),
    "a header that does not end": (f"GET {PATH} HTTP/1.1\r\nHost: ", "x" * 1000),
    "trailers": (f"POST {REPORTS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: x\r\n" * 200),
    "a chunk whose size does not end": (
        f"POST {REPORTS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        "x" * 1000,
    ),
}


@pytest.mark.parametrize("what", FLOODS)
def test_who_sends_much_beside_a_body_loses_the_connection(rounds: RoundKeeper, identity: Path, what: str) -> None:
    opened(rounds)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    first, more = FLOODS[what]

    def ask(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            trusting.wrap_socket(plain, server_hostname="localhost") as connection,
            suppress(ConnectionError, ssl.SSLError),  # closed, in whichever way
        ):
            connection.sendall(first.encode())
            for _ in range(2 * http.MOST_BESIDE_BODY // 1000):
                connection.sendall(more.encode())
            assert connection.recv(65_536) == b""

    on_a_port(rounds, identity, ask)


def test_who_does_not_wait_for_an_answer_gets_no_further_one(rounds: RoundKeeper, identity: Path) -> None:
    opened(rounds)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    answers = bytearray()

    def ask(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            trusting.wrap_socket(plain, server_hostname="localhost") as connection,
            suppress(ConnectionError, ssl.SSLError),
        ):
            connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 100)
            while piece := connection.recv(65_536):
                answers.extend(piece)

    on_a_port(rounds, identity, ask)
    assert answers.count(b"HTTP/1.1 ") <= 1


def test_connections_that_begin_no_handshake_keep_nobody_out(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 5)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))

    def ask(port: int) -> None:
        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            with httpx.Client(verify=trusting, base_url=f"https://localhost:{port}") as client:
                content = report_to_json(TOKENS[0], "north", Category(symbol=7))
                assert client.post(REPORTS, content=content).status_code == 200

    on_a_port(rounds, identity, ask)


def recording_waits(rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let reports wait while they are recorded; return what says that one has begun, and what lets them end."""
    begun, may_end, record = threading.Event(), threading.Event(), rounds._store.record

    def slow(arrivals: Any) -> Any:  # noqa: ANN401 - those of the store
        begun.set()
        assert may_end.wait(10)
        return record(arrivals)

    monkeypatch.setattr(rounds._store, "record", slow)
    return begun, may_end


def test_a_request_on_one_connection_too_many_is_refused(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 2)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    begun, may_end = recording_waits(rounds, monkeypatch)

    def report(port: int, token: bytes) -> int:
        with httpx.Client(verify=trusting, base_url=f"https://localhost:{port}") as client:
            return client.post(REPORTS, content=report_to_json(token, "north", Category(symbol=7))).status_code

    def ask(port: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(report, port, TOKENS[0])
            assert begun.wait(10)
            assert report(port, TOKENS[1]) == 503
            may_end.set()
            assert first.result() == 200
        assert report(port, TOKENS[1]) == 200

    on_a_port(rounds, identity, ask)


def test_reports_that_are_being_counted_are_answered_when_the_server_ends(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    begun, may_end = recording_waits(rounds, monkeypatch)

    def ask(port: int) -> httpx.Response:
        with httpx.Client(verify=trusting, base_url=f"https://localhost:{port}") as client:
            return client.post(REPORTS, content=report_to_json(TOKENS[0], "north", Category(symbol=7)))

    async def scenario() -> httpx.Response:
        listener, tls = bound("127.0.0.1:0"), server_tls(identity / "cloud.pem", identity / "cloud.key")
        releases = cast("Releases", SimpleNamespace(run=asyncio.Event().wait))
        working = asyncio.create_task(_both(releases, rounds, serving_reports(rounds, listener, tls)))
        asking = asyncio.create_task(asyncio.to_thread(ask, listener.getsockname()[1]))
        await asyncio.to_thread(begun.wait, 10)
        working.cancel()
        asyncio.get_running_loop().call_later(0.1, may_end.set)
        with suppress(asyncio.CancelledError):
            await working
        return await asking

    assert asyncio.run(scenario()).status_code == 200
