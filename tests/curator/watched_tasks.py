"""Tasks whose progress is read while they are performed."""

from collections.abc import Iterable

from veiltab.common.observe.progress import Stage
from veiltab.common.tasks.engine import InProcess, Result, Results, Task


class Watched(InProcess):
    """Performs tasks, and notes what is said of them when each is ready."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage
        self.said: list[str] = []

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        for ready in super().perform(tasks):
            self.said.append(str(self._stage))
            yield ready

    @property
    def passes(self) -> list[str]:
        """What was under way when each task was ready."""
        return [line.partition(": ")[0] for line in self.said]
