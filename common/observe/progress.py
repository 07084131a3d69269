"""How far a long piece of work is, and when it will be over if it goes on as it did."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TELL_SECONDS = 10.0
"""Between two lines about the same work; what is over sooner has none."""

_LEAST_SECONDS = 2.0
"""Before that no rate is worth an estimate."""

_SHOWN_SECONDS = 1.0
"""Before that a piece of work is not worth a line: it is over when anybody reads it."""

_FIGURES = re.compile(r"\d+ %(, (less|about) [\w ]+ left)?|[\d,]+ so far")

_MINUTE = 60
_HOUR = 3600


class Progress:
    """A piece of work whose units, such as rows, are counted while they are done.

    Args:
        what: what is done, for people.
        total: units; None if that is not known.
        done: units that were done before, such as those that an attempt before this one left.
        tell: takes a line about it from time to time.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        *,
        done: int = 0,
        tell: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._total = total
        self._tell = tell
        self._clock = clock
        self._began = self._told_at = clock()
        self._before = self._done = done

    def expect(self, total: int) -> None:
        """Take the number of units, if it was not known at the beginning."""
        self._total = total

    def advance(self, units: int) -> None:
        """Count some more units that are done."""
        self._done += units
        now = self._clock()
        if self._tell is not None and now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self._tell(str(self))

    def __str__(self) -> str:
        """Say how much is done, and how long the rest takes at the rate so far."""
        if not self._total:
            return f"{self._what}: {self._done:,} so far" if self._done else self._what
        done, seconds = min(self._done, self._total), self._clock() - self._began
        text, since = f"{self._what}: {100 * done / self._total:.0f} %", done - self._before
        if since <= 0 or seconds < _LEAST_SECONDS:
            return text
        return f"{text}, {_amount(seconds * (self._total - done) / since)} left"


def _amount(seconds: float) -> str:
    """Return a duration as people say it, which is no more exact than the rate it follows from."""
    if seconds < _MINUTE:
        return "less than a minute"
    if seconds < 2 * _HOUR:
        minutes = round(seconds / _MINUTE)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / _HOUR:.0f} hours"


class Stage:
    """What somebody does now, for anyone who asks; empty between two pieces of work."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def __str__(self) -> str:
        """Say what is under way."""
        return "" if self._progress is None else str(self._progress)

    @contextmanager
    def of(self, what: str, total: int | None, *, done: int = 0) -> Iterator[Progress]:
        """Let a block be under way; what is under way in it for a while is said instead."""
        around = self._progress
        self._progress = progress = Progress(what, total, done=done)
        try:
            yield progress
        finally:
            self._progress = around


class Stages:
    """The stages of several works, such as releases, by name.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # When each was begun.
        self._stages: dict[str, tuple[float, Stage]] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Let somebody work on something for the time of a block."""
        stage = Stage()
        self._stages[name] = self._clock(), stage
        try:
            yield stage
        finally:
            del self._stages[name]

    @property
    def texts(self) -> dict[str, str]:
        """What is done now, of every work that has taken a second or more."""
        since = self._clock() - _SHOWN_SECONDS
        texts = {name: str(stage) for name, (began, stage) in self._stages.items() if began <= since}
        return {name: text for name, text in texts.items() if text}


def without_figures(text: str) -> str:
    """Return what is said of work without how far it is: the same as long as the same is done."""
    return _FIGURES.sub("", text)
