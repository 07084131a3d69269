"""What only a real PostgreSQL shows: processes side by side, a server that goes away, and what is refused."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import refuses
from tests.hostile.small_disk import SmallDisk, small_disk
from tests.server.cluster import Cluster
from tests.server.publishing import spec_ahead
from veiltab.common.errors import IntegrityError, InvalidInputError, UnavailableError, VeiltabError
from veiltab.server.records.databases import open_state
from veiltab.server.records.postgres import Postgres, open_postgres
from veiltab.server.records.store import ServerStore

SCRIPTS = ("CREATE TABLE note (number INTEGER PRIMARY KEY, text TEXT NOT NULL, bytes BLOB)",)


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.new_url()


Open = Callable[[], Postgres]


@pytest.fixture
def opened(url: str) -> Iterator[Open]:
    """Open the same database, as one process after the other does."""
    databases: list[Postgres] = []

    def one_more() -> Postgres:
        databases.append(open_postgres(url, {"notes": SCRIPTS}))
        return databases[-1]

    yield one_more
    for database in databases:
        database.close()


def texts(db: Postgres) -> list[str]:
    return [row["text"] for row in db.execute("SELECT text FROM note ORDER BY number")]


def note(db: Postgres, number: int, text: str = "") -> None:
    db.execute("INSERT INTO note (number, text) VALUES (?, ?)", [number, text])


# Statements and transactions


def test_rows_are_read_by_name(opened: Open) -> None:
    db = opened()
    added = db.execute("INSERT INTO note VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [2**40, "grün", b"\0\xff"])
    again = db.execute("INSERT INTO note VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [2**40, "", b""])
    assert (added.rowcount, again.rowcount) == (1, 0)
    found = db.execute("SELECT * FROM note WHERE number = ?", [2**40])
    row = found.fetchone()
    assert row is not None
    assert row == {"number": 2**40, "text": "grün", "bytes": b"\0\xff"}
    assert (found.fetchone(), found.fetchall()) == (None, [])


def test_many_rows_at_once(opened: Open) -> None:
    db = opened()
    insert = "INSERT INTO note (number, text) VALUES (?, ?) ON CONFLICT DO NOTHING"
    assert db.executemany(insert, [[number, str(number)] for number in range(100)]).rowcount == 100
    with db.transaction():
        assert db.executemany(insert, [(number, "") for number in range(50, 200)]).rowcount == 100
    assert texts(db)[98:102] == ["98", "99", "", ""]


def test_a_transaction_is_undone_when_its_block_raises(opened: Open) -> None:
    db, other = opened(), opened()
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), db.transaction():  # noqa: PT012 - what is undone
            note(db, 1)
            assert texts(other) == [], "nobody sees it before"
            raise error
    with db.transaction():
        note(db, 1, "kept")
    assert texts(other) == ["kept"]


def test_a_transaction_in_which_a_statement_failed_is_never_committed(opened: Open) -> None:
    db = opened()
    with pytest.raises(InvalidInputError), db.transaction():  # noqa: PT012 - the block goes on after a failure
        note(db, 1)
        with pytest.raises(VeiltabError):
            note(db, 2, "a\0b")
    with pytest.raises(UnavailableError), db.transaction():  # noqa: PT012 - as above
        note(db, 1)
        with pytest.raises(UnavailableError):
            db.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert texts(db) == []


def test_transactions_of_all_processes_and_threads_take_turns(opened: Open) -> None:
    first = opened()
    note(first, 1, "0")

    def count(db: Postgres) -> None:
        for _ in range(15):
            with db.transaction():
                row = db.execute("SELECT text FROM note").fetchone()
                assert row is not None
                db.execute("UPDATE note SET text = ?", [str(int(row["text"]) + 1)])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(count, [first, opened()] * 3))
    assert texts(first) == ["90"]


def test_a_thread_outside_a_transaction_is_not_in_it(opened: Open) -> None:
    db = opened()
    with pytest.raises(ValueError, match="undo"), db.transaction():  # noqa: PT012 - the thread runs meanwhile
        note(db, 1)
        thread = threading.Thread(target=note, args=[db, 2, "beside"])
        thread.start()
        thread.join(10)
        raise ValueError("undo")
    assert texts(db) == ["beside"]


def test_a_process_that_is_paused_in_a_transaction_is_cut_off(opened: Open) -> None:
    paused, other = opened(), opened()
    with pytest.raises(UnavailableError), paused.transaction():  # noqa: PT012 - what is cut off
        paused.execute("SET idle_in_transaction_session_timeout = 100")
        note(paused, 1, "half")
        began = time.monotonic()
        with other.transaction():
            note(other, 2, "whole")
        assert time.monotonic() - began > 0.05, "it had to wait for its turn"
    assert texts(other) == ["whole"]
    with paused.transaction():
        note(paused, 3, "again")
    assert texts(other) == ["whole", "again"]


def test_a_commit_waits_for_the_disk_whatever_the_database_is_set_to(url: str) -> None:
    for setting, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        db = open_postgres(url + f"%20-csynchronous_commit%3D{setting}", {"notes": SCRIPTS})
        found = db.execute(
            "SELECT current_setting('synchronous_commit') AS commit, current_setting('lock_timeout') AS turn"
        ).fetchone()
        assert found is not None
        assert found == {"commit": expected, "turn": "30s"}
        db.close()


# Versions


def test_processes_that_start_at_once_make_the_tables_once(url: str) -> None:
    later = (
        *SCRIPTS,
        "ALTER TABLE note ADD COLUMN more REAL NOT NULL DEFAULT 0; INSERT INTO note VALUES (1, 'migrated')",
    )
    others = ("CREATE TABLE other (a TEXT PRIMARY KEY) WITHOUT ROWID",)
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda _: open_postgres(url, {"notes": later, "others": others}).close(), range(6)))
    db = open_postgres(url, {"notes": later})
    assert texts(db) == ["migrated"]
    types = db.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?", ["note"])
    assert {row["column_name"]: row["data_type"] for row in types} == {
        "number": "bigint",
        "text": "text",
        "bytes": "bytea",
        "more": "double precision",
    }
    db.close()


def test_an_older_program_is_refused_even_when_it_runs_already(opened: Open, url: str) -> None:
    old = opened()
    open_postgres(url, {"notes": (*SCRIPTS, "CREATE TABLE more (a TEXT)")}).close()
    with refuses(IntegrityError, where="database"), old.transaction():
        note(old, 1)
    assert texts(old) == []
    with refuses(IntegrityError, where="database"):
        opened()


def test_a_migration_that_fails_changes_nothing(opened: Open, url: str) -> None:
    db = opened()
    with pytest.raises(InvalidInputError, match=r"refuses to be set up \(UndefinedTable\)"):
        open_postgres(url, {"notes": (*SCRIPTS, "INSERT INTO note VALUES (1, 'half'); INSERT INTO nothing VALUES (1)")})
    assert texts(db) == []
    with db.transaction():
        note(db, 1, "goes on")


# What is refused, and what is not said


@pytest.mark.parametrize(
    "text",
    ["sqlite:///secret", "mysql://u:secret@h/d", "secret", "postgresql", "postgresql://u:secret@h:port/d", "://secret"],
)
def test_what_is_no_url_of_a_postgresql_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(
        InvalidInputError, match=r"not the URL of a PostgreSQL.*postgresql://user@host/database"
    ) as refusal:
        open_postgres(text, {"notes": SCRIPTS})
    assert "secret" not in str(refusal.value)


def test_a_database_that_cannot_be_reached_says_why_and_not_the_password(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    for place, said in (
        ("localhost:1/d", "refused"),
        (f"/d?host={cluster.folder}", 'database "d" does not exist'),
        ("nowhere.invalid/d", "nowhere.invalid"),
    ):
        with refuses(UnavailableError, where="--database") as refusal:
            open_postgres(f"postgresql://veiltab:hunter2@{place}", {"notes": SCRIPTS})
        assert said in str(refusal.value)
        assert "hunter2" not in str(refusal.value)
        assert refusal.value.__cause__ is None
    assert "hunter2" not in "".join(capfd.readouterr())


def test_a_user_who_may_not_make_tables_is_told(cluster: Cluster) -> None:
    cluster.ask("CREATE ROLE guest LOGIN")
    with pytest.raises(InvalidInputError, match=r"refuses to be set up \(InsufficientPrivilege\).*own the database"):
        open_postgres(f"postgresql://guest@/postgres?host={cluster.folder}", {"notes": SCRIPTS})


def test_without_its_packages_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "veiltab.server.records.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    with pytest.raises(InvalidInputError, match=r"needs the package psycopg_pool.*pip install 'veiltab\[postgres\]'"):
        open_state(tmp_path / "server.sqlite", SCRIPTS, "postgresql://user@host/database")
    open_state(tmp_path / "server.sqlite", SCRIPTS, "").close()


@pytest.mark.long
def test_a_store_works_again_when_its_database_is_back(tmp_path: Path, url: str, cluster: Cluster) -> None:
    store = ServerStore(tmp_path, url)
    spec = spec_ahead()
    store.open_session(spec)
    cluster.stop()
    for ask in (store.sessions, lambda: store.leases.take("x"), lambda: store.open_session(spec)):
        with pytest.raises(UnavailableError, match=r"the server's database does not answer\. Ask again"):
            ask()
    with pytest.raises(UnavailableError):
        ServerStore(tmp_path, url)
    cluster.start()
    assert len(store.sessions()) == 1
    store.close()


def test_a_database_that_goes_away_in_the_middle_of_a_transaction_keeps_nothing_of_it(
    opened: Open, cluster: Cluster
) -> None:
    db = opened()
    with pytest.raises(UnavailableError), db.transaction():  # noqa: PT012 - what is undone
        note(db, 1, "half")
        cluster.stop()
        cluster.start()
    assert texts(db) == []
    with db.transaction():
        note(db, 1, "whole")
    assert texts(db) == ["whole"]


# A full disk of the database


@pytest.fixture
def small(cluster: Cluster, tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk, on which the database keeps what is made in the tablespace `small`."""
    # Beside the database, whose user may not enter the folders of pytest; under a name that is new in every run.
    with small_disk(cluster.folder / tmp_path.name) as disk:
        inside = disk.path / "tables"
        inside.mkdir()
        disk.path.chmod(0o755)
        shutil.chown(inside, "postgres")
        cluster.ask(f"CREATE TABLESPACE small LOCATION '{inside}'")
        yield disk
        cluster.ask("DROP TABLESPACE small")


def test_a_full_disk_of_the_database_is_refused_in_words_and_nothing_is_lost(
    small: SmallDisk, url: str, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    db = open_postgres(f"{url}%20-cdefault_tablespace%3Dsmall", {"notes": SCRIPTS})
    note(db, 1, "before")
    small.fill()
    full = r"database: the disk of the server's database is full\. It goes on once its operator has made room"
    kept = 1
    with pytest.raises(UnavailableError, match=full):  # noqa: PT012 - what is left of the last page is used up first
        while True:
            note(db, kept + 1, "x" * 2000)
            kept += 1
    with pytest.raises(UnavailableError, match=full), db.transaction():  # noqa: PT012 - what is undone
        for number in range(100):
            note(db, 1000 + number, "y" * 2000)
    assert "the database's disk is full" in caplog.messages
    assert len(texts(db)) == kept
    small.free()
    note(db, 1000, "after")
    assert texts(db)[0] == "before"
    assert texts(db)[-1] == "after"
    db.close()
    cluster.ask(f"DROP SCHEMA {url.rpartition('search_path%3D')[2]} CASCADE")
