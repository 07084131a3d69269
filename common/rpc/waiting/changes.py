"""Answers that wait for a change.

Anyone who asks again and again how far a party is offers to wait for the answer. The party lets the call wait until
something changes that the answer depends on, or until the time is over. Nothing depends on a wait: a change that wakes
nobody costs the rest of one, and where a party cannot wait, its asker pauses before the next question.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice

from veiltab.common.errors import UnavailableError
from veiltab.common.rpc.parties.identity import Party

LONGEST_WAIT = 2.0
"""Most seconds that an answer waits."""

MOST_FOLLOWING = 4
"""Calls of one party that follow names at a time: it needs one, and another while the last one ends."""

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
        self._followed: set[Followed] = set()
        self._callers: Counter[Party] = Counter()
        self._is_open = True

    def version(self, name: str) -> bytes:
        """Return what differs after every change of a name, and in every process; 16 bytes."""
        return self._start + self._numbers.get(name, self._number_of_others).to_bytes(_VERSION_BYTES, "big")

    def notify(self, name: str) -> None:
        """Wake everyone who waits for a change of a name."""
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
            seconds: how long the caller offers to wait; LONGEST_WAIT at most.
        """
        if self._callers[caller] >= MOST_WAITING:
            return
        with self._registered(names, caller) as changed, suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, LONGEST_WAIT)):
                while self._is_open and not is_news():
                    await changed.wait()
                    changed.clear()

    @contextmanager
    def followed(self, caller: Party) -> Iterator["Followed"]:
        """Let a call hear of changes as long as a block lasts.

        Raises:
            UnavailableError: the caller has enough calls that wait.
        """
        following = sum(one.caller == caller for one in self._followed)
        if self._callers[caller] >= MOST_WAITING or following >= MOST_FOLLOWING:
            raise UnavailableError("the caller has enough calls that wait for changes", remedy="Ask again later.")
        followed = Followed(self, caller)
        self._callers[caller] += 1
        self._followed.add(followed)
        if not self._is_open:
            followed.end()
        try:
            yield followed
        finally:
            self._callers[caller] -= 1
            self._followed.remove(followed)
            followed.end()

    def close(self) -> None:
        """Let nobody wait any more."""
        self._is_open = False
        for followed in self._followed:
            followed.end()
        self.notify_all()

    @contextmanager
    def _registered(self, names: Collection[str], caller: Party) -> Iterator[asyncio.Event]:
        changed = asyncio.Event()
        self._callers[caller] += 1
        for name in names:
            self.register(name, changed)
        try:
            yield changed
        finally:
            self._callers[caller] -= 1
            for name in dict.fromkeys(names):
                self.unregister(name, changed)

    def register(self, name: str, changed: asyncio.Event) -> None:
        """Set an event at every change of a name from now on."""
        self._waiting.setdefault(name, {})[changed] = None

    def unregister(self, name: str, changed: asyncio.Event) -> None:
        """Set a registered event no more."""
        del self._waiting[name][changed]
        if not self._waiting[name]:
            del self._waiting[name]


class Followed:
    """Names whose changes one call hears of, until it is over."""

    def __init__(self, changes: Changes, caller: Party) -> None:
        self.caller = caller
        self._changes = changes
        # The version of each name that the call has heard; empty if it is to hear of it anyhow.
        self._heard: dict[str, bytes] = {}
        self._changed = asyncio.Event()
        self._is_over = False

    def __len__(self) -> int:
        """Number of names."""
        return len(self._heard)

    def __contains__(self, name: str) -> bool:
        """Whether the call hears of a name."""
        return name in self._heard

    def add(self, names: Collection[str]) -> None:
        """Let the call hear of some names, at once and whenever they change."""
        for name in () if self._is_over else names:
            self._changes.register(name, self._changed)
            self._heard[name] = b""
        self._changed.set()

    def remove(self, name: str) -> None:
        """Let the call hear no more of a name."""
        self._changes.unregister(name, self._changed)
        del self._heard[name]

    def end(self) -> None:
        """Let it hear of nothing any more."""
        self._is_over = True
        for name in list(self._heard):
            self.remove(name)
        self._changed.set()

    async def news(self, most: int) -> tuple[str, ...] | None:
        """Wait for names that the call is to hear of.

        Returns:
            The names; none if nothing changes for LONGEST_WAIT, and None once nothing more will come.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                while not self._is_over and not (names := self._names(most)):
                    self._changed.clear()
                    await self._changed.wait()
                return None if self._is_over else names
        return ()

    def _names(self, most: int) -> tuple[str, ...]:
        """Return some names that have another version than the call has heard; it hears of them now."""
        version = self._changes.version
        names = tuple(islice((name for name, heard in self._heard.items() if version(name) != heard), most))
        self._heard |= {name: version(name) for name in names}
        return names


def offered_seconds(milliseconds: int) -> float:
    """Return how long a caller offers to wait."""
    return min(milliseconds / 1000, LONGEST_WAIT)
