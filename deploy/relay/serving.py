"""Runs a relay."""

import asyncio
import socket
from asyncio import sslproto
from contextlib import ExitStack, nullcontext
from pathlib import Path

from veiltab.common.command.parties import load_party, parties_of
from veiltab.common.command.running import run_party, serve_anew
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.address import check_bindable
from veiltab.common.rpc.parties.identity import Identity, Role
from veiltab.deploy.relay.limits import RelayLimits
from veiltab.deploy.relay.meeting_point import MeetingPoint

_BACKLOG = 512
_ENCRYPTED_BYTES = 16_384


def serve_relay(
    study_path: Path, identity_folder: Path, listen: str | None, limits: RelayLimits, metrics: str | None
) -> None:
    """Pass on connections until a signal; see `run_party`.

    Raises:
        InvalidInputError: the study has no relay, or the address cannot be bound.
    """
    study, identity = load_party(study_path, identity_folder, Role.RELAY, name=None)
    if study.relay is None:
        raise InvalidInputError("the study has no [relay]", where=str(study_path))
    # asyncio would take 256 KiB for the bytes of each connection.
    sslproto.SSLProtocol.max_size = _ENCRYPTED_BYTES
    everywhere = "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - a relay is called from outside
    address = listen or f"{everywhere}:{study.relay.endpoint.rpartition(':')[2]}"

    async def pass_on(identity: Identity) -> Identity | None:
        point = MeetingPoint(identity, [one for one in parties_of(study) if one.role is not Role.RELAY], limits)
        with ExitStack() as stack:
            listener = stack.enter_context(listening(address))
            if metrics is not None:
                from veiltab.deploy.relay.relay_metrics import relay_metrics  # noqa: PLC0415 - not where the extra is missing

                stack.enter_context(relay_metrics(point, metrics))
            place = nullcontext(f"on port {listener.getsockname()[1]}")
            return await run_party(identity, place, point.serve(listener))

    serve_anew(lambda identity: asyncio.run(pass_on(identity)), identity)


def listening(address: str) -> socket.socket:
    """Return a socket that listens at HOST:PORT.

    Raises:
        InvalidInputError: it cannot be bound.
    """
    check_bindable(address)
    host, _, port = address.rpartition(":")
    place, family = (host.strip("[]"), int(port)), socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=host == "[::]")
