"""What a connection for reports may do: TLS, time, size, number."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.common.collection.rounds import ID, OTHER_ID, report_to_json
from tests.common.collection.rounds import study as poll
from tests.server.collection.https_reports import PATH, REPORTS, rounds_fixture  # noqa: F401 - fixtures
from tests.server.collection.opened_rounds import running
from tests.server.collection.test_rounds import TOKENS, opened
from veiltab.common.collection.oracles import Category
from veiltab.common.errors import InvalidInputError
from veiltab.common.web import answering
from veiltab.common.web import serving as listening
from veiltab.common.web.serving import MOST_BESIDE_BODY, bound, server_tls, serving
from veiltab.deploy.pki.certificates import init_pki
from veiltab.server.https.application import Reports
from veiltab.server.party.collecting import Collecting
from veiltab.server.rounds.rounds import RoundKeeper


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    """The folder of the server's certificate."""
    init_pki(poll(), tmp_path / "pki")
    return tmp_path / "pki" / "server-cloud"


@contextmanager
def connected(port: int, identity: Path) -> Iterator[ssl.SSLSocket]:
    """Connect over TLS and trust the study's authority."""
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        trusting.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        yield connection


def client_of(port: int, identity: Path) -> httpx.Client:
    return httpx.Client(
        verify=ssl.create_default_context(cafile=str(identity / "ca.pem")), base_url=f"https://localhost:{port}"
    )


def on_a_port(rounds: RoundKeeper, identity: Path, ask: Callable[[int], None]) -> None:
    """Serve real TLS while another thread asks."""

    async def scenario() -> None:
        listener = bound("127.0.0.1:0")
        tls = server_tls(identity / "cloud.pem", identity / "cloud.key")
        async with running(rounds), serving(Reports(rounds), listener, tls):
            await asyncio.to_thread(ask, listener.getsockname()[1])

    before = threading.active_count()
    asyncio.run(scenario())
    assert threading.active_count() <= before + 1


def test_connections_begin_with_tls_of_today_and_are_not_known_again(identity: Path) -> None:
    tls = server_tls(identity / "cloud.pem", identity / "cloud.key")
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (tls.num_tickets, bool(tls.options & ssl.OP_NO_TICKET), tls.verify_mode) == (0, True, ssl.CERT_NONE)


def test_a_client_without_a_certificate_reports_over_tls(rounds: RoundKeeper, identity: Path) -> None:
    opened(rounds)

    def ask(port: int) -> None:
        with client_of(port, identity) as client:
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
    monkeypatch.setattr(listening, "SECONDS", 0.05)
    first, then = SILENT[what]

    def ask(port: int) -> None:
        with connected(port, identity) as connection:
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
    monkeypatch.setattr(listening, "_HANDSHAKE_SECONDS", 0.05)

    def ask(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as silent,
            connected(port, identity) as connection,
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
    first, more = FLOODS[what]

    def ask(port: int) -> None:
        with (
            connected(port, identity) as connection,
            suppress(ConnectionError, ssl.SSLError),  # closed, in whichever way
        ):
            connection.sendall(first.encode())
            for _ in range(2 * MOST_BESIDE_BODY // 1000):
                connection.sendall(more.encode())
            assert connection.recv(65_536) == b""

    on_a_port(rounds, identity, ask)


def test_who_does_not_wait_for_an_answer_gets_no_further_one(rounds: RoundKeeper, identity: Path) -> None:
    opened(rounds)
    answers = bytearray()

    def ask(port: int) -> None:
        with connected(port, identity) as connection, suppress(ConnectionError, ssl.SSLError):
            connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 100)
            while piece := connection.recv(65_536):
                answers.extend(piece)

    on_a_port(rounds, identity, ask)
    assert answers.count(b"HTTP/1.1 ") <= 1


@pytest.mark.long
def test_connections_that_begin_no_handshake_keep_nobody_out(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 5)

    def ask(port: int) -> None:
        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            with client_of(port, identity) as client:
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
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 2)
    begun, may_end = recording_waits(rounds, monkeypatch)

    def report(port: int, token: bytes) -> int:
        with client_of(port, identity) as client:
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


async def test_reports_that_are_being_counted_are_answered_when_the_server_ends(
    rounds: RoundKeeper, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    begun, may_end = recording_waits(rounds, monkeypatch)

    def ask(port: int) -> httpx.Response:
        with client_of(port, identity) as client:
            return client.post(REPORTS, content=report_to_json(TOKENS[0], "north", Category(symbol=7)))

    listener, tls = bound("127.0.0.1:0"), server_tls(identity / "cloud.pem", identity / "cloud.key")
    taking = serving(Reports(rounds), listener, tls)
    working = asyncio.create_task(Collecting(poll(), rounds._store, rounds, taking).run())
    asking = asyncio.create_task(asyncio.to_thread(ask, listener.getsockname()[1]))
    await asyncio.to_thread(begun.wait, 10)
    working.cancel()
    asyncio.get_running_loop().call_later(0.1, may_end.set)
    with suppress(asyncio.CancelledError):
        await working
    assert (await asking).status_code == 200


async def test_a_client_that_takes_no_answer_gives_its_place_back(
    identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel does not take stays with the server, up to a deadline; the request is under way until then."""
    monkeypatch.setattr(answering, "SENDING_SECONDS", 0.5)
    monkeypatch.setattr(answering, "BYTES_A_SECOND", 1e9)
    trusting = ssl.create_default_context(cafile=str(identity / "ca.pem"))
    places = answering.Places(1)

    class Long(answering.Application):
        headers = {}  # noqa: RUF012 - none

        async def answer(self, request: Request, held: ExitStack) -> Response:  # noqa: ARG002 - of every application
            held.enter_context(places)
            return Response(bytes(50_000_000))

    listener, tls = bound("127.0.0.1:0"), server_tls(identity / "cloud.pem", identity / "cloud.key")
    async with serving(Long(), listener, tls):
        at = ("127.0.0.1", listener.getsockname()[1])
        reader, writer = await asyncio.open_connection(*at, ssl=trusting, server_hostname="localhost", limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await reader.readexactly(15) == b"HTTP/1.1 200 OK"
        assert places.count == 1
        async with asyncio.timeout(10):
            while places.count:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.05)
            with suppress(ConnectionError, ssl.SSLError):  # closed, in whichever way
                assert len(await reader.read()) < 50_000_000
        writer.close()
