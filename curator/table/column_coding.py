"""One attribute's column of a curator's table: coded batch by batch, with counts of its values."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.domain import PARTS, POSITION, symbol_dtype
from veiltab.common.dataclass import dataclass
from veiltab.common.study.coding.coding import UNKNOWN
from veiltab.common.study.coding.rules import AttributeRule
from veiltab.curator.formats.columns.arrow_buffers import entries_of
from veiltab.curator.formats.columns.numerals import Notation, Numerals

FIRST = 5
"""Number of row numbers to report for a problem."""

_MOST_CACHED = 1 << 16
_MOST_UNKNOWN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownValue:
    """A raw value that the study does not know; for the curator's own eyes only.

    Args:
        value: the raw value, cut after 200 characters.
        rows: how many rows hold it.
        first_rows: file row numbers of the first few.
    """

    value: str
    rows: int
    first_rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading:
    """What one attribute's column holds, over all rows read: counts, missing (if dropped) and unknown rows add up.

    Args:
        counts: rows a category, missing values that became a category among them; of a grid, rows nearest to a point.
        missing: rows with a missing value, whatever became of it.
        clipped: rows with a number that became an end of the grid.
        unknown_rows: rows with an unknown value.
        unknown_first: file row numbers of the first few of them.
        unknown: the unknown values, at most a thousand different ones.
        notation: how its numbers are written, if that was looked for.
    """

    rule: AttributeRule
    counts: tuple[int, ...]
    missing: int
    clipped: int
    unknown_rows: int
    unknown_first: tuple[int, ...]
    unknown: tuple[UnknownValue, ...]
    notation: Notation | None = None


class ColumnReader:
    """One attribute while its file is read; `numerals` may be set before, if somebody wrote its numbers."""

    def __init__(self, rule: AttributeRule) -> None:
        self.rule = rule
        self.numerals: Numerals | None = None
        is_grid = rule.coding.grid is not None
        self.dtype: np.dtype[np.unsignedinteger] = POSITION if is_grid else symbol_dtype(rule.attribute.size)
        """Type of its symbols, or of positions on its grid."""
        self._code_dtype = np.dtype(np.int64) if is_grid else np.min_scalar_type(-rule.attribute.size)
        self._parts = PARTS if is_grid else 1
        self._counts = np.zeros(len(rule.coding.categories), np.int64)
        self._missing = self._clipped = 0
        self._unknown_rows = 0
        self._unknown_first: list[int] = []
        self._unknown: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._codes: dict[str | None, int] = {}

    def codes(
        self, column: pa.DictionaryArray, first_row: int, exact: Collection[str] | None = None
    ) -> NDArray[np.signedinteger]:
        """Return the codes of a batch and count them; a distinct value is looked up once a batch, not once a row.

        Args:
            column: dictionary-encoded raw values, null where absent.
            first_row: file row number of its first value.
            exact: its numbers of the source, as `Numerals.decide` takes them.
        """
        values: list[str | None] = [*column.dictionary.to_pylist(), None]
        entries = entries_of(column.indices, len(values) - 1)
        is_missing = self.rule.coding.is_missing
        if self.numerals is not None and len(entries) and not self.numerals.is_decided(exact):
            self.numerals.decide(first_rows_of(values, entries, first_row, is_missing), exact)
        codes = np.array([self._code(value) for value in values], self._code_dtype)
        rows = np.bincount(entries, minlength=len(values))
        is_known = codes >= 0
        np.add.at(self._counts, (codes[is_known] + self._parts // 2) // self._parts, rows[is_known])
        self._missing += sum(int(n) for v, n in zip(values, rows, strict=True) if n and is_missing(v))
        if (grid := self.rule.coding.grid) and grid.clips:
            ends = grid.position_of(0), grid.position_of(len(grid.points) - 1)
            self._clipped += sum(
                int(rows[at]) for at in np.flatnonzero(np.isin(codes, ends)) if self._is_clipped(values[at])
            )
        if rows[codes == UNKNOWN].any():
            self._note_unknown(values, entries, codes, first_row)
        return codes.take(entries)

    def reading(self) -> ColumnReading:
        """Return the reading."""
        return ColumnReading(
            rule=self.rule,
            counts=tuple(int(count) for count in self._counts),
            missing=self._missing,
            clipped=self._clipped,
            unknown_rows=self._unknown_rows,
            unknown_first=tuple(self._unknown_first),
            unknown=tuple(UnknownValue(value=v, rows=n, first_rows=r) for v, (n, r) in self._unknown.items()),
            notation=self.numerals.notation if self.numerals else None,
        )

    def _code(self, value: str | None) -> int:
        """Return the code of a raw value, from a cache of bounded size."""
        code = self._codes.get(value)
        if code is None:
            if len(self._codes) >= _MOST_CACHED:
                self._codes.clear()
            code = self._codes[value] = self._new_code(value)
        return code

    def _is_clipped(self, value: str | None) -> bool:
        plain = self.numerals.plain(value.strip()) if value and self.numerals else None
        return self.rule.coding.is_clipped(value if plain is None else plain)

    def _new_code(self, value: str | None) -> int:
        """Return the code of a raw value, numbers as they are written in this column."""
        coding = self.rule.coding
        if value is None or self.numerals is None or coding.is_missing(value):
            return coding.code(value)
        # What needs no translation is the same with a decimal point.
        code = UNKNOWN if self.numerals.notation is Notation.COMMA else coding.code(value)
        plain = self.numerals.plain(value.strip()) if code == UNKNOWN else None
        return code if plain is None else coding.code(plain)

    def _note_unknown(
        self, values: list[str | None], entries: NDArray[np.int32], codes: NDArray[np.signedinteger], first_row: int
    ) -> None:
        """Count the rows with unknown values, and note the first of them a value."""
        where = np.flatnonzero((codes == UNKNOWN)[entries])
        self._unknown_rows += len(where)
        self._unknown_first += [int(row) + first_row for row in where[: FIRST - len(self._unknown_first)]]
        order = np.argsort(entries[where], kind="stable")
        distinct, starts, counts = np.unique(entries[where][order], return_index=True, return_counts=True)
        for entry, start, count in zip(distinct, starts, counts, strict=True):
            rows = where[order[start : start + min(int(count), FIRST)]] + first_row
            self._note_value(str(values[entry])[:200], int(count), [int(row) for row in rows])

    def _note_value(self, value: str, count: int, rows: list[int]) -> None:
        """Add rows to an unknown value, or note it while there is room."""
        before, first = self._unknown.get(value, (0, ()))
        if before or len(self._unknown) < _MOST_UNKNOWN:
            self._unknown[value] = (before + count, (*first, *rows)[:FIRST])


def first_rows_of(
    values: Sequence[str | None], entries: NDArray[np.int32], first_row: int, is_missing: Callable[[str], bool]
) -> dict[str, int]:
    """Return the values of a batch, each with the row in which it stands first, in the order of these rows.

    White space around a value does not count.

    Args:
        values: the dictionary of the batch.
        entries: the dictionary entry of each row.
        first_row: file row number of the first of them.
        is_missing: which values are left out.
    """
    distinct, places = np.unique(entries, return_index=True)
    order = np.argsort(places)
    rows = zip(distinct[order].tolist(), places[order].tolist(), strict=True)
    present = {raw.strip(): place + first_row for entry, place in rows if (raw := values[entry]) is not None}
    return {value: row for value, row in present.items() if not is_missing(value)}
