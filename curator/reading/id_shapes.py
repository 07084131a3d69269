"""The shapes of a table's ids, column by column; see `veiltab.common.study.id_shapes`."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from veiltab.common.study.id_shapes import DECIMALS, MOST_CHARACTERS, TEXT, WHOLE_NUMBERS
from veiltab.curator.reading.respondents import SEPARATOR


def id_shapes(ids: Iterable[pa.Array], columns: int) -> tuple[str, ...]:
    """Return the shape of each id column.

    Args:
        ids: normalised ids, the parts of several columns joined by SEPARATOR.
        columns: number of id columns.
    """
    readers = [ShapeReader() for _ in range(columns)]
    for chunk in ids:
        parts = pc.split_pattern(chunk, SEPARATOR) if columns > 1 else None
        for place, reader in enumerate(readers):
            reader.take(chunk if parts is None else pc.list_element(parts, place))
    return tuple(reader.shape() for reader in readers)


class ShapeReader:
    """The shape that all ids of a column share, while they are read."""

    def __init__(self) -> None:
        self._patterns: set[str] = set()
        self._are_decimals = self._are_whole = True
        self._has_leading_zeros = False

    def take(self, ids: pa.Array) -> None:
        """Look at some more ids; absent ones have no shape."""
        ids = ids.drop_null()
        if not len(ids):
            return
        self._are_decimals = self._are_decimals and _all(ids, r"^\s*[0-9]+\.0+\s*$")
        self._are_whole = self._are_whole and _all(ids, r"^[0-9]+$")
        self._has_leading_zeros |= bool(pc.any(pc.match_substring_regex(ids, r"^0[0-9]")).as_py())
        # Two patterns are no pattern, so no more are needed.
        if len(self._patterns) < 2:
            plain = pc.replace_substring_regex(pc.replace_substring_regex(ids, r"[0-9]", "9"), r"\pL", "a")
            self._patterns.update(pc.unique(plain).slice(0, 2).to_pylist())

    def shape(self) -> str:
        """Return the shape of all ids."""
        if not self._patterns:
            return TEXT
        if self._are_decimals:
            return DECIMALS
        if len(self._patterns) == 1:
            (pattern,) = self._patterns
            if not pattern.isprintable() or not 1 <= len(pattern) <= MOST_CHARACTERS:
                return TEXT
            return "0" + pattern[1:] if self._has_leading_zeros else pattern
        return WHOLE_NUMBERS if self._are_whole and not self._has_leading_zeros else TEXT


def _all(ids: pa.Array, pattern: str) -> bool:
    """Return whether every id matches a pattern."""
    matches: bool = pc.all(pc.match_substring_regex(ids, pattern)).as_py()
    return matches
