"""The shapes of a table's ids, column by column; see `veiltab.common.study.id_shapes`."""

import pyarrow as pa
import pyarrow.compute as pc

from veiltab.common.study.id_shapes import DECIMALS, MOST_CHARACTERS, TEXT, WHOLE_NUMBERS
from veiltab.curator.respondents import SEPARATOR


def id_shapes(ids: pa.ChunkedArray, columns: int) -> tuple[str, ...]:
    """Return the shape of each id column.

    Args:
        ids: normalised ids, the parts of several columns joined by SEPARATOR.
        columns: number of id columns.
    """
    if columns == 1:
        return (_shape(ids),)
    parts = pc.split_pattern(ids, SEPARATOR)
    return tuple(_shape(pc.list_element(parts, place)) for place in range(columns))


def _shape(ids: pa.ChunkedArray) -> str:
    """Return the shape that all ids of a column share."""
    if not len(ids):
        return TEXT
    if _all(ids, r"^[0-9]+\.0+$"):
        return DECIMALS
    has_leading_zeros = pc.any(pc.match_substring_regex(ids, r"^0[0-9]")).as_py()
    patterns = pc.unique(pc.replace_substring_regex(pc.replace_substring_regex(ids, r"[0-9]", "9"), r"\pL", "a"))
    if len(patterns) == 1:
        (pattern,) = patterns.to_pylist()
        if not pattern.isprintable() or len(pattern) > MOST_CHARACTERS:
            return TEXT
        return "0" + pattern[1:] if has_leading_zeros else str(pattern)
    return WHOLE_NUMBERS if _all(ids, r"^[0-9]+$") and not has_leading_zeros else TEXT


def _all(ids: pa.ChunkedArray, pattern: str) -> bool:
    """Return whether every id matches a pattern."""
    matches: bool = pc.all(pc.match_substring_regex(ids, pattern)).as_py()
    return matches
