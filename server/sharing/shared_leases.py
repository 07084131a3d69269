"""Leases with fencing: one of several server processes works on a resource, and a paused one cannot finish later.

A lease runs out unless it is renewed, by the database's own clock. Anyone who takes it then gets a larger fence. Each
change of state is made in a transaction that first checks that its fence is the current one, so a process that was
paused without noticing is refused.

Source: Gray, Cheriton, Leases (1989), for the lease; the fence is the sequencer of Burrows, Chubby (2006).
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from veiltab.common.errors import UnavailableError
from veiltab.common.storage.database import Connection
from veiltab.server.sharing.leases import BusyError, Lease, Leases, LostLeaseError

SECONDS = 15.0
"""Seconds that a lease lasts unless it is renewed; it is renewed three times in that period."""

LEASES = (
    """
    CREATE TABLE lease (resource TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL,
        until TIMESTAMPTZ NOT NULL)
    """,
)
"""Migrations of the table of leases, for databases that several processes share."""

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class SharedLeases(Leases):
    """Leases in PostgreSQL, among several processes.

    Args:
        connection: of the database whose state they protect; it has the table of leases.
    """

    def __init__(self, connection: Connection, seconds: float | None = None) -> None:
        self.seconds = SECONDS if seconds is None else seconds
        self._connection = connection
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
        # Leases have threads of their own, so that perturbation in the other threads cannot delay a renewal.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="leases")

    def take(self, resource: str) -> Lease:
        """Take a lease that nobody holds, or raise BusyError."""
        row = self._connection.execute(
            "INSERT INTO lease AS known (resource, holder, fence, until)"
            " VALUES (?, ?, 1, clock_timestamp() + make_interval(secs => ?))"
            " ON CONFLICT (resource) DO UPDATE"
            " SET holder = excluded.holder, fence = known.fence + 1, until = excluded.until"
            " WHERE known.until <= clock_timestamp() RETURNING fence",
            [resource, self._holder, self.seconds],
        ).fetchone()
        if row is None:
            raise BusyError("another server process works on this now", remedy="Ask again.")
        return Lease(resource=resource, holder=self._holder, fence=row["fence"])

    @asynccontextmanager
    async def hold(self, resource: str) -> AsyncIterator[Lease]:
        """Hold a lease for a block, or raise BusyError; it is renewed during the block and given back at the end."""
        lease = await self._in_thread(self.take, resource)
        renewing = asyncio.create_task(self._keep(lease))
        try:
            yield lease
        finally:
            renewing.cancel()
            # It runs out by itself if the database is unreachable.
            with suppress(UnavailableError):
                await self._in_thread(self.give_back, lease)

    async def _keep(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(self.seconds / 3)
            try:
                await self._in_thread(self.renew, lease)
            except LostLeaseError:
                _log.warning("a lease was lost", extra={"release": lease.resource.partition("/")[0]})
                return
            except UnavailableError:
                continue

    async def _in_thread(self, step: Callable[..., Result], of: str | Lease) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, step, of)

    def renew(self, lease: Lease) -> None:
        """Extend a lease, or raise LostLeaseError; an expired lease is its holder's until another takes it."""
        self._set(lease, self.seconds)

    def give_back(self, lease: Lease) -> None:
        """Let others take a lease, if it is still this process's."""
        with suppress(LostLeaseError):
            self._set(lease, 0.0)

    def _set(self, lease: Lease, seconds: float) -> None:
        changed = self._connection.execute(
            "UPDATE lease SET until = clock_timestamp() + make_interval(secs => ?)"
            " WHERE resource = ? AND holder = ? AND fence = ?",
            [seconds, lease.resource, lease.holder, lease.fence],
        )
        if not changed.rowcount:
            raise _lost()

    def check(self, lease: Lease) -> None:
        """Raise LostLeaseError unless the lease is the current one, and keep it so until the transaction ends."""
        row = self._connection.execute(
            "SELECT 1 FROM lease WHERE resource = ? AND holder = ? AND fence = ? FOR UPDATE",
            [lease.resource, lease.holder, lease.fence],
        ).fetchone()
        if row is None:
            raise _lost()

    def close(self) -> None:
        """Take and renew no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lost() -> LostLeaseError:
    return LostLeaseError("another server process has taken over", remedy="Ask again.")
