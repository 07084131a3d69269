"""How the values of a column are written, in parts: how many rows have which form.

A form says nothing about one person: it is a pattern, and what few rows share becomes "text" before others read it.

    9999999      seven digits, the first never 0
    0999999      seven digits, some with leading zeros
    GP-9999      these two letters in all rows, a hyphen, four digits
    aa-9999      two letters of any kind, a hyphen, four digits
    9+           whole numbers of several lengths, without leading zeros
    99␣999       two digits, a no-break space or another unusual one, three digits
    99/9+        two digits, a slash, a number of several lengths
    9+.0         whole numbers written with decimals, as a spreadsheet or a column of floats writes them
    text         anything else
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable

from veiltab.common.errors import InvalidInputError

DECIMALS = "9+.0"
TEXT = "text"

MOST_CHARACTERS = 80
"""Of a form; what is longer is a text."""

MOST_FORMS = 20
"""Forms of a column; rows of others are texts."""

FEWEST_ROWS = 10
"""Rows that share a form of which others learn."""

Forms = tuple[tuple[str, int], ...]
"""(form, rows) of a column, most rows first."""


def check_forms(forms: Iterable[tuple[str, Forms]], columns: Collection[str]) -> None:
    """Refuse a text that is not a form, such as an id itself, rows below 1, and forms of other columns."""
    for column, parts in forms:
        if column not in columns:
            raise InvalidInputError(
                f"forms has {column[:60]!r}, which names no respondent", remedy=f"Known: {', '.join(columns)}."
            )
        for form, rows in parts:
            is_pattern = form == TEXT or not re.search(r"[1-8b-z]|0(?!9)|90", form.removesuffix(".0"))
            if not (is_pattern and form.isprintable() and 1 <= len(form) <= MOST_CHARACTERS):
                raise InvalidInputError(
                    f"forms of {column[:60]} has {form[:MOST_CHARACTERS]!r}, which is not a form",
                    remedy=f"Write 9 for a digit, a for a letter, or one of: 9+, {DECIMALS}, {TEXT}.",
                )
            if rows < 1:
                raise InvalidInputError(
                    f"forms of {column[:60]} has {rows} rows of {form}", remedy="Give the rows, at least 1."
                )


def together(parts: Iterable[tuple[str, int]]) -> Forms:
    """Return forms with the rows of equal ones added, most rows first."""
    rows = Counter[str]()
    for form, count in parts:
        rows[form] += count
    return tuple(rows.most_common())


def for_others(parts: Iterable[tuple[str, int]]) -> Forms:
    """Return forms as others may read them: those of few rows are texts."""
    return together((form if rows >= FEWEST_ROWS else TEXT, rows) for form, rows in parts)


def rows_of(forms: Forms) -> int:
    """Return the rows of all forms."""
    return sum(rows for _, rows in forms)


def sentence(forms: Forms) -> str:
    """Say how values are written."""
    if len(forms) == 1:
        return forms[0][0]
    return ", ".join(f"{rows:,} as {form}" for form, rows in forms) or "nothing"
