"""TLS over a connection that a server accepted, for a protocol of asyncio.

asyncio's own makes timers, futures, tasks and a buffer for each connection, which together take more time than the
handshake. This one makes nothing before the first byte comes, sends what a protocol writes at a time as one record, and
reads no further while the client does not take what it is sent. It has no timers: `Places` closes what waits too long.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from veiltab.server.https.places import Places

_RECORD = 2**14
"""Bytes that are read at a time: a TLS record has no more."""

_END_SECONDS = 3.0
"""How long a client may take to close, once it has been told that this was all."""


class _Tls(NamedTuple):
    """A TLS session, and where it takes bytes from and puts them."""

    session: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


class TlsConnection(asyncio.Transport):
    """The server's end of a connection.

    Args:
        connection: a socket that does not block.
        tls: the server's.
        connected: makes the protocol, once TLS is established.
        places: which it leaves when it is closed.
    """

    def __init__(
        self,
        connection: socket.socket,
        tls: ssl.SSLContext,
        connected: Callable[[], asyncio.Protocol],
        places: Places,
    ) -> None:
        super().__init__({"sslcontext": tls})
        self._loop = asyncio.get_running_loop()
        self._socket, self._number = connection, connection.fileno()
        self._context, self._connected, self._places = tls, connected, places
        self._tls: _Tls | None = None
        self._protocol: asyncio.Protocol | None = None
        self._written, self._unsent = bytearray(), b""
        self._is_paused = self._is_closing = self._is_closed = False
        self._loop.add_reader(self._number, self._read)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data, together with all that is written before the event loop goes on."""
        if not self._is_closing:
            if not self._written:
                self._loop.call_soon(self._send)
            self._written += data

    def close(self) -> None:
        """Send what was written, say that it was all, and wait for the client to close."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._send)
            # Not before that: what waits may be closed for another connection.
            self._loop.call_soon(self._places.wait, self, _END_SECONDS)
            if self._is_paused:
                self.resume_reading()

    def is_closing(self) -> bool:
        """Return whether nothing more can be written."""
        return self._is_closing

    def abort(self) -> None:
        """Close at once."""
        if self._is_closed:
            return
        self._is_closing = self._is_closed = True
        self._loop.remove_reader(self._number)
        self._loop.remove_writer(self._number)
        self._socket.close()
        self._places.leave(self)
        if self._protocol is not None:
            # Later, since the protocol may be in the middle of something.
            self._loop.call_soon(self._protocol.connection_lost, None)

    def pause_reading(self) -> None:
        """Give the protocol nothing more for now."""
        self._is_paused = True
        self._watch()

    def resume_reading(self) -> None:
        """Give the protocol again what comes."""
        self._is_paused = False
        self._watch()
        self._loop.call_soon(self._advance)

    def _watch(self) -> None:
        """Wait for the client to take what it is sent; or else for what it sends."""
        if self._is_closed:
            return
        self._loop.remove_reader(self._number)
        self._loop.remove_writer(self._number)
        if self._unsent:
            self._loop.add_writer(self._number, self._send)
        elif not self._is_paused:
            self._loop.add_reader(self._number, self._read)

    def _read(self) -> None:
        try:
            data = self._socket.recv(_RECORD)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.abort()
        elif not self._is_closing:  # what comes after that is thrown away
            if self._tls is None:
                self._tls = _server_side(self._context)
            self._tls.incoming.write(data)
            self._advance()

    def _advance(self) -> None:
        """Go on with the handshake, or give the protocol what came."""
        if self._tls is None or self._is_closing:
            return
        try:
            if self._protocol is None:
                self._tls.session.do_handshake()
                self._protocol = self._connected()
                self._protocol.connection_made(self)
            while not (self._is_paused or self._is_closing) and (
                self._tls.incoming.pending or self._tls.session.pending()
            ):
                self._give(self._tls.session.read(_RECORD), self._protocol)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._written.clear()
            self.close()
        except BaseException:
            self.abort()
            raise
        if self._tls.outgoing.pending:
            self._send()

    def _give(self, data: bytes, protocol: asyncio.Protocol) -> None:
        if data:
            protocol.data_received(data)
        else:  # the client has said that this was all
            self.close()

    def _send(self) -> None:
        """Send what was written, and what TLS itself has to say, as far as the client takes it."""
        if self._is_closed:
            return
        if self._tls is None:
            self.abort()
            return
        was_full = bool(self._unsent)
        try:
            self._seal(self._tls)
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # of which SSLError is one
            self.abort()
            return
        if was_full != bool(self._unsent):
            self._watch()
        if self._is_closing and not self._unsent:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def _seal(self, tls: _Tls) -> None:
        """Encrypt what was written."""
        while self._written:
            del self._written[: tls.session.write(self._written)]
        if self._is_closing:
            with suppress(ssl.SSLError):  # that the client has not closed yet, or that TLS was never established
                tls.session.unwrap()
        self._unsent += tls.outgoing.read()


def _server_side(context: ssl.SSLContext) -> _Tls:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    return _Tls(context.wrap_bio(incoming, outgoing, server_side=True), incoming, outgoing)
