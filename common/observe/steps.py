"""What happens at a party, told once: each step that ended is one log record, and all else is made of these records.

Roles say here what they did and know nothing of who listens: the log on stderr, metrics, traces. A record has the step,
the release or round, the attribute, seconds, bytes and how it ended; never data, ids of people, keys, tokens or
ciphertext.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from veiltab.common.errors import NotReadyError, UnavailableError, VeiltabError

DONE, FAILED = "done", "failed"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Measured:
    """What a step moved; whoever does it may say so once it is known."""

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
) -> Iterator[Measured]:
    """Tell of a step when it ends, well or badly.

    A step that another party is not ready for is not told: it is tried again, and the status says what it waits for.

    Args:
        name: what is done, a verb; one of a few constant texts.
        release_id: the release it belongs to.
        round_id: the round it belongs to.
        attribute: whose column it is about.
        size: bytes that it moves, if that is known beforehand.
        reports: reports that it counts.
    """
    measured, began = Measured(bytes=size, reports=reports), time.monotonic()

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


def left(state: str, *, release_id: str, seconds: float) -> None:
    """Tell that a release left a state at this party, and how long it was in it, waiting included."""
    _log.info("state left", extra={"state": state, "release": release_id, "seconds": round(seconds, 6)})


def concluded(state: str, *, release_id: str, seconds: float) -> None:
    """Tell that a release is over for the researcher who asked for it, in which state, and how long it took in all."""
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
