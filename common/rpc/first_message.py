"""Waiting for the one message of a call, when many callers share a certificate and some of them never send it.

A call is under way once its message is here. Until then it waits in one of few places and for a few seconds. A call
that comes when all places are taken gets the place of the one that has waited longest at the address that waits most:
who sends at once is served, however many stall.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc

from veiltab.common.errors import InvalidInputError, UnavailableError

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
_Place: TypeAlias = "asyncio.Future[None]"


async def only_message(context: Context) -> object:
    """Return the one message of a call that does not stream them; raise InvalidInputError if it ends without."""
    message = await context.read()
    if message is grpc.aio.EOF:
        raise InvalidInputError("the call carries no request")
    return message


@dataclass(kw_only=True)
class FirstMessages:
    """Reads the one message of each of many calls.

    Args:
        places: most calls that wait for their message.
        seconds: longest that one of them waits.
    """

    places: int = 256
    seconds: float = 3.0
    _waiting: dict[str, dict[_Place, None]] = field(default_factory=lambda: defaultdict(dict), init=False)
    _taken: int = field(default=0, init=False)

    async def read(self, context: Context) -> object:
        """Return the message of a call.

        Raises:
            UnavailableError: it did not come in time, or another call needed the place.
            InvalidInputError: the call ended without one.
        """
        if self._taken >= self.places:
            self._free_one()
        address, place = _address(context), asyncio.get_running_loop().create_future()
        # It is not cancelled: gRPC ends it together with the call.
        reading = asyncio.ensure_future(only_message(context))
        reading.add_done_callback(_look_at)
        self._take(address, place)
        try:
            await asyncio.wait({reading, place}, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leave(address, place)
        if not reading.done():
            raise UnavailableError("the message of a call did not come in time", remedy="Send it at once.")
        return reading.result()

    def _take(self, address: str, place: _Place) -> None:
        self._waiting[address][place] = None
        self._taken += 1

    def _leave(self, address: str, place: _Place) -> None:
        if place in self._waiting[address]:
            del self._waiting[address][place]
            self._taken -= 1
        if not self._waiting[address]:
            del self._waiting[address]

    def _free_one(self) -> None:
        """Take the place of the call that waits longest at the address that waits most."""
        address = max(self._waiting, key=lambda address: len(self._waiting[address]))
        place = next(iter(self._waiting[address]))
        self._leave(address, place)
        place.set_result(None)


def _address(context: Context) -> str:
    """Return the address of a caller without its port."""
    return context.peer().rpartition(":")[0]


def _look_at(reading: "asyncio.Task[object]") -> None:
    """Look at how a reading ended, so that asyncio does not complain that nobody did."""
    if not reading.cancelled():
        reading.exception()
