"""Places for connections of anybody: none is kept for long by a client that says nothing.

A connection waits for its client (to establish TLS, to send a request, to close), and only for a time, or it works for
it. Anyone who reaches the port can make connections and say nothing. Where no place is free, a connection that waits
gives way: of the client that has the most of them, the one that has waited longest. So a client with few keeps them,
however many another makes.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from ipaddress import IPv6Address
from typing import Protocol

_NETWORK_BYTES = 8


class Connection(Protocol):
    """What takes a place."""

    def abort(self) -> None:
        """Close at once, and leave the place."""


class Places:
    """The connections that are open.

    Args:
        most: how many there may be.
        clock: seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._clients: dict[Connection, Hashable] = {}
        # Of each client those that wait, longest first, and until when.
        self._waiting: dict[Hashable, dict[Connection, float]] = {}

    def __iter__(self) -> Iterator[Connection]:
        """Return the connections that are open now; they may leave meanwhile."""
        return iter(list(self._clients))

    def has_room(self) -> bool:
        """Return whether a further connection can have a place."""
        return len(self._clients) < self._most or bool(self._waiting)

    def take(self, connection: Connection, client: Hashable, seconds: float) -> None:
        """Give a new connection a place, where it waits; if none is free, another connection gives way.

        Args:
            connection: that was made.
            client: whose it is; see `client_of`.
            seconds: how long it waits at most.
        """
        self._clients[connection] = client
        self.wait(connection, seconds)
        if len(self._clients) > self._most:
            self.give_way()

    def wait(self, connection: Connection, seconds: float) -> None:
        """Let a connection wait from now on, for so long at most; nothing happens if it has left."""
        self.work(connection)
        if connection in self._clients:
            waiting = self._waiting.setdefault(self._clients[connection], {})
            waiting[connection] = self._clock() + seconds

    def work(self, connection: Connection) -> None:
        """Let a connection wait no more: its client has done its part. Nothing happens if it has left."""
        client = self._clients.get(connection)
        waiting = self._waiting.get(client, {})
        if waiting.pop(connection, None) is not None and not waiting:
            del self._waiting[client]

    def leave(self, connection: Connection) -> None:
        """Free the place of a connection that is closed."""
        self.work(connection)
        self._clients.pop(connection, None)

    def give_way(self) -> None:
        """Close a connection that waits, if any does."""
        if self._waiting:
            most = max(self._waiting.values(), key=len)
            next(iter(most)).abort()

    def sweep(self) -> None:
        """Close the connections that have waited too long."""
        now = self._clock()
        late = [one for waiting in self._waiting.values() for one, until in waiting.items() if until < now]
        for connection in late:
            connection.abort()


def client_of(host: str) -> Hashable:
    """Return what counts as one client: an IPv4 address, or the 2^64 IPv6 addresses that a line has.

    Args:
        host: numeric, as the system names it.
    """
    if ":" not in host:
        return host
    address = IPv6Address(host)
    return str(address.ipv4_mapped) if address.ipv4_mapped else address.packed[:_NETWORK_BYTES]
