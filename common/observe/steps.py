"""Log records of steps, one for each step that ends. Metrics, traces and the log on stderr are made from them.

Roles log their steps here and know nothing of the sinks. A record has the step, the release or round, the attribute,
seconds, bytes and the outcome; never data, ids of people, keys, tokens or ciphertext.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import NotReadyError, UnavailableError, VeiltabError

DONE, FAILED = "done", "failed"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class StepSize:
    """The size of a step; its block may set what is not known beforehand."""

    bytes: int | None = None
    reports: int | None = None


@contextmanager
def step(  # noqa: PLR0913 - what a step may be about
    name: str,
    *,
    release_id: str | None = None,
    round_id: str | None = None,
    attribute: str | None = None,
    size: int | None = None,
    reports: int | None = None,
) -> Iterator[StepSize]:
    """Log a step when its block ends, with or without an error.

    A step for which another party is not ready is not logged: it is tried again, and the status says what it waits for.

    Args:
        name: a verb; one of a few constant texts.
        release_id: the release it belongs to.
        round_id: the round it belongs to.
        attribute: whose column it is about.
        size: bytes that it moves, if known beforehand.
    """
    measured, began = StepSize(bytes=size, reports=reports), time.monotonic()

    def tell(outcome: str, reason: str | None = None) -> None:
        _log.info(
            "step",
            extra={
                "step": name,
                "release": release_id,
                "round": round_id,
                "attribute": attribute,
                "seconds": round(time.monotonic() - began, 6),
                "bytes": measured.bytes,
                "reports": measured.reports,
                "outcome": outcome,
                "reason": reason,
            },
        )

    try:
        yield measured
    except (NotReadyError, UnavailableError):
        raise
    except Exception as error:
        # The name of a type, never an exception's text: it may hold values.
        tell(FAILED, error.reason if isinstance(error, VeiltabError) else type(error).__name__)
        raise
    tell(DONE)


def state_left(state: str, *, release_id: str, seconds: float) -> None:
    """Log that a release left a state at this party, and the time in that state, waiting included."""
    _log.info("state left", extra={"state": state, "release": release_id, "seconds": round(seconds, 6)})


def release_ended(state: str, *, release_id: str, seconds: float) -> None:
    """Log that a release is over for its researcher, its last state, and its total time."""
    _log.info(
        "release concluded",
        extra={
            "step": "release",
            "release": release_id,
            "seconds": round(seconds, 6),
            "bytes": None,
            "reports": None,
            "outcome": state,
        },
    )
