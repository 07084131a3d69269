"""Running a party: its RPC server beside its own work, until it is told to stop."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from common.cli import note
from common.identity import Party
from common.rpc.server import PartyServer, serve


async def run_party(party: Party, server: PartyServer, work: Coroutine[object, object, None]) -> None:
    """Serve and work until SIGTERM or SIGINT; a failure of either ends both and is raised."""
    working = asyncio.create_task(work)
    serving = asyncio.create_task(serve(server, ready=lambda port: note(f"{party} serves on port {port}")))
    await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (working, serving):
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    for task in (working, serving):
        if not task.cancelled():
            _raise_first(task)


def _raise_first(task: "asyncio.Task[None]") -> None:
    error: BaseException | None = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error
