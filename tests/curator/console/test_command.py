"""The console as its command runs it, on a real socket."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.worlds.states import curator_state

pytestmark = pytest.mark.long


@dataclass(frozen=True, kw_only=True)
class Running:
    """A console that runs: its process, its folder, its port, and the link of its only person."""

    process: subprocess.Popen[str]
    folder: Path
    port: int
    link: str

    def send(self, data: bytes) -> bytes:
        """Return what comes back for some bytes: the head of the answer, and what came with it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(data)
            answer = b""
            while b"\r\n\r\n" not in answer and (part := connection.recv(65_536)):
                answer += part
            return answer

    def request(self, line: str, *headers: str) -> bytes:
        return self.send("\r\n".join([f"{line} HTTP/1.1", *headers, "", ""]).encode())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, study_bytes: bytes) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("console")
    (folder / "study.toml").write_bytes(study_bytes)
    curator_state(folder / "state").close()
    command = [sys.executable, "-m", "veiltab", "curator", "console", str(folder / "study.toml")]
    options = ["--state", str(folder / "state"), "--person", "Ana Diaz", "--json"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        link = json.loads(process.stdout.readline())["links"]["Ana Diaz"]
        yield Running(process=process, folder=folder, port=urlsplit(link).port or 0, link=link)
        process.terminate()
        assert process.wait(20) == 0
    assert urlsplit(link).query.partition("=")[2] not in (folder / "log").read_text()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_it_listens_on_the_loopback_interface_alone(running: Running) -> None:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [local for _, local, _, state, *_ in lines if state == "0A" and local.endswith(f":{running.port:04X}")]
    assert listening == [f"0100007F:{running.port:04X}"]
    six = Path("/proc/net/tcp6").read_text().splitlines()[1:]
    assert not [line for line in six if line.split()[1].endswith(f":{running.port:04X}") and line.split()[3] == "0A"]


def test_the_link_is_in_no_list_of_processes(running: Running) -> None:
    for name in ("cmdline", "environ"):
        shown = Path(f"/proc/{running.process.pid}/{name}").read_bytes()
        assert urlsplit(running.link).query.partition("=")[2].encode() not in shown


def test_a_command_gives_new_links_and_ends_no_session(running: Running) -> None:
    place = ["study.toml", "--state", str(running.folder / "state"), "--links"]  # links need no study file
    command = [sys.executable, "-m", "veiltab", "curator", "console", *place]
    named = ["--person", "Ben Ode", "--reader", "Eva Roth", "--json"]
    done = subprocess.run([*command, *named], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    links = json.loads(done.stdout)["links"]
    assert list(links) == ["Ben Ode", "Eva Roth"]
    host = f"Host: 127.0.0.1:{running.port}"
    for link in links.values():
        parts = urlsplit(link)
        assert parts.port == running.port
        own = ("Sec-Fetch-Site: same-origin", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 0")
        assert status(running.request(f"POST {parts.path}?{parts.query}", host, *own)) == 303
        assert status(running.request(f"POST {parts.path}?{parts.query}", host, *own)) == 403


def test_what_a_stranger_sends_is_not_logged(running: Running) -> None:
    before = (running.folder / "log").read_text()
    for _ in range(20):
        assert status(running.send(b"GET /\x00 HTTP/1.1\r\n\r\n")) == 400
    assert (running.folder / "log").read_text() == before


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", {400, 421}),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: {host}\r\n\r\n", {400, 421}),
        (b"GET http://rebound.example/ HTTP/1.1\r\nHost: rebound.example\r\n\r\n", {400, 421}),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n", {403, 404}),
        (b"GET /\x00 HTTP/1.1\r\nHost: {host}\r\n\r\n", {400}),
        (b"GET / HTTP/1.1\r\nHost: {host}\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", {400, 431}),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n", {400, 414}),
        (b"POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", {411}),
        (b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10000000\r\n\r\nhello", {413}),
        (b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", {400}),
        (b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", {400, 411}),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 405, 421}),
        (b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: {host}\r\n\r\n", {400, 405}),
        (b"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", {403}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400}),
    ],
)
def test_bytes_that_no_browser_sends_are_refused(running: Running, data: bytes, expected: set[int]) -> None:
    answer = running.send(data.replace(b"{host}", f"127.0.0.1:{running.port}".encode()))
    assert status(answer) in expected, answer[:300]
    assert b"Traceback" not in answer


def test_a_port_that_is_taken_is_said(running: Running, tmp_path: Path, study_bytes: bytes) -> None:
    (tmp_path / "study.toml").write_bytes(study_bytes)
    curator_state(tmp_path / "state").close()
    command = [sys.executable, "-m", "veiltab", "curator", "console", str(tmp_path / "study.toml")]
    options = ["--state", str(tmp_path / "state"), "--person", "Ana Diaz", "--port", str(running.port)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"--port 127.0.0.1:{running.port}: this address cannot be bound" in done.stderr
    assert done.stdout == ""
