"""What the columns of a curator's own table hold, gathered in one pass to propose how they may be coded.

A profile quotes values: it is for the curator's own terminal, never to be logged or sent.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import NUMBER
from veiltab.curator.formats.columns.arrow_buffers import entries_of
from veiltab.curator.formats.columns.named_columns import NamedColumns
from veiltab.curator.formats.columns.numerals import Notation, Numerals, is_number
from veiltab.curator.formats.columns.source import FIRST_ROW, Source
from veiltab.curator.table.column_coding import first_rows_of
from veiltab.curator.table.date_formats import DateWritings

MISSING_MARKERS = frozenset({"", "NA", "?", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", ".", "-"})
"""Raw values that are taken for missing ones wherever they stand."""

LAST_ROWS = 3
"""Last rows that are looked at."""

_MOST_DISTINCT = 1 << 16
_MOST_SAMPLED = 1 << 20
_MOST_NOTED = 6
_MOST_CODES = 3
_NONE: Mapping[str, Collection[str]] = {}


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
        dates: rows with a date, in some writing.
        date_formats: how all of these may be written, "" for ISO 8601; several if it is not clear.
        years: the first year and the last one by the first of these; None without dates.
        first_year: the earliest year that two digits mean, if a person says so.
        after_today: rows with a date after today, which is not among the dates.
        unclear_numbers: why its numbers may be read in two ways; "" if they may not.
        decimal: "comma" if its numbers have a decimal comma; "" otherwise.
        low: the smallest number; None without any.
        high: the largest one.
        are_whole: whether all numbers are whole.
        sample: numbers of about the first million rows that hold any.
        total: the sum of its numbers.
        ends: the first value and the last three, each with its number if it is one.
        no_numbers: first few values that are not numbers -> the first row of each.
    """

    column: str
    rows: int
    missing: Mapping[str, int]
    values: Mapping[str, int]
    counted: int
    numbers: int
    dates: int
    date_formats: tuple[str, ...]
    years: tuple[int, int] | None
    first_year: int | None
    after_today: int
    unclear_numbers: str
    decimal: str
    low: Decimal | None
    high: Decimal | None
    are_whole: bool
    total: Decimal
    ends: tuple[tuple[str, Decimal | None], ...]
    sample: NDArray[np.float64]
    no_numbers: Mapping[str, int]
    no_dates: Mapping[str, int]

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


def profile_columns(
    source: Source,
    columns: list[str],
    decimal: str = "",
    missing: Mapping[str, Collection[str]] = _NONE,
    first_year: int | None = None,
) -> tuple[ColumnProfile, ...]:
    """Read some columns of a table.

    Args:
        decimal: how numbers are written that may be read in two ways.
        missing: column -> its markers of missing values beside the usual ones.
        first_year: the earliest year that two digits mean.

    Raises:
        InvalidInputError: as `NamedColumns`.
    """
    named = NamedColumns(source, (), columns)
    profilers = [
        _Profiler(name, named.numerals(name, decimal), MISSING_MARKERS.union(missing.get(name, ())), first_year)
        for name in columns
    ]
    for batch in named.batches():
        for profiler in profilers:
            profiler.take(batch.coded[profiler.column], batch.exact.get(profiler.column))
    return tuple(profiler.profile() for profiler in profilers)


class _Profiler:
    """One column while the table is read."""

    def __init__(
        self, column: str, numerals: Numerals | None, markers: Collection[str], first_year: int | None
    ) -> None:
        self.column, self._first_year = column, first_year
        self._markers = markers
        self._no_numbers, self._no_dates = dict[str, int](), dict[str, int]()
        self._numerals = numerals
        self._unclear = ""
        self._writings = DateWritings(first_year)
        self._rows = self._counted = self._numbers = self._dates = self._sampled = 0
        self._missing: Counter[str] = Counter()
        self._values: Counter[str] = Counter()
        self._low: Decimal | None = None
        self._high: Decimal | None = None
        self._are_whole = True
        self._total = Decimal(0)
        self._ends: list[str] = []
        self._sample: list[NDArray[np.float64]] = []

    def take(self, column: pa.DictionaryArray, exact: Collection[str] | None) -> None:
        """Look at each distinct value of a batch once."""
        raw: list[str | None] = [*column.dictionary.to_pylist(), None]
        entries = entries_of(column.indices, len(raw) - 1)
        self._decide(raw, entries, exact)
        first_row = FIRST_ROW + self._rows
        self._rows += len(entries)
        numbers = np.full(len(raw), np.nan)
        for place, times in enumerate(np.bincount(entries, minlength=len(raw)).tolist()):
            value = (raw[place] or "").strip()
            if not times:
                continue
            if value in self._markers:
                self._missing[value] += times
                continue
            self._count(value, times)
            number = None
            if self._writings.take(value, times):
                self._dates += times
            else:
                _note(self._no_dates, value, entries, place, first_row)
                number = self._plain(value)
            if number is None:
                _note(self._no_numbers, value, entries, place, first_row)
            else:
                numbers[place] = self._number(Decimal(number), times)
        ends = [(raw[entry] or "").strip() for entry in (*entries[:1], *entries[-LAST_ROWS:])]
        self._ends = [*(self._ends or ends)[:1], *[*self._ends[1:], *ends[1:]][-LAST_ROWS:]]
        self._draw(numbers[entries])

    def _decide(self, raw: Sequence[str | None], entries: NDArray[np.int32], exact: Collection[str] | None) -> None:
        """Let the first values decide how numbers are written; where that is not clear, none is taken for a number."""
        if self._numerals is None or self._unclear or not len(entries) or self._numerals.is_decided(exact):
            return
        try:
            values = first_rows_of(raw, entries, FIRST_ROW + self._rows, self._markers.__contains__)
            self._numerals.decide(values, exact)
        except InvalidInputError as error:
            self._unclear = f"{error.problem}. {error.remedy}"

    def _plain(self, value: str) -> str | None:
        """Return a number as plain decimal text; None if it is none."""
        if self._numerals is None:
            return value if NUMBER.fullmatch(value) else None
        return None if self._unclear else self._numerals.plain(value)

    def _count(self, value: str, times: int) -> None:
        if len(self._values) < _MOST_DISTINCT:
            self._values[value] += times
            self._counted += times

    def _number(self, number: Decimal, times: int) -> float:
        self._numbers += times
        self._total += number * times
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
            date_formats=self._writings.formats,
            years=self._writings.years,
            first_year=self._first_year,
            after_today=self._writings.after_today,
            unclear_numbers=self._unclear if self._unclear and all(map(is_number, self._values)) else "",
            decimal="comma" if self._numerals and self._numerals.notation is Notation.COMMA else "",
            low=self._low,
            high=self._high,
            are_whole=self._are_whole,
            total=self._total,
            ends=tuple((text, Decimal(plain) if (plain := self._plain(text)) else None) for text in self._ends),
            sample=np.concatenate([np.empty(0), *self._sample]),
            no_numbers=self._no_numbers,
            no_dates=self._no_dates,
        )


def _note(firsts: dict[str, int], value: str, entries: NDArray[np.int32], place: int, first_row: int) -> None:
    """Note the first row of a value while there is room."""
    if len(firsts) < _MOST_NOTED and value not in firsts:
        firsts[value] = first_row + int(np.argmax(entries == place))


def far_numbers(sample: NDArray[np.float64]) -> list[tuple[str, int]]:
    """Return the few negative numbers, and those like 999 above a gap twice as wide as all below."""
    numbers, rows = np.unique(sample, return_counts=True)
    names = [f"{number:.10g}" for number in numbers]
    low, high = int(np.count_nonzero(numbers < 0)), len(numbers)
    if not 0 < low <= _MOST_CODES or rows[:low].min() == 1 or high < 4 * low:
        low = 0
    while high - low > 2 and rows[high - 1] > 1 and {*names[high - 1]} <= {*"789"}:
        if numbers[high - 1] - numbers[high - 2] <= 2 * (numbers[high - 2] - numbers[low]):
            break
        high -= 1
    return [(names[place], int(rows[place])) for place in (*range(low), *range(high, len(numbers)))]
