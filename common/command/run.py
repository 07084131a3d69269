"""Running a party: its RPC server beside its own work, until it is told to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial

from veiltab.common.command.cli import note
from veiltab.common.errors import VeiltabError
from veiltab.common.process.restart import RestartRequest
from veiltab.common.rpc.identity import Identity, Party, load_identity
from veiltab.common.rpc.revocation import FILE, RevocationList
from veiltab.common.rpc.server import PartyServer, serve


async def run_party(identity: Identity, server: PartyServer, work: Coroutine[object, object, None]) -> None:
    """Serve and work until SIGTERM or SIGINT; a failure of either ends both and is raised.

    SIGHUP stops in the same order and then begins again, with the certificate that lies there by then; a SIGTERM that
    comes meanwhile has the last word.

    Raises:
        RestartRequest: after SIGHUP.
    """
    stopped, again = asyncio.Event(), _Again(identity)
    again.heed_hangup(stopped)
    party = identity.party
    working = asyncio.create_task(work)
    ready = partial(_say_ready, party)
    serving = asyncio.create_task(serve(server, ready=ready, stopped=stopped))
    await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
    again.heed_end()
    for task in (working, serving):
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    for task in (working, serving):
        if not task.cancelled():
            _raise_first(task)
    if again.wanted:
        raise RestartRequest


def _say_ready(party: Party, port: int) -> None:
    note(f"{party} serves on port {port}")


class _Again:
    """Whether a party begins again after its end.

    Args:
        identity: the party's own; one that cannot be loaded anew does not stop it.
    """

    def __init__(self, identity: Identity) -> None:
        self.wanted = False
        self._identity = identity

    def heed_hangup(self, stopped: asyncio.Event) -> None:
        """Let SIGHUP stop the party and begin again."""

        def heed() -> None:
            try:
                self._check()
            except VeiltabError as error:
                note(f"{self._identity.party} does not begin again: {error}")
                return
            self.wanted = True
            # One is enough, and the next image shall not die of another before it can heed it.
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self.heed_end()
            stopped.set()

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, heed)

    def heed_end(self) -> None:
        """Let SIGTERM and SIGINT end the party for good, also while it stops."""

        def end() -> None:
            self.wanted = False

        if self.wanted:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, end)

    def _check(self) -> None:
        own = self._identity
        if own.folder is not None:
            load_identity(own.folder, own.party.role, own.party.name, study=own.party.study)
            RevocationList(own.folder / FILE, (own.folder / "ca.pem").read_bytes())


def _raise_first(task: "asyncio.Task[None]") -> None:
    error: BaseException | None = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error
