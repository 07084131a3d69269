"""Progress of a run on stderr: a bar on a terminal, elsewhere a line every few seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from veiltab.common.command.cli import note

EVERY = 5.0
"""Seconds between two lines, at least."""

Advance = Callable[[], None]


@contextmanager
def reporting(total: int, before: int) -> Iterator[Advance]:
    """Report on a run; the block calls the yielded function once for every computed point.

    Args:
        before: points known from an earlier run.
    """
    if sys.stderr.isatty():
        with _bar(total, before) as advance:
            yield advance
    else:
        yield Lines(total, before)


@contextmanager
def _bar(total: int, before: int) -> Iterator[Advance]:
    from rich.console import Console  # noqa: PLC0415 - not without a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - not where the extra is missing

    columns = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("points", total=total, completed=before)
        yield lambda: bar.advance(task)


class Lines:
    """Plain lines for a log: the first at once, the last one when all is done, others at most every few seconds.

    Args:
        kept: how many of them are known from before.
        clock: seconds.
    """

    def __init__(self, total: int, before: int, clock: Callable[[], float] = monotonic) -> None:
        self._total, self._before, self._done, self._clock = total, before, before, clock
        self._start = self._last = clock()
        note(f"{total} points, {before} of them kept from before" if before else f"{total} points")

    def __call__(self) -> None:
        """Count one more computed point."""
        self._done += 1
        now = self._clock()
        if self._done == self._total or now - self._last >= EVERY:
            self._last = now
            note(f"{self._done} of {self._total} points, {self._rest(now)}")

    def _rest(self, now: float) -> str:
        seconds = round((now - self._start) / (self._done - self._before) * (self._total - self._done))
        return f"about {seconds // 60}:{seconds % 60:02d} left" if self._done < self._total else "done"
