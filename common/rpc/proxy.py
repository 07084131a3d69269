"""What a party's connections go through where it is not called straight: what is asked for, and how it stands."""

from pathlib import Path

from veiltab.common.dataclass import dataclass

PROXY = "veiltab.proxy"
"""Where the context of a command keeps what --proxy says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOption:
    """A proxy as options name it: http://HOST:PORT or "environment", and the file with USER:PASSWORD, if it asks."""

    url: str
    user: Path | None = None


AnyProxy = ProxyOption | str | None
"""A proxy as programs name it: one that asks for no user by its address alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayState:
    """How a party stands with its relay.

    Args:
        id: the relay's endpoint, host:port.
        state: "parked" or "not parked".
        since: Unix seconds since which it is in this state.
        waiting_for: why the last connection failed; empty once one succeeds.
    """

    id: str
    state: str
    since: int
    waiting_for: str
