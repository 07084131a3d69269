"""The outbox: notices that are to be sent, each once by each channel, until it is sent or too old.

A notice is about one event, named by its kind and subject; the same event makes no second notice. What a channel does
not take is tried again after growing waits.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from veiltab.common.storage.database import Database, transaction
from veiltab.curator.officer.notify_settings import Kind

_WAITS = (30, 120, 600, 3600, 6 * 3600)
"""Seconds until the next attempt, after each that failed; the last one again and again."""

_GIVEN_UP_AFTER = 7 * 86_400

NOT_NEEDED = "not needed any more"
"""Problem of a delivery that was dropped because its notice was no news any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What people are told.

    Args:
        number: its place in the outbox; 0 for one that only tries a channel.
        kind: what it is about.
        created: Unix seconds.
        facts: as they are sent.
    """

    number: int
    kind: Kind
    created: int
    facts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A notice on its way by one channel.

    Args:
        notice: what is sent.
        channel: name of the channel.
        attempts: how many failed.
        due: Unix second of the next attempt; None if there is none.
        sent: Unix second at which the channel took it; None if it did not.
        problem: why the latest attempt failed, or `NOT_NEEDED`; else empty.
    """

    notice: Notice
    channel: str
    attempts: int
    due: int | None
    sent: int | None
    problem: str


class Outbox:
    """The outbox of one curator.

    Args:
        connection: the curator's database.
    """

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def enabled_since(self, now: int) -> int:
        """Return when notices were first wanted here: now, if this is the first time."""
        self._connection.execute("INSERT INTO notices_wanted VALUES (1, ?) ON CONFLICT DO NOTHING", [now])
        (since,) = self._connection.execute("SELECT since FROM notices_wanted").fetchone()
        return int(since)

    def knows(self, kind: Kind, subject: str) -> bool:
        """Whether there is a notice about an event."""
        query = "SELECT 1 FROM notice WHERE kind = ? AND subject = ?"
        return self._connection.execute(query, [kind.value, subject]).fetchone() is not None

    def add(self, kind: Kind, subject: str, facts: dict[str, str], channels: Iterable[str], now: int) -> None:
        """Put a notice about an event into the outbox, for each channel; a second one about the same changes nothing.

        Args:
            kind: what it is about.
            subject: which event of this kind.
            facts: what is sent.
            channels: names.
            now: Unix seconds.
        """
        with transaction(self._connection) as db:
            if self.knows(kind, subject):
                return
            db.execute(
                "INSERT INTO notice (kind, subject, facts, created) VALUES (?, ?, ?, ?)",
                [kind.value, subject, json.dumps(facts), now],
            )
            (number,) = db.execute("SELECT MAX(number) FROM notice").fetchone()
            db.executemany(
                "INSERT INTO delivery (notice, channel, due) VALUES (?, ?, ?)",
                [[number, channel, now] for channel in channels],
            )

    def due(self, channel: str, now: int) -> tuple[Delivery, ...]:
        """Return what is to be sent by a channel now, oldest first."""
        return self._deliveries("WHERE channel = ? AND sent IS NULL AND due <= ?", channel, now)

    def latest(self, count: int) -> tuple[Delivery, ...]:
        """Return the deliveries of the newest notices, oldest first."""
        return self._deliveries("WHERE notice > (SELECT MAX(number) FROM notice) - ?", count)

    def set_sent(self, delivery: Delivery, now: int) -> None:
        """Record that a channel took a notice."""
        self._connection.execute(
            "UPDATE delivery SET sent = ?, due = NULL, problem = '' WHERE notice = ? AND channel = ?",
            [now, delivery.notice.number, delivery.channel],
        )

    def set_dropped(self, delivery: Delivery) -> None:
        """Record that a notice is not sent by a channel, as it is no news any more."""
        self._connection.execute(
            "UPDATE delivery SET due = NULL, problem = ? WHERE notice = ? AND channel = ?",
            [NOT_NEEDED, delivery.notice.number, delivery.channel],
        )

    def set_failed(self, delivery: Delivery, problem: str, now: int) -> None:
        """Record that a channel did not take a notice, and when it is tried again; never once it is too old."""
        due = next_attempt(delivery.attempts, delivery.notice.created, now)
        self._connection.execute(
            "UPDATE delivery SET attempts = attempts + 1, due = ?, problem = ? WHERE notice = ? AND channel = ?",
            [due, problem, delivery.notice.number, delivery.channel],
        )

    def _deliveries(self, condition: str, *values: object) -> tuple[Delivery, ...]:
        rows = self._connection.execute(
            f"SELECT * FROM delivery JOIN notice ON notice.number = delivery.notice {condition}"  # noqa: S608 - own words
            " ORDER BY number, channel",
            values,
        )
        return tuple(
            Delivery(
                notice=Notice(
                    number=row["number"],
                    kind=Kind(row["kind"]),
                    created=row["created"],
                    facts=json.loads(row["facts"]),
                ),
                channel=row["channel"],
                attempts=row["attempts"],
                due=row["due"],
                sent=row["sent"],
                problem=row["problem"],
            )
            for row in rows
        )


def next_attempt(attempts: int, created: int, now: int) -> int | None:
    """Return when a notice is tried again, Unix seconds; None if it is too old by then.

    Args:
        attempts: those that failed before the latest.
        created: when the notice was made.
        now: when the latest failed.
    """
    due = now + _WAITS[min(attempts, len(_WAITS) - 1)]
    return due if due <= created + _GIVEN_UP_AFTER else None
