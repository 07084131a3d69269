"""The processes of a pool, each with the task that it performs.

They are new programs, not forks: a party has threads, whose locks a fork would copy.
"""

import os
import pickle
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import MappingProxyType
from typing import Generic

from veiltab.common.errors import UnavailableError
from veiltab.common.tasks.crew import performed_by
from veiltab.common.tasks.engine import Result, Results, Task, closed_engine
from veiltab.common.tasks.outcome import Outcome

ATTEMPTS = 4
"""How many processes may end over one task before that is said."""

PROGRAM = ("-P", "-m", "veiltab.common.tasks.worker")
"""With -P nothing is imported from the folder in which the party was started, which others may write to."""

ONE_THREAD = MappingProxyType(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
)
"""Environment of a process whose linear algebra has one thread: with more, sums depend on their number."""


class Crew(Generic[Result]):
    """The processes of one call, each with the task that it performs."""

    def __init__(self, workers: int, idle: "deque[Worker]") -> None:
        self._workers, self._idle = workers, idle
        self._busy = dict[object, tuple[Worker, int, Task[Result]]]()
        self._attempts = dict[int, int]()
        self._is_broken_off = False

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        """Yield the number and the result of every task."""
        return performed_by(self, tasks)

    def room(self) -> int:
        """Return how many processes there may be."""
        return self._workers

    def begin(self, number: int, task: Task[Result]) -> None:
        """Give a task to a process that is idle, or to a new one."""
        self._attempts[number] = self._attempts.get(number, 0) + 1
        worker = _take(self._idle) or Worker()
        self._busy[worker.connection] = worker, number, task
        if self._is_broken_off:
            raise closed_engine()
        worker.begin(task)

    def ready(self) -> Iterator[tuple[int, Outcome[Result]]]:
        """Return the tasks that are ready; begin those again whose process has ended."""
        for connection in wait([worker.connection for worker, *_ in self._busy.values()]):
            worker, number, task = self._busy.pop(connection)
            outcome = worker.outcome()
            if outcome is not None:
                del self._attempts[number]
                self._idle.append(worker)
                yield number, pickle.loads(outcome)  # noqa: S301 - of this process's own child
            else:
                worker.end()
                if self._is_broken_off:
                    raise closed_engine()
                self._check_attempts(number)
                self.begin(number, task)

    def end(self) -> None:
        """End the processes that are at work."""
        while self._busy:
            worker, *_ = self._busy.popitem()[1]
            worker.end()

    def break_off(self) -> None:
        """Let the thread that waits in `ready`, or begins a task, raise an error; called by another thread."""
        self._is_broken_off = True
        for worker, *_ in tuple(self._busy.values()):
            worker.kill()

    def _check_attempts(self, number: int) -> None:
        if self._attempts[number] == ATTEMPTS:
            raise UnavailableError(
                f"{ATTEMPTS} processes ended over the same part of the work, perhaps for want of memory",
                remedy="Give it more memory, or take fewer processes, and begin again.",
            )


class Worker:
    """A process that performs one task at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._process = _started(theirs.fileno())
            self.connection: Connection[bytes, bytes] = Connection(ours.detach())

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended while it was idle."""
        return self.connection.poll()

    def begin(self, task: Task[Result]) -> None:
        """Send a task; whether it has come is seen when its outcome does not."""
        with suppress(OSError):
            self.connection.send_bytes(pickle.dumps(task))

    def outcome(self) -> bytes | None:
        """Return the outcome of the task that was begun, when there is one; None if the process has ended."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            return None

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()

    def end(self) -> None:
        """End the process, and clear it away."""
        self.connection.close()
        self._process.kill()
        self._process.communicate()


def _started(descriptor: int) -> "subprocess.Popen[bytes]":
    """Start a process that serves the tasks that come over a descriptor."""
    try:
        return subprocess.Popen(  # noqa: S603 - this program's own module
            (sys.executable, *PROGRAM, str(descriptor)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
            # What a terminal sends, such as Ctrl-C, is for the party.
            start_new_session=True,
        )
    except OSError as error:
        raise UnavailableError(
            f"no process can be started ({error.strerror})", remedy="Allow more processes and memory, and begin again."
        ) from None


def _take(idle: deque[Worker]) -> Worker | None:
    """Take a process that is still there, and clear away those that are not."""
    with suppress(IndexError):
        while True:
            worker = idle.pop()
            if not worker.has_ended:
                return worker
            worker.end()
    return None
