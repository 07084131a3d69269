"""What waiting costs: calls and wakes are counted, not seconds."""

import asyncio
from collections.abc import Mapping

import pytest

from tests.curator.test_progress import progress
from veiltab.common.errors import UnavailableError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.looks import Looks, Others

MANY = [f"{number:032x}" for number in range(256)]
AHEAD = 2_000_000_000.0


class Bob:
    """A peer that counts what it is asked."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.says: dict[str, Others] = {}
        self.now: Others = (progress(),)

    async def progress(self, release_ids: tuple[str, ...]) -> Mapping[str, Others]:
        self.calls.append(len(release_ids))
        await asyncio.sleep(0)
        return {release_id: self.says.get(release_id, self.now) for release_id in release_ids}

    async def asked(self, times: int) -> None:
        """Wait until it was asked so many times more."""
        end = len(self.calls) + times
        async with asyncio.timeout(20):
            while len(self.calls) < end:  # noqa: ASYNC110 - the calls are counted
                await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.looks.PAUSES", (0.005, 0.02))


def waiting(looks: Looks, names: list[str], seen: Others | None, deadline: float = AHEAD) -> list[asyncio.Task[Others]]:
    """Let some releases wait for news."""
    return [
        asyncio.create_task(looks.news(name, seen, attempt=0, wakes=looks.wakes, deadline=deadline)) for name in names
    ]


async def ended(*tasks: asyncio.Task[Others]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_hundreds_that_wait_are_asked_about_together_and_none_is_woken() -> None:
    async def scenario() -> None:
        looks, bob = Looks(), Bob()
        tasks = waiting(looks, MANY, bob.now)
        asking = asyncio.create_task(looks.run(bob))
        # Once they are patient, every call asks about all of them.
        async with asyncio.timeout(20):
            while bob.calls[-10:] != [256] * 10:
                await bob.asked(1)
        assert not any(task.done() for task in tasks)
        await ended(*tasks)
        asking.cancel()

    asyncio.run(scenario())


def test_what_is_new_wakes_its_release_alone() -> None:
    async def scenario() -> None:
        looks, bob = Looks(), Bob()
        tasks = waiting(looks, MANY[:3], bob.now)
        asking = asyncio.create_task(looks.run(bob))
        await bob.asked(3)
        news = (progress(state=ReleaseState.FAILED),)
        bob.says[MANY[1]] = news
        assert await asyncio.wait_for(tasks[1], 20) == news
        assert [task.done() for task in tasks] == [False, True, False]
        await ended(*tasks)
        asking.cancel()

    asyncio.run(scenario())


def test_who_waits_long_keeps_nobody_else_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.looks.PAUSES", (0.005, 0.005, 0.005, 3600.0))

    async def scenario() -> None:
        looks, bob = Looks(), Bob()
        patient = asyncio.create_task(looks.news(MANY[0], bob.now, attempt=3, wakes=looks.wakes, deadline=AHEAD))
        (other,) = waiting(looks, MANY[1:2], bob.now)
        asking = asyncio.create_task(looks.run(bob))
        await bob.asked(3)
        assert bob.calls == [1, 1, 1]
        await ended(patient, other)
        asking.cancel()

    asyncio.run(scenario())


def test_the_same_refusal_is_no_news_and_another_is() -> None:
    async def scenario() -> None:
        looks, bob = Looks(), Bob()
        bob.now = UnavailableError("no connection", where="curator bob")
        (task,) = waiting(looks, MANY[:1], UnavailableError("no connection", where="curator bob"))
        asking = asyncio.create_task(looks.run(bob))
        await bob.asked(3)
        assert not task.done()
        bob.now = (progress(),)
        assert await asyncio.wait_for(task, 20) == bob.now
        asking.cancel()

    asyncio.run(scenario())


def test_what_changed_here_before_or_during_the_wait_ends_it() -> None:
    async def scenario() -> None:
        looks, bob = Looks(), Bob()
        asking = asyncio.create_task(looks.run(bob))
        (task,) = waiting(looks, MANY[:1], bob.now)
        await bob.asked(3)
        before = looks.wakes
        looks.wake()
        assert await asyncio.wait_for(task, 20) == bob.now
        late = looks.news(MANY[0], bob.now, attempt=9, wakes=before, deadline=AHEAD)
        assert await asyncio.wait_for(late, 20) == bob.now
        asking.cancel()

    asyncio.run(scenario())


def test_a_deadline_ends_the_wait_and_so_does_any_answer_after_a_step_that_was_refused() -> None:
    async def scenario() -> None:
        looks, bob = Looks(), Bob()
        asking = asyncio.create_task(looks.run(bob))
        (over,) = waiting(looks, MANY[:1], bob.now, deadline=1.0)
        (refused,) = waiting(looks, MANY[1:2], None)
        assert await asyncio.wait_for(over, 20) == await asyncio.wait_for(refused, 20) == bob.now
        assert await asyncio.wait_for(looks.progress(MANY[2]), 20) == bob.now
        asking.cancel()

    asyncio.run(scenario())
