"""Codes the raw values of a column as symbols: recoded texts, binned numbers or dates; missing values by a rule."""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

from veiltab.common.core.domain import MAX_CATEGORIES
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.dates import DateBins

if TYPE_CHECKING:
    from veiltab.common.study.coding.grids import Grid

DROP = -1
"""Code of a missing value whose respondent leaves the table."""

UNKNOWN = -2
"""Code of a value that is not a category or a recoded value, and is in no bin."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
"""A raw value that bins take for a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """How the raw values of one attribute become symbols; white space around them and Unicode forms never count.

    A raw value equal to a category, or recoded to it, becomes its symbol. With bins, a number x becomes symbol i when
    bins[i] <= x < bins[i+1]; the last bin holds its upper edge too. With dates, see `DateBins`. With a grid, a value
    has a position in the place of a symbol; see `Grid`. A value that is absent or among `missing_values` becomes the
    symbol of `missing`, or DROP.

    Args:
        categories: names of the symbols 0, 1, ..., all different.
        recode: pairs (raw value, category).
        bins: increasing edges, one more than there are binned categories; empty for texts.
        dates: bins of dates; None for texts and numbers.
        grid: points between which numbers are rounded at random; None for categories.
        missing_values: raw values that stand for a missing one.
        missing: the category of missing values; None to drop their respondents.

    Raises:
        InvalidInputError: if the rule contradicts itself; the message names the rule's own texts, never data.
    """

    categories: tuple[str, ...]
    recode: tuple[tuple[str, str], ...] = ()
    bins: tuple[Decimal, ...] = ()
    dates: DateBins | None = None
    grid: "Grid | None" = None
    missing_values: tuple[str, ...] = ("", "NA", "?")
    missing: str | None = None
    _symbols: dict[str, int] = field(init=False, repr=False, compare=False)
    _absent: frozenset[str] = field(init=False, repr=False, compare=False)
    _missing: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._has_edges:
            _check_bins(self)
        _check_texts(self)
        symbols = {category: symbol for symbol, category in enumerate(self.categories)}
        if self.missing is not None and self.missing not in symbols:
            raise InvalidInputError(
                f"missing = {self.missing!r} is not a category", remedy='Name one of the categories, or "drop".'
            )
        missing = DROP if self.missing is None else symbols[self.missing]
        if self.grid is not None and missing >= 0:
            missing = self.grid.position_of(missing)
        object.__setattr__(self, "_missing", missing)
        object.__setattr__(self, "_absent", frozenset(map(_composed, self.missing_values)))
        if self._has_edges:
            object.__setattr__(self, "_symbols", {})
        else:
            values = symbols | _recoded(self, symbols)
            object.__setattr__(self, "_symbols", {_composed(raw): symbol for raw, symbol in values.items()})
            _check_apart(self)

    @property
    def _has_edges(self) -> bool:
        return bool(self.bins or self.dates or self.grid)

    @property
    def are_numbers(self) -> bool:
        """Whether raw values are read as numbers."""
        return bool(self.bins or self.grid)

    def is_missing(self, raw: str | None) -> bool:
        """Return whether a raw value stands for a missing one."""
        return raw is None or _composed(raw.strip()) in self._absent

    def code(self, raw: str | None) -> int:
        """Return the symbol of a raw value (None: absent), or DROP, or UNKNOWN, as of a number outside the bins.

        With a grid it is a position.
        """
        if raw is None:
            return self._missing
        value = _composed(raw.strip())
        if value in self._absent:
            return self._missing
        if self.dates:
            place = self.dates.bin(value)
            return UNKNOWN if place is None else place
        if not self.are_numbers:
            return self._symbols.get(value, UNKNOWN)
        if not NUMBER.fullmatch(value):
            return UNKNOWN
        return self._bin(Decimal(value)) if self.bins else self._position(Decimal(value))

    def is_clipped(self, raw: str | None) -> bool:
        """Return whether a raw value is a number outside the grid that becomes an end of it."""
        value = "" if raw is None else raw.strip()
        if self.grid is None or not self.grid.clips or value in self._absent or not NUMBER.fullmatch(value):
            return False
        return self.grid.is_outside(Decimal(value))

    def _position(self, number: Decimal) -> int:
        place = self.grid.position(number) if self.grid else None
        return UNKNOWN if place is None else place

    def _bin(self, number: Decimal) -> int:
        """Return the bin of a number, compared exactly."""
        if not self.bins[0] <= number <= self.bins[-1]:
            return UNKNOWN
        return min(bisect_right(self.bins, number), len(self.bins) - 1) - 1


def bin_labels(bins: tuple[Decimal, ...]) -> tuple[str, ...]:
    """Return one label a bin, such as "[18, 65)"; the last one is closed."""
    labels = [f"[{low}, {high})" for low, high in pairwise(bins)]
    return (*labels[:-1], f"{labels[-1][:-1]}]") if labels else ()


def _composed(text: str) -> str:
    """Return a text in Unicode form C, in which letters with accents are one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _check_texts(coding: Coding) -> None:
    """Refuse an alphabet that is too large, listed twice, or cannot be written back and read again."""
    if not 1 <= len(coding.categories) <= MAX_CATEGORIES:
        raise InvalidInputError(
            f"{len(coding.categories)} categories are listed", remedy=f"List 1 to {MAX_CATEGORIES} categories."
        )
    for category in coding.categories:
        if not category or category != category.strip() or not category.isprintable() or len(category) > 80:
            raise InvalidInputError(
                f"category {category!r} cannot be shown",
                remedy="Use 1 to 80 printable characters without white space around them.",
            )
    for category, times in Counter(map(_composed, coding.categories)).items():
        if times > 1:
            raise InvalidInputError(f"category {category!r} is listed twice", remedy="List each category once.")
    for raw in (*(raw for raw, _ in coding.recode), *coding.missing_values):
        if raw != raw.strip():
            raise InvalidInputError(
                f"raw value {raw!r} has white space around it",
                remedy="Remove it: white space around raw values never counts.",
            )


def _check_bins(coding: Coding) -> None:
    """Refuse edges that are not finite and increasing, or do not match the categories."""
    if coding.dates and (coding.recode or coding.bins):
        raise InvalidInputError("dates stands beside recode or bins", remedy="Keep one of them.")
    if coding.grid:
        if coding.recode:
            raise InvalidInputError("both recode and a grid are given", remedy="Keep the grid; numbers need no recode.")
        _check_binned(coding, len(coding.grid.labels), "points")
        return
    if coding.recode:
        raise InvalidInputError(
            "both recode and bins are given", remedy="Keep one: recode for texts, bins for numbers."
        )
    if coding.dates:
        _check_binned(coding, len(coding.dates.labels))
        return
    if not all(edge.is_finite() for edge in coding.bins):
        raise InvalidInputError("a bin edge is not a finite number", remedy="Use finite edges.")
    if len(coding.bins) < 2 or any(low >= high for low, high in pairwise(coding.bins)):
        raise InvalidInputError("bin edges do not increase", remedy="List at least two edges, smallest first.")
    _check_binned(coding, len(coding.bins) - 1)


def _check_binned(coding: Coding, binned: int, what: str = "bins") -> None:
    """Refuse categories that are not one a bin or point, and at most one more for missing values."""
    own_last = coding.categories[-1:] == (coding.missing,)
    if len(coding.categories) != binned and not (own_last and len(coding.categories) == binned + 1):
        raise InvalidInputError(
            f"{len(coding.categories)} categories for {binned} {what}",
            remedy="Name one category for each; one more, the last, may be that of missing values.",
        )


def _recoded(coding: Coding, symbols: dict[str, int]) -> dict[str, int]:
    """Return the symbol of each recoded raw value."""
    table: dict[str, int] = {}
    for raw, category in coding.recode:
        if category not in symbols:
            raise InvalidInputError(
                f"recode sends {raw!r} to {category!r}, which is not a category",
                remedy=f"Categories: {', '.join(coding.categories)}.",
            )
        if (
            table.get(raw, symbols[category]) != symbols[category]
            or symbols.get(raw, symbols[category]) != symbols[category]
        ):
            raise InvalidInputError(
                f"recode gives {raw!r} a second meaning",
                remedy="A raw value has one category, a category's own name stays.",
            )
        table[raw] = symbols[category]
    return table


def _check_apart(coding: Coding) -> None:
    """Refuse a raw value that is both missing and something else."""
    for value in coding.missing_values:
        if value in coding._symbols and coding._symbols[value] != coding._missing:  # noqa: SLF001 - its own module
            raise InvalidInputError(
                f"{value!r} is both a missing value and a category",
                remedy="Set missing_values of this attribute, without it.",
            )
