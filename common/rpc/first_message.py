"""Waiting for the one message of a call, when many callers share a certificate and some of them never send it.

A call is under way once its message is here. Until then it waits in one of few places and for a few seconds. A call
that comes when all places are taken gets the place of the one that has waited longest at the address that waits most:
who sends at once is served, however many stall.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import grpc

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError, UnavailableError

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Refuse: TypeAlias = Callable[[UnavailableError], Coroutine[Any, Any, None]]
"""Ends a call with a refusal."""


async def only_message(context: Context) -> object:
    """Return the one message of a call that does not stream them; raise InvalidInputError if it ends without."""
    message = await context.read()
    if message is grpc.aio.EOF:
        raise InvalidInputError("the call carries no request")
    return message


@dataclass(eq=False, slots=True)
class _Place:
    """The place of a call that waits for its message: at which address, and how the call is refused."""

    address: str
    refuse: Refuse
    refusal: "asyncio.Task[None] | None" = None


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
    _busy: int = field(default=0, init=False)

    async def read(self, context: Context, refuse: Refuse) -> object:
        """Return the message of a call, or refuse the call if it does not come in time.

        Args:
            refuse: ends the call, and by that the reading, which cannot be cancelled.

        Raises:
            InvalidInputError: the call ended without a message.
            grpc.aio.AbortError: the call was refused.
        """
        if self._busy >= self.places:
            self._free_one()
        place = _Place(context.peer().rpartition(":")[0], refuse)  # without its port
        self._take(place)
        patience = asyncio.get_running_loop().call_later(self.seconds, self._refuse, place)
        try:
            return await only_message(context)
        finally:
            patience.cancel()
            self._leave(place)
            if place.refusal is not None:
                await place.refusal

    def _take(self, place: _Place) -> None:
        self._waiting[place.address][place] = None
        self._busy += 1

    def _leave(self, place: _Place) -> None:
        if place in self._waiting[place.address]:
            del self._waiting[place.address][place]
            self._busy -= 1
        if not self._waiting[place.address]:
            del self._waiting[place.address]

    def _free_one(self) -> None:
        """Take the place of the call that waits longest at the address that waits most."""
        address = max(self._waiting, key=lambda address: len(self._waiting[address]))
        self._refuse(next(iter(self._waiting[address])))

    def _refuse(self, place: _Place) -> None:
        """Take a call's place and refuse it."""
        if place in self._waiting[place.address]:
            self._leave(place)
            error = UnavailableError("the message of a call did not come in time", remedy="Send it at once.")
            place.refusal = asyncio.create_task(place.refuse(error))
