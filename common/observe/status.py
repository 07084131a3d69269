"""A party's status: its current work, what that waits for, its queues, and the remaining budget."""

from collections.abc import Mapping
from decimal import Decimal

from veiltab.common.dataclass import dataclass, field

SHOWN = 10
"""Number of finished releases and rounds in a status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A release, a round or an alignment as one party sees it.

    Args:
        kind: "release", "round", "alignment" or "relay".
        id: its id; empty for an alignment; the endpoint of a relay.
        about: what it is, for people: attributes, epsilon, researcher.
        waiting_for: what it waits for, what is done for it if that takes a while, or why it failed; empty otherwise.
        since: Unix seconds since which it is in this state; 0 if that is not known.
        n: of a curator's alignment the rows of every table.
        matched: of a curator's alignment how many of its n rows are of people in its own table.
    """

    kind: str
    id: str
    about: str
    state: str
    waiting_for: str
    since: int
    n: int | None = None
    matched: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A privacy budget and its remainder.

    Args:
        protects: "respondents" or "nodes".
        epsilon: the whole budget, nats.
        left: the remainder, nats, rounded down; of a budget with a delta, what one more release may have.
        delta: the budget's delta; None for a pure one.
        left_delta: delta that comes with the remainder; None where it is pure.
    """

    protects: str
    epsilon: Decimal
    left: Decimal
    delta: Decimal | None = None
    left_delta: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A party's status at one moment.

    Args:
        work: current work and the last that ended, oldest first.
        counts: (kind, state) -> their total number.
        queues: queue -> number of waiting items.
    """

    work: tuple[Activity, ...] = ()
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()

    def __or__(self, other: "Observation") -> "Observation":
        """Return what two parts of one party do, the other's work last."""
        return Observation(
            work=(*self.work, *other.work),
            counts={**self.counts, **other.counts},
            queues={**self.queues, **other.queues},
            budgets=(*self.budgets, *other.budgets),
        )


def waiting_lines(waits: Mapping[str, str]) -> tuple[str, ...]:
    """Return what parties wait for as lines, one a party; what it says of itself comes before what others say of it.

    Args:
        waits: party -> what it waits for, which names another party first where that one is to act.
    """
    lines: dict[str, str] = {}
    for party, reason in sorted(waits.items(), key=lambda item: not item[1].startswith(item[0])):
        names_another = reason.startswith(("curator ", "server "))
        line = reason if names_another or reason.startswith(party) else f"{party}: {reason}"
        lines.setdefault(line.split(":")[0], line.rstrip("."))
    return tuple(lines[about] for about in sorted(lines))
