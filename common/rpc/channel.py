"""A party's connection to one peer: a channel that accepts only the peer's certificate, and bounded retries."""

from typing import TypeVar

import grpc

from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.chunks import MAX_MESSAGE, READ_AHEAD
from veiltab.common.rpc.parties.identity import Clock, Identity, Party, utc_now
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.common.rpc.waiting.retries import repeated
from veiltab.common.study.members import RELAYED

Request = TypeVar("Request")
Response = TypeVar("Response")

LONGEST_BACKOFF = 2.0
"""Seconds: how long gRPC waits at most before it connects again; by default it would be two minutes."""


def connect(
    identity: Identity, peer: Party, endpoint: str, *, backoff: float = LONGEST_BACKOFF, clock: Clock = utc_now
) -> grpc.aio.Channel:
    """Return a channel to one peer. It connects with the first call, and again by itself.

    The server must show a certificate that the study's authority issued to exactly this peer: any other certificate,
    even a valid one of another party, is refused whatever the endpoint. Call it within a running event loop, and close
    it.

    Args:
        endpoint: "host:port", or "relay"; where the identity has a way, that says where it leads.
        backoff: seconds after which it connects again at the latest.

    Raises:
        InvalidInputError: own certificate is not valid now, or the study's relay is not known here.
    """
    identity.check_lifetime(clock())
    if endpoint == RELAYED and identity.way is None:
        raise InvalidInputError(f"{peer} is called through a relay, which this identity does not know", where=peer.uri)
    target = endpoint if identity.way is None else identity.way.target(peer, endpoint)
    credentials = grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
    options = [
        ("grpc.ssl_target_name_override", peer.dns_name),
        ("grpc.enable_retries", 0),
        # Connections go straight to the peer, whatever the environment's proxy is.
        ("grpc.enable_http_proxy", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        *READ_AHEAD,
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.initial_reconnect_backoff_ms", int(1000 * min(0.2, backoff))),
        # What gRPC calls so is the longest attempt to connect; a relay adds round trips.
        ("grpc.min_reconnect_backoff_ms", 2_000 if target == endpoint else 5_000),
        ("grpc.max_reconnect_backoff_ms", int(1000 * backoff)),
    ]
    return grpc.aio.secure_channel(target, credentials, options=options)


async def call(  # noqa: PLR0913 - what to call, and how patiently
    method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
    request: Request,
    *,
    peer: Party,
    within: float = 30.0,
    attempt: float = 10.0,
    once: bool = False,
    longest_pause: float | None = None,
) -> Response:
    """Call an RPC that may be repeated, until it answers, refuses for good, or the time is over.

    Args:
        peer: whom it reaches, for messages.
        within: seconds for all attempts and pauses together.
        attempt: seconds until the deadline of each attempt.
        once: do not repeat; for callers that ask again by themselves and want to know at once that a peer is down.
        longest_pause: as for `repeated`.

    Returns:
        The response.

    Raises:
        VeiltabError: as the peer refused, or UnavailableError or NotReadyError when the time is over.
    """

    async def answer(remaining: float) -> Response:
        try:
            return await method(request, timeout=min(attempt, remaining))
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error, str(peer)) from None

    return await repeated(answer, within, once=once, longest_pause=longest_pause)
