"""A table or a query of a DuckDB file, opened read-only: no other file, no extension, no setting can be reached.

What does not fit the memory fails: else DuckDB would put the rows into plain files beside its own, which a kill leaves.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.extras import importing
from veiltab.curator.tables.arrow_columns import batch_of, header_of
from veiltab.curator.tables.query import query_of_file, quoted
from veiltab.curator.tables.refusals import refusal
from veiltab.curator.tables.source import BATCH_ROWS, Batch, Column, Selection

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
        with self._open() as connection:
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
        with self._open() as connection:
            # What is not wanted may be long, and a batch of it more than the memory holds.
            wanted = ", ".join(quoted(spelling) for spelling in dict.fromkeys(selection.spellings.values()))
            for batch in connection.sql(self._query).project(wanted).to_arrow_reader(BATCH_ROWS):
                yield batch_of(self.where, batch, selection)

    @contextmanager
    def _open(self) -> Iterator["DuckDBPyConnection"]:
        """Open the file; no message of DuckDB is passed on, because they quote the data."""
        with importing("tables", "reading a DuckDB file"):
            import duckdb  # noqa: PLC0415 - an optional package
        try:
            opened = duckdb.connect(self._path, read_only=True, config=_CLOSED)
        except duckdb.Error:
            problem = "the file is not a readable DuckDB database, or another program writes to it"
            raise refusal(self.where, problem, "Check the file and its rights; close the other program.") from None
        try:
            with closing(opened) as connection:
                yield connection
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
            remedy = "Try it in duckdb: check the names of tables and columns."
            raise refusal(self.where, "DuckDB does not understand the query", remedy) from None
        except duckdb.PermissionException:
            raise refusal(self.where, "the query reaches beyond its file", "Read tables of this file alone.") from None
        except duckdb.Error:
            raise refusal(self.where, "the query fails on the data", "Try it in duckdb.") from None
