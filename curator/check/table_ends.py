"""One look at the first and the last rows of a table: what is not a header, and what is no person's row.

A draft travels to every party, so a title, a person's values and a total must not pass for names and rows.
"""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from veiltab.common.core.texts.spelling import quoted
from veiltab.common.study.coding.coding import NUMBER
from veiltab.curator.check.profile import LAST_ROWS, MISSING_MARKERS, ColumnProfile
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import FIRST_ROW

_FEW_ROWS = 5
_LEAST_SUM = 10
"""A smaller sum may be chance."""

_ROUNDING = Decimal("1e-9")


def check_ends(where: str, header: Sequence[str], profiles: Sequence[ColumnProfile]) -> None:
    """Refuse a table whose first or last rows seem to be something else.

    Args:
        header: all names, "" for columns without one.
        profiles: of the columns with a name.

    Raises:
        InvalidInputError: the first row seems to be a row like others, or a title; or the second one seems to be the
            header; or one of the last rows a total or a remark.
    """
    columns = [_Ends(one) for one in profiles]
    names, above = sum(map(bool, header)), "Delete what stands above the header."
    if 2 * names < len(header):
        raise refusal(where, f"row 1 names {names} of {len(header)} columns, as a title does", _remedy(above))
    has_few = profiles[0].rows < _FEW_ROWS
    odd = [] if has_few else [one for one in columns if one.is_odd(0)]
    if len(odd) > sum(one.alike == one.profile.present for one in columns if one.text(0)):
        problem = f"row 2 seems to be the header: {quoted(odd[0].text(0))} is not written like the values below it"
        raise refusal(where, problem, _remedy(above))
    no_names = [why for one in columns if (why := one.why_no_name())]
    if no_names and len(no_names) >= sum(one.is_below_name() for one in columns):
        problem = f"row 1 does not seem to hold the names of columns: {no_names[0]}"
        raise refusal(where, problem, _remedy("Write the names above it."))
    for place in () if has_few else (0, *range(-LAST_ROWS, 0)):
        if why := _why_no_person(columns, place):
            row, side = (profiles[0].rows + FIRST_ROW + place, "below") if place else (FIRST_ROW, "above")
            raise refusal(where, f"row {row} seems to stand {side} the table: {why}", _remedy("Delete it."))


def _remedy(advice: str) -> str:
    return f"{advice} If the table is right as it is, say --as-is."


class _Ends:
    """A column, its name, and its values in the first row and the last ones.

    Attributes:
        alike: how many values are of the most frequent kind: numbers, dates, or ids of one form.
    """

    def __init__(self, profile: ColumnProfile) -> None:
        self.profile = profile
        forms = Counter(map(_form, profile.values)) if profile.is_unique else Counter[str]()
        self._id_form, times = next((one for one in forms.most_common(1) if "9" in one[0]), ("", 0))
        self.alike = max(profile.numbers, profile.dates, times)

    def text(self, place: int) -> str:
        """Return the value at an end; "" if it is missing."""
        text, _ = self.profile.ends[place]
        return "" if text in MISSING_MARKERS else text

    def why_no_name(self) -> str:
        """Return why the name may be a value; "" if it is none."""
        name = self.profile.column
        if NUMBER.fullmatch(name):
            return f"{quoted(name)} is a number"
        if name in self.profile.values:
            return f"{quoted(name)} stands in its own column too"
        is_id = self.alike == self.profile.present and _form(name) == self._id_form
        return f"{quoted(name)} is written like the ids below it" if is_id else ""

    def is_below_name(self) -> bool:
        """Return whether a text stands above numbers or dates: then the first row is a header."""
        profile = self.profile
        is_value = profile.column in MISSING_MARKERS or NUMBER.fullmatch(profile.column)
        return not is_value and 0 < profile.present in {profile.numbers, profile.dates}

    def is_odd(self, place: int) -> bool:
        """Return whether a value at an end is a text, and all others are numbers, dates, or ids of one form."""
        text, number = self.profile.ends[place]
        is_text = number is None and self.profile.values.get(text) == 1
        return is_text and _form(text) != self._id_form and self.alike == self.profile.present - 1

    def is_sum(self, place: int) -> bool:
        """Return whether a number is the sum of the others, but for those below one of the last."""
        profile = self.profile
        last, *below = (number or Decimal(0) for _, number in profile.ends[place : None if place else 1])
        is_end = profile.numbers == profile.present and last in {profile.low, profile.high}
        is_sum = abs(profile.total - sum(below) - 2 * last) <= _ROUNDING * abs(last)
        return is_end and is_sum and abs(last) >= _LEAST_SUM


def _why_no_person(columns: Sequence[_Ends], place: int) -> str:
    """Return why a row at an end is no person's; "" if it may be."""
    for one in columns:
        if one.is_sum(place):
            return f"its {one.profile.column} is the sum of the others"
        if one.profile.is_unique and one.is_odd(place):
            return f"its {one.profile.column} is not written like the others"
    filled = [one.profile for one in columns if one.text(place)]
    is_remark = len(filled) == 1 < len(columns) - 1 and filled[0].ends[place][1] is None and not filled[0].dates
    return f"it has nothing but its {filled[0].column}" if is_remark else ""


def _form(text: str) -> str:
    """Return a text with 9 for digits, a for letters, and + for what is repeated."""
    return re.sub(r"(.)\1+", r"\1+", re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text)))
