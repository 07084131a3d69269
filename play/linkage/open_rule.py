"""The hub rule where both tables are in one place."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from veiltab.common.linkage.hub_rule import only_rows
from veiltab.common.linkage.row_keys import Keys


class Proposal(NamedTuple):
    """In which pass a row of a spoke proposes, and to which row of the hub."""

    number: int
    hub_row: int


def candidates(hub_keys: Iterable[Keys], spoke_keys: Iterable[Keys]) -> list[int | None]:
    """Return for each row of a spoke the only row of the whole hub that shares a key with it.

    Args:
        hub_keys: of all rows of the hub in one pass.
        spoke_keys: of some rows of the spoke in the same pass.

    Returns:
        The hub's row by its place, or None if none or several share a key.
    """
    rows = only_rows(hub_keys)
    return [_only(rows, keys) for keys in spoke_keys]


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
        rows = [row for row, proposal in enumerate(proposals) if proposal is None]
        matches = candidates(hub_keys, (spoke_keys[row] for row in rows))
        for row, hub_row in zip(rows, matches, strict=True):
            if hub_row is not None:
                proposals[row] = Proposal(number, hub_row)
    return proposals


def resolve(proposals: Sequence[tuple[int, int] | None]) -> dict[int, int]:
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
                best[hub_row] = (number, -1)
    return {hub_row: row for hub_row, (_, row) in sorted(best.items()) if row >= 0}


def _only(rows: Mapping[bytes, int], keys: Keys) -> int | None:
    matches = {rows[key] for key in keys if key in rows}
    if len(matches) != 1:
        return None
    (row,) = matches
    return None if row < 0 else row
