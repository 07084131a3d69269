"""Asks a party whether it serves."""

from grpc_health.v1 import health_pb2

from veiltab.common.errors import UnavailableError
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.parties.identity import Identity, Party

_LOOK_AGAIN_SECONDS = 0.1
"""A party that starts is asked so often, and not ever more seldom as one that is overloaded."""


async def wait_until_serving(identity: Identity, party: Party, endpoint: str, *, within: float) -> None:
    """Return once a party serves.

    Args:
        endpoint: "host:port".
        within: seconds to wait.

    Raises:
        UnavailableError: it does not serve in time.
    """
    channel = connect(identity, party, endpoint, backoff=_LOOK_AGAIN_SECONDS)
    try:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        answer = await call(
            check,
            health_pb2.HealthCheckRequest(),
            peer=party,
            within=within,
            attempt=2.0,
            longest_pause=_LOOK_AGAIN_SECONDS,
        )
    finally:
        await channel.close()
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise UnavailableError("is stopping", where=str(party))
