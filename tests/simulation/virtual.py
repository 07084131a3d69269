"""Virtual time and virtual machines: a loop that jumps to its next timer, and all that a party has of its machine.

While a run lasts, the time, the generator, the disk and the channels of the process belong to the simulation. Which
machine a piece of code runs on is a context variable, which tasks and threads inherit. Work for threads runs in the
loop after a random time, whole: threads never run at once here.
"""

import asyncio
import errno
import hashlib
import os
import random
import selectors
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import grpc

from veiltab.common.storage.database import Database
from veiltab.curator.planning.planner import Planner
from veiltab.curator.planning.plans import ANSWERS

START = 1_767_225_600.0
"""Unix seconds at which every run begins."""


class Killed(BaseException):
    """The machine's process was killed; no handler of the product's takes it for an error."""


@dataclass(kw_only=True, eq=False)
class Machine:
    """One process of a party on its machine, until it ends.

    Args:
        name: the party.
        random_bytes: the operating system's generator.
        skew: seconds that its clock is ahead.
        full: whether its disk is full.
        countdown: durable steps until it is killed; negative for never.
        killed: called in the very moment of the kill, to keep the disk as it is then.
        copying: durable steps until its disk is copied; negative for never.
        copied: called in that moment.
    """

    name: str
    random_bytes: Callable[[int], bytes]
    skew: float = 0.0
    full: bool = False
    countdown: int = -1
    killed: Callable[[], None] = field(default=lambda: None)
    copying: int = -1
    copied: Callable[[], None] = field(default=lambda: None)
    dead: bool = False
    tasks: dict["asyncio.Task[Any]", None] = field(default_factory=dict)

    def kill(self) -> None:
        """End the process at once: nothing that it does from here on has any effect."""
        if not self.dead:
            self.dead = True
            self.killed()
            for task in list(self.tasks):
                task.cancel()

    def durable_step(self, *, full: BaseException) -> None:
        """Pass a durable step, die there, or fail of a full disk."""
        if self.copying == 0:
            self.copied()
        self.copying -= 1
        if self.countdown == 0:
            self.kill()
        self.countdown -= 1
        if self.dead:
            raise Killed
        if self.full:
            raise full


HERE: ContextVar[Machine | None] = ContextVar("machine", default=None)
"""The machine that the code now running is on; None for the simulation itself."""


class _Jump(selectors.SelectSelector):
    """Waits for nothing: it moves the time on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Let the time pass."""
        if timeout is None:
            raise AssertionError("every task waits for ever")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time.

    Args:
        rng: how long the work of a thread takes.
    """

    def __init__(self, rng: random.Random) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)
        self._rng = rng
        self._clock_resolution = 1e-9
        factory: Any = _on_its_machine
        self.set_task_factory(factory)

    def time(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self._jump.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]  # noqa: ANN401 - asyncio's
        """Run a function later, in the loop itself."""
        del executor
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except BaseException as error:  # noqa: BLE001 - whatever it is, whoever waits gets it
                future.set_exception(error)

        self.call_later(self._rng.expovariate(200), run)
        return future


def _on_its_machine(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], context: Context | None = None
) -> "asyncio.Task[Any]":
    context = copy_context() if context is None else context
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, context=context)
    machine = context.get(HERE)
    if machine is not None:
        machine.tasks[task] = None
        task.add_done_callback(lambda done: machine.tasks.pop(done, None))
        if machine.dead:
            task.cancel()
    return task


def stream_of(*seed: object) -> Callable[[int], bytes]:
    """Return a generator of bytes that repeats with its seed."""
    rng = random.Random(hashlib.sha256(repr(seed).encode()).digest())  # noqa: S311 - it must repeat
    return rng.randbytes


def _is_durable(database: Database, statement: str) -> bool:
    verb = statement.split(maxsplit=1)[0].upper()
    return verb == "COMMIT" or (verb in {"INSERT", "UPDATE", "DELETE"} and not database.in_transaction)


def _full_database() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def _passed(full: BaseException) -> bool:
    """Pass a durable step of a machine; return whether there is one."""
    machine = HERE.get()
    if machine is not None:
        machine.durable_step(full=full)
    return machine is not None


_execute, _fsync = Database.execute, os.fsync


def _executed(database: Database, *args: Any) -> Any:  # noqa: ANN401 - those of sqlite3
    """Run a statement; a kill comes before a durable one, or after it and before anybody has learned of it."""
    # Nothing here outlives the process but what the page cache has.
    statement = "PRAGMA synchronous = OFF" if args[0] == "PRAGMA synchronous = FULL" else args[0]
    durable = _is_durable(database, statement)
    if durable:
        _passed(_full_database())
    found = _execute(database, statement, *args[1:])
    machine = HERE.get()
    if durable and machine is not None and machine.countdown == 0:
        machine.durable_step(full=_full_database())
    return found


def _full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _synced(descriptor: int) -> None:
    if not _passed(_full_disk()):
        _fsync(descriptor)


def _moving(how: Callable[..., None]) -> Callable[..., None]:
    def move(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of os
        _passed(_full_disk())
        how(*args, **kwargs)

    return move


@contextmanager
def simulated(loop: VirtualLoop, fallback: Callable[[int], bytes], channel: Callable[[str], object]) -> Iterator[None]:
    """Put the simulation in the place of the machine for a block.

    Args:
        loop: the time.
        fallback: random bytes for code that is on no machine.
        channel: returns the connection to an endpoint.
    """

    def random_bytes(count: int) -> bytes:
        machine = HERE.get()
        return (fallback if machine is None else machine.random_bytes)(count)

    def wall_clock() -> float:
        machine = HERE.get()
        return START + loop.time() + (0.0 if machine is None else machine.skew)

    async def answered(_: Planner, kind: str, text: str, _tables: int) -> str:
        return await asyncio.to_thread(ANSWERS[kind], text)

    with (
        patch.object(time, "time", wall_clock),
        patch.object(time, "monotonic", loop.time),
        patch.object(os, "urandom", random_bytes),
        patch.object(random, "_urandom", random_bytes),
        patch.object(os, "fsync", _synced),
        patch.object(os, "replace", _moving(os.replace)),
        patch.object(os, "rename", _moving(os.rename)),
        patch.object(Database, "execute", _executed),
        patch.object(grpc.aio, "secure_channel", lambda endpoint, *_, **__: channel(endpoint)),
        patch.object(Planner, "_ask", answered),
    ):
        yield
