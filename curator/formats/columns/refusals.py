"""Refusals about tables: they name the table, counts, row numbers and columns, and quote no value."""

from collections.abc import Sequence
from difflib import get_close_matches

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

_MOST_NAMES = 20
_MOST_ROWS = 5
_MOST_CHARACTERS = 40
_OTHER_ENCODING = "It has signs that are no letters, so the file may be in another encoding: save it as UTF-8. "


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


def changed_meanwhile(where: str) -> InvalidInputError:
    """Return the refusal of a table that has other columns than when it was opened."""
    return refusal(where, "its columns changed while it was read", "Read it when nobody writes to it, or give a copy.")


def too_long(where: str, name: str) -> InvalidInputError:
    """Return the refusal of a column with a value that is longer than one may be."""
    problem = f"column {name!r} holds a value longer than 1 MiB"
    return refusal(where, problem, "Shorten it, or leave the column out of the study.")


def absent_column(where: str, name: str, header: Sequence[str], looks: str) -> InvalidInputError:
    """Return the refusal of a header without a column: it names the nearest column, or else shows the header.

    A first row of values is not shown: the file has no header then, and the row is data.
    """
    problem = f"column {name!r} is not in the header ({looks})"
    if not looks_like_header(header):
        return refusal(where, problem, "The first row seems to hold values: put the names of the columns above it.")
    near = nearest(name, header)
    hint = f"The nearest column is {near!r}. " if near else ""
    is_strange = any(not sign.isascii() and not sign.isalnum() for one in header for sign in one)
    strange = _OTHER_ENCODING if is_strange else ""
    rename = "Rename the column there (with `as`, in a query), or in the study at every party."
    return refusal(where, problem, f"{hint}The header is: {header_text(header)}. {strange}{rename}")


def header_text(names: Sequence[str]) -> str:
    """Return names of columns for people, the first 40 characters of up to 20 of them."""
    listing = ", ".join(repr(one[:_MOST_CHARACTERS]) for one in names[:_MOST_NAMES])
    return listing + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def nearest(name: str, header: Sequence[str]) -> str:
    """Return the column whose name is nearest to another one, letter case and punctuation apart; "" if none is."""
    plain = {_plain(one): one for one in reversed(header)}
    near = get_close_matches(_plain(name), plain, 1, cutoff=0.6)
    if near:
        return plain[near[0]]
    return next((one for text, one in plain.items() if text and (text in _plain(name) or _plain(name) in text)), "")


def looks_like_header(names: Sequence[str]) -> bool:
    """Return whether a first row may be a header: a number or a date is no name."""
    return not any(name[:1].isdigit() or (name[:1] in "+-." and name[1:2].isdigit()) for name in names)


def _plain(name: str) -> str:
    return "".join(one for one in name.casefold() if one.isalnum())
