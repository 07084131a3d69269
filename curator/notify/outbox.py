"""The outbox: notices that are to be sent, each once by each channel, until it is sent or too old.

A notice is about one event, named by its kind and subject; the same event makes no second notice. What a channel does
not take is tried again after growing waits.
"""

import json
from collections.abc import Iterable
from typing import Any

from veiltab.common.dataclass import dataclass
from veiltab.common.storage.database import Database, transaction, value_of
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
        subject: which event of this kind.
    """

    kind: Kind
    subject: str
    facts: dict[str, str]

    @property
    def title(self) -> str:
        """What a notice says in one line."""
        return "veiltab: curator {curator}, study {study}: {text}".format_map(self.facts)

    def body(self, number: int) -> str:
        """Return the lines of a notice; anyone who gets one twice sees by its number that it is the same."""
        lines = {**self.facts, "number": number}
        return "\n".join(f"{name}: {value}" for name, value in lines.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A notice on its way by one channel.

    Args:
        created: Unix second at which it was put into the outbox.
        attempts: how many failed.
        due: Unix second of the next attempt; None if there is none.
        sent: Unix second at which the channel took it; None if it did not.
        problem: why the latest attempt failed, or `NOT_NEEDED`; else empty.
    """

    number: int
    notice: Notice
    channel: str
    created: int
    attempts: int
    due: int | None
    sent: int | None
    problem: str


class Outbox:
    """The outbox of one curator."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def enabled_since(self, now: int) -> int:
        """Return when notices were first wanted here: now, if this is the first time."""
        self._connection.execute("INSERT INTO notices_wanted VALUES (1, ?) ON CONFLICT DO NOTHING", [now])
        return int(value_of(self._connection, "SELECT since FROM notices_wanted"))

    def add(self, notice: Notice, channels: Iterable[str], now: int) -> None:
        """Put a notice into the outbox, for each channel; a second one about the same event changes nothing."""
        event = [notice.kind.value, notice.subject]
        if self._connection.execute("SELECT 1 FROM delivery WHERE kind = ? AND subject = ?", event).fetchone():
            return
        with transaction(self._connection) as db:
            db.executemany(
                "INSERT INTO delivery (kind, subject, facts, channel, created, due) VALUES (?, ?, ?, ?, ?, ?)",
                [[*event, json.dumps(notice.facts), channel, now, now] for channel in channels],
            )

    def due(self, channel: str, now: int) -> tuple[Delivery, ...]:
        """Return what is to be sent by a channel now, oldest first."""
        return self._deliveries("WHERE channel = ? AND sent IS NULL AND due <= ? ORDER BY number", channel, now)

    def latest(self, count: int) -> tuple[Delivery, ...]:
        """Return the newest deliveries, oldest first."""
        return self._deliveries("ORDER BY number DESC LIMIT ?", count)[::-1]

    def set_sent(self, delivery: Delivery, now: int) -> None:
        """Record that a channel took a notice."""
        self._end(delivery, now, "")

    def set_dropped(self, delivery: Delivery) -> None:
        """Record that a notice is not sent by a channel, as it is no news any more."""
        self._end(delivery, None, NOT_NEEDED)

    def _end(self, delivery: Delivery, at: int | None, problem: str) -> None:
        query = "UPDATE delivery SET sent = ?, due = NULL, problem = ? WHERE number = ?"
        self._connection.execute(query, [at, problem, delivery.number])

    def set_failed(self, delivery: Delivery, problem: str, now: int) -> None:
        """Record that a channel did not take a notice, and when it is tried again; never once it is too old."""
        due = next_attempt(delivery.attempts, delivery.created, now)
        query = "UPDATE delivery SET attempts = attempts + 1, due = ?, problem = ? WHERE number = ?"
        self._connection.execute(query, [due, problem, delivery.number])

    def _deliveries(self, which: str, *values: object) -> tuple[Delivery, ...]:
        rows = self._connection.execute(f"SELECT * FROM delivery {which}", values)  # noqa: S608 - own words
        return tuple(_delivery(dict(row)) for row in rows)


def _delivery(row: dict[str, Any]) -> Delivery:
    notice = Notice(kind=Kind(row.pop("kind")), subject=row.pop("subject"), facts=json.loads(row.pop("facts")))
    return Delivery(notice=notice, **row)


def next_attempt(attempts: int, created: int, now: int) -> int | None:
    """Return when a notice is tried again, Unix seconds; None if it is too old by then.

    Args:
        attempts: those that failed before the latest.
        created: when the notice was made.
        now: when the latest failed.
    """
    due = now + _WAITS[min(attempts, len(_WAITS) - 1)]
    return due if due <= created + _GIVEN_UP_AFTER else None
