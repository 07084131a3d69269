"""The loop of every engine whose tasks run elsewhere: which task is begun when."""

from collections.abc import Iterable
from typing import Protocol

from veiltab.common.tasks.engine import Result, Results, Task
from veiltab.common.tasks.outcome import Outcome

AHEAD = 16
"""How many rooms' worth of tasks are begun ahead of the oldest that is not ready: so many results wait for order."""


class Crew(Protocol[Result]):
    """What performs tasks elsewhere."""

    def room(self) -> int:
        """Return how many tasks may be under way now, at least 1."""

    def begin(self, number: int, task: Task[Result]) -> None:
        """Begin a task."""

    def ready(self) -> Iterable[tuple[int, Outcome[Result]]]:
        """Wait until a task that was begun is ready, and return the number and the outcome of each that is."""


def performed_by(crew: Crew[Result], tasks: Iterable[Task[Result]]) -> Results[Result]:
    """Yield the number and the result of every task; see `Engine.perform`."""
    waiting, under_way, begun = iter(tasks), set[int](), 0
    more = True
    while True:
        room = crew.room()
        while more and len(under_way) < room and begun - min(under_way, default=begun) < AHEAD * room:
            task = next(waiting, None)
            if task is None:
                more = False
            else:
                crew.begin(begun, task)
                under_way.add(begun)
                begun += 1
        if not under_way:
            return
        for number, outcome in crew.ready():
            under_way.remove(number)
            yield number, outcome.result()
