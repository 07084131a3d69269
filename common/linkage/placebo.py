"""A run that can link nobody rightly: dates are moved in all their parts, so what it links is chance.

A constant shift in days would leave year and month equal for most, and find true pairs again.
"""

from collections.abc import Mapping
from dataclasses import replace

from veiltab.common.linkage.identity_rule import FieldKind
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.row_keys import Keys, NormalRows, pass_keys

_YEARS, _MONTHS, _DAYS = 3, 5, 11
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_MOVED = str.maketrans(_LETTERS + _DIGITS, _LETTERS[5:] + _LETTERS[:5] + _DIGITS[3:] + _DIGITS[:3])


def placebo_keys(step: Pass, rows: NormalRows) -> list[Keys] | None:
    """Return the keys of a spoke's rows in one pass with moved dates; moved postcodes in a pass without dates.

    Returns:
        As `pass_keys`; None if the pass has neither, so that nothing can be moved.
    """
    changed = {}
    for name in moved_fields(step, {name: column.kind for name, column in rows.columns.items()}):
        column = rows.columns[name]
        moved = moved_date if column.kind is FieldKind.BIRTH else moved_postcode
        changed[name] = replace(column, values=[moved(value) for value in column.values])
    return pass_keys(step, replace(rows, columns={**rows.columns, **changed})) if changed else None


def moved_fields(step: Pass, kinds: Mapping[str, FieldKind]) -> list[str]:
    """Return the fields of a pass that are moved: its date, else its postcodes; none if it has neither."""
    for kind in (FieldKind.BIRTH, FieldKind.POSTCODE):
        if names := [name for name in kinds if kinds[name] is kind and name in step.fields]:
            return names
    return []


def moved_date(date: str) -> str:
    """Return YYYYMMDD with its year 3 later, its month 5 further in the year, its day 11 further of 28; "" stays."""
    if not date:
        return ""
    year, month, day = int(date[:4]), int(date[4:6]), int(date[6:])
    return f"{year + _YEARS:04}{(month - 1 + _MONTHS) % 12 + 1:02}{(day - 1 + _DAYS) % 28 + 1:02}"


def moved_postcode(postcode: str) -> str:
    """Return a normalised postcode with other letters and digits in all places."""
    return postcode.translate(_MOVED)
