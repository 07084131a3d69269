"""Small tables of made keys, linked by the rule of the product."""

from collections.abc import Sequence

from veiltab.common.linkage.row_keys import Keys
from veiltab.play.linkage.open_rule import first_candidates, resolve

Row = tuple[int | None, ...]
"""A row's value in each pass; None is missing."""


def keys_of(rows: Sequence[Row], number: int) -> list[Keys]:
    """Return the rows' keys in one pass, as the product has them."""
    return [() if row[number] is None else (bytes([number, row[number] or 0]),) for row in rows]


def hub_links(spoke: Sequence[Row], hub: Sequence[Row]) -> dict[int, int]:
    """Return spoke row -> hub row by the product's own rule."""
    passes = len(next(iter([*spoke, *hub]), ()))
    steps = [(number, keys_of(hub, number), keys_of(spoke, number)) for number in range(passes)]
    return {row: hub_row for hub_row, row in resolve(first_candidates(steps, len(spoke))).items()}
