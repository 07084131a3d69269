"""The outer protocol of a relay: inside mutual TLS one line each way says who wants whom, and bytes follow.

    PARK                 I wait here for callers      -> OK SECONDS, the interval of heartbeats
    CALL role/name       I want this party            -> OK
    FROM role/name       to a parked one: who calls   -> OK
    BEAT                 to a parked one              -> BEAT

Instead of OK there may be a line that says why not. Whose connection it is, its certificate says.
"""

import asyncio
import socket
import ssl
from typing import Self

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, UnavailableError

ALPN = "veiltab-relay"
MOST_LINE = 128
LINE_SECONDS = 10.0
PIECE = 32_768
"""Bytes of one read; twice as many wait at most between two sides, each way, beside the kernel's buffers."""

CLOSE_SECONDS = 5.0
"""Seconds that a side has to take the last bytes."""

_KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3}
"""A path that is dead, as after sleep or with another address, shows within 14 seconds."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Both directions of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def on(cls, plain: socket.socket, tls: ssl.SSLContext | None = None, name: str | None = None) -> Self:
        """Return those of a socket that is connected; with TLS, to a server of this name."""
        return cls(*await asyncio.open_connection(sock=plain, ssl=tls, server_hostname=name, limit=PIECE))

    def __post_init__(self) -> None:
        self.writer.transport.set_write_buffer_limits(high=PIECE)
        plain = self.writer.get_extra_info("socket")
        if plain is not None and plain.family != socket.AF_UNIX:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name in _KEEPALIVE.keys() & vars(socket):
                plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), _KEEPALIVE[name])

    async def say(self, line: str) -> None:
        """Send a line."""
        self.writer.write(line.encode() + b"\n")
        await self.writer.drain()

    async def line(self, within: float = LINE_SECONDS) -> str:
        """Return the next line.

        Raises:
            UnavailableError: the connection ended.
            TimeoutError: no line came in time.
            InvalidInputError: it is too long or not ASCII.
            ValueError: far too long.
        """
        async with asyncio.timeout(within):
            line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise UnavailableError("the relay connection ended")
        if len(line) > MOST_LINE or not line.isascii():
            raise InvalidInputError("a line of a relay connection is malformed")
        return line[:-1].decode()

    async def end(self, within: float = CLOSE_SECONDS) -> None:
        """Close it; what it does not take in time is dropped."""
        if not self.writer.is_closing():  # at a second close Python 3.11.2 forgets the connection, and cannot abort it
            self.writer.close()
        try:
            async with asyncio.timeout(within):
                await self.writer.wait_closed()
        except (OSError, TimeoutError):
            self.writer.transport.abort()
