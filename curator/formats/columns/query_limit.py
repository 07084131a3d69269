"""Ends a query of a database that gives no row for an hour, as a view without end may."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

from veiltab.common.command.cli import note
from veiltab.curator.formats.columns.refusals import refusal

_MINUTE = 60
_MOST_MINUTES = 60

_TELL_MINUTES = 5
"""Between two lines about a query that gives nothing."""

Row = TypeVar("Row")


class Waiting:
    """How long somebody has waited for a query."""

    def __init__(self) -> None:
        self._since: float | None = time.monotonic()

    def minutes(self) -> float:
        """Return for how long the query has given nothing; 0 while nobody asks it."""
        since = self._since
        return 0 if since is None else (time.monotonic() - since) / _MINUTE

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield what a query gives."""
        self._since = time.monotonic()
        for row in rows:
            self._since = None
            yield row
            self._since = time.monotonic()


@contextmanager
def query_ended(where: str, end: Callable[[], object]) -> Iterator[Waiting]:
    """End the query of a block if it gives nothing for an hour, and say before that it does.

    Args:
        end: ends the query, from another thread.

    Raises:
        InvalidInputError: it was ended.
    """
    waiting, is_over, was_ended = Waiting(), Event(), Event()

    def watch() -> None:
        while not is_over.wait(_TELL_MINUTES * _MINUTE):
            minutes = waiting.minutes()
            if minutes >= _MOST_MINUTES:
                was_ended.set()
                end()
            elif minutes >= _TELL_MINUTES:
                note(f"{where}: the query has given no row for {minutes:.0f} minutes; it ends after {_MOST_MINUTES}")

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield waiting
    except Exception:
        if not was_ended.is_set():
            raise
        problem = f"the query gave no row for {_MOST_MINUTES} minutes"
        remedy = "Check that it ends, in the database's own program; store what it returns as a table."
        raise refusal(where, problem, remedy) from None
    finally:
        is_over.set()
        thread.join()
