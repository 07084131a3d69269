"""What a process that holds keys asks of the operating system: no copy of its memory on disk, and room for callers."""

import ctypes
import os
import resource
from contextlib import suppress

_PR_SET_DUMPABLE = 4
_OPEN_FILES = 65_536


def forbid_memory_dumps() -> None:
    """Let no crash write this process's memory to disk, and no other process of its user read it.

    Where the system does not know the second, as outside Linux, the first alone holds.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def keep_files_private() -> None:
    """Let the files and folders that this process makes be its user's alone."""
    os.umask(0o077)


def allow_open_files() -> None:
    """Allow this process as many open files as it may have: every connection is one, also one that says nothing."""
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)


def limit_memory(size: int) -> None:
    """Let this process take no more memory than this: what goes beyond it is a MemoryError.

    Args:
        size: of its address space, bytes.
    """
    _limit(resource.RLIMIT_AS, size)


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    value = value if most == resource.RLIM_INFINITY else min(most, value)
    # Some systems name a limit here that they do not grant.
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, most))
