"""Counting connections: each costs a TLS handshake, which costs more than most calls."""

import logging
from collections import OrderedDict

from veiltab.common.dataclass import dataclass, field

_log = logging.getLogger(__name__)


def connection_opened(way: str) -> None:
    """Log that a client has connected.

    Args:
        way: "grpc" or "https".
    """
    _log.info("connection", extra={"way": way})


@dataclass(kw_only=True)
class Connections:
    """Tells the first call of a connection from the others, by the caller's address and port: gRPC has no sign of it.

    Args:
        most: connections remembered; one whose last call is that many connections ago counts again.
    """

    most: int = 8192
    _peers: OrderedDict[str, None] = field(default_factory=OrderedDict, init=False)

    def called(self, peer: str) -> None:
        """Count the connection of a call, if it is new."""
        if peer in self._peers:
            self._peers.move_to_end(peer)
            return
        connection_opened("grpc")
        self._peers[peer] = None
        if len(self._peers) > self.most:
            self._peers.popitem(last=False)
