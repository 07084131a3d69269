"""Tasks in processes of this machine.

They start with the first task and end some seconds after the last. Killed ones are replaced; their tasks begin again.
"""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from threading import Timer
from typing import TYPE_CHECKING, Any

from veiltab.common.errors import InvalidInputError
from veiltab.common.tasks.engine import Result, Results, Task, closed_engine

if TYPE_CHECKING:
    from veiltab.common.tasks.processes import Crew, Worker

IDLE = 10.0
"""Seconds after a call for which its processes wait for another."""


class Pool:
    """Performs tasks in other processes; several threads may do so at once, each with processes of its own.

    Args:
        workers: how many processes at a time for the tasks of one call.

    Raises:
        InvalidInputError: fewer than one.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise InvalidInputError(f"there must be at least 1 process, not {workers}")
        self._workers = workers
        # Left over from earlier calls.
        self._idle = deque["Worker"]()
        self._crews = set["Crew[Any]"]()
        self._is_closed = False
        self._end = Timer(IDLE, self._end_idle)

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        """Yield the number and the result of every task."""
        from veiltab.common.tasks.processes import Crew  # noqa: PLC0415 - not for tables that fit in memory

        crew = Crew[Result](self._workers, self._idle)
        self._crews.add(crew)
        try:
            if self._is_closed:
                raise closed_engine()
            yield from crew.perform(tasks)
        finally:
            self._crews.remove(crew)
            crew.end()
            self._end.cancel()
            self._end = Timer(IDLE, self._end_idle)
            self._end.daemon = True
            self._end.start()

    def close(self) -> None:
        """End all calls and processes."""
        self._is_closed = True
        for crew in tuple(self._crews):
            crew.break_off()
        self._end.cancel()
        self._end_idle()

    def _end_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().end()
