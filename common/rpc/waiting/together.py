"""Calls that run beside one another as long as there is room, and else one after the other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Result = TypeVar("Result")

MOST_BESIDE = 16
"""Streams of all releases to one party that run beside a release's first: a party admits 64 calls of another."""


async def together(room: asyncio.Semaphore, calls: Sequence[Callable[[], Awaitable[Result]]]) -> list[Result]:
    """Return what some calls return, in their order; the first that fails ends the others, and its error is raised.

    Args:
        room: for calls that run beside others; one always runs, however full it is.
    """
    results: dict[int, Result] = {}
    waiting = iter(enumerate(calls))

    async def work() -> None:
        for number, call in waiting:
            results[number] = await call()

    async def work_beside() -> None:
        if not room.locked():
            async with room:
                await work()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            for _ in calls[1:]:
                group.create_task(work_beside())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [results[number] for number in range(len(calls))]
