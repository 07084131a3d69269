"""The rule that was tried first: keys unique among the rows left in both tables link, and linked rows leave."""

from collections import Counter
from collections.abc import Iterable, Sequence

from veiltab.common.linkage.hub_rule import accept
from veiltab.common.linkage.row_keys import Keys
from veiltab.play.linkage.open_rule import first_candidates

Row = tuple[int | None, ...]
"""A row's value in each pass; None is missing."""


def keys_of(rows: Sequence[Row], number: int) -> list[Keys]:
    """Return the rows' keys in one pass, as the product has them."""
    return [() if row[number] is None else (bytes([number, row[number] or 0]),) for row in rows]


def hub_links(spoke: Sequence[Row], hub: Sequence[Row]) -> dict[int, int]:
    """Return spoke row -> hub row by the product's own rule."""
    passes = len(next(iter([*spoke, *hub]), ()))
    steps = [(number, keys_of(hub, number), keys_of(spoke, number)) for number in range(passes)]
    return {row: hub_row for hub_row, row in accept(first_candidates(steps, len(spoke))).items()}


def old_links(spoke: Sequence[Row], hub: Sequence[Row]) -> dict[int, int]:
    """Return spoke row -> hub row by the old rule."""
    links: dict[int, int] = {}
    left, hub_left = set(range(len(spoke))), set(range(len(hub)))
    for number in range(len(next(iter([*spoke, *hub]), ()))):
        own, other = _only(spoke, left, number), _only(hub, hub_left, number)
        found = {own[value]: other[value] for value in own.keys() & other.keys()}
        links |= found
        left -= found.keys()
        hub_left -= set(found.values())
    return links


def _only(rows: Sequence[Row], left: Iterable[int], number: int) -> dict[int, int]:
    values = {row: value for row in left if (value := rows[row][number]) is not None}
    count = Counter(values.values())
    return {value: row for row, value in values.items() if count[value] == 1}
