"""Work that takes seconds, kept away from the pages: plans within a limit, cards and models in the background."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import Any, TypeVar, cast

from veiltab.common.errors import ConflictError, UnavailableError
from veiltab.common.privacy.planning.questions import Check

T = TypeVar("T")

_MOST_KEPT = 64
"""Results that are kept; a modelled table of a page has up to a megabyte."""


class Line:
    """Runs works one after the other, in threads that end with the process."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def start(self, work: Callable[[], T]) -> "Future[T]":
        """Return the result of a work, which waits for its turn."""
        future: Future[T] = Future()

        def run() -> None:
            with self._turn:
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - who asks for the result gets it
                    future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


class Calculations:
    """Runs searches one at a time; a newer one ends an older one, and none takes longer than a limit.

    A search looks at the clock between its steps and not within one, which takes up to seconds for millions of
    respondents. The page does not wait for that: it says that the answer takes too long.

    Args:
        clock: returns seconds.
    """

    def __init__(self, seconds: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._line = Line()
        self._newest = object()

    def run(self, search: Callable[[Check], T]) -> T:
        """Return what a search finds.

        Args:
            search: calls what it is given between its steps.

        Raises:
            UnavailableError: it takes too long.
            ConflictError: a newer search took its place.
        """
        own = self._newest = object()
        end = self._clock() + self._seconds

        def check() -> None:
            if self._newest is not own:
                raise ConflictError("another question was asked meanwhile", remedy="Ask again.")
            if self._clock() >= end:
                raise self._too_long()

        try:
            return self._line.start(lambda: search(check)).result(timeout=self._seconds + 0.5)
        except TimeoutError:
            raise self._too_long() from None

    def close(self) -> None:
        """End what runs at its next step."""
        self._newest = object()

    def _too_long(self) -> UnavailableError:
        return UnavailableError(
            f"the answer takes longer than {self._seconds:g} seconds",
            where="planning",
            remedy="A larger epsilon or delta, or fewer respondents, is computed faster; `veiltab plan` has no limit.",
        )


class Background:
    """Computes things once each, one after the other, and keeps the last ones."""

    def __init__(self) -> None:
        self._line = Line()
        self._known: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, work: Callable[[], T], *, within: float) -> T | None:
        """Return a result if it is there within some seconds; None while it is computed.

        A work that fails raises here, and is tried again the next time.

        Args:
            work: computes it; started the first time.
            within: seconds to wait.
        """
        with self._lock:
            future = self._known.get(key)
            if future is None:
                future = self._known[key] = self._line.start(work)
                if len(self._known) > _MOST_KEPT:
                    del self._known[next(iter(self._known))]
        wait([future], timeout=within)
        if not future.done():
            return None
        try:
            return cast("T", future.result())
        except BaseException:
            with self._lock:
                self._known.pop(key, None)
            raise
