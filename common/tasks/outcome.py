"""How a task ended elsewhere: its result, or its error, as bytes that processes can exchange."""

import pickle
from typing import Generic

from veiltab.common.dataclass import dataclass
from veiltab.common.tasks.engine import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[Result]):
    """A result, or an error.

    Args:
        results: of a task that ended well, its one result.
        error: of a task that did not.
    """

    results: tuple[Result, ...] = ()
    error: Exception | None = None

    def result(self) -> Result:
        """Return the result.

        Raises:
            Exception: the task's error.
        """
        if self.error is not None:
            raise self.error
        return self.results[0]


def answer(task: bytes) -> bytes:
    """Perform a task, and return its outcome; both are pickled.

    Args:
        task: of somebody who may run code in this process: that is what unpickling it does.
    """
    try:
        return pickle.dumps(Outcome(results=(pickle.loads(task).perform(),)))  # noqa: S301 - see above
    except Exception as error:  # noqa: BLE001 - it is raised where the task comes from
        # Logs never show an error's text, since it may hold values; nor does the name of its class hold any.
        portable = error if _can_travel(error) else RuntimeError(f"a task failed: {type(error).__name__}")
        failed: Outcome[object] = Outcome(error=portable)
        return pickle.dumps(failed)


def _can_travel(error: Exception) -> bool:
    """Return whether an error is the same after its journey; few who write an error's class think of that."""
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)  # noqa: S301 - written here
    except Exception:  # noqa: BLE001 - whatever its class does
        return False
