"""What waiting costs: calls and wakes are counted, not seconds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.curator.test_progress import progress
from veiltab.common.errors import UnavailableError, VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.changes import LONGEST_WAIT
from veiltab.curator.looks import Looks, NoFollowingError, Others, Said

MANY = [f"{number:032x}" for number in range(256)]
AHEAD = 2_000_000_000.0
AWAY = UnavailableError("no connection", where="curator bob")


class Bob:
    """A peer that counts what it is asked, and answers once it has news; a very old one does not wait."""

    def __init__(self, *, waits: bool = True) -> None:
        self.curators = ("bob",)
        self.waits = waits
        self.calls: list[dict[str, bytes]] = []
        self.offered: list[float] = []
        self.says: dict[str, Said] = {}
        self.now = Said(progress=progress(), version=b"1" if waits else b"")
        self.changed = asyncio.Event()

    def say(self, said: Said, *names: str) -> None:
        """Say something else from now on, of some releases or of all."""
        if names:
            self.says |= dict.fromkeys(names, said)
        else:
            self.now = said
        self.changed.set()

    async def news(self, curator: str, seen: Mapping[str, bytes], seconds: float) -> Mapping[str, Said]:
        assert curator == "bob"
        self.calls.append(dict(seen))
        self.offered.append(seconds)
        await asyncio.sleep(0)
        while not (news := self.news_for(seen)) and seconds:
            self.changed.clear()
            await self.changed.wait()
        return news

    def follow(self, curator: str, asked: AsyncIterator[tuple[str, ...]]) -> AsyncIterator[Mapping[str, Said]]:
        del curator, asked
        raise NoFollowingError

    def news_for(self, seen: Mapping[str, bytes]) -> dict[str, Said]:
        said = {name: self.says.get(name, self.now) for name in seen}
        return {name: one for name, one in said.items() if not one.version or one.version != seen[name]}

    async def asked(self, times: int) -> None:
        """Wait until it was asked so many times more."""
        end = len(self.calls) + times
        while len(self.calls) < end:  # noqa: ASYNC110 - the calls are counted
            await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.looks.PAUSES", (0.005, 0.02))


def run(scenario: Callable[[Looks, Bob], Awaitable[None]], *, waits: bool = True) -> None:
    """Let alice look at bob."""

    async def limited() -> None:
        looks, bob = Looks(), Bob(waits=waits)
        asking = asyncio.create_task(looks.run(bob))
        async with asyncio.timeout(20):
            await scenario(looks, bob)
        asking.cancel()

    asyncio.run(limited())


async def waiting(
    looks: Looks, *names: str, deadline: float = AHEAD, attempt: int = 0, is_refused: bool = False
) -> list[asyncio.Task[None]]:
    """Let some releases wait for something else than what is known of them."""
    seen = await asyncio.gather(*(looks.progress(name) for name in names))
    return [
        asyncio.create_task(
            looks.news(*(name, others), attempt=attempt, wakes=looks.wakes, deadline=deadline, is_refused=is_refused)
        )
        for name, others in zip(names, seen, strict=True)
    ]


async def turns() -> None:
    """Let everything happen that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_hundreds_that_wait_cost_one_call_that_waits_and_none_is_woken() -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        tasks = await waiting(looks, *MANY)
        await bob.asked(1)
        await turns()
        assert [(len(seen), set(seen.values())) for seen in bob.calls] == [(256, {b""}), (256, {b"1"})]
        assert bob.offered == [0, LONGEST_WAIT]
        assert not any(task.done() for task in tasks)
        await ended(*tasks)

    run(scenario)


def test_what_is_new_wakes_its_release_alone() -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        tasks = await waiting(looks, *MANY[:3])
        await bob.asked(1)
        bob.say(Said(progress=progress(state=ReleaseState.FAILED), version=b"2"), MANY[1])
        await tasks[1]
        assert await looks.progress(MANY[1]) == (progress(state=ReleaseState.FAILED),)
        assert [task.done() for task in tasks] == [False, True, False]
        await bob.asked(1)
        assert bob.calls[-1] == {MANY[0]: b"1", MANY[2]: b"1", MANY[1]: b"2"}
        await ended(*tasks)

    run(scenario)


def test_another_version_of_the_same_answer_wakes_nobody() -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        (task,) = await waiting(looks, MANY[0])
        await bob.asked(1)
        bob.say(Said(progress=progress(), version=b"2"))
        await bob.asked(1)
        await turns()
        assert not task.done()
        await ended(task)

    run(scenario)


def test_one_release_more_is_asked_about_at_once_and_then_waits_with_the_others() -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        tasks = await waiting(looks, MANY[0])
        await bob.asked(1)
        tasks += await waiting(looks, MANY[1])
        await bob.asked(1)
        await turns()
        assert bob.calls[2:] == [{MANY[0]: b"1", MANY[1]: b""}, {MANY[0]: b"1", MANY[1]: b"1"}]
        looks.forget(MANY[0])
        bob.say(Said(progress=progress(charged=True), version=b"2"))
        await tasks[1]
        await bob.asked(1)
        assert bob.calls[-1] == {MANY[1]: b"2"}
        await ended(*tasks)

    run(scenario)


def test_nothing_under_way_costs_nothing() -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        await looks.progress(MANY[0])
        looks.forget(MANY[0])
        bob.say(Said(progress=progress(charged=True), version=b"2"))
        await turns()
        await asyncio.sleep(0.05)
        assert len(bob.calls) <= 2

    run(scenario)


@pytest.mark.parametrize("waits", [True, False])
def test_the_same_refusal_is_no_news_and_another_answer_is(*, waits: bool) -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        bob.now = Said(progress=AWAY)
        (task,) = await waiting(looks, MANY[0])
        await bob.asked(3)
        assert not task.done()
        bob.say(Said(progress=progress(), version=b"1" if waits else b""))
        await task
        assert await looks.progress(MANY[0]) == (progress(),)

    run(scenario, waits=waits)


def test_a_curator_that_lets_nobody_wait_is_asked_after_pauses() -> None:
    async def scenario(looks: Looks, bob: Bob) -> None:
        (task,) = await waiting(looks, MANY[0])
        await bob.asked(5)
        assert not task.done()
        assert set(bob.offered) == {0}
        bob.say(Said(progress=progress(charged=True)))
        await task

    run(scenario, waits=False)


def test_what_changed_here_before_or_during_the_wait_ends_it() -> None:
    async def scenario(looks: Looks, _: Bob) -> None:
        (task,) = await waiting(looks, MANY[0])
        await turns()
        before = looks.wakes
        assert not task.done()
        looks.wake()
        await task
        seen: Others = await looks.progress(MANY[0])
        await looks.news(MANY[0], seen, attempt=0, wakes=before, deadline=AHEAD, is_refused=False)

    run(scenario)


def test_a_deadline_ends_the_wait_and_so_does_a_pause_after_a_step_that_was_refused() -> None:
    async def scenario(looks: Looks, _: Bob) -> None:
        await asyncio.gather(*await waiting(looks, MANY[0], deadline=1.0))
        await asyncio.gather(*await waiting(looks, MANY[1], attempt=9, is_refused=True))

    run(scenario)


class Carol:
    """A peer that is followed: it says what it is told to, and counts what it is asked."""

    def __init__(self) -> None:
        self.curators = ("carol",)
        self.calls: list[list[tuple[str, ...]]] = []
        self.says: asyncio.Queue[Mapping[str, Said] | VeiltabError | None] = asyncio.Queue()

    async def news(self, curator: str, seen: Mapping[str, bytes], seconds: float) -> Mapping[str, Said]:
        raise AssertionError((curator, seen, seconds))

    async def follow(self, curator: str, asked: AsyncIterator[tuple[str, ...]]) -> AsyncIterator[Mapping[str, Said]]:
        assert curator == "carol"
        heard = list[tuple[str, ...]]()
        self.calls.append(heard)
        listening = asyncio.create_task(self.hear(asked, heard))
        try:
            while (said := await self.says.get()) is not None:
                if isinstance(said, VeiltabError):
                    raise said
                yield said
        finally:
            listening.cancel()

    @staticmethod
    async def hear(asked: AsyncIterator[tuple[str, ...]], heard: list[tuple[str, ...]]) -> None:
        async for names in asked:
            heard.append(names)  # noqa: PERF401 - they come one after the other


def follow(scenario: Callable[[Looks, Carol], Awaitable[None]]) -> None:
    """Let alice follow carol."""

    async def limited() -> None:
        looks, carol = Looks(), Carol()
        following = asyncio.create_task(looks.run(carol))
        async with asyncio.timeout(20):
            await scenario(looks, carol)
        await ended(following)

    asyncio.run(limited())


def said(**what: Any) -> Said:  # noqa: ANN401 - fields of a progress
    return Said(progress=progress(**what))


def test_hundreds_that_are_followed_are_asked_about_once() -> None:
    async def scenario(looks: Looks, carol: Carol) -> None:
        names = [*MANY, "f" * 32]
        carol.says.put_nowait(dict.fromkeys(names, said()))
        tasks = await waiting(looks, *names)
        carol.says.put_nowait(dict.fromkeys(names, said()))
        await turns()
        assert not any(task.done() for task in tasks)
        carol.says.put_nowait({MANY[1]: said(charged=True)})
        await tasks[1]
        assert [task.done() for task in tasks] == [number == 1 for number in range(257)]
        assert carol.calls == [[tuple(MANY), ("f" * 32,)]]
        await ended(*tasks)

    follow(scenario)


def test_a_release_more_is_followed_in_the_same_call_and_one_that_was_forgotten_again() -> None:
    async def scenario(looks: Looks, carol: Carol) -> None:
        for names in ("1", "2", "1"):
            looks.forget(names)
            asking = asyncio.create_task(looks.progress(names))
            await turns()
            assert not asking.done()
            carol.says.put_nowait({names: said(), "of another call": said()})
            assert await asking == (progress(),)
        assert carol.calls == [[("1",), ("2",), ("1",)]]

    follow(scenario)


def test_a_call_asks_for_no_more_than_can_be_followed_and_the_next_one_for_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("veiltab.curator.looks.MOST_FOLLOWED", 3)

    async def scenario(looks: Looks, carol: Carol) -> None:
        for name in ("1", "2", "3", "4"):
            carol.says.put_nowait({name: said()} if name != "4" else {"1": said()})
            asking = asyncio.create_task(looks.progress(name))
            await turns()
            if name < "3":
                looks.forget(name)
        carol.says.put_nowait(None)
        carol.says.put_nowait({"4": said()})
        assert await asking == (progress(),)
        assert carol.calls == [[("1",), ("2",), ("3",)], [("3", "4")]]

    follow(scenario)


def test_a_call_that_ends_is_made_again_at_once_and_one_that_fails_after_a_pause() -> None:
    async def scenario(looks: Looks, carol: Carol) -> None:
        carol.says.put_nowait({"1": said()})
        (task,) = await waiting(looks, "1")
        carol.says.put_nowait(None)
        carol.says.put_nowait({"1": said()})
        await turns()
        assert carol.calls == [[("1",)], [("1",)]]
        assert not task.done()
        carol.says.put_nowait(AWAY)
        await task
        assert await looks.progress("1") == AWAY
        carol.says.put_nowait({"1": said()})
        await looks.news("1", AWAY, attempt=0, wakes=looks.wakes, deadline=AHEAD, is_refused=False)
        assert await looks.progress("1") == (progress(),)
        assert carol.calls[2:] == [[("1",)]]

    follow(scenario)


def test_a_call_that_ends_without_a_word_is_made_again_after_a_pause() -> None:
    async def scenario(looks: Looks, carol: Carol) -> None:
        asking = asyncio.create_task(looks.progress("1"))
        for _ in range(3):
            carol.says.put_nowait(None)
        await turns()
        assert len(carol.calls) == 1
        carol.says.put_nowait({"1": said()})
        assert await asking == (progress(),)
        assert len(carol.calls) == 4
        assert carol.calls[-1] == [("1",)]

    follow(scenario)


def test_a_curator_that_says_nothing_of_a_release_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.looks._SILENT_SECONDS", 0.005)

    async def scenario(looks: Looks, carol: Carol) -> None:
        carol.says.put_nowait({"another": said()})
        others = await looks.progress("1")
        assert isinstance(others, UnavailableError)
        assert others.where == "curator carol"
        carol.says.put_nowait({"1": said()})
        await looks.news("1", others, attempt=0, wakes=looks.wakes, deadline=AHEAD, is_refused=False)
        while isinstance(others, UnavailableError):
            others = await looks.progress("1")
        assert others == (progress(),)

    follow(scenario)


def test_without_a_release_nobody_is_called() -> None:
    async def scenario(looks: Looks, carol: Carol) -> None:
        await turns()
        carol.says.put_nowait({"1": said()})
        await looks.progress("1")
        looks.forget("1")
        carol.says.put_nowait(None)
        await turns()
        assert carol.calls == [[("1",)]]

    follow(scenario)
