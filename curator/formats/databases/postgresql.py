"""A query of a PostgreSQL, in a transaction that only reads. The password comes from the environment or a pgpass file.

No message of the database is passed on: it may quote the data, or the URL with its password.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from veiltab.common.extras import importing
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.arrow_columns import batches_of, header_of
from veiltab.curator.formats.columns.query_limit import query_ended
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import Batch, Column, ColumnKind, Selection
from veiltab.curator.formats.databases.own_rows import check_plan
from veiltab.curator.formats.databases.query import reading_query, unordered

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

_PROBLEMS = {
    "42P01": "the database has no table of a name that the query has",
    "42703": "a table has no column of a name that the query has",
    "42501": "the user may not read what the query names",
    "42": "the database does not understand the query",
    "25": "the query does more than read",
}
"""The beginning of an error's SQLSTATE -> problem."""

_LOGIN = "Check --table; the password comes from PGPASSWORD, or from a pgpass file with mode 0600. Try it in psql."
_LOGIN_PROBLEMS = {
    r'database "[^"]*" does not exist': (
        "the server has no database of this name",
        "Write its name behind the host in --table; `psql -l` lists them.",
    ),
    r"refused|translate host|timeout|timed out|unreachable|No route|No such file": (
        "no PostgreSQL listens at this host and port",
        "Check both in --table, and whether the server runs and listens there.",
    ),
    "authentication|password|pg_hba|role": ("the server does not let this user in", _LOGIN),
}
"""What libpq says of a login that fails -> what that means, and what to do."""

_BATCH_BYTES = 1 << 21
_TYPE = b"ADBC:postgresql:typname"


class PostgresqlQuery:
    """What a query of a PostgreSQL returns.

    Args:
        address: the URL, and the query.

    Raises:
        InvalidInputError: there is no query, or the database refuses it or cannot be reached.
    """

    rows = lines = None

    def __init__(self, address: TableAddress) -> None:
        self._url = address.location
        self.where = address.label
        if not address.query:
            raise refusal(self.where, "a database needs a query", 'Give --query "select ...".')
        self._query = reading_query(self.where, address.query)
        self.description = f"a query of a PostgreSQL{unordered(self._query)}"
        with self._cursor() as cursor:
            self.columns = [_column(field) for field in cursor.adbc_execute_schema(self._query)]
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})  # which explains nothing
            cursor.execute(f"explain (verbose, format json) {self._query}")
            ((plan,),) = cursor.fetchall()
            check_plan(self.where, self._query, json.loads(plan))
        if not self.columns:
            raise refusal(self.where, "the query returns no columns", "Give one statement that reads.")

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Stream the rows."""
        with self._cursor() as cursor, query_ended(self.where, cursor.adbc_cancel) as waiting:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
            cursor.execute(self._query)
            for batch in waiting.rows(cursor.fetch_record_batch()):
                yield from batches_of(self.where, batch, selection)

    @contextmanager
    def _cursor(self) -> Iterator["Cursor"]:
        """Open a transaction that only reads."""
        with importing("tables", "reading a PostgreSQL"):
            import adbc_driver_manager  # noqa: PLC0415 - not where the extra is missing
            import adbc_driver_postgresql.dbapi  # noqa: PLC0415 - not where the extra is missing
        try:
            connection = adbc_driver_postgresql.dbapi.connect(self._url)
        except adbc_driver_manager.Error as error:
            sentences = (sentence for sign, sentence in _LOGIN_PROBLEMS.items() if re.search(sign, str(error)))
            problem, remedy = next(sentences, ("the database cannot be reached, or does not let this user in", _LOGIN))
            raise refusal(self.where, problem, remedy) from None
        try:
            with closing(connection), connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                yield cursor
        except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
            state = str(getattr(error, "sqlstate", None) or "")
            problem = _PROBLEMS.get(state) or _PROBLEMS.get(state[:2], "the query fails")
            raise refusal(self.where, problem, "Try it in psql.") from None


def _column(field: pa.Field) -> Column:
    """Return a column; numbers of any length come as text, though nobody wrote them."""
    (column,) = header_of(pa.schema([field]))
    name = (field.metadata or {}).get(_TYPE, b"").decode()
    if name == "numeric":
        return Column(spelling=field.name, kind=ColumnKind.EXACT, type_name=name)
    return replace(column, type_name=name or column.type_name)
