"""What the other curators say of the releases under way here: one call to each peer follows them all.

A release that waits is not woken by an answer that it has seen, and is asked about again with the next call alone:
hundreds that wait for others cost an empty message every two seconds. What is known of a peer may be old where it does
not answer; what a curator has done stays done (curator/progress).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Protocol, TypeAlias

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import UnavailableError, VeiltabError
from veiltab.common.rpc.peer import ASK_SECONDS, PAUSES
from veiltab.common.rpc.waiting.changes import LONGEST_WAIT
from veiltab.curator.progress.release_record import Progress

MOST_ASKED = 256
"""Most releases that one message asks about, or answers about."""

MOST_FOLLOWED = 4096
"""Most releases that one call follows."""

PeerAnswer: TypeAlias = Progress | VeiltabError
"""How far another curator is with a release, or why that is not known."""

Others: TypeAlias = tuple[Progress, ...] | VeiltabError
"""How far every other curator is with a release, or why that is not known."""

_PACE = 0.002
_LONGEST_PACE = 0.02

_SILENT_SECONDS = ASK_SECONDS + LONGEST_WAIT
"""How long a curator may say nothing of a release that it was asked about."""


def pace(releases: int) -> float:
    """Return seconds after news of one of so many releases under way, before the next news: some come together."""
    return min(_PACE * (releases - 1), _LONGEST_PACE)


class FollowsPeers(Protocol):
    """Anyone who can follow the other curators."""

    @property
    def curators(self) -> Collection[str]:
        """Their names."""

    def follow(
        self, curator: str, release_ids: AsyncIterator[tuple[str, ...]]
    ) -> AsyncIterator[Mapping[str, PeerAnswer]]:
        """Yield what is new at one of them about releases; see `Peers.follow`."""


@dataclass(kw_only=True, eq=False)
class _Subscription:
    """A release under way: what each curator says of it, and anyone who waits for something else.

    Of those that are not `awaited`, what is not known does not count; None awaits all of them.
    """

    awaited: Collection[str] | None = None
    answers: dict[str, PeerAnswer] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether it ended without a result at any of them."""
        return any(isinstance(answer, Progress) and answer.state.unsuccessful for answer in self.answers.values())


class Subscriptions:
    """The releases of one curator that are under way, as the other curators see them.

    `wakes` counts the calls of `wake`: what changed between a step and the wait after it is not missed.
    """

    def __init__(self) -> None:
        self.wakes = 0
        self._subscriptions: dict[str, _Subscription] = {}
        self._curators: tuple[str, ...] | None = None
        self._more: dict[str, asyncio.Event] = {}

    async def progress(self, release_id: str, awaited: Collection[str] | None = None) -> Others:
        """Return what the others say of a release, as far as is known; they are asked if nothing is.

        Who says nothing of it, and perhaps something of others, is a curator that cannot be asked: a deadline holds.

        Args:
            awaited: of whom it matters, here and to `news`, if they say nothing; None for everybody.
        """
        subscription = self._subscription(release_id)
        subscription.awaited = awaited
        if (others_now := self._answers(subscription)) is not None:
            return others_now
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENT_SECONDS):
                while (others := self._answers(subscription)) is None:
                    subscription.changed.clear()
                    await subscription.changed.wait()
                return others
        missing = [name for name in self._curators or () if name not in subscription.answers]
        silent = next((name for name in missing if _is_awaited(name, subscription)), "?")
        return UnavailableError("no answer about this release", where=f"curator {silent}", remedy="Ask again later.")

    async def news(  # noqa: PLR0913 - what a wait depends on
        self, release_id: str, last: Others | None, *, attempt: int, wakes: int, deadline: float, is_refused: bool
    ) -> None:
        """Wait until the others say something new of a release, the deadline is over, or `wake` is called.

        Args:
            last: what they said before; None if they were not asked.
            attempt: how often a step was refused, and so how patiently it waits for another attempt.
            wakes: the counter, as it was before the release was looked at.
            deadline: Unix seconds.
            is_refused: whether the others allow a step, and it was refused: it is tried again after a pause.
        """
        subscription = self._subscription(release_id)
        # At its deadline itself a release is not over yet.
        pause = PAUSES[min(attempt, len(PAUSES) - 1)] if is_refused else max(PAUSES[0], deadline - time.time())
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                while wakes == self.wakes and _same(self._answers(subscription), last):
                    subscription.changed.clear()
                    await subscription.changed.wait()

    def ended(self, release_ids: Iterable[str]) -> set[str]:
        """Return which of some releases are over at another curator, as far as is known."""
        return {name for name in release_ids if name in self._subscriptions and self._subscriptions[name].is_over}

    def wake(self) -> None:
        """Let every release that waits go on, whatever the others say."""
        self.wakes += 1
        for subscription in self._subscriptions.values():
            subscription.changed.set()

    def forget(self, release_id: str) -> None:
        """Ask no more about a release."""
        self._subscriptions.pop(release_id, None)

    async def run(self, peers: FollowsPeers) -> None:
        """Follow the others until cancelled."""
        self._curators = tuple(peers.curators)
        self._more = {name: asyncio.Event() for name in self._curators}
        self.wake()
        async with asyncio.TaskGroup() as tasks:
            for name in self._curators:
                tasks.create_task(self._run(name, peers))

    async def _run(self, curator: str, peers: FollowsPeers) -> None:
        """Follow one curator."""
        attempt = 0
        while True:
            await self._any(curator)
            attempt += 1
            try:
                async for news in peers.follow(curator, self._release_ids(curator)):
                    self._take(curator, news)
                    attempt = 0
            except VeiltabError as error:
                self._take(curator, dict.fromkeys(self._subscriptions, error))
                attempt = max(attempt, 1)
            if attempt:  # the call failed, or brought nothing
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._more[curator].wait(), PAUSES[min(attempt, len(PAUSES)) - 1])

    async def _any(self, curator: str) -> None:
        """Wait until any release is under way; from then on `_more` says that there are others."""
        more = self._more[curator]
        more.clear()
        while not self._subscriptions:
            await more.wait()
            more.clear()

    async def _release_ids(self, curator: str) -> AsyncIterator[tuple[str, ...]]:
        """Yield the releases under way, and then those that come, some at a time, as many as a call can follow."""
        more, followed, number = self._more[curator], dict[str, _Subscription](), 0
        while True:
            more.clear()
            new = [name for name, subscription in self._subscriptions.items() if followed.get(name) is not subscription]
            number += len(new)
            if followed and number > MOST_FOLLOWED:
                return
            followed = dict(self._subscriptions)
            for start in range(0, len(new), MOST_ASKED):
                yield tuple(new[start : start + MOST_ASKED])
            await more.wait()

    def _take(self, curator: str, answers: Mapping[str, PeerAnswer]) -> None:
        """Take the answers of one curator, and wake the releases of which it says something new."""
        for name, answer in answers.items():
            subscription = self._subscriptions.get(name)
            if subscription is None:
                continue
            before, subscription.answers[curator] = subscription.answers.get(curator), answer
            if not _same(before, answer):
                subscription.changed.set()

    def _subscription(self, release_id: str) -> _Subscription:
        subscription = self._subscriptions.get(release_id)
        if subscription is None:
            subscription = self._subscriptions[release_id] = _Subscription()
            for more in self._more.values():
                more.set()
        return subscription

    def _answers(self, subscription: _Subscription) -> Others | None:
        """Return what is known of a release; None before every curator that is awaited was asked.

        Where it has ended is enough to know, no matter who else says nothing.
        """
        if self._curators is None:
            return None
        answers = [subscription.answers.get(name) for name in self._curators]
        progress = tuple(answer for answer in answers if isinstance(answer, Progress))
        if len(progress) == len(answers) or subscription.is_over:
            return progress
        awaited = [subscription.answers.get(name) for name in self._curators if _is_awaited(name, subscription)]
        if None in awaited:
            return None
        return next((answer for answer in awaited if isinstance(answer, VeiltabError)), progress)


def _is_awaited(curator: str, subscription: _Subscription) -> bool:
    return subscription.awaited is None or curator in subscription.awaited


def _same(one: Others | PeerAnswer | None, other: Others | PeerAnswer | None) -> bool:
    if isinstance(one, VeiltabError) or isinstance(other, VeiltabError):
        return str(one) == str(other)
    return one == other
