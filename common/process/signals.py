"""The signals that end or restart a party; none that ends it is lost.

SIGTERM and SIGINT end a party in order. SIGHUP stops it in the same order, and then it begins again in the same
process. An end wins over a restart whenever it comes, because SIGTERM finds one of two things at every moment:

1. From the start of the process until `PartySignals` is entered, it finds its default disposition: the process ends
   at once. Every step of a party is durable before the next, so nothing is lost. So it is with SIGINT: Python's own
   handler raises KeyboardInterrupt, which an import or a callback from C can lose.
2. While the block lasts, it finds Python's C handler, which writes the number of the signal into a pipe
   (`signal.set_wakeup_fd`). The loop reads the pipe, and `__exit__` reads it again after the default dispositions are
   back. Nothing is left to handlers that run later or on a closed loop: asyncio's own, when they are removed, drop a
   signal that was delivered and not yet read. The kernel gives a signal of the process to the main thread unless that
   thread blocks it, and this one never does: the byte is there before the main thread executes another instruction.
3. From `__exit__` on, it finds the default disposition again: while the loop is closed, and until `PartySignals` is
   entered anew.

`restart` is read after `__exit__`. An end that came before the default dispositions is in the pipe and has made it
false; a later one leaves no process that could begin again. All this holds for SIGINT too, except in 1 where the
process was started with SIGINT ignored.

However long a party needs to end in order, from its first SIGTERM it has `LONGEST_END` seconds. Python's handler, which
the main thread runs between two instructions even if the loop is blocked, sets an alarm; SIGALRM has its default
disposition, so the kernel then ends the process, whatever its threads do.

The kernel exempts process 1 of a container from default dispositions: there, in 1 and 3, the engine's SIGKILL ends the
party after its grace.
"""

import os
import signal
from collections.abc import Callable
from typing import Self

LONGEST_END = 9
"""Seconds after which a party that was told to end is ended."""

_ENDS = (signal.SIGTERM, signal.SIGINT)
_CAPACITY = 65_536
"""Bytes that a pipe holds."""


def end_at_interrupt() -> None:
    """Let the kernel end this process at a SIGINT; to be called in the main thread."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_at_interrupt() -> None:
    """Let Python raise KeyboardInterrupt again where `end_at_interrupt` was called."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class PartySignals:
    """Reads the signals of a party while the block lasts; enter it in the main thread, on a running loop.

    Args:
        stop: called on the loop to stop the party, for good or for a restart; it may be called repeatedly.
        may_restart: called on the loop at a SIGHUP; false lets the party go on as if there had been none.
    """

    def __init__(self, *, stop: Callable[[], None], may_restart: Callable[[], bool]) -> None:
        self._stop, self._may_restart = stop, may_restart
        self._hung_up = self._ended = False

    @property
    def restart(self) -> bool:
        """Whether the party restarts; final after the block."""
        return self._hung_up and not self._ended

    def __enter__(self) -> Self:
        """Take the signals over."""
        import asyncio  # noqa: PLC0415 - not for commands that serve nothing

        self._loop = asyncio.get_running_loop()
        self._pipe, self._wakeup = os.pipe()
        os.set_blocking(self._pipe, False)
        os.set_blocking(self._wakeup, False)
        self._wakeup_before = signal.set_wakeup_fd(self._wakeup)
        for number in (*_ENDS, signal.SIGHUP):
            signal.signal(number, _limit_the_end if number in _ENDS else _leave_to_the_pipe)
            # Interrupted system calls, such as a database's, continue.
            signal.siginterrupt(number, False)  # noqa: FBT003 - the standard library's signature
        self._loop.add_reader(self._pipe, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the defaults of SIGTERM and SIGINT, ignore further SIGHUPs, and read the signals so far."""
        self._loop.remove_reader(self._pipe)
        # Ignore further SIGHUPs: the party must not die of one before it enters this block again.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in _ENDS:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(self._wakeup_before)
        self._read()
        os.close(self._pipe)
        os.close(self._wakeup)

    def _read(self) -> None:
        try:
            numbers = os.read(self._pipe, _CAPACITY)
        except BlockingIOError:
            return
        for number in numbers:
            if number in _ENDS:
                self._ended = True
                self._stop()
            elif number == signal.SIGHUP and not self._hung_up and self._may_restart():
                self._hung_up = True
                self._stop()


def _leave_to_the_pipe(_number: int, _frame: object) -> None:
    """Do nothing: without a handler of Python's, its C handler would not write into the pipe."""


def _limit_the_end(_number: int, _frame: object) -> None:
    """Begin to count the seconds; the pipe tells the loop."""
    if not signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.alarm(LONGEST_END)
