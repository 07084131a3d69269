"""Runs a relay."""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from veiltab.common.command.parties import load_party, parties_of
from veiltab.common.errors import InvalidInputError
from veiltab.common.process.protection import allow_open_files
from veiltab.common.rpc.address import check_bindable
from veiltab.common.rpc.parties.identity import Role
from veiltab.deploy.relay.limits import RelayLimits
from veiltab.deploy.relay.meeting_point import MeetingPoint

_BACKLOG = 512


async def serve_relay(  # noqa: PLR0913, PLR0917 - the options of the command
    study_path: Path,
    identity_folder: Path,
    listen: str | None,
    limits: RelayLimits,
    metrics: str | None,
    say: Callable[[str], None],
) -> None:
    """Pass on connections until SIGTERM or SIGINT.

    Raises:
        InvalidInputError: the study has no relay, or the address cannot be bound.
    """
    study, identity = load_party(study_path, identity_folder, Role.RELAY, name=None)
    if study.relay is None:
        raise InvalidInputError("the study has no [relay]", where=str(study_path))
    allow_open_files()
    point = MeetingPoint(identity, [one for one in parties_of(study) if one.role is not Role.RELAY], limits)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    with ExitStack() as stack:
        listener = stack.enter_context(listening(listen or f"[::]:{study.relay.endpoint.rpartition(':')[2]}"))
        if metrics is not None:
            from veiltab.deploy.relay.relay_metrics import relay_metrics  # noqa: PLC0415 - not where the extra is missing

            stack.enter_context(relay_metrics(point, metrics))
        serving = asyncio.create_task(point.serve(listener))
        say(f"{identity.party} serves on port {listener.getsockname()[1]}")
        ending = asyncio.create_task(stopped.wait())
        await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        serving.cancel()
        ending.cancel()
        with suppress(asyncio.CancelledError):
            await serving


def listening(address: str) -> socket.socket:
    """Return a socket that listens at HOST:PORT.

    Raises:
        InvalidInputError: it cannot be bound.
    """
    check_bindable(address)
    host, _, port = address.rpartition(":")
    if host == "[::]" and socket.has_dualstack_ipv6():
        return socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=_BACKLOG)
