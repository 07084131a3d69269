"""Queries of a DuckDB file, opened read-only, or of any other table: no other file, extension or setting is reached.

What does not fit the memory fails: else DuckDB would put the rows into plain files beside its own, which a kill leaves.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.curator.formats.columns.arrow_columns import batches_of, header_of
from veiltab.curator.formats.columns.query_limit import Waiting, query_ended
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    Batch,
    Column,
    ColumnKind,
    Selection,
    Source,
)
from veiltab.curator.formats.databases.query import query_of_file, quoted, reading_query, unordered

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GiB",
    "lock_configuration": "true",
}
_READ_ROWS = 2048
"""Rows that DuckDB makes at once; more are put together only while they are short."""

_REMEDY_OF_TEXTS = (
    "The table is t, and its columns are texts: write for example"
    ' "select id, sum(cost::decimal(18, 2)) as cost from t group by id order by id".'
)
_SCAN = '"name": "PYTHON_ARROW_SCAN"'

_TABLES = "select table_name from information_schema.tables where table_schema = 'main' order by table_name"


class _Reading:
    """What one statement returns.

    Args:
        remedy: what to do if DuckDB does not understand the statement.
    """

    _query: str
    _columns: list[Column]

    rows = None
    lines: int | None = None

    def __init__(self, where: str, remedy: str) -> None:
        self.where = where
        self._remedy = remedy

    def _look(self, connection: "DuckDBPyConnection") -> None:
        """Learn the columns of the statement."""
        if len(connection.extract_statements(self._query)) != 1:
            raise refusal(self.where, "the query is more than one statement", "Give one that reads.")
        empty = connection.sql(f"select * from (\n{self._query}\n) limit 0")  # noqa: S608 - theirs
        self.columns = header_of(empty.to_arrow_table().schema)

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Fetch the rows by and by."""
        with self._open() as (connection, waiting):
            # What is not wanted may be long, and a batch of it more than the memory holds.
            columns = ", ".join(quoted(spelling) for spelling in dict.fromkeys(selection.spellings.values()))
            reader = connection.sql(self._query).project(columns).to_arrow_reader(_READ_ROWS)
            for batch in _gathered(waiting.rows(reader)):
                yield from batches_of(self.where, batch, selection)

    def _connection(self) -> "DuckDBPyConnection":
        raise NotImplementedError

    @contextmanager
    def _open(self) -> Iterator[tuple["DuckDBPyConnection", Waiting]]:
        """Open the database; no message of DuckDB is passed on, because they quote the data."""
        with importing("tables", "a query of a file"):
            import duckdb  # noqa: PLC0415 - not where the extra is missing
        opened = self._connection()
        try:
            with closing(opened) as connection, query_ended(self.where, connection.interrupt) as waiting:
                yield connection, waiting
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
            raise refusal(self.where, "DuckDB does not understand the query", self._remedy) from None
        except duckdb.PermissionException:
            raise refusal(self.where, "the query reaches beyond its file", "Read tables of this file alone.") from None
        except duckdb.OutOfMemoryException:
            raise refusal(self.where, "the query needs more than 2 GiB of memory", "Let it do less at once.") from None
        except (duckdb.Error, pa.ArrowException, OSError):  # what fails later comes as Arrow's error
            raise self._failure() from None

    def _failure(self) -> InvalidInputError:
        """Return why the statement failed on the data."""
        return refusal(self.where, "the query fails on the data", "Try it in duckdb.")


class DuckdbQuery(_Reading):
    """What a query of a DuckDB file returns.

    Args:
        table: the table to read whole; "" for the only one.

    Raises:
        InvalidInputError: the file cannot be read, or the query is none that reads.
    """

    def __init__(self, path: Path, table: str = "", query: str = "") -> None:
        super().__init__(str(path), "Try it in duckdb: check the names of tables and columns.")
        self._path = path
        with self._open() as (connection, _):
            tables = [str(name) for (name,) in connection.execute(_TABLES).fetchall()]
            self._query, self.description = query_of_file(self.where, "a DuckDB file", tables, table, query)
            self._look(connection)

    def _connection(self) -> "DuckDBPyConnection":
        import duckdb  # noqa: PLC0415 - not where the extra is missing

        try:
            return duckdb.connect(self._path, read_only=True, config=_CLOSED)
        except duckdb.Error:
            problem = "the file is not a readable DuckDB database, or another program writes to it"
            raise refusal(self.where, problem, "Check the file and its rights; close the other program.") from None


class FileQuery(_Reading):
    """What a query of any other table returns: the table is `t`, its columns are texts, and it is read once.

    With "group by" memory holds the groups, not the rows; one thread, so that sums come out alike each time.

    Args:
        query: of `t`.

    Raises:
        InvalidInputError: the query is none that reads, reads `t` more than once, or two columns have one name.
    """

    def __init__(self, source: Source, query: str) -> None:
        super().__init__(source.where, _REMEDY_OF_TEXTS)
        self._source = source
        self._failed: InvalidInputError | None = None
        self._rows = 0
        self._names = {one.name: one.spelling for one in source.columns if one.kind is not ColumnKind.OTHER}
        if len({name.casefold() for name in self._names}) < len(self._names):
            problem = "two columns differ in letter case alone, and a query cannot tell them apart"
            raise refusal(self.where, problem, "Rename one of them.")
        self._query = reading_query(self.where, query)
        with self._open() as (connection, _):
            self._look(connection)
            plan = str(connection.execute(f"explain (format json) {self._query}").fetchall())
            if plan.count(_SCAN) > 1:
                raise refusal(self.where, "the query reads t more than once", "Write it with one `from t`.")

    @property
    def description(self) -> str:
        """How the table looks, and that a query is made of it."""
        rows = f", {self._rows:,} rows" if self._rows else ""
        return f"a query of a table that {self._source.description}{rows}{unordered(self._query)}"

    def _connection(self) -> "DuckDBPyConnection":
        import duckdb  # noqa: PLC0415 - not where the extra is missing

        connection = duckdb.connect(":memory:", config={**_CLOSED, "threads": 1})
        schema = pa.schema([(name, pa.string()) for name in self._names])
        connection.register("t", pa.RecordBatchReader.from_batches(schema, self._read(schema)))
        return connection

    def _read(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the table; DuckDB loses the class of an error, so it is kept."""
        self._rows, self._failed = 0, None
        selection = Selection(spellings=self._names, texts=frozenset(self._names), coded=frozenset())
        try:
            for batch in self._source.batches(selection):
                self._rows += batch.rows
                yield pa.record_batch([batch.texts[name] for name in self._names], schema=schema)
            self.lines = self._source.lines
        except InvalidInputError as error:
            self._failed = error
            raise

    def _failure(self) -> InvalidInputError:
        remedy = f"Check numbers and dates of other forms. {_REMEDY_OF_TEXTS}"
        return self._failed or refusal(self.where, "the query fails on the data", remedy)


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
