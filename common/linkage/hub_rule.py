"""The hub rule: who is linked with whom, so that one row of a spoke changes few links.

Passes run in a fixed order. A row of a spoke has in a pass a candidate if exactly one row OF THE WHOLE HUB agrees with
it. It proposes to its candidate of the first pass in which it has one, else to nobody. A row of the hub accepts who
proposes in the earliest pass, and nobody if two of them propose in that same pass.

Theorem: fix the hub and the ladder. Adding or removing one row of a spoke changes at most one link (one comes, one
goes, or one replaces another). Changing the identifiers of one row changes at most two.

Proof: a proposal is a function of its own row and of the hub, not of other rows of the spoke. So one more row makes one
more proposal, to one row of the hub; whom another row of the hub accepts depends on its own proposals only. A change is
a removal and an addition.

So rows of the hub stay in every pass, linked or not: if linked ones left, one row of a spoke would change the hub of
the next pass, and with it any number of links.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from veiltab.common.linkage.row_keys import Keys

_MANY = -1
"""In place of a row's number, where several rows have a key."""


def only_rows(hub_keys: Iterable[Keys]) -> Mapping[bytes, int]:
    """Return for each key of the hub the row that has it, or -1 if several rows have it."""
    rows: dict[bytes, int] = {}
    for row, keys in enumerate(hub_keys):
        for key in keys:
            if rows.setdefault(key, row) != row:
                rows[key] = _MANY
    return rows


def accept(passes: NDArray[np.uint8], candidates: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """Return whom the hub rule links, in the order of their candidates, and (rows that tie, candidates where they tie).

    Args:
        passes: of each row, the pass in which it has its candidate, or 0.
        candidates: of each row, the number of that row of the hub.
    """
    rows = np.flatnonzero(passes)
    if not len(rows):
        return rows, (0, 0)
    rows = rows[np.lexsort((passes[rows], candidates[rows]))]
    hub, numbers = candidates[rows], passes[rows]
    starts = np.flatnonzero(np.append(True, hub[1:] != hub[:-1]))
    is_earliest = numbers == np.repeat(numbers[starts], np.diff(starts, append=len(rows)))
    proposers = np.add.reduceat(is_earliest, starts, dtype=np.int64)
    many = proposers[proposers > 1]
    return rows[starts[proposers == 1]], (int(many.sum()), len(many))
