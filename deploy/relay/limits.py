"""What a relay spends on one party: each that misbehaves costs itself."""

import time
from collections.abc import Callable

from veiltab.common.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLimits:
    """The limits of a relay.

    Args:
        parked: connections that a party may keep parked.
        waiting: calls of a party that may wait for a parked connection of others.
        wait: seconds that a call waits.
        pairs: pairs of connections that a party may be one side of.
        between: of these with one other party, so that none takes all of another's.
        minute: connections that a party may open in a minute, in the long run.
        burst: connections that it may open at once.
        handshake: seconds for the TLS handshake.
        strangers: connections at a time that have not yet said who they are.
        idle: seconds without a byte after which a pair is cut.
        heartbeat: seconds between heartbeats on parked connections.
    """

    parked: int = 8
    waiting: int = 8
    wait: float = 10.0
    pairs: int = 64
    between: int = 16
    minute: float = 20.0
    burst: int = 40
    handshake: float = 10.0
    strangers: int = 128
    idle: float = 3600.0
    heartbeat: float = 25.0


class Allowance:
    """Connections that a party may open: a burst, which fills up again by so many a minute.

    Args:
        clock: returns seconds.
    """

    def __init__(self, limits: RelayLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._tokens = float(limits.burst)
        self._at = clock()

    def take(self) -> bool:
        """Take one connection; return whether it was there."""
        now = self._clock()
        self._tokens = min(self._limits.burst, self._tokens + (now - self._at) * self._limits.minute / 60)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def give_back(self) -> None:
        """Give one back: a parked connection that somebody else's call took is not its party's doing."""
        self._tokens += 1
