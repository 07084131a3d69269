"""A table in a sheet of Excel or of LibreOffice. The whole sheet is in memory: the format allows nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.extras import importing
from veiltab.curator.formats.columns.cells import Cell, batch_of_cells, text_of
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import BATCH_ROWS, Batch, Column, ColumnKind, Selection

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook


class Spreadsheet:
    """One sheet; its first row that is not empty is the header, and empty rows are not counted.

    Args:
        sheet: the sheet's name; "" for the only one that is not empty.

    Raises:
        InvalidInputError: the file cannot be read, or the sheet is not there, or not named among several.
    """

    lines = None

    def __init__(self, path: Path, sheet: str = "") -> None:
        self.where = str(path)
        self._sheet, rows = _sheet(path, sheet)
        header = [text_of(cell) or "" for cell in rows[0]]
        self.columns = [Column(spelling=name, kind=ColumnKind.WRITTEN, has_grouped_points=True) for name in header]
        self._rows = rows[1:]
        self.rows = len(self._rows)

    @property
    def description(self) -> str:
        """Which sheet it is."""
        return f"sheet {self._sheet!r} of a spreadsheet"

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Return the rows of the sheet."""
        names = [column.spelling for column in self.columns]
        places = {name: names.index(spelling) for name, spelling in selection.spellings.items()}
        for start in range(0, len(self._rows), BATCH_ROWS):
            yield batch_of_cells(self._rows[start : start + BATCH_ROWS], places, selection)


def _sheet(path: Path, sheet: str) -> tuple[str, list[list[Cell]]]:
    """Return a sheet's name and its rows that are not empty."""
    where = str(path)
    with importing("tables", f"reading a {path.suffix} file"):
        import python_calamine  # noqa: PLC0415 - not where the extra is missing

        from veiltab.curator.formats.files.sheet_size import MOST_CELLS, has_room  # noqa: PLC0415 - not where the extra is missing
    if not has_room(path, sheet):
        problem = f"a sheet reaches over more than {MOST_CELLS:,} cells, or more than the memory holds"
        remedy = "Delete stray cells far from the table (Ctrl+End goes to the last one), or save it as CSV."
        raise refusal(where, problem, remedy)
    try:
        with python_calamine.CalamineWorkbook.from_path(path) as book:
            if sheet and sheet not in book.sheet_names:
                raise refusal(where, f"there is no sheet {sheet!r}", f"Sheets: {_named(book.sheet_names)}.")
            full = dict[str, list[list[Cell]]]()
            for name in [sheet] if sheet else book.sheet_names:
                if rows := _rows(book, name):
                    full[name] = rows
                if len(full) > 1:  # of the others nothing is read: together they may be more than the memory holds
                    example = f"{path.name}#{next(iter(full))}"
                    problem = f"several sheets hold rows: {_named(list(full))}"
                    raise refusal(where, problem, f"Name one, such as {example}.")
    except python_calamine.PasswordError:
        raise refusal(where, "the file is protected by a password", "Save it without one.") from None
    except (python_calamine.CalamineError, OSError, ValueError):
        raise refusal(where, "the file is not a readable spreadsheet", "Save it again, or as CSV.") from None
    if not full:
        raise refusal(where, "the sheet is empty", "Give a sheet with a header and at least one row.")
    return next(iter(full.items()))


def _rows(book: "CalamineWorkbook", name: str) -> list[list[Cell]]:
    rows: list[list[Cell]] = [
        [None if cell == "" else cell for cell in row] for row in book.get_sheet_by_name(name).iter_rows()
    ]
    return [row for row in rows if any(cell is not None for cell in row)]


def _named(sheets: list[str]) -> str:
    return ", ".join(repr(sheet[:40]) for sheet in sheets[:20])
