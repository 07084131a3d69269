"""Bins of dates: edges that are years, months or days, and how the dates of a column are written."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise

from veiltab.common.errors import InvalidInputError

_TIME = r"[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)? ?(?:Z|[+-]\d{2}(?::?\d{2})?)?"
ISO = re.compile(rf"(\d{{4}})(?:-(\d{{2}})(?:-(\d{{2}})(?:{_TIME})?)?)?", re.ASCII)
"""A year, a month or a day as ISO 8601 writes it; a time of the day may follow, and does not count."""

_EDGE = re.compile(r"\d{4}(-\d{2}){0,2}", re.ASCII)
_DIRECTIVES = frozenset("YymdHMSf")
_DAY = timedelta(days=1)
_FINEST = ("%Y", "%m", "%d")


@dataclass(frozen=True, slots=True, kw_only=True)
class DateBins:
    """Which dates become which symbol: a date d becomes symbol i when edges[i] <= d < edges[i+1], by its day.

    Args:
        edges: at least two, increasing; a year is its first day, and so is a month.
        format: how dates are written, in directives such as %d.%m.%Y; "" for ISO 8601.

    Raises:
        InvalidInputError: an edge is no date, edges do not increase, or the format cannot name a day.
    """

    edges: tuple[str, ...]
    format: str = ""
    _days: tuple[date, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_days", tuple(_day_of_edge(edge) for edge in self.edges))
        if len(self.edges) < 2 or any(low >= high for low, high in pairwise(self._days)):
            raise InvalidInputError("dates do not increase", remedy="List at least two edges, earliest first.")
        if self.format:
            _check_format(self.format, self._parts)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label a bin, from its first year, month or day to its last one, such as "1990 to 1999"."""
        return tuple(_label(low, high - _DAY) for low, high in pairwise(self._days))

    def bin(self, value: str) -> int | None:
        """Return the bin of a date as the column writes it; None if it is no date, or in no bin."""
        day = self._day(value)
        if day is None or not self._days[0] <= day < self._days[-1]:
            return None
        return bisect_right(self._days, day) - 1

    def examples(self) -> Iterator[str]:
        """Yield the first day of each bin, as the column writes it."""
        for day in self._days[:-1]:
            yield day.strftime(self.format) if self.format else day.isoformat()

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
                return datetime.strptime(value, self.format).date()  # noqa: DTZ007 - the day as it is written
            parts = ISO.fullmatch(value)
            present = [int(part) for part in parts.groups() if part] if parts else []
            return date(*present, *[1] * (3 - len(present))) if len(present) >= self._parts else None
        except ValueError:
            return None


def _day_of_edge(edge: str) -> date:
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
    found = re.findall(r"%(.?)", text)
    if not set(found) <= _DIRECTIVES or len(set(found)) < len(found) or {"Y", "y"} <= set(found):
        raise InvalidInputError(
            f"date_format {text[:40]!r} is not known",
            remedy="Write it like %d.%m.%Y, of %Y or %y, %m, %d and, for a time, %H, %M, %S, %f.",
        )
    absent = [one for one in _FINEST[:parts] if one[1] not in found and not (one == "%Y" and "y" in found)]
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
