"""Restart with the same command: a party loads a renewed certificate without losing a call."""

import os
import sys


class RestartRequest(Exception):  # noqa: N818 - it is no error
    """The party has stopped in order and is to restart."""


def begin_again() -> None:
    """Replace this process by a new one of the same command; its process id stays."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the very command that runs
