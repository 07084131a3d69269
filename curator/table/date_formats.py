"""How the dates of a column are written."""

import re
from datetime import date

from veiltab.common.core.texts.months import month_numbered
from veiltab.common.study.coding.dates import ISO, century_year, today

_OTHER = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})", re.ASCII)
_AROUND = re.compile(r"(\d{1,4})([./, -]*)\|([./, -]*)(\d{2,4})", re.ASCII)
_BEHIND = re.compile(r"\|([. -]*)(\d{1,2})([, -]+)(\d{2,4})", re.ASCII)
_TIMED = re.compile(r"(.*?\d)([:T ])\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?", re.ASCII)
_ORDERS = ("Ymd", "dmY", "mdY", "dmy", "mdy", "ymd")
_NO_CENTURY = 301
"""First year of two digits while nobody names a century: the year 0 is a leap year then too."""


class DateWritings:
    """The dates of a column while it is read: in which ways all of them may be written.

    Args:
        first_year: the earliest year that two digits mean; None if nobody says it.
    """

    def __init__(self, first_year: int | None = None) -> None:
        self._years: dict[str, tuple[int, int]] | None = None
        self._first_year = first_year or _NO_CENTURY
        self._today = today()
        self.after_today = 0
        """Rows with dates that are after today, however they are read; they are not taken."""

    @property
    def formats(self) -> tuple[str, ...]:
        """The ways, "" for ISO 8601; none if there is none for all."""
        return tuple(self._years or ())

    @property
    def years(self) -> tuple[int, int] | None:
        """The first year and the last one, by the first way."""
        return next(iter((self._years or {}).values()), None)

    def take(self, value: str, rows: int = 1) -> bool:
        """Return whether a value is a date in some way, and not after today in each."""
        days = _readings(value, self._first_year)
        if not days:
            return False
        if min(days.values()) > self._today:
            self.after_today += rows
            return False
        years = {one: day.year for one, day in days.items()}
        if self._years is None:
            self._years = {one: (year, year) for one, year in years.items()}
        else:
            self._years = {
                one: (min(low, years[one]), max(high, years[one]))
                for one, (low, high) in self._years.items()
                if one in years
            }
        return True


def _readings(value: str, first_year: int) -> dict[str, date]:
    """Return the day of a date in each way that it may be written."""
    if parts := ISO.fullmatch(value):
        year, month, day = parts.groups()
        dates = {"": (year, month, day)} if day else {}
    elif parts := _TIMED.fullmatch(value):
        time = f"{parts[2]}%H:%M{':%S' if parts[3] else ''}{'.%f' if parts[4] else ''}"
        return {f"{one}{time}": day for one, day in _readings(parts[1], first_year).items() if one}
    elif parts := _OTHER.fullmatch(value):
        first, mark, second, third = parts.groups()
        orders = (dict(zip(order, (first, second, third), strict=True)) for order in _ORDERS)
        dates = {mark.join(f"%{one}" for one in named): _parts(named) for named in orders}
    else:
        dates = _named_month(value)
    days = ((one, _day(*parts, first_year)) for one, parts in dates.items())
    return {one: day for one, day in days if day is not None}


def _named_month(value: str) -> dict[str, tuple[str, str, str]]:
    """Return the year, month and day of a date with the name of a month, in each way that it may be written."""
    if not (month := month_numbered(value)):
        return {}
    text = f"{month[0]}|{month[2]}"
    if parts := _BEHIND.fullmatch(text):
        return {f"%b{parts[1]}%d{parts[3]}%{_year_sign(parts[4])}": (parts[4], month[1], parts[2])}
    if not (parts := _AROUND.fullmatch(text)):
        return {}
    first, one, other, last = parts.groups()
    if len(first) == 4:
        return {f"%Y{one}%b{other}%d": (first, month[1], last)}
    return {f"%d{one}%b{other}%{_year_sign(last)}": (last, month[1], first)}


def _parts(named: dict[str, str]) -> tuple[str, str, str]:
    """Return year, month and day; the year is "" if it has other digits than its order says."""
    year = named.get("Y", named.get("y", ""))
    return year if _year_sign(year) in named else "", named["m"], named["d"]


def _year_sign(year: str) -> str:
    return {4: "Y", 2: "y"}.get(len(year), "")


def _day(year: str, month: str, day: str, first_year: int) -> date | None:
    """Return a day, if the calendar has it; two digits of a year count from a first one on."""
    try:
        return date(century_year(int(year), first_year) if len(year) == 2 else int(year), int(month), int(day))
    except ValueError:
        return None
