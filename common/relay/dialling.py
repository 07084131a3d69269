"""Opening a connection, straight or through an HTTP proxy."""

import asyncio
import os
import re
import socket
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.rpc.parties.identity import read_identity_file
from veiltab.common.rpc.way import ProxyOption

_MOST_ANSWER = 8192
_PROXY_PORT = 3128
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An HTTP proxy: its host, its port, and the bytes of its Proxy-Authorization header, if it asks for one."""

    host: str
    port: int
    authorisation: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, option: ProxyOption) -> Self:
        """Read the option and the file with the user.

        Raises:
            InvalidInputError: the option names no HTTP proxy, or the file is not USER:PASSWORD.
        """
        url = option.url
        if url == "environment":
            url = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
        remedy = "Write it like http://proxy.example.org:3128, or environment if https_proxy is set."
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or _PROXY_PORT
        except ValueError:
            raise InvalidInputError("the proxy's address is malformed", where="--proxy", remedy=remedy) from None
        if parts.scheme != "http" or not host or parts.path.strip("/") or parts.query:
            raise InvalidInputError("this is not an HTTP proxy", where="--proxy", remedy=remedy)
        if parts.username is not None:
            raise InvalidInputError(
                "the proxy's address holds a user", where="--proxy", remedy="Give the user in a file, by --proxy-user."
            )
        if option.user is None:
            return cls(host=host, port=port)
        user = read_identity_file(option.user, private=True, made_by="you").strip()
        if b":" not in user or b"\n" in user:
            raise InvalidInputError(
                "the file is not one line USER:PASSWORD", where=str(option.user), remedy="Write both, with a colon."
            )
        return cls(host=host, port=port, authorisation=b"Proxy-Authorization: Basic " + b64encode(user) + b"\r\n")


async def dialled(endpoint: str, proxy: Proxy | None) -> socket.socket:
    """Return a TCP connection to host:port, through the proxy if there is one.

    Raises:
        UnavailableError: the proxy refuses.
        OSError: there is no connection.
    """
    host, _, port = endpoint.rpartition(":")
    if proxy is None:
        return await _connected(host.strip("[]"), int(port))
    plain = await _connected(proxy.host, proxy.port)
    try:
        head = f"CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n".encode()
        await asyncio.get_running_loop().sock_sendall(plain, head + proxy.authorisation + b"\r\n")
        _check_answer(await _answer(plain), has_user=bool(proxy.authorisation))
    except BaseException:
        plain.close()
        raise
    return plain


async def _connected(host: str, port: int) -> socket.socket:
    plain = await asyncio.to_thread(socket.create_connection, (host, port), _CONNECT_SECONDS)
    plain.setblocking(False)  # noqa: FBT003 - the name of the standard library
    return plain


async def _answer(plain: socket.socket) -> bytes:
    """Return a proxy's answer to its empty line; nothing follows before this side speaks."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        part = await asyncio.get_running_loop().sock_recv(plain, 1024)
        answer += part
        if not part or len(answer) > _MOST_ANSWER:
            raise UnavailableError("the proxy gave no answer of HTTP", remedy="Check --proxy.")
    return answer


def _check_answer(answer: bytes, *, has_user: bool) -> None:
    match = re.match(rb"HTTP/1\.[01] ([0-9]{3})[ \r]", answer)
    code = int(match[1]) if match else 0
    if code == 407:
        remedy = "Correct the file of --proxy-user." if has_user else "Give --proxy-user."
        raise UnavailableError("the proxy answered 407", remedy=remedy)
    if not 200 <= code < 300:
        raise UnavailableError(
            f"the proxy answered {code or 'no HTTP'}", remedy="Ask who runs it to allow this host and port."
        )
