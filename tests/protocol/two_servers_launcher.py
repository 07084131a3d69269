"""Start `veiltab server serve` with short leases, so that the process stops itself at a named point.

    python two_servers_launcher.py POINT server serve ...

MODULE:NAME:N         SIGSTOP before the Nth call of a function
MODULE:NAME:N:after   SIGSTOP after it
-                     nowhere
"""

import importlib
import os
import signal
import sys
from typing import Any

from killing_launcher import patch  # type: ignore[import-not-found] # beside this script

SHORT = {
    "veiltab.server.sharing.shared_leases:SECONDS": 1.5,
    "veiltab.server.release.releases:_LOOK_SECONDS": 0.3,
    "veiltab.server.release.releases:_SWEEP_SECONDS": 0.5,
    "veiltab.server.records.postgres:PAUSE_SECONDS": 2,
}
"""What lasts less long than in earnest."""


class Stop:
    """SIGSTOP to the process itself at the Nth of some events."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self) -> None:
        """Count one event."""
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)


def apply(point: str) -> None:
    """Let a function stop the process."""
    module, path, number, *how = point.split(":")
    holder: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        holder = getattr(holder, part)
    patch(holder, name, Stop(int(number)), after=how == ["after"])


def main() -> None:
    """Make the changes, then run the command line."""
    del sys.path[0]
    point = sys.argv.pop(1)
    for place, value in SHORT.items():
        module, _, name = place.partition(":")
        setattr(importlib.import_module(module), name, value)
    if point != "-":
        apply(point)
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - after the changes

    run()


if __name__ == "__main__":
    main()
