"""Answers that wait for a change.

Whoever asks again and again how far a party is offers to wait for the answer. The party lets the call wait until
something changes that the answer depends on, or until the time is over. Nothing depends on a wait: a change that wakes
nobody costs the rest of one, and where a party cannot wait, its asker pauses before the next question.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count

from veiltab.common.rpc.identity import Party

LONGEST_WAIT = 2.0
"""Most seconds that an answer waits."""

MOST_WAITING = 32
"""Calls of one party that wait at a time; the next one is answered at once, so that places are left for other calls."""

_MOST_NAMES = 65_536
"""Names whose changes are counted; beyond, all are forgotten, and every asker has news once."""

_VERSION_BYTES = 8


class Changes:
    """What changed at a party since it started, by name; call it in the event loop."""

    def __init__(self) -> None:
        self._start = secrets.token_bytes(_VERSION_BYTES)
        self._counted = count(1)
        # Of the last change of a name, and of the last change of all the others.
        self._numbers: dict[str, int] = {}
        self._number_of_others = 0
        # Who waits for what, in the order in which they came.
        self._waiting: dict[str, dict[asyncio.Event, None]] = {}
        self._callers: Counter[Party] = Counter()
        self._is_open = True

    def version(self, name: str) -> bytes:
        """Return what differs after every change of a name, and in every process; 16 bytes."""
        return self._start + self._numbers.get(name, self._number_of_others).to_bytes(_VERSION_BYTES, "big")

    def notify(self, name: str) -> None:
        """Wake whoever waits for a change of a name."""
        if len(self._numbers) >= _MOST_NAMES:
            self.notify_all()
        self._numbers[name] = next(self._counted)
        for changed in self._waiting.get(name, ()):
            changed.set()

    def notify_all(self) -> None:
        """Wake everybody: it is not known what changed."""
        self._numbers.clear()
        self._number_of_others = next(self._counted)
        for waiting in self._waiting.values():
            for changed in waiting:
                changed.set()

    async def until(
        self, is_news: Callable[[], bool], names: Collection[str], caller: Party, seconds: float = LONGEST_WAIT
    ) -> None:
        """Wait for news; at most for some seconds, and not at all if the caller has enough calls that wait.

        Args:
            is_news: whether the answer is worth giving; asked at first, and after every change.
            names: whose changes wake.
            caller: who asks.
            seconds: how long the caller offers to wait; LONGEST_WAIT at most.
        """
        if self._callers[caller] >= MOST_WAITING:
            return
        with self._registered(names, caller) as changed, suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, LONGEST_WAIT)):
                while self._is_open and not is_news():
                    await changed.wait()
                    changed.clear()

    def close(self) -> None:
        """Let nobody wait any more."""
        self._is_open = False
        self.notify_all()

    @contextmanager
    def _registered(self, names: Collection[str], caller: Party) -> Iterator[asyncio.Event]:
        changed = asyncio.Event()
        self._callers[caller] += 1
        for name in names:
            self._waiting.setdefault(name, {})[changed] = None
        try:
            yield changed
        finally:
            self._callers[caller] -= 1
            for name in dict.fromkeys(names):
                del self._waiting[name][changed]
                if not self._waiting[name]:
                    del self._waiting[name]


def offered_seconds(milliseconds: int) -> float:
    """Return how long a caller offers to wait."""
    return min(milliseconds / 1000, LONGEST_WAIT)
