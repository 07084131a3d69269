"""How a column of dates may enter a study, proposed from its profile, and why it stays out."""

from collections.abc import Mapping
from datetime import datetime

from veiltab.common.core.texts.spelling import quoted
from veiltab.common.study.coding.dates import today
from veiltab.curator.check.profile import ColumnProfile
from veiltab.curator.check.round_bins import year_edges

_JOINED: Mapping[int, tuple[str, ...]] = {8: ("%Y%m%d", "%d%m%Y", "%m%d%Y"), 6: ("%y%m%d", "%d%m%y", "%m%d%y")}
_FEWEST_DAYS = 30
"""Different numbers that are all days of a calendar, from which they are taken for dates and not for codes."""


def reason_of_dates(profile: ColumnProfile) -> str:
    """Return why a column of dates is not an attribute; "" if it may be one."""
    if profile.after_today:
        return (
            f"{profile.after_today:,} of {profile.present:,} dates are after today, the first is"
            f" {first_of(profile.no_dates)}. Correct them, name those that stand for a missing value with --missing, or"
            " write `dates` and `future_dates`"
        )
    if not profile.date_formats:
        return "its dates are written in several ways"
    if len(profile.date_formats) > 1:
        return (
            f"its dates may be read in two ways: {' or '.join(profile.date_formats)}; write `dates` and `date_format`"
        )
    if "%y" in profile.date_formats[0] and profile.first_year is None:
        return (
            "its years have two digits, which name no century: say the earliest year that they may mean with"
            " --first-year, such as --first-year 1926"
        )
    is_one = len(set(profile.years or ())) == 1
    return "all its dates are in one year; write `dates` with months for finer bins" if is_one else ""


def date_coding(profile: ColumnProfile) -> tuple[dict[str, object], list[str]]:
    """Return bins of years, and why."""
    if profile.years is None:
        raise ValueError(profile.column)
    low, high = profile.years
    edges, (date_format,) = year_edges(low, high), profile.date_formats
    reasons = [f"dates from {low} to {high}; the edges are round years, not dates of the table"]
    table: dict[str, object] = {"dates": list(edges)} | ({"date_format": date_format} if date_format else {})
    return table | ({"first_year": profile.first_year} if "%y" in date_format else {}), reasons


def joined_format(profile: ColumnProfile) -> str:
    """Return how a column of numbers is written if all are days of a calendar, such as 19510508; "" otherwise."""
    if len(profile.values) < _FEWEST_DAYS:
        return ""
    formats = _JOINED.get(len(next(iter(profile.values))), ())
    return next((one for one in formats if all(_is_day(value, one) for value in profile.values)), "")


def first_of(values: Mapping[str, int]) -> str:
    """Return the value of the first row, and that row."""
    value = min(values, key=lambda one: values[one])
    return f"{quoted(value)} in row {values[value]}"


def _is_day(value: str, date_format: str) -> bool:
    try:
        day = datetime.strptime(value, date_format)  # noqa: DTZ007 - the day as it is written
    except ValueError:
        return False
    return len(value) in _JOINED and ("%y" in date_format or day.date() <= today())
