"""How a process keeps memory that it will need again for the next piece of a column, and gives back the rest."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_PIECE = 2**25
"""Longest array in bytes that is made again and again: glibc takes no larger threshold."""


def keep_freed_memory() -> None:
    """Let malloc keep a few freed arrays of up to 32 MiB for the next ones; does nothing unless malloc is glibc's.

    By itself it returns the memory of every temporary array at once, and taking it back costs a page fault every
    4 KiB: half of the time that a table takes to load. All threads share what is kept; by itself malloc keeps as much
    for each few of them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _PIECE)
        mallopt(_TRIM_THRESHOLD, 2 * _PIECE)
        mallopt(_ARENA_MAX, 1)


def give_back_freed_memory() -> None:
    """Give memory that is free back to the system; does nothing without glibc.

    By itself malloc keeps what lies below memory in use: after a flood of connections, all that they took.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
