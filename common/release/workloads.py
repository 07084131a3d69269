"""The workloads that have a name: which tables of some attributes they consist of, and how many run a second time."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import assert_never

LINKED_REPEATS = 40
"""Tables that run a second time in a linked release: about as many as one graph of fourteen attributes can use."""


class Workload(Enum):
    """A workload that has a name."""

    PAIRS = "pairs"
    LINKED = "linked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What a request asks for.

    Args:
        tables: the attributes of each table.
        repeats: so many of them may run a second time.
    """

    tables: tuple[tuple[str, ...], ...]
    repeats: int = 0


def tables_of(workload: Workload, attributes: Sequence[str]) -> Tables:
    """Return the tables of a workload over some attributes, in their order.

    Args:
        workload: `PAIRS`, every pair once; or `LINKED`, every pair once and the most telling ones again.
        attributes: in study order, none twice.
    """
    pairs = tuple(combinations(attributes, 2))
    match workload:
        case Workload.PAIRS:
            return Tables(tables=pairs)
        case Workload.LINKED:
            return Tables(tables=pairs, repeats=min(LINKED_REPEATS, len(pairs)))
        case _:
            assert_never(workload)
