"""How many cores a process may use, which is less than the machine has where it or its container is limited."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


def cores() -> int:
    """Return the cores that this process may use: those it is bound to, or fewer if a control group allows less time.

    `os.process_cpu_count`, from Python 3.13 on, does not look at control groups, with which containers are limited.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *map(round, _allowed())]))


def _allowed() -> Iterator[float]:
    """Yield the cores' worth of time that each control group around this process has; one without a limit has none."""
    for group in _groups():
        with suppress(OSError, ValueError):  # no such file, or no limit ("max")
            quota, period = (group / "cpu.max").read_text("ascii").split()
            yield int(quota) / int(period)


def _groups() -> Iterator[Path]:
    """Yield the folder of this process's control group (version 2) and of those around it."""
    own = _GROUPS
    with suppress(OSError):
        for line in _OWN_GROUP.read_text("utf-8").splitlines():
            if line.startswith("0::/"):
                own = _GROUPS / line.removeprefix("0::/")
    while own != _GROUPS:
        yield own
        own = own.parent
    yield _GROUPS
