"""What a party's connections go through where it is not called straight: what is asked for, and how it stands."""

from dataclasses import dataclass
from pathlib import Path

PROXY = "veiltab.proxy"
"""Where the context of a command keeps what --proxy says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOption:
    """A proxy as options name it: http://HOST:PORT or "environment", and the file with USER:PASSWORD, if it asks."""

    url: str
    user: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a party stands with its relay.

    Args:
        endpoint: the relay's, host:port.
        parked: connections that wait there for callers.
        since: Unix seconds since which there are some, or none.
        trouble: why the last connection failed; empty once one succeeds.
    """

    endpoint: str
    parked: int
    since: int
    trouble: str
