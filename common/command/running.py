"""Runs a party: what serves beside its own work, until a signal stops it."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress

from veiltab.common.command.cli import note
from veiltab.common.dataclass import replace
from veiltab.common.errors import VeiltabError
from veiltab.common.process.memory import give_back_freed_memory
from veiltab.common.process.protection import allow_open_files
from veiltab.common.process.signals import PartySignals
from veiltab.common.rpc.parties.identity import Identity, Party, load_identity
from veiltab.common.rpc.parties.revocation import FILE, RevocationList
from veiltab.common.rpc.waiting.changes import Changes

_YOUNG = 700
"""New objects of a party that serves before Python looks for garbage among them."""

_TRIM_SECONDS = 10.0
"""Seconds between two times that freed memory is given back."""


def serve_anew(serve: Callable[[Identity], Identity | None], identity: Identity) -> None:
    """Serve with an identity, and again with what `run_party` returned, until that is None."""
    while (renewed := serve(identity)) is not None:
        identity = renewed
        # Objects that the party served with lie in cycles and own files of its run.
        gc.unfreeze()
        gc.collect()


async def run_party(
    identity: Identity,
    server: AbstractAsyncContextManager[object],
    work: Coroutine[object, object, None],
    check_files: Callable[[], object] = lambda: None,
    changes: Changes | None = None,
) -> Identity | None:
    """Serve and work until SIGTERM or SIGINT; a failure of either ends both and is raised.

    SIGHUP stops it in the same order, to restart with what the files of its identity are by then; a SIGTERM in the
    meantime ends it for good. Call it in the main thread.

    Args:
        server: serves while the block lasts; what it gives says where.
        work: what it does beside that.
        check_files: reads what it would restart with, beside its identity; if it refuses that, there is no restart.
        changes: what its answers wait for; at the end they wait no more.

    Returns:
        After SIGHUP the identity to restart with.
    """
    allow_open_files()
    stopped = asyncio.Event()
    renewed: Identity | None = None

    def may_restart() -> bool:
        nonlocal renewed
        renewed = _renewed(identity, check_files)
        return renewed is not None

    with PartySignals(stop=stopped.set, may_restart=may_restart) as signals:
        tasks = [asyncio.create_task(work), asyncio.create_task(_serve(identity.party, server, stopped, changes))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    for task in tasks:
        if not task.cancelled():
            _raise_first(task)
    return renewed if signals.restart else None


async def _serve(
    party: Party, server: AbstractAsyncContextManager[object], stopped: asyncio.Event, changes: Changes | None
) -> None:
    """Serve until `stopped`, then stop in order."""
    trimming = asyncio.create_task(_trim_memory())
    # What was imported is no garbage. From now on a few refused calls may hold many long messages in cycles.
    gc.freeze()
    gc.set_threshold(_YOUNG)
    try:
        async with server as place:
            note(f"{party} serves {place}")
            await stopped.wait()
            if changes is not None:
                changes.close()
    finally:
        trimming.cancel()


async def _trim_memory() -> None:
    """Give freed memory back from time to time, until cancelled."""
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        await asyncio.to_thread(give_back_freed_memory)


def _renewed(identity: Identity, check_files: Callable[[], object]) -> Identity | None:
    """Return the identity that its files have now; None if the party cannot restart with its files, which is said."""
    folder, party = identity.folder, identity.party
    try:
        check_files()
        if folder is None:
            return identity
        loaded = load_identity(folder, party.role, party.name, study=party.study)
        RevocationList(folder / FILE, loaded.authority)
    except VeiltabError as error:
        note(f"{party} does not begin again: {error}")
        return None
    if identity.way is not None:
        identity.way.renew(loaded)
    return replace(loaded, way=identity.way)


def _raise_first(task: "asyncio.Task[None]") -> None:
    error: BaseException | None = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error
