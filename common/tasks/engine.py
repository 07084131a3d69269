"""Tasks, and the engines that perform them.

A task is a frozen dataclass of a module's top level: whole numbers, texts, bytes, paths, tuples, and further such
records. It names the files that it reads and writes, and says all else that its result depends on; so it can run in any
process, run twice, or be killed and run again, and its result and its files are the same. A file that it writes gets a
name of its own first, and its final name when it is whole. No task draws a key.
"""

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Protocol, TypeVar

from veiltab.common.errors import UnavailableError

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

Results = Generator[tuple[int, Result], None, None]
"""Number of a task, counted from 0, and its result: in the order in which they are ready."""


class Task(Protocol[Result_co]):
    """A part of some work."""

    def perform(self) -> Result_co:
        """Do it, and return what is plain data like the task itself."""


class Engine(Protocol):
    """Performs tasks."""

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        """Yield the number and the result of every task, each as soon as it is ready.

        Tasks are taken when there is room for them, so a generator of many costs no memory. The first error of a task
        ends the rest and is raised here. So does closing the generator: nothing that is under way goes on.

        Raises:
            UnavailableError: what should perform them is not there, or ended several times before it was done.
        """

    def close(self) -> None:
        """End all calls that are under way, in whatever threads, and let go of what waits for further tasks.

        A call that is ended so raises UnavailableError; there are no further ones.
        """


class InProcess:
    """Performs one task after the other, in this process; closing it ends a call when its task has ended."""

    def __init__(self) -> None:
        self._is_closed = False

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        """Yield the number and the result of every task."""
        for number, task in enumerate(tasks):
            if self._is_closed:
                raise closed_engine()
            yield number, task.perform()

    def close(self) -> None:
        """End all calls."""
        self._is_closed = True


def closed_engine() -> UnavailableError:
    """Return the refusal to go on with a call."""
    return UnavailableError("the work was ended in the middle", remedy="Begin again.")


def in_order(results: Results[Result]) -> Generator[Result, None, None]:
    """Yield the results of tasks in the order of the tasks; closes `results` when it is closed.

    Engines begin few tasks ahead of the oldest that is not ready, so few results wait here for their turn.
    """
    with closing(results):
        waiting: dict[int, Result] = {}
        turn = 0
        for number, result in results:
            waiting[number] = result
            while turn in waiting:
                yield waiting.pop(turn)
                turn += 1
