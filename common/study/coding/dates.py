"""Bins of dates: edges that are years, months or days, and how the dates of a column are written."""

import re
from bisect import bisect_right
from datetime import date, datetime, timedelta
from itertools import pairwise

from veiltab.common.core.texts.months import month_numbered
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

_TIME = r"[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)? ?(?:Z|[+-]\d{2}(?::?\d{2})?)?"
ISO = re.compile(rf"(\d{{4}})(?:-(\d{{2}})(?:-(\d{{2}})(?:{_TIME})?)?)?", re.ASCII)
"""A year, a month or a day as ISO 8601 writes it; a time of the day may follow, and does not count."""

_EDGE = re.compile(r"\d{4}(-\d{2}){0,2}", re.ASCII)
_DIRECTIVES = frozenset("YymbdHMSf")
_DAY = timedelta(days=1)
_FINEST = ("%Y", "%m", "%d")
_OTHER = {"Y": "y", "m": "b"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DateBins:
    """Which dates become which symbol: a date d becomes symbol i when edges[i] <= d < edges[i+1], by its day.

    Args:
        edges: at least two, increasing; a year is its first day, and so is a month.
        format: how dates are written, in directives such as %d.%m.%Y; "" for ISO 8601. %b is the name of a month.
        first_year: the earliest year that two digits mean; None where years have four.
        future_dates: whether dates after today are taken.

    Raises:
        InvalidInputError: an edge is not a date, edges do not increase, or the format cannot name a day.
    """

    edges: tuple[str, ...]
    format: str = ""
    first_year: int | None = None
    future_dates: bool = False
    _days: tuple[date, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_days", tuple(day_of_edge(edge) for edge in self.edges))
        if len(self.edges) < 2 or any(low >= high for low, high in pairwise(self._days)):
            raise InvalidInputError("dates do not increase", remedy="List at least two edges, earliest first.")
        if self.format:
            _check_format(self.format, self._parts)
        if ("%y" in self.format) != (self.first_year is not None):
            raise InvalidInputError(
                "first_year and %y of date_format stand without one another",
                remedy="Years of two digits need a first_year: with 1926, 25 is 2025 and 26 is 1926.",
            )
        check_first_year(self.first_year)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label a bin, from its first year, month or day to its last one, such as "1990 to 1999"."""
        return tuple(_label(low, high - _DAY) for low, high in pairwise(self._days))

    def bin(self, value: str) -> int | None:
        """Return the bin of a date as the column writes it; None if it has trouble."""
        day = self._day(value)
        return None if day is None or self.trouble(value) else bisect_right(self._days, day) - 1

    def trouble(self, value: str) -> str:
        """Return why a text has no bin, such as "dates after today"; "" if it has one."""
        day = self._day(value)
        if day is None:
            return f"values that are not written as {self.format or 'ISO 8601 (2000-07-15)'}"
        if day > today() and not self.future_dates:
            return "dates after today"
        return "" if self._days[0] <= day < self._days[-1] else "dates outside the bins"

    @property
    def _parts(self) -> int:
        """How much of a date the edges tell apart: 1 for the year, 2 with the month, 3 with the day."""
        if any(day.day != 1 for day in self._days):
            return 3
        return 2 if any(day.month != 1 for day in self._days) else 1

    def _day(self, value: str) -> date | None:
        """Return the day of a date, or the first one of a year or month that lies in one bin."""
        try:
            if self.format:
                return self._formatted(value)
            parts = ISO.fullmatch(value)
            present = [int(part) for part in parts.groups() if part] if parts else []
            return date(*present, *[1] * (3 - len(present))) if len(present) >= self._parts else None
        except ValueError:
            return None

    def _formatted(self, value: str) -> date:
        """Return the day of a date that has a format."""
        text, parts = self.format, month_numbered(value)
        if "%b" in text:
            value, text = "|".join(parts or ()), re.sub(r"%b(\.(?=\s))?", "|%m|", text)
        day = datetime.strptime(value, text).date()  # noqa: DTZ007 - the day as it is written
        return day if self.first_year is None else day.replace(year=century_year(day.year, self.first_year))


def today() -> date:
    """Return the day that it is here."""
    return datetime.now().astimezone().date()


def century_year(year: int, first_year: int) -> int:
    """Return the year with the same last two digits among the hundred from a first one on."""
    return first_year + (year - first_year) % 100


def check_first_year(year: int | None) -> None:
    """Refuse a first year from which a hundred do not count on."""
    if year is not None and not 1000 <= year <= 9900:
        raise InvalidInputError("first_year is not a year", remedy="Write four digits, such as 1926.")


def day_of_edge(edge: str) -> date:
    """Return the first day of an edge."""
    try:
        if _EDGE.fullmatch(edge):
            return date.fromisoformat(f"{edge}-01-01"[:10])
    except ValueError:
        pass
    raise InvalidInputError(
        f"dates has {edge[:40]!r}, which is not a year, month or day", remedy="Write 1990, 2000-07 or 2000-07-15."
    )


def _check_format(text: str, parts: int) -> None:
    """Refuse a format with other directives, twice the same, or without what the edges tell apart."""
    codes = re.findall(r"%(.?)", text)
    if (
        not set(codes) <= _DIRECTIVES
        or len(set(codes)) < len(codes)
        or {"Y", "y"} <= set(codes)
        or {"m", "b"} <= set(codes)
    ):
        raise InvalidInputError(
            f"date_format {text[:40]!r} is not known",
            remedy="Write it like %d.%m.%Y, of %Y or %y, %m or %b, %d and, for a time, %H, %M, %S, %f.",
        )
    absent = [one for one in _FINEST[:parts] if one[1] not in codes and _OTHER.get(one[1]) not in codes]
    if absent:
        raise InvalidInputError(
            f"date_format lacks {absent[0]}, which the edges need", remedy="Add it, or use coarser edges."
        )


def _label(first: date, last: date) -> str:
    """Return a span of days as the coarsest units that name it."""
    ends_month = (last + _DAY).day == 1
    if first.day == first.month == 1 and ends_month and last.month == 12:
        return _span(f"{first:%Y}", f"{last:%Y}")
    if first.day == 1 and ends_month:
        return _span(f"{first:%Y-%m}", f"{last:%Y-%m}")
    return _span(first.isoformat(), last.isoformat())


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"
