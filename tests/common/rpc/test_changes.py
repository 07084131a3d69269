"""Who waits for a change, and who does not: no test depends on how long anything takes."""

import asyncio
from contextlib import ExitStack

import pytest

from tests.worlds.parties import ALICE, BOB
from veiltab.common.errors import UnavailableError
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.rpc.waiting import changes as module
from veiltab.common.rpc.waiting.changes import MOST_FOLLOWING, MOST_WAITING, Changes, offered_seconds


@pytest.fixture(autouse=True)
def no_end_of_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes, comes because something changed."""
    monkeypatch.setattr(module, "LONGEST_WAIT", 3600.0)


def waits(changes: Changes, name: str, caller: Party = ALICE) -> asyncio.Task[None]:
    """Let a call wait until a name has another version than now."""
    version = changes.version(name)
    return asyncio.create_task(changes.until(lambda: changes.version(name) != version, [name], caller, seconds=3600.0))


async def turns(number: int = 5) -> None:
    """Let everything happen that can."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_change_wakes_those_that_wait_for_it_and_nobody_else() -> None:
    changes = Changes()
    one, same, other = waits(changes, "one"), waits(changes, "one", BOB), waits(changes, "other")
    await turns()
    assert not any(task.done() for task in (one, same, other))
    changes.notify("one")
    await asyncio.gather(one, same)
    await turns()
    assert not other.done()
    changes.notify_all()
    await other


async def test_a_change_that_is_no_news_ends_no_wait() -> None:
    changes = Changes()
    is_over = False
    task = asyncio.create_task(changes.until(lambda: is_over, ["one"], ALICE, seconds=3600.0))
    await turns()
    changes.notify("one")
    await turns()
    assert not task.done()
    is_over = True
    changes.notify("one")
    await task


async def test_what_is_news_already_and_what_nobody_offers_to_wait_for_is_answered_at_once() -> None:
    changes = Changes()
    await changes.until(lambda: True, ["one"], ALICE, seconds=3600.0)
    await changes.until(lambda: False, ["one"], ALICE, seconds=0.0)
    await changes.until(lambda: False, ["one"], ALICE, seconds=0.001)


async def test_calls_beyond_the_limit_of_one_caller_wait_for_nothing_and_those_of_others_do() -> None:
    changes = Changes()
    waiting = [waits(changes, "one") for _ in range(MOST_WAITING)]
    await turns()
    await waits(changes, "one")
    bobs = waits(changes, "one", BOB)
    await turns()
    assert not any(task.done() for task in (*waiting, bobs))
    # A place that is left is free again, however it was left.
    waiting[0].cancel()
    await turns()
    again = waits(changes, "one")
    await turns()
    assert not again.done()
    await waits(changes, "one")
    changes.notify("one")
    await asyncio.gather(*waiting[1:], bobs, again)
    assert not changes._waiting
    assert not +changes._callers


async def test_a_call_hears_of_what_it_follows_at_once_and_of_each_change() -> None:
    changes = Changes()
    with changes.followed(ALICE) as followed:
        followed.add(["one", "two", "three"])
        assert await followed.news(2) == ("one", "two")
        assert await followed.news(2) == ("three",)
        hearing = asyncio.create_task(followed.news(2))
        await turns()
        changes.notify("four")
        await turns()
        assert not hearing.done()
        changes.notify("two")
        assert await hearing == ("two",)
        changes.notify_all()
        followed.remove("one")
        assert await followed.news(9) == ("two", "three")
        followed.add(["two"])
        assert await followed.news(9) == ("two",)
        assert len(followed) == 2
    assert await followed.news(9) is None
    assert not changes._waiting
    assert not +changes._callers


async def test_a_call_hears_of_nothing_if_nothing_has_changed_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.001)

    changes = Changes()
    with changes.followed(ALICE) as followed:
        assert await followed.news(2) == ()
        followed.add(["one", "two", "three"])
        for names in [("one", "two"), ("three",), (), ()]:
            assert await followed.news(2) == names
        changes.notify("two")
        assert await followed.news(2) == ("two",)


def test_so_many_calls_of_one_caller_follow_anything() -> None:
    changes = Changes()
    with ExitStack() as calls:
        for _ in range(MOST_FOLLOWING):
            calls.enter_context(changes.followed(ALICE))
        with pytest.raises(UnavailableError, match="enough calls"), changes.followed(ALICE):
            pass
        with changes.followed(BOB):
            pass


async def test_nothing_is_followed_after_the_end() -> None:
    changes = Changes()
    with changes.followed(ALICE) as followed:
        hearing = asyncio.create_task(followed.news(9))
        await turns()
        changes.close()
        assert await hearing is None
        followed.add(["one"])
        assert await followed.news(9) is None


def test_versions_differ_after_every_change_and_in_every_process() -> None:
    changes, restarted = Changes(), Changes()
    versions = [changes.version("one")]
    for name in ("one", "two", "one"):
        changes.notify(name)
        versions.append(changes.version("one"))
    assert versions[1] == versions[2]
    changes.notify_all()
    assert changes.version("one") == changes.version("never")
    assert len({*versions, changes.version("one"), restarted.version("one")}) == 5
    assert {len(version) for version in versions} == {16}


def test_names_that_are_forgotten_are_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NAMES", 2)
    changes = Changes()
    for name in ("one", "two"):
        changes.notify(name)
    seen = changes.version("one")
    changes.notify("three")
    assert changes.version("one") != seen


async def test_at_the_end_nobody_waits() -> None:
    changes = Changes()
    task = asyncio.create_task(changes.until(lambda: False, ["one"], ALICE, seconds=3600.0))
    await turns()
    changes.close()
    await task
    await changes.until(lambda: False, ["one"], ALICE, seconds=3600.0)


def test_an_offer_is_limited() -> None:
    assert offered_seconds(0) == 0
    assert offered_seconds(500) == 0.5
    assert offered_seconds(2**32 - 1) == module.LONGEST_WAIT
