"""What waiting costs: calls and wakes are counted, not seconds."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from tests.curator.curators_progress import progress
from tests.worlds.loops import turns
from veiltab.common.errors import UnavailableError, VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.peers.subscriptions import Others, PeerAnswer, Subscriptions
from veiltab.curator.progress.release_record import Progress

MANY = [f"{number:032x}" for number in range(256)]
AHEAD = 2_000_000_000.0
AWAY = UnavailableError("no connection", where="curator carol")


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.peers.subscriptions.PAUSES", (0.005, 0.02))


async def waiting(
    looks: Subscriptions, *names: str, deadline: float = AHEAD, attempt: int = 0, is_refused: bool = False
) -> list[asyncio.Task[None]]:
    """Let some releases wait for something else than what is known of them."""
    seen = await asyncio.gather(*(looks.progress(name) for name in names))
    return [
        asyncio.create_task(
            looks.news(*(name, others), attempt=attempt, wakes=looks.wakes, deadline=deadline, is_refused=is_refused)
        )
        for name, others in zip(names, seen, strict=True)
    ]


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Carol:
    """A peer that is followed: it says what it is told to, and counts what it is asked."""

    def __init__(self) -> None:
        self.curators = ("carol",)
        self.calls: list[list[tuple[str, ...]]] = []
        self.says: asyncio.Queue[Mapping[str, PeerAnswer] | VeiltabError | None] = asyncio.Queue()

    async def follow(
        self, curator: str, asked: AsyncIterator[tuple[str, ...]]
    ) -> AsyncIterator[Mapping[str, PeerAnswer]]:
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


@asynccontextmanager
async def following() -> AsyncIterator[tuple[Subscriptions, Carol]]:
    """Let alice follow carol."""
    looks, carol = Subscriptions(), Carol()
    running = asyncio.create_task(looks.run(carol))
    async with asyncio.timeout(20):
        yield looks, carol
    await ended(running)


async def test_hundreds_that_are_followed_are_asked_about_once() -> None:
    async with following() as (looks, carol):
        names = [*MANY, "f" * 32]
        carol.says.put_nowait(dict.fromkeys(names, progress()))
        tasks = await waiting(looks, *names)
        carol.says.put_nowait(dict.fromkeys(names, progress()))
        await turns()
        assert not any(task.done() for task in tasks)
        carol.says.put_nowait({MANY[1]: progress(charged=True)})
        await tasks[1]
        assert [task.done() for task in tasks] == [number == 1 for number in range(257)]
        assert carol.calls == [[tuple(MANY), ("f" * 32,)]]
        await ended(*tasks)


async def test_the_same_refusal_is_no_news_and_another_answer_is() -> None:
    async with following() as (looks, carol):
        carol.says.put_nowait({"1": AWAY})
        (task,) = await waiting(looks, "1")
        carol.says.put_nowait({"1": UnavailableError("no connection", where="curator carol")})
        carol.says.put_nowait({"1": AWAY})
        await turns()
        assert not task.done()
        carol.says.put_nowait({"1": progress()})
        await task
        assert await looks.progress("1") == (progress(),)


async def test_what_changed_here_before_or_during_the_wait_ends_it() -> None:
    async with following() as (looks, carol):
        carol.says.put_nowait({"1": progress()})
        (task,) = await waiting(looks, "1")
        await turns()
        before = looks.wakes
        assert not task.done()
        looks.wake()
        await task
        seen: Others = await looks.progress("1")
        await looks.news("1", seen, attempt=0, wakes=before, deadline=AHEAD, is_refused=False)


async def test_a_deadline_ends_the_wait_and_so_does_a_pause_after_a_step_that_was_refused() -> None:
    async with following() as (looks, carol):
        carol.says.put_nowait({"1": progress()})
        await asyncio.gather(*await waiting(looks, "1", deadline=1.0))
        asking = asyncio.create_task(waiting(looks, "2", attempt=9, is_refused=True))
        await turns()  # what is said before it is asked for is not heard
        carol.says.put_nowait({"2": progress()})
        await asyncio.gather(*await asking)


async def test_a_release_more_is_followed_in_the_same_call_and_one_that_was_forgotten_again() -> None:
    async with following() as (looks, carol):
        for names in ("1", "2", "1"):
            looks.forget(names)
            asking = asyncio.create_task(looks.progress(names))
            await turns()
            assert not asking.done()
            carol.says.put_nowait({names: progress(), "of another call": progress()})
            assert await asking == (progress(),)
        assert carol.calls == [[("1",), ("2",), ("1",)]]


async def test_a_call_asks_for_no_more_than_can_be_followed_and_the_next_one_for_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("veiltab.curator.peers.subscriptions.MOST_FOLLOWED", 3)

    async with following() as (looks, carol):
        for name in ("1", "2", "3", "4"):
            carol.says.put_nowait({name: progress()} if name != "4" else {"1": progress()})
            asking = asyncio.create_task(looks.progress(name))
            await turns()
            if name < "3":
                looks.forget(name)
        carol.says.put_nowait(None)
        carol.says.put_nowait({"4": progress()})
        assert await asking == (progress(),)
        assert carol.calls == [[("1",), ("2",), ("3",)], [("3", "4")]]


async def test_a_call_that_ends_is_made_again_at_once_and_one_that_fails_after_a_pause() -> None:
    async with following() as (looks, carol):
        carol.says.put_nowait({"1": progress()})
        (task,) = await waiting(looks, "1")
        carol.says.put_nowait(None)
        carol.says.put_nowait({"1": progress()})
        await turns()
        assert carol.calls == [[("1",)], [("1",)]]
        assert not task.done()
        carol.says.put_nowait(AWAY)
        await task
        assert await looks.progress("1") == AWAY
        carol.says.put_nowait({"1": progress()})
        await looks.news("1", AWAY, attempt=0, wakes=looks.wakes, deadline=AHEAD, is_refused=False)
        assert await looks.progress("1") == (progress(),)
        assert carol.calls[2:] == [[("1",)]]


async def test_a_call_that_ends_without_a_word_is_made_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.peers.subscriptions.PAUSES", (1.0, 0.05, 0.1))  # slow machines

    async with following() as (looks, carol):
        asking = asyncio.create_task(looks.progress("1"))
        for _ in range(3):
            carol.says.put_nowait(None)
        await turns()
        assert len(carol.calls) == 1
        carol.says.put_nowait({"1": progress()})
        assert await asking == (progress(),)
        assert len(carol.calls) == 4
        assert carol.calls[-1] == [("1",)]


async def test_a_curator_that_says_nothing_of_a_release_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.peers.subscriptions._SILENT_SECONDS", 0.005)

    async with following() as (looks, carol):
        carol.says.put_nowait({"another": progress()})
        others = await looks.progress("1")
        assert isinstance(others, UnavailableError)
        assert others.where == "curator carol"
        carol.says.put_nowait({"1": progress()})
        await looks.news("1", others, attempt=0, wakes=looks.wakes, deadline=AHEAD, is_refused=False)
        while isinstance(others, UnavailableError):
            others = await looks.progress("1")
        assert others == (progress(),)


async def test_of_whom_nothing_is_awaited_only_what_it_says_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.peers.subscriptions._SILENT_SECONDS", 0.005)

    async with following() as (looks, carol):
        # Before she was asked, when she is away, and when she answers.
        assert await looks.progress("1", {"alice"}) == ()
        assert isinstance(await looks.progress("1"), UnavailableError)
        assert isinstance(await looks.progress("1", {"carol"}), UnavailableError)
        carol.says.put_nowait(AWAY)
        while await looks.progress("1") != AWAY:
            await turns()
        assert await looks.progress("1", {"carol"}) == AWAY
        assert await looks.progress("1", {"alice"}) == ()
        waits = asyncio.create_task(looks.news("1", (), attempt=0, wakes=looks.wakes, deadline=AHEAD, is_refused=False))
        await turns()
        assert not waits.done()
        carol.says.put_nowait({"1": progress()})
        await waits
        assert await looks.progress("1", {"alice"}) == (progress(),)


@pytest.mark.parametrize("carol", [None, AWAY, progress(curator="carol")], ids=["silent", "away", "there"])
async def test_nobody_s_silence_hides_that_a_release_ended_elsewhere(carol: PeerAnswer | None) -> None:
    looks, bob = Subscriptions(), progress(state=ReleaseState.DENIED)
    looks._curators = ("bob", "carol")
    look = looks._subscription("1")
    look.answers = {"bob": progress(), **({} if carol is None else {"carol": carol})}
    known = looks._answers(look)
    assert known == (carol if carol in {None, AWAY} else (progress(), carol))
    waits = asyncio.create_task(looks.news("1", known or AWAY, attempt=0, wakes=0, deadline=AHEAD, is_refused=False))
    await turns()
    looks._take("bob", {"1": bob})
    async with asyncio.timeout(5):
        await waits
    there = (carol,) if isinstance(carol, Progress) else ()
    assert await looks.progress("1") == (bob, *there)


async def test_without_a_release_nobody_is_called() -> None:
    async with following() as (looks, carol):
        await turns()
        carol.says.put_nowait({"1": progress()})
        await looks.progress("1")
        looks.forget("1")
        carol.says.put_nowait(None)
        await turns()
        assert carol.calls == [[("1",)]]
