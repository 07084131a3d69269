"""How the dates of a column are written, and round bins of years around them."""

import re
from datetime import date

from veiltab.common.study.coding.dates import ISO
from veiltab.curator.reading.round_bins import MOST_BINS

_OTHER = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})", re.ASCII)
_ORDERS = ("Ymd", "dmY", "mdY", "dmy", "mdy")
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_LAST_YEAR = 9999
_PIVOT = 69
"""Years of two digits are 1969 to 2068, as POSIX has them."""


class DateWritings:
    """The dates of a column while it is read: in which ways all of them may be written."""

    def __init__(self) -> None:
        self._years: dict[str, tuple[int, int]] | None = None

    @property
    def formats(self) -> tuple[str, ...]:
        """The ways, "" for ISO 8601; none if there is none for all."""
        return tuple(self._years or ())

    @property
    def years(self) -> tuple[int, int] | None:
        """The first year and the last one, by the first way."""
        return next(iter((self._years or {}).values()), None)

    def take(self, value: str) -> bool:
        """Return whether a value is a date in some way."""
        found = _readings(value)
        if not found:
            return False
        if self._years is None:
            self._years = {one: (year, year) for one, year in found.items()}
        else:
            self._years = {
                one: (min(low, found[one]), max(high, found[one]))
                for one, (low, high) in self._years.items()
                if one in found
            }
        return True


def year_edges(low: int, high: int) -> tuple[str, ...]:
    """Return edges that are years, a round number of them apart: from none above `low` to one above `high`.

    There are none if the last one would be above 9999: such a year stands for no date.
    """
    bins = ((step, low // step * step, (high // step + 1) * step) for step in _STEPS)
    step, first, last = next(one for one in bins if (one[2] - one[1]) // one[0] <= MOST_BINS)
    return tuple(f"{max(year, 1):04}" for year in range(first, last + 1, step)) if last <= _LAST_YEAR else ()


def _readings(value: str) -> dict[str, int]:
    """Return the year of a date in each way that it may be written."""
    if parts := ISO.fullmatch(value):
        year, month, day = parts.groups()
        return {"": int(year)} if day and _is_day(int(year), int(month), int(day)) else {}
    if not (parts := _OTHER.fullmatch(value)):
        return {}
    first, mark, second, third = parts.groups()
    found = {}
    for order in _ORDERS:
        named = dict(zip(order, (first, second, third), strict=True))
        year = _year(named)
        if year and _is_day(year, int(named["m"]), int(named["d"])):
            found[mark.join(f"%{one}" for one in order)] = year
    return found


def _year(named: dict[str, str]) -> int:
    """Return the year of the parts of a date; 0 if it has other digits than its order says."""
    if "Y" in named:
        return int(named["Y"]) if len(named["Y"]) == 4 else 0
    short = named["y"]
    return 0 if len(short) != 2 else int(short) + (1900 if int(short) >= _PIVOT else 2000)


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
