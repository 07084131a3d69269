"""The hub rule where both tables are in one place."""

from collections.abc import Iterable, Sequence

from veiltab.common.linkage.hub_rule import Proposal, candidates
from veiltab.common.linkage.row_keys import Keys


def first_candidates(
    passes: Iterable[tuple[int, Sequence[Keys], Sequence[Keys]]], spoke_rows: int
) -> list[Proposal | None]:
    """Return what each row of a spoke proposes: its candidate in the first pass that has one for it.

    Args:
        passes: (number, keys of all rows of the hub, keys of all rows of the spoke), in the order of the ladder.
        spoke_rows: number of rows of the spoke.
    """
    proposals: list[Proposal | None] = [None] * spoke_rows
    for number, hub_keys, spoke_keys in passes:
        left = [row for row, proposal in enumerate(proposals) if proposal is None]
        found = candidates(hub_keys, (spoke_keys[row] for row in left))
        for row, hub_row in zip(left, found, strict=True):
            if hub_row is not None:
                proposals[row] = Proposal(number, hub_row)
    return proposals
