"""Connections through an HTTP proxy of the tests' own."""

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.protocol.relays import proxied
from tests.worlds.loops import blocking
from tests.worlds.parties import ALICE
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.relay.attempts import LONGEST
from veiltab.common.relay.dialling import Proxy, dialled
from veiltab.common.relay.forwarder import DIAL_SECONDS, Forwarder
from veiltab.common.relay.lines import Streams
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.proxy import ProxyOption
from veiltab.common.study.members import RelayMember


def written(folder: Path, user: str | None) -> Path | None:
    if user is None:
        return None
    path = folder / "user"
    path.write_text(user, "utf-8")
    path.chmod(0o600)
    return path


@blocking
async def echoed(option: ProxyOption) -> bytes:
    """Return what comes back through a proxy from one that repeats what it hears."""

    async def repeat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(7))
        writer.close()

    async with await asyncio.start_server(repeat, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(sock=await dialled(f"127.0.0.1:{port}", Proxy.of(option)))
        writer.write(b"welcome")
        words = await reader.read()
        writer.close()
        return words


@pytest.mark.parametrize(("user", "given"), [("", None), ("ada:pass:word", "ada:pass:word\n")])
def test_a_connection_goes_through_a_proxy(tmp_path: Path, user: str, given: str | None) -> None:
    with proxied(user) as proxy:
        assert echoed(ProxyOption(url=proxy.url, user=written(tmp_path, given))) == b"welcome"


@pytest.mark.parametrize(
    ("given", "says", "words"),
    [
        (None, b"", "the proxy answered 407. Give --proxy-user"),
        ("ada:word", b"", "the proxy answered 407. Correct the file of --proxy-user"),
        (None, b"HTTP/1.1 403 Forbidden\r\n\r\n", "the proxy answered 403. Ask who runs it to allow"),
        (None, b"SSH-2.0-OpenSSH_9\r\n\r\n", "no answer of HTTP"),
        (None, b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000, "no answer of HTTP"),
    ],
)
def test_what_a_proxy_refuses_is_said(tmp_path: Path, given: str | None, says: bytes, words: str) -> None:
    with proxied("ada:pass:word", says) as proxy, pytest.raises(UnavailableError) as refused:
        echoed(ProxyOption(url=proxy.url, user=written(tmp_path, given)))
    assert words in str(refused.value)
    assert "word" not in str(refused.value).replace(words, "")


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("https://proxy:1", None, "not an HTTP proxy"),
        ("http://proxy:1/path", None, "not an HTTP proxy"),
        ("http://ada:word@proxy:1", None, "not an HTTP proxy"),
        ("http://proxy:99999", None, "not an HTTP proxy"),
        ("environment", None, "not an HTTP proxy"),
        ("http://proxy:1", "ada", "not one line USER:PASSWORD"),
        ("http://proxy:1", "ada:word\nbea:word", "not one line USER:PASSWORD"),
    ],
)
def test_an_option_that_names_no_proxy_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, given: str | None, words: str
) -> None:
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    with pytest.raises(InvalidInputError, match=words):
        Proxy.of(ProxyOption(url=url, user=written(tmp_path, given)))


def test_the_environment_names_a_proxy_if_the_option_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxied() as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        assert echoed(ProxyOption(url="environment")) == b"welcome"
        assert len(proxy.asked) == 1


async def test_a_path_that_died_is_left_and_tried_again_within_15_seconds() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        streams = await Streams.on(await dialled(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", None))
        plain = streams.writer.get_extra_info("socket")
        streams.writer.close()
        kinds = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        idle, interval, count = (plain.getsockopt(socket.IPPROTO_TCP, kind) for kind in kinds)
    assert idle + interval * count < 15
    assert DIAL_SECONDS + LONGEST <= 15


def test_a_relay_that_is_down_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{closed.getsockname()[1]}"
        own = cast("Identity", SimpleNamespace(party=ALICE))
        with pytest.raises(UnavailableError, match=f"the relay at {endpoint}: no connection .* `veiltab relay serve`"):
            Forwarder(own, RelayMember(endpoint=endpoint), None).try_relay()
