"""The processor of this machine: the time that a process has had of it, and its name."""

import os
from datetime import datetime
from pathlib import Path

from veiltab.common.errors import UnavailableError
from veiltab.common.process.cores import cores

_PROC = Path("/proc")
_TIMES = slice(11, 15)
"""User and system time of a process, and of those that it waited for, after its name in its line of numbers."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, with that of the processes that it started and that have ended.

    Raises:
        UnavailableError: this machine has no /proc.
    """
    try:
        line = (_PROC / str(pid) / "stat").read_text("ascii", errors="replace")
    except OSError:
        raise UnavailableError("the CPU time of a process can only be read on Linux", where=str(_PROC)) from None
    return sum(map(int, line.rpartition(")")[2].split()[_TIMES])) / os.sysconf("SC_CLK_TCK")


def machine_name() -> str:
    """Return how many cores of which processor this process may use, and the day."""
    name = "an unknown processor"
    try:
        lines = (_PROC / "cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    return f"{cores()} cores of {name}, {datetime.now().astimezone().date()}"
