"""A table or a query of a DuckDB file, opened read-only: no other file, no extension, no setting can be reached.

What does not fit the memory fails: else DuckDB would put the rows into plain files beside its own, which a kill leaves.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from veiltab.common.extras import importing
from veiltab.curator.formats.columns.arrow_columns import batches_of, header_of
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import BATCH_CHARACTERS, BATCH_ROWS, Batch, Column, Selection
from veiltab.curator.formats.columns.waiting import Waiting, query_ended
from veiltab.curator.formats.databases.query import query_of_file, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}
_READ_ROWS = 2048
"""Rows that DuckDB makes at once; more are put together only while they are short."""

_TABLES = "select table_name from information_schema.tables where table_schema = 'main' order by table_name"


class DuckdbQuery:
    """What a query of a DuckDB file returns.

    Args:
        path: the file.
        table: the table to read whole; "" for the only one.
        query: what to read instead.

    Raises:
        InvalidInputError: the file cannot be read, or the query is none that reads.
    """

    def __init__(self, path: Path, table: str = "", query: str = "") -> None:
        self._path = path
        self.where = str(path)
        with self._open() as (connection, _):
            tables = [str(name) for (name,) in connection.execute(_TABLES).fetchall()]
            self._query, self.description = query_of_file(self.where, "a DuckDB file", tables, table, query)
            if len(connection.extract_statements(self._query)) != 1:
                raise refusal(self.where, "the query is more than one statement", "Give one that reads.")
            empty = connection.sql(f"select * from (\n{self._query}\n) limit 0")  # noqa: S608 - theirs
            self._columns = header_of(empty.to_arrow_table().schema)

    def columns(self) -> list[Column]:
        """Return the header."""
        return self._columns

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Fetch the rows by and by."""
        with self._open() as (connection, waiting):
            # What is not wanted may be long, and a batch of it more than the memory holds.
            wanted = ", ".join(quoted(spelling) for spelling in dict.fromkeys(selection.spellings.values()))
            reader = connection.sql(self._query).project(wanted).to_arrow_reader(_READ_ROWS)
            for batch in _gathered(waiting.rows(reader)):
                yield from batches_of(self.where, batch, selection)

    @contextmanager
    def _open(self) -> Iterator[tuple["DuckDBPyConnection", Waiting]]:
        """Open the file; no message of DuckDB is passed on, because they quote the data."""
        with importing("tables", "reading a DuckDB file"):
            import duckdb  # noqa: PLC0415 - an optional package
        try:
            opened = duckdb.connect(self._path, read_only=True, config=_CLOSED)
        except duckdb.Error:
            problem = "the file is not a readable DuckDB database, or another program writes to it"
            raise refusal(self.where, problem, "Check the file and its rights; close the other program.") from None
        try:
            with closing(opened) as connection, query_ended(self.where, connection.interrupt) as waiting:
                yield connection, waiting
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
            remedy = "Try it in duckdb: check the names of tables and columns."
            raise refusal(self.where, "DuckDB does not understand the query", remedy) from None
        except duckdb.PermissionException:
            raise refusal(self.where, "the query reaches beyond its file", "Read tables of this file alone.") from None
        except (duckdb.Error, pa.ArrowException, OSError):  # what fails later comes as Arrow's error
            raise refusal(self.where, "the query fails on the data", "Try it in duckdb.") from None


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put batches of few rows together."""
    some = list[pa.RecordBatch]()
    for batch in batches:
        some.append(batch)
        if len(some) * _READ_ROWS >= BATCH_ROWS or sum(one.nbytes for one in some) >= BATCH_CHARACTERS:
            yield from pa.Table.from_batches(some).combine_chunks().to_batches()
            some = []
    if some:
        yield from pa.Table.from_batches(some).combine_chunks().to_batches()
