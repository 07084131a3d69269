"""PostgreSQL for the server's state, where several server processes share it: the same statements, the same promises.

One writer at a time, as with SQLite: a transaction begins by locking the row of its store, and runs under READ
COMMITTED, so each of its statements sees all that was committed before. There is nothing to deadlock on and nothing to
repeat. A process that is paused in a transaction is cut off after a while, and its transaction undone.

Whatever the database cannot do now is an UnavailableError, which callers repeat; a transaction in which a statement
failed is never committed, even if its block went on.
"""

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import sqlalchemy
from sqlalchemy import exc
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.pool import ConnectionPoolEntry

from veiltab.common.errors import IntegrityError, InvalidInputError, UnavailableError

PAUSE_SECONDS = 10.0
"""A process that is silent for so long in the middle of a transaction is cut off."""

TURN_SECONDS = 30.0
"""Longest wait for a turn."""

_CONNECT = {
    "connect_timeout": 5,
    # A database that vanishes without a word is noticed within half a minute.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",
    "application_name": "veiltab",
}
_TYPES = {"BLOB": "BYTEA", "REAL": "DOUBLE PRECISION", "INTEGER": "BIGINT", "WITHOUT ROWID": ""}
"""What the migrations of SQLite are called in PostgreSQL."""

_Parameters = tuple[Any, ...] | list[tuple[Any, ...]]
_AWAY = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)
_log = logging.getLogger(__name__)


class Row:
    """One row: its values by column name or by place."""

    __slots__ = ("_row",)

    def __init__(self, row: "sqlalchemy.Row[Any]") -> None:
        self._row = row

    def __getitem__(self, key: str | int) -> Any:  # noqa: ANN401 - whatever the column holds
        """Return a value."""
        return self._row._mapping[key] if isinstance(key, str) else self._row[key]  # noqa: SLF001 - its public name

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the values."""
        return iter(self._row)

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._row._fields)


class PostgresResult:
    """What a statement found."""

    def __init__(self, result: "sqlalchemy.CursorResult[Any]") -> None:
        self.rowcount = result.rowcount
        self._rows = iter([Row(row) for row in result] if result.returns_rows else [])

    def fetchone(self) -> Row | None:
        """Return the next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows that are left."""
        return self._rows


class _Open(threading.local):
    """The transaction of each thread, and why it cannot be committed."""

    connection: sqlalchemy.Connection | None = None
    failure: Exception | None = None


class Postgres:
    """The database of one store.

    Args:
        engine: how to connect.
        store: whose turn its transactions take.
        migrations: those of the store that this program knows.
    """

    shared: ClassVar[bool] = True

    def __init__(self, engine: Engine, store: str, migrations: Sequence[str]) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._store = store
        self._version = len(migrations)
        self._tables = re.findall(r"CREATE TABLE (\w+)", " ".join(migrations))
        self._open = _Open()

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> PostgresResult:
        """Run a statement: in this thread's transaction, or durable by itself."""
        return self._run(statement, tuple(parameters))

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> PostgresResult:
        """Run a statement once for each of some parameters, on one way there and back."""
        return self._run(statement, [tuple(one) for one in parameters])

    def _run(self, statement: str, parameters: _Parameters) -> PostgresResult:
        if self._open.connection is None:
            with _reached(), self._single.connect() as connection:
                return _run(connection, statement, parameters)
        if self._open.failure is not None:
            raise self._open.failure
        try:
            with _reached():
                return _run(self._open.connection, statement, parameters)
        except Exception as failure:
            self._open.failure = failure
            raise

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Run a block as one durable transaction, the only one of this store; undone when the block raises."""
        with _reached():
            connection = self._engine.connect()
        self._open.connection, self._open.failure = connection, None
        try:
            self._take_turn()
            yield self
            if self._open.failure is not None:
                raise self._open.failure
            with _reached():
                connection.commit()
        finally:
            self._open.connection = None
            # What is not committed by now is rolled back.
            connection.close()

    def _take_turn(self) -> None:
        row = self.execute("SELECT version FROM veiltab WHERE store = ? FOR UPDATE", [self._store]).fetchone()
        if row is None or row["version"] != self._version:
            raise _newer()

    def erase_traces(self) -> bool:
        """Write the tables anew in the order of their keys, without the rows that updates and deletions left behind.

        The database server's log, its archives and its replicas are its operator's.
        """
        try:
            return sum(self._rewritten(table) for table in self._tables) == 0
        except UnavailableError:
            return False

    def _rewritten(self, table: str) -> int:
        """Write a table anew; return how many old versions of rows had to be kept, because a reader may need them."""
        kept: list[int] = []

        def heard(notice: Any) -> None:  # noqa: ANN401 - psycopg's, which is optional
            kept.extend(int(number) for number in re.findall(r"\A\D*(\d+)", notice.message_detail or ""))

        with _reached(), self._single.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.add_notice_handler(heard)
            try:
                _run(connection, f"CLUSTER VERBOSE {table} USING {table}_pkey")
            finally:
                driver.remove_notice_handler(heard)
        return sum(kept)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def open_postgres(url: str, stores: dict[str, Sequence[str]]) -> Postgres:
    """Open a database that server processes share, bringing it up to date.

    Args:
        url: "postgresql://user@host/database", as libpq reads it; it may hold a password and is never shown.
        stores: store -> its migrations, oldest first; the last store is the one whose turn transactions take.

    Raises:
        InvalidInputError: the URL is none of PostgreSQL, or the user may not make tables.
        UnavailableError: the database cannot be reached.
        IntegrityError: a newer version of veiltab wrote it.
    """
    engine = _engine(_parsed(url))
    store = list(stores)[-1]
    try:
        with _connected(engine) as connection:
            for name, migrations in stores.items():
                _migrate(connection, name, migrations)
            connection.commit()
    except BaseException:
        engine.dispose()
        raise
    return Postgres(engine, store, stores[store])


@contextmanager
def _connected(engine: Engine) -> Iterator[sqlalchemy.Connection]:
    """Connect for the first time, and tell the operator what the database says if it does not let this process in."""
    try:
        connection = engine.connect()
    except exc.DBAPIError as error:
        raise UnavailableError(
            f"the database cannot be reached: {' '.join(str(error.orig).split())[:200]}",
            where="--database",
            remedy="Check the URL, that the database runs, and that it lets this user in.",
        ) from None
    with connection, _reached():
        try:
            yield connection
        except exc.ProgrammingError as error:
            raise InvalidInputError(
                f"the database refuses to be set up ({type(error.orig).__name__})",
                where="--database",
                remedy="Let its user own the database, or a schema that comes first on its search path.",
            ) from None


def _parsed(text: str) -> URL:
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise InvalidInputError(
            "this is no URL of a PostgreSQL database", where="--database", remedy="postgresql://user@host/database"
        )
    return url.set(drivername="postgresql+psycopg")


def _engine(url: URL) -> Engine:
    engine = sqlalchemy.create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_size=4,
        max_overflow=8,
        # Connections that the database has closed are noticed before they are used.
        pool_pre_ping=True,
        hide_parameters=True,
        use_native_hstore=False,
        connect_args={name: value for name, value in _CONNECT.items() if name not in url.query},
    )
    sqlalchemy.event.listen(engine, "connect", _settle)
    return engine


def _settle(connection: Any, _entry: ConnectionPoolEntry) -> None:  # noqa: ANN401 - psycopg's, which is optional
    """Bound what a session waits for, and let a commit be one."""
    for setting, seconds in (("idle_in_transaction_session_timeout", PAUSE_SECONDS), ("lock_timeout", TURN_SECONDS)):
        connection.execute("SELECT set_config(%s, %s, false)", [setting, f"{seconds}s"])
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
    connection.commit()


def _migrate(connection: sqlalchemy.Connection, store: str, migrations: Sequence[str]) -> None:
    # Two processes may start at once, and nothing is there yet that could be locked.
    _run(connection, "SELECT pg_advisory_xact_lock(hashtext('veiltab'))")
    _run(connection, "CREATE TABLE IF NOT EXISTS veiltab (store TEXT PRIMARY KEY, version BIGINT NOT NULL)")
    _run(connection, "INSERT INTO veiltab VALUES (?, 0) ON CONFLICT DO NOTHING", (store,))
    row = _run(connection, "SELECT version FROM veiltab WHERE store = ? FOR UPDATE", (store,)).fetchone()
    version = 0 if row is None else row["version"]
    if version > len(migrations):
        raise _newer()
    for script in migrations[version:]:
        for statement in script.split(";"):
            _run(connection, _translated(statement))
    _run(connection, "UPDATE veiltab SET version = ? WHERE store = ?", (len(migrations), store))


def _translated(statement: str) -> str:
    return re.sub(rf"\b({'|'.join(_TYPES)})\b", lambda word: _TYPES[word[0]], statement)


def _newer() -> IntegrityError:
    return IntegrityError(
        "another version of veiltab wrote this database", where="database", remedy="Use that version."
    )


def _run(connection: sqlalchemy.Connection, statement: str, parameters: _Parameters = ()) -> PostgresResult:
    return PostgresResult(connection.exec_driver_sql(statement.replace("?", "%s"), parameters))


@contextmanager
def _reached() -> Iterator[None]:
    """Turn what the driver raises into errors that callers may repeat, or act on."""
    try:
        yield
    except _AWAY as error:
        _log.warning("the database did not answer", extra={"error": type(getattr(error, "orig", error)).__name__})
        raise UnavailableError(
            "the server's database does not answer",
            where="database",
            remedy="Ask again; its operator sees to it that it runs.",
        ) from None
    except exc.DataError:
        raise InvalidInputError("a text or number cannot be kept as it is") from None
