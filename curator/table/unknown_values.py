"""Refusals of values that the study does not know, with what they seem to be.

They quote no value, as they may be logged, except in the report that a curator asks for at its own terminal.
"""

import re

from veiltab.common.core.texts.nearest import nearest
from veiltab.common.core.texts.spelling import quoted
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import Coding
from veiltab.common.study.coding.dates import DateBins
from veiltab.curator.formats.columns.numerals import Notation, is_number
from veiltab.curator.formats.columns.refusals import first_rows, row_count
from veiltab.curator.table.column_coding import ColumnReading
from veiltab.curator.table.date_formats import DateWritings

_WHOLE_WITH_DECIMALS = re.compile(r"([+-]?\d+)\.0*", re.ASCII)
_SHOWN, _LONGEST = 3, 40
_TRUTH = {"true", "false"}


def unknown_values(where: str, column: ColumnReading, *, is_shown: bool = False) -> InvalidInputError:
    """Return the refusal of a column with unknown values; numbers and dates outside the bins are among them.

    Args:
        column: a column with unknown rows.
        is_shown: whether the values are quoted.
    """
    hint = _hint(column)
    remedy = "`veiltab curator check` shows them; correct the table, or the study file at every party."
    if is_shown:
        remedy = (
            f"{_quoted_values(column)} Correct the table; or, in the study file at every party, add what stands for a"
            " missing value to missing_values, and another spelling to recode."
        )
    return InvalidInputError(
        f"column {column.rule.column!r} (attribute {column.rule.name}) holds {_kind(column)},"
        f" in {row_count(column.unknown_rows)}{first_rows(column.unknown_first)}",
        where=where,
        remedy=f"{hint} {remedy}" if hint else remedy,
    )


def _quoted_values(column: ColumnReading) -> str:
    """Return the first unknown values with their rows, and the category that the first of them may mean."""
    quotes = [f"{quoted(one.value[:_LONGEST])} in row {one.first_rows[0]}" for one in column.unknown[:_SHOWN]]
    more = ", and others" if len(column.unknown) > _SHOWN else ""
    near = nearest(column.rule.coding.categories, column.unknown[0].value.strip()) if column.unknown else ""
    return f"{', '.join(quotes)}{more}. {near}".strip()


def _kind(column: ColumnReading) -> str:
    """Say what the values of a column are that its coding does not know."""
    coding = column.rule.coding
    if coding.dates:
        return ", and ".join(dict.fromkeys(coding.dates.trouble(one.value.strip()) for one in column.unknown))
    if coding.are_numbers:
        return f"numbers outside the {'grid' if coding.grid else 'bins'}, or no numbers"
    return "values the study does not know"


def _hint(column: ColumnReading) -> str:
    """Say what the unknown values seem to be; "" where nothing is clear."""
    coding, values = column.rule.coding, [unknown.value.strip() for unknown in column.unknown]
    if coding.dates:
        return _date_hint(values, coding.dates)
    if coding.are_numbers:
        hints = [_number_hint(values, column.notation)]
        if coding.grid and any((column.notation or Notation.PLAIN).plain(value) for value in values):
            hints.append('`outside = "clip"` in the study file moves numbers outside to the ends of the grid.')
        return " ".join(filter(None, hints))
    return _text_hint(values, coding)


def _date_hint(values: list[str], dates: DateBins) -> str:
    if any(dates.trouble(value) == "dates after today" for value in values):
        other = "" if dates.first_year is None else " Otherwise compare first_year with the table."
        return f"If they are meant, `future_dates = true` in the study file takes them.{other}"
    formats = _date_formats(values)
    if not formats or {"", dates.format} & set(formats):
        return ""
    return f"They look like date_format = {' or '.join(repr(one) for one in formats)} in the study file."


def _number_hint(values: list[str], notation: Notation | None) -> str:
    if notation and any(notation.plain(value) is None and is_number(value) for value in values):
        other = {Notation.POINT: "comma", Notation.COMMA: "point"}.get(notation, "comma or --decimal point")
        return (
            f"Numbers of this column are read with {notation.value}, and some are not written so: correct them, or say"
            f" --decimal {other} if all are written that way."
        )
    if notation is None and any(map(is_number, values)) and any("," in value for value in values):
        return "Some are texts with a comma: store numbers, or text alone."
    return "They look like dates: give the attribute `dates` in the place of `bins`." if _date_formats(values) else ""


def _text_hint(values: list[str], coding: Coding) -> str:
    texts = [*coding.categories, *(raw for raw, _ in coding.recode)]
    whole = next((m[1] for value in values if (m := _WHOLE_WITH_DECIMALS.fullmatch(value)) and m[1] in texts), "")
    if whole:
        pair = f'"{whole}.0" = "{whole}"'
        return f"Whole numbers are written with decimals: store them without, or add {pair} and its like to recode."
    if _TRUTH & {value.casefold() for value in values}:
        return 'Some are truth values: add each to recode, such as "true" = the category that it means.'
    folded = {text.casefold() for text in texts}
    if any(value.casefold() in folded for value in values):
        return "Some differ from categories in letter case alone: add these spellings to recode."
    return ""


def _date_formats(values: list[str]) -> tuple[str, ...]:
    """Return how all values may be written as dates; none if one is not a date."""
    writings = DateWritings()
    return writings.formats if values and all(writings.take(value) for value in values) else ()
