"""How the numbers of a column are written: with a decimal point or a decimal comma, with thousands set apart or not.

Most of the first values decide, and all others must agree. What may be read in two ways is refused: 1,234.
Where a point may stand between thousands and the first rows show neither mark, the first later number with one decides.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from enum import Enum

from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.columns.refusals import refusal

BLANKS = "' \u00a0\u202f\u2019"
"""What sets thousands apart in every notation: apostrophes and blanks."""


def _pattern(decimal: str, between: str) -> re.Pattern[str]:
    grouped = rf"[1-9]\d{{0,2}}([{between}])\d{{3}}(?:\1\d{{3}})*"
    return re.compile(rf"[+-]?(?:(?:{grouped}|\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d{{1,4}})?", re.ASCII)


class Notation(Enum):
    """A way of writing numbers."""

    PLAIN = "no comma"
    POINT = "a decimal point"
    COMMA = "a decimal comma"

    def plain(self, text: str) -> str | None:
        """Return a number as plain decimal text; None if it is not written in this way."""
        if text.isascii() and text.isdigit():
            return text
        return text.translate(_PLAIN[self]) if _PATTERNS[self].fullmatch(text) else None


_PATTERNS = {
    Notation.PLAIN: _pattern(r"\.", BLANKS),
    Notation.POINT: _pattern(r"\.", "," + BLANKS),
    Notation.COMMA: _pattern(",", "." + BLANKS),
}
_PLAIN = {
    Notation.PLAIN: str.maketrans("", "", BLANKS),
    Notation.POINT: str.maketrans("", "", "," + BLANKS),
    Notation.COMMA: str.maketrans(",", ".", "." + BLANKS),
}
"""What becomes of the characters of a number."""

_NINES = str.maketrans("012345678", "999999999")
_CHOICES = {"point": Notation.POINT, "comma": Notation.COMMA}


class Numerals:
    """The numbers of one column while it is read.

    Args:
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
        self._is_begun = self._has_exact = self._has_written = False

    def is_decided(self, exact: Collection[str] | None) -> bool:
        """Return whether the values of a batch decide nothing any more; `exact` is as in `decide`."""
        return self.notation is not None and exact is None

    def decide(self, values: Mapping[str, int], exact: Collection[str] | None = None) -> None:
        """Decide by the first values of the column, unless it has been decided.

        Args:
            values: each value of a batch, without white space around it -> the row in which it stands first; in the
                order of these rows.
            exact: those of them that are numbers of the source, with decimals; None if somebody wrote all of them.

        Raises:
            InvalidInputError: they may be read in two ways, or some are numbers of the source and others are written.
        """
        if exact is not None:
            self._take_exact(values, exact)
        if self.notation is None:
            is_later, self._is_begun = self._is_begun, True
            self.notation = self._decided_later(values) if is_later else self._decided(values)

    def plain(self, text: str) -> str | None:
        """Return a number of the column as plain decimal text; None if it is none, or written in another way."""
        return (self.notation or Notation.PLAIN).plain(text)

    def _take_exact(self, values: Mapping[str, int], exact: Collection[str]) -> None:
        """Read the numbers of the source by their point, and refuse texts with a mark beside them."""
        for value, row in values.items():
            if value in exact:
                self._has_exact = True
            elif _has_mark(value):
                self._has_written = True
            if self._has_exact and self._has_written:
                problem = (
                    f"column {self._column!r} holds numbers with decimals, and texts that are numbers with a point or a"
                    f" comma, seen in row {row}"
                )
                raise refusal(self._where, problem, "Store all of them as numbers, or all as texts.")
        if self._has_exact:
            self.notation = Notation.POINT

    def _decided_later(self, values: Mapping[str, int]) -> Notation | None:
        """Decide by the first number with a mark, after rows without any; None if there is none."""
        for value, row in values.items():
            if not _has_mark(value):
                continue
            if Notation.POINT.plain(value) is None:
                return Notation.COMMA
            if Notation.COMMA.plain(value) is None:
                return Notation.POINT
            raise self._unclear("," if "," in value else ".", f" from row {row} on")
        return None

    def _decided(self, values: Mapping[str, int]) -> Notation | None:
        points = commas = 0
        unclear: set[str] = set()
        # Which digits follow a sign and the first digit changes nothing, and there are few forms without them.
        for value, count in Counter(one[:2] + one[2:].translate(_NINES) for one in values).items():
            point, comma = Notation.POINT.plain(value), Notation.COMMA.plain(value)
            if point is not None and comma is not None and point != comma:
                unclear.add("," if "," in value else ".")
            points += count * (point is not None and comma is None)
            commas += count * (comma is not None and point is None)
        if points or commas:
            # Where both occur, the rows of the rarer one are refused one by one.
            return Notation.POINT if points >= commas else Notation.COMMA
        if "," in unclear or (unclear and self._has_grouped_points):
            raise self._unclear("," if "," in unclear else ".")
        return None if self._has_grouped_points else Notation.PLAIN

    def _unclear(self, mark: str, since: str = "") -> InvalidInputError:
        name = {",": "comma", ".": "point"}[mark]
        problem = (
            f"the numbers of column {self._column!r} may be read in two ways{since}: 1{mark}234 may be 1.234, with"
            f" a decimal {name}, or 1234, with a {name} between thousands"
        )
        return refusal(self._where, problem, "Say which by --decimal comma or --decimal point.")


def _has_mark(value: str) -> bool:
    """Return whether a value is a number whose comma or point tells one notation from the other."""
    return not value.isdigit() and Notation.POINT.plain(value) != Notation.COMMA.plain(value)


def is_number(text: str) -> bool:
    """Return whether a text is a number in some notation."""
    return any(notation.plain(text) is not None for notation in Notation)
