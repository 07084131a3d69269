"""The desk's record of its analysts: who asked for what of which release, and when; no data.

An analyst may ask as often as it likes, so that questions of one analyst about the same thing share one entry a day.
The record thus grows by a few entries a day, an analyst and a release, and no analyst can fill the desk's disk.
"""

import time
from collections.abc import Callable
from enum import Enum

from veiltab.common.core.texts.message_fields import MessageNumbers, text_from_proto, whole_from_proto
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass
from veiltab.common.storage.database import Connection
from veiltab.v1 import researcher_pb2

_DAY = 86_400


class Subject(Enum):
    """What an analyst may ask for."""

    RELEASES = "list of releases"
    STATUS = "status"
    COUNTS = "counts"
    STUDY_FILE = "study file"


_SUBJECTS = MessageNumbers("subject", {one: getattr(researcher_pb2, f"SUBJECT_{one.name}") for one in Subject})
_NUMBERS = ("number", "times", "first", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One analyst's questions about one thing on one day (UTC).

    Args:
        number: counts entries from 1, in the order in which they were begun.
        release_id: the release; "" if the subject is none of a release.
        first: Unix seconds of the day's first question.
        last: Unix seconds of the day's last question.
    """

    number: int
    analyst: str
    subject: Subject
    release_id: str
    times: int
    first: int
    last: int


class AccessLog:
    """The record in the database of a researcher's service.

    Args:
        clock: Unix seconds.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        self._connection = connection
        self._clock = clock

    def record(self, analyst: str, subject: Subject, release_id: str) -> None:
        """Record a question durably, before it is answered."""
        now = int(self._clock())
        self._connection.execute(
            "INSERT INTO access (analyst, subject, release_id, day, times, first, last) VALUES (?, ?, ?, ?, 1, ?, ?)"
            " ON CONFLICT (analyst, subject, release_id, day) DO UPDATE SET times = times + 1, last = excluded.last",
            [analyst, subject.value, release_id, now // _DAY, now, now],
        )

    def after(self, number: int, most: int) -> tuple[Access, ...]:
        """Return the entries after the one of a number, oldest first, at most some of them."""
        rows = self._connection.execute(
            "SELECT number, analyst, subject, release_id, times, first, last FROM access WHERE number > ?"
            " ORDER BY number LIMIT ?",
            [number, most],
        )
        return tuple(Access(**(dict(row) | {"subject": Subject(row["subject"])})) for row in rows)


def access_to_proto(access: Access) -> researcher_pb2.Access:
    """Return an entry as it travels."""
    facts = same_fields(access, ("analyst", "release_id", *_NUMBERS))
    return researcher_pb2.Access(**facts, subject=_SUBJECTS.encode(access.subject))


def access_from_proto(message: researcher_pb2.Access) -> Access:
    """Return the entry of a message, or raise InvalidInputError."""
    return Access(
        **{name: whole_from_proto(number, name) for name, number in same_fields(message, _NUMBERS).items()},
        analyst=text_from_proto(message.analyst, "analyst"),
        subject=_SUBJECTS.decode(message.subject),
        release_id=text_from_proto(message.release_id, "release id"),
    )
