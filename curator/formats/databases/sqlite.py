"""A table or a query of a SQLite file, opened read-only."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from veiltab.curator.formats.columns.cells import batch_of_cells
from veiltab.curator.formats.columns.query_limit import Waiting, query_ended
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import LONGEST, Batch, Column, ColumnKind, Selection, cut
from veiltab.curator.formats.databases.query import query_of_file, quoted

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_TABLES = "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite~_%' escape '~'"


class SqliteQuery:
    """What a query of a SQLite file returns; each cell has a type of its own.

    Args:
        table: the table to read whole; "" for the only one.

    Raises:
        InvalidInputError: the file cannot be read, or the query is none that reads.
    """

    rows = lines = None

    def __init__(self, path: Path, table: str = "", query: str = "") -> None:
        self._path = path
        self.where = str(path)
        with self._open() as (connection, _):
            tables = [str(name) for (name,) in connection.execute(_TABLES)]
            self._query, self.description = query_of_file(self.where, "a SQLite file", tables, table, query)
            header = connection.execute(f"select * from (\n{self._query}\n) limit 0").description  # noqa: S608 - theirs
        self.columns = [Column(spelling=name, kind=ColumnKind.WRITTEN, has_grouped_points=True) for name, *_ in header]

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Fetch the rows by and by."""
        places = {name: place for place, name in enumerate(selection.spellings)}
        # What is not wanted may be long, and a batch of it more than the memory holds.
        # Without the t a name that is not there any more would be a text.
        columns = ", ".join(f"t.{quoted(spelling)}" for spelling in selection.spellings.values())
        first_row = 2
        with self._open() as (connection, waiting):
            cursor = connection.execute(f"select {columns} from (\n{self._query}\n) as t")  # noqa: S608 - theirs
            for rows in cut(waiting.rows(cursor), _characters):
                for name, place in places.items():
                    self._check_texts(name, [row[place] for row in rows], first_row)
                yield batch_of_cells(rows, places, selection)
                first_row += len(rows)

    def _check_texts(self, name: str, cells: list[object], first_row: int) -> None:
        for row, cell in enumerate(cells, first_row):
            if isinstance(cell, bytes):
                problem = f"column {name!r} holds bytes, first in row {row}"
                raise refusal(self.where, problem, "Store texts or numbers, or convert them in the query.")

    @contextmanager
    def _open(self) -> Iterator[tuple[sqlite3.Connection, Waiting]]:
        """Open the file read-only; nothing but reading is allowed, and no message of SQLite is passed on."""
        try:
            with closing(sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro", uri=True)) as connection:
                connection.execute("pragma temp_store = memory")  # else "order by" writes ids to a disk in plain text
                connection.set_authorizer(
                    lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
                )
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
                with query_ended(self.where, connection.interrupt) as waiting:
                    yield connection, waiting
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _translated(self.where, error) from None
        except UnicodeDecodeError:
            raise refusal(self.where, "a text of the file is not UTF-8", "Correct it in the database.") from None


def _characters(rows: Sequence[tuple[object, ...]]) -> int:
    """Return how many characters the cells of some rows have, numbers apart."""
    return sum(len(cell) for row in rows for cell in row if isinstance(cell, (str, bytes)))


def _translated(where: str, error: Exception) -> Exception:
    """Return the refusal for an error of SQLite, without its message: it may quote the data."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_AUTH":
        return refusal(where, "the query does more than read", "Give one statement that reads.")
    if name == "SQLITE_ERROR" or isinstance(error, (sqlite3.ProgrammingError, sqlite3.Warning)):
        remedy = "Try it in sqlite3: check the names of tables and columns, and give one statement alone."
        return refusal(where, "SQLite does not understand the query", remedy)
    if name == "SQLITE_TOOBIG":
        return refusal(where, "a value is longer than 1 MiB", "Leave it out of the columns that the study uses.")
    if name in {"SQLITE_BUSY", "SQLITE_LOCKED"}:
        return refusal(where, "another program writes to the file", "Try again when it has ended.")
    return refusal(where, "the file is not a readable SQLite database", "Check the file and its rights.")
