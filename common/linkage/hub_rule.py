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

from collections.abc import Iterable, Mapping, Sequence

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


def accept(proposals: Sequence[tuple[int, int] | None]) -> dict[int, int]:
    """Return the links: hub row -> spoke row, in the order of the hub's rows.

    Args:
        proposals: of each row of the spoke, (pass number, hub row) or None; smaller numbers are earlier passes.
    """
    best: dict[int, tuple[int, int]] = {}
    for row, proposal in enumerate(proposals):
        if proposal is not None:
            number, hub_row = proposal
            before = best.get(hub_row)
            if before is None or number < before[0]:
                best[hub_row] = (number, row)
            elif number == before[0]:
                best[hub_row] = (number, _MANY)
    return {hub_row: row for hub_row, (_, row) in sorted(best.items()) if row != _MANY}
