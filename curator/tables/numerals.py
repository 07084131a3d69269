"""How the numbers of a column are written: with a decimal point or a decimal comma, with thousands set apart or not.

The first rows decide, and all others must agree. What may be read in two ways is refused: 1,234 may be either.
"""

import re
from collections.abc import Iterable
from enum import Enum

from veiltab.common.errors import InvalidInputError
from veiltab.curator.tables.refusals import refusal
from veiltab.curator.tables.source import Column, ColumnKind

_BLANKS = "' \u00a0\u202f\u2019"
"""What sets thousands apart in every notation: apostrophes and blanks."""


def _pattern(decimal: str, between: str) -> re.Pattern[str]:
    grouped = rf"[1-9]\d{{0,2}}([{between}])\d{{3}}(?:\1\d{{3}})*"
    return re.compile(rf"[+-]?(?:(?:{grouped}|\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d{{1,4}})?", re.ASCII)


class Notation(Enum):
    """A way of writing numbers."""

    PLAIN = "numbers without a comma"
    POINT = "a decimal point"
    COMMA = "a decimal comma"

    def plain(self, text: str) -> str | None:
        """Return a number as plain decimal text; None if it is not written in this way."""
        if text.isascii() and text.isdigit():
            return text
        return text.translate(_PLAIN[self]) if _PATTERNS[self].fullmatch(text) else None


_PATTERNS = {
    Notation.PLAIN: _pattern(r"\.", _BLANKS),
    Notation.POINT: _pattern(r"\.", "," + _BLANKS),
    Notation.COMMA: _pattern(",", "." + _BLANKS),
}
_PLAIN = {
    Notation.PLAIN: str.maketrans("", "", _BLANKS),
    Notation.POINT: str.maketrans("", "", "," + _BLANKS),
    Notation.COMMA: str.maketrans(",", ".", "." + _BLANKS),
}
"""What becomes of the characters of a number."""

_CHOICES = {"point": Notation.POINT, "comma": Notation.COMMA}


class Numerals:
    """The numbers of one column while it is read.

    Args:
        where: the table, for messages.
        column: the column's name.
        decimal: "point" or "comma", if a person says it; "" to look.
        has_grouped_points: whether a point may stand between thousands though no comma shows it.

    Raises:
        InvalidInputError: `decimal` is something else.
    """

    def __init__(self, where: str, column: str, decimal: str, *, has_grouped_points: bool = False) -> None:
        if decimal and decimal not in _CHOICES:
            raise refusal(where, f"decimal = {decimal[:20]!r} is not known", 'Write "point" or "comma".')
        self._where, self._column, self._has_grouped_points = where, column, has_grouped_points
        self.notation = _CHOICES.get(decimal)

    def decide(self, values: Iterable[str]) -> None:
        """Decide by the first values of the column, unless it has been decided.

        Raises:
            InvalidInputError: they may be read in two ways.
        """
        if self.notation is None:
            self.notation = self._decided(values)

    def plain(self, text: str) -> str | None:
        """Return a number of the column as plain decimal text; None if it is none, or written in another way."""
        return (self.notation or Notation.PLAIN).plain(text)

    def _decided(self, values: Iterable[str]) -> Notation:
        has_point = has_comma = False
        unclear: set[str] = set()
        for value in values:
            if "," not in value and (has_point or value.isdigit()):
                continue
            point, comma = Notation.POINT.plain(value), Notation.COMMA.plain(value)
            if point is not None and comma is not None and point != comma:
                unclear.add("," if "," in value else ".")
            has_point |= point is not None and comma is None
            has_comma |= comma is not None and point is None
        if has_point or has_comma:
            # Where both occur, the rows with a comma are refused one by one.
            return Notation.POINT if has_point else Notation.COMMA
        if "," in unclear or (unclear and self._has_grouped_points):
            raise self._unclear("," if "," in unclear else ".")
        return Notation.PLAIN

    def _unclear(self, mark: str) -> InvalidInputError:
        name = {",": "comma", ".": "point"}[mark]
        problem = (
            f"the numbers of column {self._column!r} may be read in two ways: 1{mark}234 may be 1.234, with a decimal"
            f" {name}, or 1234, with a {name} between thousands"
        )
        return refusal(self._where, problem, "Say which by --decimal comma or --decimal point.")


def numerals_of(where: str, column: Column, decimal: str) -> Numerals | None:
    """Return how the numbers of a column are read; None if nobody wrote them, so that they are plain."""
    if column.kind is not ColumnKind.WRITTEN:
        return None
    return Numerals(where, column.name, decimal, has_grouped_points=column.has_grouped_points)
