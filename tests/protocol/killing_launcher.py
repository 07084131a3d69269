"""Start `veiltab` so that the process kills itself at a named point, or otherwise changed for a test.

    python killing_launcher.py POINT[,POINT...] server serve ...

MODULE:NAME:N         SIGKILL before the Nth call of a function:
                      veiltab.server.records.store:ServerStore.publish:1
MODULE:NAME:N:after   SIGKILL after it
MODULE:NAME:N:SECONDS no kill: the Nth call waits so long
write:N, write:N:after    before or after the Nth statement that changes a database for good
fsync:N  rename:N     before the Nth os.fsync, or the Nth rename or replacement of a file
chunk=BYTES           streams travel in chunks of so many bytes
small=ROWS            tables of so many rows, or more, are worked on by several processes
pause=SECONDS         longest pause before a step is tried again
listen=ADDRESS        listen there, and not where the study says
count=FILE            write how many fsyncs, renames and writes there were so far
work=PIPE             at each SIGUSR1 write that into a pipe, with the RPCs that were answered and the calls of Python
verbose               log everything
"""

import functools
import importlib
import inspect
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Point = Callable[[str], None]


class Kill:
    """SIGKILL at the Nth of some events, or a pause of its thread."""

    def __init__(self, number: int, seconds: float = 0.0) -> None:
        self._left = number
        self._seconds = seconds

    def __call__(self) -> None:
        """Count one event."""
        self._left -= 1
        if self._left == 0 and self._seconds:
            time.sleep(self._seconds)
        elif self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def wrapped(function: Callable[..., Any], event: Callable[[], None], *, after: bool) -> Callable[..., Any]:
    """Return a function that tells of its calls, before or after them."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
            if not after:
                event()
            result = await function(*args, **kwargs)
            if after:
                event()
            return result

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        if not after:
            event()
        result = function(*args, **kwargs)
        if after:
            event()
        return result

    return called


def patch(holder: object, name: str, event: Callable[[], None], *, after: bool = False) -> None:
    """Let a function of a module or class tell of its calls."""
    setattr(holder, name, wrapped(getattr(holder, name), event, after=after))


def changes_for_good(connection: Any, statement: str) -> bool:  # noqa: ANN401 - the product's connection
    """Whether a statement makes a change durable: a commit, or a change outside a transaction."""
    verb = statement.split(maxsplit=1)[0].upper()
    return verb == "COMMIT" or (verb in {"INSERT", "UPDATE", "DELETE"} and not connection.in_transaction)


def patch_writes(event: Callable[[], None], *, after: bool = False) -> None:
    """Tell of every durable change of a database."""
    from veiltab.common.storage.database import Database  # noqa: PLC0415 - the path is set in main

    execute = Database.execute

    def telling(self: Database, *args: Any) -> Any:  # noqa: ANN401 - those of sqlite3
        durable = changes_for_good(self, args[0])
        if durable and not after:
            event()
        result = execute(self, *args)
        if durable and after:
            event()
        return result

    Database.execute = telling  # type: ignore[method-assign]


def patch_event(kind: str, event: Callable[[], None], *, after: bool = False) -> None:
    """Tell of every event of a kind."""
    if kind == "write":
        patch_writes(event, after=after)
    elif kind == "fsync":
        patch(os, "fsync", event, after=after)
    elif kind == "rename":
        # pathlib calls os.rename and os.replace by these names.
        patch(os, "rename", event, after=after)
        patch(os, "replace", event, after=after)
    else:
        raise SystemExit(f"no such point: {kind}")


def count_events(path: Path) -> None:
    """Keep the number of events of each kind in a file."""
    counts: Counter[str] = Counter()

    def tell(kind: str) -> None:
        counts[kind] += 1
        path.write_text(json.dumps(counts), "utf-8")

    for kind in ("write", "fsync", "rename"):
        patch_event(kind, functools.partial(tell, kind))


def count_work(pipe: Path) -> None:
    """Tell of the work so far at each SIGUSR1, to a reader that waits for it."""
    counts: Counter[str] = Counter()

    def tell(kind: str) -> None:
        counts[kind] += 1

    for kind in ("write", "fsync", "rename"):
        patch_event(kind, functools.partial(tell, kind))
    authorisation = importlib.import_module("veiltab.common.rpc.authorisation")
    patch(authorisation, "begin_request", functools.partial(tell, "rpc"))

    def profile(_frame: object, event: str, _argument: object) -> None:
        if event == "call":
            counts["call"] += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    signal.signal(signal.SIGUSR1, lambda *_: pipe.write_text(json.dumps(counts), "utf-8"))


def shorten_pauses(longest: float) -> None:
    """Let the drivers try again sooner."""
    peer: Any = importlib.import_module("veiltab.common.rpc.peer")
    peer.PAUSES = tuple(min(pause, longest) for pause in peer.PAUSES)


def apply(point: str) -> None:
    if point == "verbose":
        sys.argv.append("--verbose")
    elif point.startswith("chunk="):
        importlib.import_module("veiltab.common.rpc.chunks").CHUNK = int(point.removeprefix("chunk="))  # type: ignore[attr-defined]
    elif point.startswith("small="):
        importlib.import_module("veiltab.curator.table.execution").SMALL = int(point.removeprefix("small="))  # type: ignore[attr-defined]
    elif point.startswith("pause="):
        shorten_pauses(float(point.removeprefix("pause=")))
    elif point.startswith("listen="):
        sys.argv[sys.argv.index("--listen") + 1] = point.removeprefix("listen=")
    elif point.startswith("work="):
        count_work(Path(point.removeprefix("work=")))
    elif point.startswith("count="):
        count_events(Path(point.removeprefix("count=")))
    else:
        kind, *rest = point.split(":")
        how = rest.pop() if not rest[-1].isdecimal() or len(rest) > 2 else ""
        after = how == "after"
        event = Kill(int(rest[-1]), 0.0 if after or not how else float(how))
        if kind in {"write", "fsync", "rename"}:
            patch_event(kind, event, after=after)
        else:
            holder: Any = importlib.import_module(kind)
            *path, name = rest[0].split(".")
            for part in path:
                holder = getattr(holder, part)
            patch(holder, name, event, after=after)


def main() -> None:
    """Make the changes, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    points = sys.argv.pop(1)
    for point in points.split(","):
        apply(point)
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - after the changes

    run()


if __name__ == "__main__":
    main()
