"""Attempts to connect: why the last one failed, and the pause before the next, with full jitter."""

import logging
import ssl
import time
from collections.abc import Awaitable
from typing import TypeVar

from veiltab.common.errors import VeiltabError
from veiltab.common.rpc.waiting.retries import jittered

SHORTEST, LONGEST = 0.2, 10.0
"""Seconds: the bound of the first pause, and of the longest; it doubles with each failure in between."""

FAILURES = (OSError, TimeoutError, VeiltabError, ValueError)
"""What an attempt may fail with."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Attempts:
    """The attempts to connect to one party; `trouble` says why the last one failed, and is empty if it did not."""

    def __init__(self, whom: str) -> None:
        self._whom = whom
        self._failures = 0
        self._until = 0.0
        self.trouble = ""

    @property
    def pause(self) -> float:
        """Seconds until the next attempt: none after a success, else uniform on 0 to a bound."""
        return max(0.0, self._until - time.monotonic())

    async def run(self, attempt: Awaitable[_T]) -> _T | None:
        """Return what an attempt returns; or None if it failed, which is logged once a cause."""
        try:
            result = await attempt
        except FAILURES as error:
            before, self.trouble = self.trouble, in_words(error)
            if self.trouble != before:
                _log.warning("no connection to %s: %s", self._whom, self.trouble)
            self._until = time.monotonic() + jittered(self._failures, SHORTEST, LONGEST)
            self._failures += 1
            return None
        self._failures, self.trouble = 0, ""
        return result


def in_words(error: BaseException) -> str:
    """Return why there is no connection."""
    if isinstance(error, VeiltabError):
        return f"{error.problem}. {error.remedy}".rstrip(". ") if error.remedy else error.problem
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the relay is not accepted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "TLS with the relay failed: its or the own certificate is not accepted, or something else answers"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return f"no connection ({error.strerror or type(error).__name__})"
    return "the relay answered what is not understood"
