"""The status RPC: a party reports its status to itself alone."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict

from veiltab.common.errors import DeniedError
from veiltab.common.observe.span_messages import PartyStatus, status_to_proto
from veiltab.common.observe.status import Activity, Observation
from veiltab.common.rpc.authorisation import Context, caller
from veiltab.common.rpc.parties.identity import Identity
from veiltab.v1 import status_pb2, status_pb2_grpc


class StatusServicer(status_pb2_grpc.StatusServiceServicer):
    """Answers anyone who holds the party's own certificate.

    Args:
        observe: returns the party's observation; called in a thread.
    """

    def __init__(self, identity: Identity, observe: Callable[[], Observation]) -> None:
        self._stated = identity.certificate_facts
        self._way = identity.way
        self._observe = observe
        self._started = int(time.time())

    async def GetStatus(self, request: status_pb2.GetStatusRequest, context: Context) -> status_pb2.GetStatusResponse:
        del request
        from importlib.metadata import version  # noqa: PLC0415 - not before anyone asks

        if caller(context) != self._stated.party:
            raise DeniedError("the caller is not the party whose status it asked for")
        status = PartyStatus(
            party=self._stated.party,
            version=version("veiltab"),
            started=self._started,
            certificate_ends=int(self._stated.not_after.timestamp()),
            # Composing what is left of a budget may take a while.
            observation=await asyncio.to_thread(self._observe) | self._connection(),
        )
        return status_to_proto(status)

    def _connection(self) -> Observation:
        """Return how the party stands with its relay, if others call it through one."""
        relay = None if self._way is None else self._way.relay_state()
        return Observation(work=(Activity(kind="relay", about="", **asdict(relay)),) if relay else ())
