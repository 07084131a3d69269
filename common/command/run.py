"""Starts a party: its RPC server, bound to its address, beside its own work."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence

from veiltab.common.command.options import ServeOptions
from veiltab.common.command.running import run_party
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.rpc.server import Registration, build_server
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.study.members import RELAYED


def serve_party(  # noqa: PLR0913, PLR0917 - what a party consists of
    options: ServeOptions,
    identity: Identity,
    callers: Collection[Party],
    services: Sequence[Registration],
    endpoint: str,
    work: Callable[[], Coroutine[object, object, None]],
    check_files: Callable[[], object] = lambda: None,
    changes: Changes | None = None,
) -> Identity | None:
    """Bind a party's server, which is all of a check, and run it beside the party's work; see `run_party`.

    It listens where the option says, or at every interface at the endpoint's port; and where it is called through a
    relay at a socket of its own alone.

    Raises:
        InvalidInputError: it is called through a relay, and the option names a port.
    """
    way = identity.way if endpoint == RELAYED else None
    address = options.listen or (f"[::]:{endpoint.rpartition(':')[2]}" if way is None else way.own_socket())
    if way is not None and not address.startswith("unix:"):
        raise InvalidInputError(
            "this party is called through the relay", where="--listen", remedy="Leave it out, or write unix:PATH."
        )

    async def main() -> Identity | None:
        server = build_server(identity, callers, services, address)
        if options.check:
            return None
        if way is not None and way.relay_state() is None:
            way.park(address)
        return await run_party(identity, server, work(), check_files, changes)

    renewed = asyncio.run(main())
    if options.check:
        if way is not None:
            way.try_relay()
        from veiltab.common.command.checking import say_ready  # noqa: PLC0415 - not for parties that serve

        say_ready(identity, address)
    return renewed
