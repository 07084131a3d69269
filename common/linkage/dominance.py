"""Values that far too many rows of a table share: texts that stand for a missing one, and guessed dates."""

from collections import Counter
from collections.abc import Mapping

_RANK, _TIMES, _FEWEST = 10, 5, 10
"""A value is shared too often by `_FEWEST` rows, and `_TIMES` as many as share the value of that rank."""


def dominating(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the values that far more rows share than others, each with its rows, most rows first.

    Args:
        counts: value -> rows. A column with fewer than ten different values has no usual frequency.
    """
    ranked = Counter(counts).most_common(_RANK)
    usual = ranked[-1][1] if len(ranked) == _RANK else max(counts.values(), default=0)
    return tuple((value, rows) for value, rows in ranked if rows >= max(_FEWEST, _TIMES * usual))


def crowded(counts: Mapping[str, int], *, are_dates: bool) -> frozenset[str]:
    """Return the values that far more rows share than others; of dates as YYYYMMDD those of such a day of the year too.

    Args:
        counts: value -> rows.
    """
    often = {value.replace("-", "") for value, _ in (dominating_dates if are_dates else dominating)(counts)}
    return frozenset(value for value in counts if value in often or (are_dates and value[4:] in often))


def dominating_dates(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return dates as YYYY-MM-DD, and days of any year as MM-DD, that far more rows share than others.

    Args:
        counts: date as YYYYMMDD -> rows.
    """
    days = Counter[str]()
    for date, rows in counts.items():
        days[date[4:]] += rows
    frequent = dominating(counts)
    often = ((day, rows, sum(n for date, n in frequent if date[4:] == day)) for day, rows in dominating(days))
    dates = ((f"{date[:4]}-{date[4:6]}-{date[6:]}", rows) for date, rows in frequent)
    return (*dates, *((f"{day[:2]}-{day[2:]}", rows) for day, rows, named in often if rows > 2 * named))
