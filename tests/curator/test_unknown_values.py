from decimal import Decimal

import pytest

from veiltab.common.core.domain import Attribute
from veiltab.common.study.coding.coding import Coding
from veiltab.common.study.coding.dates import DateBins
from veiltab.common.study.coding.grids import Grid
from veiltab.common.study.coding.rules import AttributeRule
from veiltab.curator.formats.columns.numerals import Notation
from veiltab.curator.table.column_coding import ColumnReading, UnknownValue
from veiltab.curator.table.unknown_values import unknown_values

TEXTS = Coding(categories=("0", "1", "Red"))
NUMBERS = Coding(categories=("low", "high"), bins=(Decimal(0), Decimal(5), Decimal(9)))
GRID = Coding(categories=("0", "5"), grid=Grid(points=(Decimal(0), Decimal(5))))
DATES = Coding(categories=("1990",), dates=DateBins(edges=("1990", "1991")))
SHORT_DATES = Coding(categories=("1960",), dates=DateBins(edges=("1960", "1961"), format="%d.%m.%y", first_year=1969))


def remedy(coding: Coding, *values: str, notation: Notation | None = None) -> str:
    rule = AttributeRule(attribute=Attribute(name="x", categories=("a", "b")), owner="alice", column="x", coding=coding)
    reading = ColumnReading(
        rule=rule,
        counts=(0, 0),
        missing=0,
        clipped=0,
        unknown_rows=len(values),
        unknown_first=(7,),
        unknown=tuple(UnknownValue(value=value, rows=1, first_rows=(7,)) for value in values),
        notation=notation,
    )
    error = unknown_values("t.csv", reading)
    assert "first in row 7" in error.problem
    assert not any(value in error.problem for value in values if len(value) > 3)
    return error.remedy


@pytest.mark.parametrize(
    ("coding", "values", "notation", "hint"),
    [
        (TEXTS, ["x", "1.0"], None, 'Whole numbers are written with decimals: store them without, or add "1.0" = "1"'),
        (TEXTS, ["1.5", "2.0"], None, ""),
        (TEXTS, ["true", "false"], None, "Some are truth values"),
        (TEXTS, ["RED"], None, "Some differ from categories in letter case alone"),
        (NUMBERS, ["1,5"], Notation.PLAIN, "Numbers of this column are read with no comma, and some"),
        (NUMBERS, ["1.5"], Notation.COMMA, "Numbers of this column are read with a decimal comma, and some"),
        (NUMBERS, ["1,5"], None, "Some are texts with a comma"),
        (NUMBERS, ["1990-01-01", "2000-01-01"], Notation.PLAIN, "They look like dates"),
        (NUMBERS, ["150", "zebra"], Notation.PLAIN, ""),
        (GRID, ["n/k", "150"], Notation.PLAIN, '`outside = "clip"` in the study file moves numbers outside to'),
        (DATES, ["31.12.1990"], None, "They look like date_format = '%d.%m.%Y' in"),
        (DATES, ["01/02/1990"], None, "They look like date_format = '%d/%m/%Y' or '%m/%d/%Y' in"),
        (DATES, ["1989-01-01"], None, ""),
        (DATES, ["soon"], None, ""),
        (DATES, ["3000-01-01"], None, "If they are meant, `future_dates = true` in the study file takes them. `veil"),
        (SHORT_DATES, ["01.01.68"], None, "If they are meant, `future_dates = true` in the study file takes them. Oth"),
        (SHORT_DATES, ["01.01.69"], None, ""),
    ],
)
def test_what_values_seem_to_be_is_said(
    coding: Coding, values: list[str], notation: Notation | None, hint: str
) -> None:
    said = remedy(coding, *values, notation=notation)
    assert said.startswith(hint)
    assert said.startswith("`veiltab curator check` shows them") == (not hint)
