"""What the columns of a curator's own table hold, gathered in one pass to propose how they may be coded.

A profile quotes values: it is for the curator's own terminal, never to be logged or sent.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.coding import NUMBER
from veiltab.curator.column import entries_of
from veiltab.curator.tables.reading import read_batches
from veiltab.curator.tables.source import Source

MISSING_MARKERS = frozenset({"", "NA", "?", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", ".", "-"})
"""Raw values that are taken for missing ones wherever they stand."""

_MOST_DISTINCT = 1 << 16
_MOST_SAMPLED = 1 << 20
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ][\d:.]+Z?)?|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,3}(\.?\d{3})*,\d+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """What one column holds.

    Args:
        column: its name in the header.
        rows: rows of the table.
        missing: marker of a missing value -> rows that hold it; an absent value counts as "".
        values: other values, without white space around them -> rows that hold them; once there are 65,536 different
            ones, rows are not counted any more.
        counted: rows that `values` counts.
        numbers: rows with a number.
        dates: rows with a date.
        decimal_commas: rows with a number that has a decimal comma.
        low: the smallest number; None without any.
        high: the largest one.
        are_whole: whether all numbers are whole.
        sample: numbers of about the first million rows that hold any.
    """

    column: str
    rows: int
    missing: Mapping[str, int]
    values: Mapping[str, int]
    counted: int
    numbers: int
    dates: int
    decimal_commas: int
    low: Decimal | None
    high: Decimal | None
    are_whole: bool
    sample: NDArray[np.float64]

    @property
    def missing_rows(self) -> int:
        """Number of rows with a missing value."""
        return sum(self.missing.values())

    @property
    def present(self) -> int:
        """Number of rows with a value."""
        return self.rows - self.missing_rows

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same value, as far as rows were counted, and none misses it."""
        return not self.missing and len(self.values) == self.counted > 0


def profile_columns(source: Source, columns: list[str]) -> tuple[ColumnProfile, ...]:
    """Read some columns of a table.

    Raises:
        InvalidInputError: as `read_batches`.
    """
    profilers = [_Profiler(column) for column in columns]
    for batch in read_batches(source, (), columns):
        for profiler in profilers:
            profiler.take(batch.coded[profiler.column])
    return tuple(profiler.profile() for profiler in profilers)


class _Profiler:
    """One column while the table is read."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._rows = self._counted = self._numbers = self._dates = self._commas = self._sampled = 0
        self._missing: Counter[str] = Counter()
        self._values: Counter[str] = Counter()
        self._low: Decimal | None = None
        self._high: Decimal | None = None
        self._are_whole = True
        self._sample: list[NDArray[np.float64]] = []

    def take(self, column: pa.DictionaryArray) -> None:
        """Look at each distinct value of a batch once."""
        raw: list[str | None] = [*column.dictionary.to_pylist(), None]
        entries = entries_of(column.indices, len(raw) - 1)
        self._rows += len(entries)
        numbers = np.full(len(raw), np.nan)
        for place, times in enumerate(np.bincount(entries, minlength=len(raw)).tolist()):
            value = (raw[place] or "").strip()
            if not times:
                continue
            if value in MISSING_MARKERS:
                self._missing[value] += times
                continue
            self._count(value, times)
            if NUMBER.fullmatch(value):
                numbers[place] = self._number(Decimal(value), times)
            elif _DATE.fullmatch(value):
                self._dates += times
            elif _DECIMAL_COMMA.fullmatch(value):
                self._commas += times
        self._draw(numbers[entries])

    def _count(self, value: str, times: int) -> None:
        if len(self._values) < _MOST_DISTINCT:
            self._values[value] += times
            self._counted += times

    def _number(self, number: Decimal, times: int) -> float:
        self._numbers += times
        self._low = number if self._low is None else min(number, self._low)
        self._high = number if self._high is None else max(number, self._high)
        self._are_whole = self._are_whole and number == number.to_integral_value()
        return float(number)

    def _draw(self, numbers: NDArray[np.float64]) -> None:
        """Keep the numbers of the first rows."""
        if self._sampled < _MOST_SAMPLED:
            present = numbers[~np.isnan(numbers)]
            self._sample.append(present)
            self._sampled += len(present)

    def profile(self) -> ColumnProfile:
        """Return the profile."""
        return ColumnProfile(
            column=self.column,
            rows=self._rows,
            missing=dict(self._missing),
            values=dict(self._values),
            counted=self._counted,
            numbers=self._numbers,
            dates=self._dates,
            decimal_commas=self._commas,
            low=self._low,
            high=self._high,
            are_whole=self._are_whole,
            sample=np.concatenate([np.empty(0), *self._sample]),
        )
