"""What a party says of itself at a moment: what is under way, what it waits for, what waits for it, what is left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

SHOWN = 10
"""Releases and rounds that are over, and still shown beside those under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A release, a round or an alignment as one party sees it.

    Args:
        kind: "release", "round" or "alignment".
        id: its id; empty for an alignment.
        about: what it is, for people: attributes, epsilon, researcher.
        state: where it stands.
        waiting_for: what it waits for, or why it failed; empty if it does neither.
        since: Unix seconds since which it is in this state; 0 if that is not known.
    """

    kind: str
    id: str
    about: str
    state: str
    waiting_for: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What is left of a privacy budget.

    Args:
        protects: "respondents" or "nodes".
        epsilon: the whole budget, nats.
        left: what may still be spent, nats, rounded down.
        delta: the budget's delta; None for a pure one.
    """

    protects: str
    epsilon: Decimal
    left: Decimal
    delta: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A party at a moment.

    Args:
        work: what is under way and what ended last, oldest first.
        counts: (kind, state) -> how many there are in all.
        queues: what waits to be done, by what it waits in.
        budgets: what is left of each.
    """

    work: tuple[Work, ...] = ()
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
