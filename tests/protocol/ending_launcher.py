"""Start `veiltab` so that it gets a SIGTERM of its own making at a named moment, once.

    python ending_launcher.py MODULE:NAME[:after] server serve ...
    python ending_launcher.py hangup:before|hangup:after server serve ...

MODULE:NAME     before the first call of a function once a SIGHUP came; or after it
hangup:HOW      before or after the SIGHUP of its own making, when it serves, without time between them
"""

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from killing_launcher import wrapped  # type: ignore[import-not-found] # beside this script

MOMENT = b"the moment has come\n"


class End:
    """SIGTERM to this process, at the first event after a SIGHUP."""

    def __init__(self) -> None:
        self.armed = False

    def __call__(self) -> None:
        """Count one event."""
        if self.armed:
            self.armed = False
            os.write(2, MOMENT)
            os.kill(os.getpid(), signal.SIGTERM)


def find(path: str) -> tuple[Any, str]:
    """Return what holds a function, and its name there."""
    module, _, name = path.partition(":")
    *parts, last = name.split(".")
    return functools.reduce(getattr, parts, importlib.import_module(module)), last


def change(path: str, event: Callable[[], None], *, after: bool) -> None:
    """Let a function tell of its calls."""
    holder, name = find(path)
    setattr(holder, name, wrapped(getattr(holder, name), event, after=after))


def hang_up(how: str) -> None:
    """Send SIGTERM and SIGHUP when the party serves."""

    def send() -> None:
        os.write(2, MOMENT)
        for number in (signal.SIGTERM, signal.SIGHUP) if how == "before" else (signal.SIGHUP, signal.SIGTERM):
            os.kill(os.getpid(), number)

    change("veiltab.common.rpc.server:PartyServer.start", send, after=True)


def main() -> None:
    """Make the change, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    point = sys.argv.pop(1)
    end = End()
    if point.startswith("hangup:"):
        hang_up(point.removeprefix("hangup:"))
    else:
        # What a SIGHUP calls first.
        change("veiltab.common.command.running:_renewed", lambda: setattr(end, "armed", True), after=False)
        change(point.removesuffix(":after"), end, after=point.endswith(":after"))
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - after the changes

    run()


if __name__ == "__main__":
    main()
