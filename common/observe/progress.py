"""How far a long piece of work is, and when it will be over if it goes on as it did."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TELL_SECONDS = 10.0
"""Between two lines about the same work; what is over sooner has none."""

_LEAST_SECONDS = 2.0
"""Before that no rate is worth an estimate."""

_MINUTE = 60
_HOUR = 3600


class Progress:
    """A piece of work whose units, such as rows, are counted while they are done.

    Args:
        what: what is done, for people.
        total: units; None if that is not known.
        tell: takes a line about it from time to time.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        *,
        tell: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._total = total
        self._tell = tell
        self._clock = clock
        self._began = self._told = clock()
        self._done = 0

    def advance(self, units: int) -> None:
        """Count some more units that are done."""
        self._done += units
        now = self._clock()
        if self._tell is not None and now - self._told >= _TELL_SECONDS:
            self._told = now
            self._tell(str(self))

    def __str__(self) -> str:
        """Say how much is done, and how long the rest takes at the rate so far."""
        if not self._total:
            return f"{self._what}: {self._done:,} so far"
        share = min(self._done / self._total, 1.0)
        text, seconds = f"{self._what}: {100 * share:.0f} %", self._clock() - self._began
        return f"{text}, {_amount(seconds * (1 - share) / share)} left" if share and seconds >= _LEAST_SECONDS else text


def _amount(seconds: float) -> str:
    """Return a duration as people say it, which is no more exact than the rate it follows from."""
    if seconds < _MINUTE:
        return "less than a minute"
    if seconds < 2 * _HOUR:
        minutes = round(seconds / _MINUTE)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / _HOUR:.0f} hours"


class Stage:
    """What somebody does now, for whoever asks; empty between two pieces of work."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def __str__(self) -> str:
        """Say what is under way."""
        return "" if self._progress is None else str(self._progress)

    @contextmanager
    def of(self, what: str, total: int | None) -> Iterator[Progress]:
        """Let a block be under way."""
        self._progress = progress = Progress(what, total)
        try:
            yield progress
        finally:
            self._progress = None
