import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from veiltab.common.errors import NotReadyError
from veiltab.common.rpc.waiting.together import together


class Calls:
    """Calls that end when they are let go, and how many of them ran at a time."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.gate = asyncio.Event()

    def of(self, numbers: Sequence[int]) -> list[Callable[[], Awaitable[int]]]:
        return [lambda number=number: self.run(number) for number in numbers]  # type: ignore[misc] # a default

    async def run(self, number: int) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.wait()
        finally:
            self.running -= 1
        return number


@pytest.mark.parametrize(("room", "calls", "most"), [(16, 5, 5), (2, 5, 3), (0, 5, 1), (16, 1, 1), (16, 0, 0)])
async def test_calls_run_beside_one_another_while_there_is_room(room: int, calls: int, most: int) -> None:
    made, places = Calls(), asyncio.Semaphore(room)
    running = asyncio.create_task(together(places, made.of(range(calls))))
    for _ in range(5):
        await asyncio.sleep(0)
    assert made.running == most
    made.gate.set()
    assert await running == list(range(calls))
    assert made.most == most
    assert places._value == room


async def test_one_that_fails_ends_the_others_and_its_error_is_raised_alone() -> None:
    async def failing() -> int:
        raise NotReadyError("not yet")

    made, places = Calls(), asyncio.Semaphore(3)
    with pytest.raises(NotReadyError, match="not yet"):
        await together(places, [*made.of([1, 2]), failing, *made.of([3])])
    assert made.running == 0
    assert made.most == 3
    assert places._value == 3
