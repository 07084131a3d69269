"""What the other curators say of the releases under way here: one call to each peer for all that are due.

A release that waits is not woken by an answer that it has seen: hundreds that wait for others cost a call every two
seconds, and nothing of their own.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from veiltab.common.errors import VeiltabError
from veiltab.common.rpc.peer import PAUSES
from veiltab.curator.progress import Progress

MOST_ASKED = 256
"""Most releases that one call asks about."""

Others = tuple[Progress, ...] | VeiltabError
"""How far every other curator is with a release, or why that is not known."""


class AsksPeers(Protocol):
    """Whoever can ask every other curator."""

    async def progress(self, release_ids: tuple[str, ...]) -> Mapping[str, Others]:
        """Return what the others say of some releases."""
        ...


@dataclass(kw_only=True)
class _Look:
    """A release that waits for an answer.

    Args:
        due: when to ask, on the loop's clock.
        seen: the answer that is no news; None takes any.
        deadline: Unix seconds after which any answer is news.
        attempt: how often it was asked in vain.
    """

    due: float
    seen: Others | None = None
    deadline: float = 0.0
    attempt: int = 0
    answer: "asyncio.Future[Others]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def take(self, answer: Others, now: float) -> None:
        """Take an answer if it is news, else wait for the next."""
        if self.answer.done():
            return  # whoever waited was cancelled
        if self.seen is None or time.time() > self.deadline or not _same(answer, self.seen):
            self.answer.set_result(answer)
        else:
            self.attempt += 1
            self.due = _due(self.attempt, now)


class Looks:
    """The releases of one curator that wait for what the others say.

    `wakes` counts the calls of `wake`: what changed between a step and the wait after it is not missed.
    """

    def __init__(self) -> None:
        self.wakes = 0
        self._waiting: dict[str, _Look] = {}
        self._woken = asyncio.Event()

    async def progress(self, release_id: str) -> Others:
        """Return what the others say of a release now."""
        return await self._look(release_id, _Look(due=asyncio.get_running_loop().time()))

    async def news(self, release_id: str, seen: Others | None, *, attempt: int, wakes: int, deadline: float) -> Others:
        """Return what the others say of a release once that is new, the deadline is over, or `wake` is called.

        Args:
            release_id: the release.
            seen: what they said before; None takes any answer, after a pause.
            attempt: how often it waited already in vain, and so how patiently it waits.
            wakes: the counter, as it was before the release was looked at.
            deadline: Unix seconds.
        """
        if wakes != self.wakes:
            return await self.progress(release_id)
        due = _due(attempt, asyncio.get_running_loop().time())
        return await self._look(release_id, _Look(due=due, seen=seen, deadline=deadline, attempt=attempt))

    def wake(self) -> None:
        """Let every release that waits go on with the next answer, whatever it is."""
        self.wakes += 1
        for look in self._waiting.values():
            look.due, look.seen = 0.0, None
        self._woken.set()

    async def run(self, peers: AsksPeers) -> None:
        """Ask the others until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._woken.clear()
            due = {name: look for name, look in self._waiting.items() if look.due <= loop.time()}
            names = tuple(due)
            for start in range(0, len(names), MOST_ASKED):
                answers = await peers.progress(names[start : start + MOST_ASKED])
                now = loop.time()  # one for all, so that those who wait together stay together
                for name, answer in answers.items():
                    due[name].take(answer, now)
            if not due:
                first = min((look.due for look in self._waiting.values()), default=None)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), None if first is None else first - loop.time())

    async def _look(self, release_id: str, look: _Look) -> Others:
        self._waiting[release_id] = look
        self._woken.set()
        try:
            return await look.answer
        finally:
            if self._waiting.get(release_id) is look:
                del self._waiting[release_id]


def _due(attempt: int, now: float) -> float:
    """Return when to ask after so many attempts in vain; those that are patient are asked about together."""
    pause = PAUSES[min(attempt, len(PAUSES) - 1)]
    return now + pause if attempt < len(PAUSES) else (now // pause + 1) * pause


def _same(one: Others, other: Others) -> bool:
    if isinstance(one, VeiltabError) or isinstance(other, VeiltabError):
        return str(one) == str(other)
    return one == other
