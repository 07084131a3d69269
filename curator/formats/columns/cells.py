"""Cells that are Python values, each of a type of its own, as the texts of a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta

import pyarrow as pa

from veiltab.curator.formats.columns.arrow_columns import formed
from veiltab.curator.formats.columns.source import Batch, Selection

Cell = int | float | str | bool | time | date | datetime | timedelta | None
"""What a cell may hold."""

_EXACT_FLOATS = 2**53


def batch_of_cells(rows: Sequence[Sequence[Cell]], places: Mapping[str, int], selection: Selection) -> Batch:
    """Return rows of cells as a batch.

    Args:
        places: name -> its place in a row.
        selection: which of them are wanted.
    """
    columns = {name: pa.array([text_of(row[place]) for row in rows], pa.string()) for name, place in places.items()}
    exact = {name: _exact([row[places[name]] for row in rows]) for name in selection.coded}
    return replace(formed(len(rows), columns, selection), exact=exact)


def _exact(cells: Sequence[Cell]) -> frozenset[str]:
    """Return the texts of numbers with decimals, without those that a text of the column is too."""
    numbers = {str(cell) for cell in cells if isinstance(cell, float) and not cell.is_integer()}
    texts = (cell.strip() for cell in cells if isinstance(cell, str)) if numbers else ()
    return frozenset(numbers.difference(texts))


def text_of(cell: Cell) -> str | None:
    """Return the text of a cell: whole numbers without decimals, dates and times as ISO 8601 writes them."""
    match cell:
        case None:
            return None
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer() and abs(cell) < _EXACT_FLOATS:
            return str(int(cell))
        case datetime() if cell.time() == time():
            return str(cell.date())
        case _:
            return str(cell)
