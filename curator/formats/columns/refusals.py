"""Refusals about tables: they name the table, counts, row numbers and columns, and quote no value."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

_MOST_ROWS = 5


def refusal(where: str, problem: str, remedy: str) -> InvalidInputError:
    """Return a refusal that names the table."""
    return InvalidInputError(problem, where=where, remedy=remedy)


def row_count(rows: int) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{rows} row{'' if rows == 1 else 's'}"


def rows_have(rows: int) -> str:
    """Return "1 row has" or "2 rows have"."""
    return f"{row_count(rows)} {'has' if rows == 1 else 'have'}"


def first_rows(rows: Sequence[int]) -> str:
    """Return ", first in row 2" or ", first in rows 2, 7" for up to five row numbers."""
    listing = ", ".join(str(row) for row in rows[:_MOST_ROWS])
    return f", first in row{'' if len(rows) == 1 else 's'} {listing}" if rows else ""


@dataclass(slots=True)
class NotedRows:
    """Rows with something wrong, however many: their number, and the first of them."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def note(self, row: int) -> None:
        """Count a row."""
        self.count += 1
        if len(self.first) < _MOST_ROWS:
            self.first.append(row)

    def note_all(self, rows: NDArray[np.intp]) -> None:
        """Count rows."""
        self.count += len(rows)
        self.first += rows[: _MOST_ROWS - len(self.first)].tolist()


def changed_meanwhile(where: str) -> InvalidInputError:
    """Return the refusal of a table that has other columns than when it was opened."""
    return refusal(where, "its columns changed while it was read", "Read it when nobody writes to it, or give a copy.")


def too_long(where: str, name: str) -> InvalidInputError:
    """Return the refusal of a column with a value that is longer than one may be."""
    problem = f"column {name!r} holds a value longer than 1 MiB"
    return refusal(where, problem, "Shorten it, or leave the column out of the study.")
