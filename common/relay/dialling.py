"""Opening a connection, straight or through an HTTP proxy."""

import asyncio
import os
import socket
from base64 import b64encode
from http.client import HTTPException, HTTPResponse
from typing import Self

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.rpc.parties.identity import read_identity_file
from veiltab.common.rpc.proxy import ProxyOption
from veiltab.common.study.naming import check_endpoint

_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An HTTP proxy: its host:port, and the bytes of its Proxy-Authorization header, if it asks for one."""

    endpoint: str
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
        endpoint = url.removeprefix("http://").removesuffix("/")
        try:
            check_endpoint(endpoint)
        except InvalidInputError:
            remedy = "Write http://HOST:PORT, or environment if https_proxy says so; a user stands in --proxy-user."
            raise InvalidInputError("this is not an HTTP proxy", where="--proxy", remedy=remedy) from None
        if option.user is None:
            return cls(endpoint=endpoint)
        user = read_identity_file(option.user, private=True, made_by="you").strip()
        if b":" not in user or b"\n" in user:
            raise InvalidInputError(
                "the file is not one line USER:PASSWORD", where=str(option.user), remedy="Write both, with a colon."
            )
        return cls(endpoint=endpoint, authorisation=b"Proxy-Authorization: Basic " + b64encode(user) + b"\r\n")


async def dialled(endpoint: str, proxy: Proxy | None) -> socket.socket:
    """Return a TCP connection to host:port, through the proxy if there is one.

    Raises:
        UnavailableError: the proxy refuses.
        OSError: there is no connection.
    """
    plain = await asyncio.to_thread(_connected, endpoint, proxy)
    plain.setblocking(False)  # noqa: FBT003 - the name of the standard library
    return plain


def _connected(endpoint: str, proxy: Proxy | None) -> socket.socket:
    host, _, port = (endpoint if proxy is None else proxy.endpoint).rpartition(":")
    plain = socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS)
    if proxy is not None:
        try:
            _ask(plain, endpoint, proxy.authorisation)
        except BaseException:
            plain.close()
            raise
    return plain


def _ask(plain: socket.socket, endpoint: str, authorisation: bytes) -> None:
    """Have a proxy pass a connection on; nothing follows its answer before this side speaks."""
    plain.sendall(f"CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n".encode() + authorisation + b"\r\n")
    with HTTPResponse(plain, method="CONNECT") as answer:
        try:
            answer.begin()
        except HTTPException:
            raise UnavailableError("the proxy gave no answer of HTTP", remedy="Check --proxy.") from None
        code = answer.status
    if code == 407:
        remedy = "Correct the file of --proxy-user." if authorisation else "Give --proxy-user."
        raise UnavailableError("the proxy answered 407", remedy=remedy)
    if not 200 <= code < 300:
        raise UnavailableError(f"the proxy answered {code}", remedy="Ask who runs it to allow this host and port.")
