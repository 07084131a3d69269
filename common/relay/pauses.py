"""Pauses after attempts that failed, with full jitter."""

import asyncio
import time

from veiltab.common.rpc.waiting.retries import jittered

SHORTEST, LONGEST = 0.2, 10.0
"""Seconds: the bound of the first pause, and of the longest; it doubles with each failure in between."""


class Pauses:
    """When the next attempt may be made: at once after a success, else after a pause uniform on 0 to a bound."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0

    @property
    def are_on(self) -> bool:
        """Whether the pause after the last failure is not over."""
        return time.monotonic() < self._until

    def note(self, *, succeeded: bool) -> None:
        """Take note of an attempt."""
        self._failures = 0 if succeeded else self._failures + 1
        pause = jittered(self._failures - 1, SHORTEST, LONGEST) if self._failures else 0.0
        self._until = time.monotonic() + pause

    async def wait(self) -> None:
        """Wait until the pause is over."""
        await asyncio.sleep(max(0.0, self._until - time.monotonic()))
