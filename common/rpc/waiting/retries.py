"""An attempt that is repeated, within bounds, until there is an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from secrets import SystemRandom
from typing import TypeVar

from veiltab.common.errors import NotReadyError, UnavailableError

Answer = TypeVar("Answer")

FIRST_PAUSE = 0.1
"""Seconds: the first pause before a repeat is uniform on 0 to this; the bound doubles each time."""

LONGEST_PAUSE = 5.0
"""Seconds: the largest bound of a pause."""

_jitter = SystemRandom()


def jittered(failures: int, first: float, largest: float) -> float:
    """Return a pause in seconds with full jitter: its bound is `first`, doubles with each failure, and has a limit."""
    return _jitter.uniform(0.0, min(largest, first * 2 ** min(failures, 16)))


async def repeated(
    attempt: Callable[[float], Awaitable[Answer]],
    within: float,
    *,
    once: bool = False,
    longest_pause: float | None = None,
) -> Answer:
    """Try until there is an answer, a refusal for good, or the time is over.

    No answer and "not ready" are worth a repeat; every other refusal is raised at once. Pauses have full jitter.

    Args:
        attempt: one attempt, with the seconds that are left.
        within: seconds in which attempts begin.
        once: as for `call`.
        longest_pause: the largest bound of a pause in seconds, if not LONGEST_PAUSE.

    Raises:
        VeiltabError: that of the last attempt.
    """
    now = asyncio.get_running_loop().time
    end = now() + within
    largest = LONGEST_PAUSE if longest_pause is None else longest_pause
    trial = 0
    while True:
        try:
            return await attempt(max(0.0, end - now()))
        except (UnavailableError, NotReadyError):
            pause = jittered(trial, FIRST_PAUSE, largest)
            if once or now() + pause >= end:
                raise
        await asyncio.sleep(pause)
        trial += 1
