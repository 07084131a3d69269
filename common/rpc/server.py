"""A party's gRPC server: mutual TLS, one admission rule, limits, health, and an orderly stop."""

from collections.abc import Callable, Collection, Sequence
from typing import Self

import grpc
from grpc_health.v1.health import aio as health_aio
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.address import check_bindable
from veiltab.common.rpc.authorisation import Admission, Gatekeeper
from veiltab.common.rpc.chunks import MAX_MESSAGE, READ_AHEAD
from veiltab.common.rpc.parties.identity import Clock, Identity, Party, utc_now
from veiltab.common.rpc.parties.revocation import FILE, RevocationList

Registration = Callable[[grpc.aio.Server], None]
"""Adds one servicer to a server, as in partial(add_IngestServiceServicer_to_server, servicer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of a server.

    Args:
        calls: most calls at a time, of all parties; one counts from its first byte until its answer has gone.
        calls_each: most calls at a time, of one party.
        calls_nodes: most calls at a time, of all nodes.
        streams: most calls at a time, on one connection.
        longest_call: most seconds until a call's deadline.
        handshake: seconds a connection has for its TLS handshake.
        idle: seconds after which a connection without a call is closed.
        grace: seconds that calls under way have when the server stops.
    """

    calls: int = 4096
    calls_each: int = 64
    calls_nodes: int = 768
    streams: int = 100
    longest_call: float = 3600.0
    handshake: float = 5.0
    idle: float = 600.0
    grace: float = 5.0

    def options(self) -> list[tuple[str, int]]:
        """Return the limits as gRPC's channel arguments."""
        return [
            ("grpc.max_receive_message_length", MAX_MESSAGE),
            ("grpc.max_send_message_length", MAX_MESSAGE),
            ("grpc.max_metadata_size", 8192),
            ("grpc.absolute_max_metadata_size", 16384),
            ("grpc.max_concurrent_streams", self.streams),
            ("grpc.server_handshake_timeout_ms", round(1000 * self.handshake)),
            ("grpc.max_connection_idle_ms", round(1000 * self.idle)),
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            # Clients ping every 30 s at most, and only while a call is under way.
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 20_000),
            ("grpc.http2.max_ping_strikes", 2),
            ("grpc.keepalive_permit_without_calls", 0),
            *READ_AHEAD,
            # Without it a second server would share the port in silence.
            ("grpc.so_reuseport", 0),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyServer:
    """A server that is bound to its port; `start` and `stop` it once each, or use it as a context manager.

    Args:
        health: its health service, which says SERVING between `start` and `stop`.
        port: the TCP port it is bound to.
        grace: seconds that calls under way have when it stops.
    """

    grpc_server: grpc.aio.Server
    health: health_aio.HealthServicer
    port: int
    grace: float

    async def start(self) -> None:
        """Serve."""
        await self.health.set("", HealthCheckResponse.NOT_SERVING)
        await self.grpc_server.start()
        await self.health.set("", HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        """Report NOT_SERVING, accept no more calls, and end the current ones after the grace period."""
        await self.health.enter_graceful_shutdown()
        await self.grpc_server.stop(self.grace)

    def __str__(self) -> str:
        """Return where it serves."""
        return f"on port {self.port}" if self.port > 1 else "at a socket"

    async def __aenter__(self) -> Self:
        """Start, and return the server."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()


def build_server(  # noqa: PLR0913 - what a server is made of
    identity: Identity,
    peers: Collection[Party],
    services: Sequence[Registration],
    address: str,
    *,
    limits: Limits | None = None,
    clock: Clock = utc_now,
) -> PartyServer:
    """Return a party's server, bound to its address but not started. Call it within a running event loop.

    Args:
        peers: the parties that may call at all: those of the study file, or fewer (a researcher's own service: itself).
        address: "host:port", port 0 takes a free one; or "unix:" and the path of a socket.
        limits: what the server spends on its callers.

    Raises:
        InvalidInputError: own certificate is not valid now, the revocation list beside it is not the authority's, or
            the address cannot be bound.
    """
    limits = limits or Limits()
    identity.check_lifetime(clock())
    admission = Admission(
        study=identity.party.study,
        peers=frozenset(peers),
        longest_call=limits.longest_call,
        calls_each=limits.calls_each,
        calls_nodes=limits.calls_nodes,
        clock=clock,
        own=identity.party,
        revocations=None if identity.folder is None else RevocationList(identity.folder / FILE, identity.authority),
    )
    server = grpc.aio.server(
        interceptors=[Gatekeeper(admission)], options=limits.options(), maximum_concurrent_rpcs=limits.calls
    )
    # gRPC looks at a task for each registered method at every call; a generic handler finds them in a dictionary.
    server.add_registered_method_handlers = lambda *_: None  # type: ignore[method-assign]
    health = health_aio.HealthServicer()
    for register in (lambda server: add_HealthServicer_to_server(health, server), *services):
        register(server)
    return PartyServer(grpc_server=server, health=health, port=_bind(server, address, identity), grace=limits.grace)


def _bind(server: grpc.aio.Server, address: str, identity: Identity) -> int:
    """Bind the port for mutual TLS: no connection without a certificate of the study's authority."""
    credentials = grpc.ssl_server_credentials(
        [(identity.key, identity.certificate)], root_certificates=identity.authority, require_client_auth=True
    )
    # Where it cannot be bound, gRPC prints a line of its own.
    if not address.startswith("unix:"):
        check_bindable(address)
    try:
        return server.add_secure_port(address, credentials)
    except RuntimeError:
        raise InvalidInputError(
            "this address cannot be bound; another process may have the port",
            where=address,
            remedy="Stop the other process, or name another address.",
        ) from None
