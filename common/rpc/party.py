"""Running a party: its RPC server beside its own work, until it is told to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress

from common.cli import note
from common.errors import VeiltabError
from common.identity import Identity, load_identity
from common.restart import RestartRequest
from common.rpc.server import PartyServer, serve


async def run_party(identity: Identity, server: PartyServer, work: Coroutine[object, object, None]) -> None:
    """Serve and work until SIGTERM or SIGINT; a failure of either ends both and is raised.

    SIGHUP stops in the same order and then begins again, with the certificate that lies there by then.

    Raises:
        RestartRequest: after SIGHUP.
    """
    again = _heed_hangup(identity)
    party = identity.party
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
    if again.is_set():
        raise RestartRequest


def _heed_hangup(identity: Identity) -> asyncio.Event:
    """Return what SIGHUP sets, if the identity can be loaded again; a party does not stop for one that cannot."""
    again = asyncio.Event()

    def heed() -> None:
        party = identity.party
        try:
            if identity.folder is not None:
                load_identity(identity.folder, party.role, party.name, study=party.study)
        except VeiltabError as error:
            note(f"{party} does not begin again: {error}")
            return
        again.set()
        # The orderly stop is that of SIGTERM.
        signal.raise_signal(signal.SIGTERM)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, heed)
    return again


def _raise_first(task: "asyncio.Task[None]") -> None:
    error: BaseException | None = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error
