"""The right of one of several server processes to work on something; where there is one process, it always has it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import UnavailableError


class BusyError(UnavailableError):
    """Another server process holds the lease."""


class LostLeaseError(UnavailableError):
    """The lease ran out and another server process took it: this process's work under it is void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on something.

    Args:
        fence: increases with every new holder of the resource; 0 where there is one process.
    """

    resource: str
    holder: str = ""
    fence: int = 0


class Leases:
    """The leases of a sole process: every request succeeds. Processes that share a database have `SharedLeases`."""

    seconds = 0.0
    """Seconds that a lease lasts, and pause after failed work."""

    def take(self, resource: str) -> Lease:
        """Take a lease that nobody holds, or raise BusyError."""
        return Lease(resource=resource)

    @asynccontextmanager
    async def hold(self, resource: str) -> AsyncIterator[Lease]:
        """Hold a lease for a block, or raise BusyError; it is renewed during the block and given back at the end."""
        yield Lease(resource=resource)

    def give_back(self, lease: Lease) -> None:
        """Let others take a lease, if it is still this process's."""

    def check(self, lease: Lease) -> None:
        """Raise LostLeaseError unless the lease is the current one, and keep it so until the transaction ends."""

    def close(self) -> None:
        """Take and renew no more."""
