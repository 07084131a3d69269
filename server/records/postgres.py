"""PostgreSQL for a state that several server processes share: the same statements and guarantees as SQLite.

One writer at a time, as with SQLite: a transaction begins by locking the row of its store, and runs under READ
COMMITTED, so each of its statements sees all that was committed before. So no deadlock and no repetition can occur.
PostgreSQL disconnects a process that is paused in a transaction, and rolls back.

A temporary failure of the database is an UnavailableError, which callers retry; a transaction with a failed statement
is never committed, even if its block continued.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from veiltab.common.errors import IntegrityError, InvalidInputError, UnavailableError
from veiltab.server.sharing.shared_folder import DEPLOYMENT
from veiltab.server.sharing.shared_leases import LEASES

PAUSE_SECONDS = 10.0
"""Longest silence of a process within a transaction before it is disconnected."""

TURN_SECONDS = 30.0
"""Longest wait for the store's lock."""

_CONNECT: dict[str, str | int] = {
    "connect_timeout": 5,
    # A database that stops answering is noticed within half a minute.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",
    "application_name": "veiltab",
}
_TYPES = {"BLOB": "BYTEA", "REAL": "DOUBLE PRECISION", "INTEGER": "BIGINT", "WITHOUT ROWID": ""}
"""SQLite's terms in the migrations, and PostgreSQL's."""

_CONNECTIONS = 12
"""Most connections of one store."""

_WAIT_SECONDS = 3.0
"""Longest wait for a connection; the pool tries for as long to make one."""

_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
_log = logging.getLogger(__name__)
# It logs every connection that a statement takes.
logging.getLogger("psycopg.pool").setLevel(logging.WARNING)


_KIND: dict[str, Any] = {"autocommit": True, "row_factory": dict_row}
_Connection = psycopg.Connection[DictRow]
_Result = psycopg.Cursor[DictRow]


class _Open(threading.local):
    """The transaction of each thread, and why it cannot be committed."""

    connection: _Connection | None = None
    failure: Exception | None = None


class Postgres:
    """The database of one store.

    Args:
        store: the store whose lock its transactions take.
    """

    shared: ClassVar[bool] = True

    def __init__(self, pool: ConnectionPool[_Connection], store: str, migrations: Sequence[str]) -> None:
        self._pool = pool
        self._store = store
        self._version = len(migrations)
        self._tables = re.findall(r"CREATE TABLE (\w+)", " ".join(migrations))
        self._open = _Open()

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> _Result:
        """Run a statement: in this thread's transaction, or durable by itself."""
        return self._run(lambda connection: _execute(connection, statement, parameters))

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> _Result:
        """Run a statement once for each of some parameters, in one round trip."""
        return self._run(lambda connection: _execute_many(connection, statement, parameters))

    def _run(self, ask: Callable[[_Connection], _Result]) -> _Result:
        if self._open.connection is None:
            with _reached(), self._pool.connection() as connection:
                return ask(connection)
        if self._open.failure is not None:
            raise self._open.failure
        try:
            with _reached():
                return ask(self._open.connection)
        except Exception as failure:
            self._open.failure = failure
            raise

    @contextmanager
    def transaction(self, *, is_synced: bool = True) -> Iterator[Self]:
        """Run a block as one transaction, the only one of this store; undone when the block raises.

        Args:
            is_synced: here every transaction is durable.
        """
        del is_synced
        with _reached(), self._pool.connection() as connection, connection.transaction():
            self._open.connection, self._open.failure = connection, None
            try:
                self._take_turn()
                yield self
            finally:
                self._open.connection = None
            if self._open.failure is not None:
                raise self._open.failure

    def _take_turn(self) -> None:
        row = self.execute("SELECT version FROM veiltab WHERE store = ? FOR UPDATE", [self._store]).fetchone()
        if row is None or row["version"] != self._version:
            raise _newer()

    def erase_traces(self) -> bool:
        """Rewrite the tables in the order of their keys, without the old versions of updated and deleted rows.

        The database server's log, archives and replicas are the operator's responsibility.
        """
        try:
            return sum(self._rewritten(table) for table in self._tables) == 0
        except UnavailableError:
            return False

    def _rewritten(self, table: str) -> int:
        """Rewrite a table; return the number of old row versions that had to stay, because a reader may need them."""
        counts: list[int] = []

        def take_notice(notice: psycopg.errors.Diagnostic) -> None:
            counts.extend(int(number) for number in re.findall(r"\A\D*(\d+)", notice.message_detail or ""))

        with _reached(), self._pool.connection() as connection:
            connection.add_notice_handler(take_notice)
            try:
                _execute(connection, f"CLUSTER VERBOSE {table} USING {table}_pkey")
            finally:
                connection.remove_notice_handler(take_notice)
        return sum(counts)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def open_postgres(url: str, stores: dict[str, Sequence[str]]) -> Postgres:
    """Open a database that server processes share, bringing it up to date.

    Args:
        url: "postgresql://user@host/database", as libpq reads it; it may hold a password and is never shown.
        stores: store -> its migrations, oldest first, beside those of what processes share; the last store is the one
            whose turn transactions take.

    Raises:
        InvalidInputError: the URL is none of PostgreSQL, or the user may not make tables.
        UnavailableError: the database cannot be reached.
        IntegrityError: a newer version of veiltab wrote it.
    """
    settings = _settings(url)
    with _first_connection(settings) as connection, connection.transaction():
        for name, migrations in {"lease": LEASES, "deployment": DEPLOYMENT, **stores}.items():
            _migrate(connection, name, migrations)
    pool = ConnectionPool(
        settings,
        connection_class=_Connection,
        kwargs=_KIND,
        configure=_settle,
        # Connections that the database has closed are noticed before they are used.
        check=ConnectionPool.check_connection,
        min_size=0,
        max_size=_CONNECTIONS,
        timeout=_WAIT_SECONDS,
        reconnect_timeout=_WAIT_SECONDS,
        open=True,
    )
    store = list(stores)[-1]
    return Postgres(pool, store, stores[store])


@contextmanager
def _first_connection(settings: str) -> Iterator[_Connection]:
    """Connect; a refusal quotes the database's message for the operator."""
    try:
        connection = _Connection.connect(settings, **_KIND)
    except psycopg.Error as error:
        raise UnavailableError(
            f"the database cannot be reached: {' '.join(str(error).split())[:200]}",
            where="--database",
            remedy="Check the URL, that the database runs, and that it lets this user in.",
        ) from None
    with connection, _reached():
        try:
            _settle(connection)
            yield connection
        except psycopg.ProgrammingError as error:
            raise InvalidInputError(
                f"the database refuses to be set up ({type(error).__name__})",
                where="--database",
                remedy="Let its user own the database, or a schema that comes first on its search path.",
            ) from None


def _settings(url: str) -> str:
    """Return the URL with our own settings where it has none."""
    try:
        settings = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        settings = {}
    # libpq checks ports when it connects, and its message would repeat the text.
    if not re.match("postgres(ql)?://", url) or not re.fullmatch("[0-9,]*", str(settings.get("port", ""))):
        raise InvalidInputError(
            "this is not the URL of a PostgreSQL database", where="--database", remedy="postgresql://user@host/database"
        )
    return make_conninfo(url, **{name: value for name, value in _CONNECT.items() if name not in settings})


def _settle(connection: _Connection) -> None:
    """Set a session's timeouts, and make commits durable."""
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    for setting, seconds in (("idle_in_transaction_session_timeout", PAUSE_SECONDS), ("lock_timeout", TURN_SECONDS)):
        connection.execute("SELECT set_config(%s, %s, false)", [setting, f"{seconds}s"])
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )


def _migrate(connection: _Connection, store: str, migrations: Sequence[str]) -> None:
    # Two processes may start at once, when there is no table to lock yet.
    _execute(connection, "SELECT pg_advisory_xact_lock(hashtext('veiltab'))")
    _execute(connection, "CREATE TABLE IF NOT EXISTS veiltab (store TEXT PRIMARY KEY, version BIGINT NOT NULL)")
    _execute(connection, "INSERT INTO veiltab VALUES (?, 0) ON CONFLICT DO NOTHING", (store,))
    row = _execute(connection, "SELECT version FROM veiltab WHERE store = ? FOR UPDATE", (store,)).fetchone()
    version = 0 if row is None else row["version"]
    if version > len(migrations):
        raise _newer()
    for script in migrations[version:]:
        for statement in script.split(";"):
            _execute(connection, re.sub(rf"\b({'|'.join(_TYPES)})\b", lambda word: _TYPES[word[0]], statement))
    _execute(connection, "UPDATE veiltab SET version = ? WHERE store = ?", (len(migrations), store))


def _newer() -> IntegrityError:
    return IntegrityError(
        "another version of veiltab wrote this database", where="database", remedy="Use that version."
    )


def _execute(connection: _Connection, statement: str, parameters: Sequence[Any] = ()) -> _Result:
    return connection.execute(_marked(statement), parameters)


def _execute_many(connection: _Connection, statement: str, parameters: Sequence[Sequence[Any]]) -> _Result:
    result = connection.cursor()
    result.executemany(_marked(statement), parameters)
    return result


def _marked(statement: str) -> bytes:
    """Return a statement with psycopg's parameter markers instead of SQLite's."""
    return statement.replace("?", "%s").encode()


@contextmanager
def _reached() -> Iterator[None]:
    """Turn the driver's exceptions into errors that callers can retry or act on."""
    try:
        yield
    except psycopg.errors.DiskFull:
        _log.warning("the database's disk is full")
        raise UnavailableError(
            "the disk of the server's database is full",
            where="database",
            remedy="It goes on once its operator has made room.",
        ) from None
    except _AWAY as error:
        _log.warning("the database did not answer", extra={"error": type(error).__name__})
        raise UnavailableError(
            "the server's database does not answer",
            where="database",
            remedy="Ask again; its operator sees to it that it runs.",
        ) from None
    except psycopg.DataError:
        raise InvalidInputError("a text or number cannot be kept as it is") from None
