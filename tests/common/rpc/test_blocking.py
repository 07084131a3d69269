import asyncio
import threading
from typing import Any, cast
from unittest.mock import Mock

import pytest

from veiltab.common.errors import DeniedError
from veiltab.common.rpc.blocking import BlockingChannel


class Channel:
    """A channel that remembers where it was opened and closed."""

    def __init__(self) -> None:
        self.opened = asyncio.get_running_loop()
        self.closed = False

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.opened
        self.closed = True


def opened() -> tuple[BlockingChannel, Channel]:
    link = BlockingChannel(cast("Any", Channel))
    return link, cast("Channel", link.channel)


async def twice(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def refused() -> None:
    await asyncio.sleep(0)
    raise DeniedError("no")


def test_work_is_waited_for_and_its_refusal_raised() -> None:
    before = threading.active_count()
    link, channel = opened()
    assert link.wait(twice(21)) == 42
    with pytest.raises(DeniedError):
        link.wait(refused())
    assert link.wait(twice(1)) == 2
    link.close()
    assert channel.closed
    assert threading.active_count() == before


async def test_it_waits_where_another_loop_runs() -> None:
    link, _ = opened()
    try:
        assert link.wait(twice(21)) == 42
    finally:
        link.close()


def test_a_channel_that_cannot_be_opened_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(DeniedError):
        BlockingChannel(Mock(side_effect=DeniedError("no")))
    assert threading.active_count() == before


def test_who_interrupts_the_waiting_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    link, channel = opened()
    started, ended = threading.Event(), threading.Event()

    async def long() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupted(_: object) -> None:
        assert started.wait(10)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("concurrent.futures.Future.result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.wait(long())
    assert ended.wait(10)
    link.close()
    assert channel.closed
