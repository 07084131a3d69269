import os
import random
import shutil
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.storage.database import Database, open_database, transaction

SCRIPTS = ("CREATE TABLE note (number INTEGER PRIMARY KEY, text TEXT NOT NULL)",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "party.sqlite"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    with closing(open_database(path, SCRIPTS)) as db:
        yield db


def texts(db: Database) -> list[str]:
    return [row["text"] for row in db.execute("SELECT text FROM note ORDER BY number").fetchall()]


def test_the_pragmas_are_what_they_are_said_to_be(db: Database) -> None:
    found = {
        name: db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "user_version")
    }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "user_version": 1}


def test_nobody_else_may_read_the_database_or_its_log(path: Path) -> None:
    before = os.umask(0o022)
    try:
        for _ in range(2):
            db = open_database(path, SCRIPTS)
            with transaction(db):
                db.execute("INSERT INTO note (text) VALUES ('key')")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            assert modes == dict.fromkeys(("party.sqlite", "party.sqlite-wal", "party.sqlite-shm"), 0o600)
            db.close()
            path.chmod(0o644)
    finally:
        os.umask(before)


def test_nobody_else_may_put_another_database_in_its_place(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_database(tmp_path / "state" / "party.db", ()).close()
    finally:
        os.umask(before)
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    (tmp_path / "state" / "party.db").chmod(0o666)
    with pytest.raises(InvalidInputError, match="others than its owner may write this"):
        open_database(tmp_path / "state" / "party.db", ())


def test_migrations_run_once_each_and_in_order(path: Path) -> None:
    open_database(path, SCRIPTS).close()
    later = (*SCRIPTS, "ALTER TABLE note ADD COLUMN more TEXT; INSERT INTO note (text) VALUES ('migrated')")
    for _ in range(2):
        db = open_database(path, later)
        assert texts(db) == ["migrated"]
        assert db.execute("PRAGMA user_version").fetchone()[0] == 2
        db.close()


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    open_database(path, SCRIPTS).close()
    with pytest.raises(IntegrityError):
        open_database(path, (*SCRIPTS, "INSERT INTO note (text) VALUES ('half'); INSERT INTO nothing VALUES (1)"))
    db = open_database(path, SCRIPTS)
    assert texts(db) == []
    db.close()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    open_database(path, (*SCRIPTS, "CREATE TABLE more (a)")).close()
    with pytest.raises(IntegrityError, match="a newer version of veiltab wrote this database"):
        open_database(path, SCRIPTS)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    db.close()


@pytest.mark.parametrize("content", [b"not a database at all" * 50, b"SQLite format 3\0" + bytes(4080), b"\0" * 4096])
def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match=r"not a sound veiltab database.*would forget what was spent"):
        open_database(path, SCRIPTS)
    assert path.read_bytes() == content


def test_damage_anywhere_in_its_tables_is_found_when_it_is_opened(path: Path, tmp_path: Path) -> None:
    db = open_database(path, SCRIPTS)
    with transaction(db):
        for number in range(300):
            db.execute("INSERT INTO note (text) VALUES (?)", [f"{number}" * 50])
    db.close()
    source = random.Random(4)  # noqa: S311 - damage
    pages = path.stat().st_size // 4096
    assert pages > 5
    for page in range(1, pages):
        damaged = tmp_path / f"{page}.sqlite"
        shutil.copy(path, damaged)
        with damaged.open("r+b") as file:
            file.seek(page * 4096)
            file.write(source.randbytes(4096))
        with pytest.raises(IntegrityError, match="not a sound veiltab database"):
            open_database(damaged, SCRIPTS)


def test_a_transaction_is_undone_when_its_block_raises(db: Database, path: Path) -> None:
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), transaction(db):  # noqa: PT012 - what is undone
            db.execute("INSERT INTO note (text) VALUES ('half')")
            raise error
    assert texts(db) == []
    with transaction(db):
        db.execute("INSERT INTO note (text) VALUES ('whole')")
    assert not db.in_transaction
    other = open_database(path, SCRIPTS)
    assert texts(other) == ["whole"]
    other.close()


INSERT = "INSERT INTO note (text) VALUES (?)"


def settings_of_changes(db: Database, make_changes: Callable[[], object]) -> list[str]:
    """Return of each change its kind and the setting of SQLite under which it runs."""
    setting, changes = str(db.execute("PRAGMA synchronous").fetchone()[0]).replace("2", "FULL"), list[str]()

    def note(statement: str) -> None:
        nonlocal setting
        if statement.startswith("PRAGMA synchronous = "):
            setting = statement.rsplit(maxsplit=1)[-1]
        elif statement.startswith(("INSERT", "COMMIT")):
            changes.append(f"{statement.split(maxsplit=1)[0]} {setting}")

    db.set_trace_callback(note)
    make_changes()
    db.set_trace_callback(None)
    return changes


def test_what_is_not_synced_is_there_for_others_and_the_next_change_is_synced(db: Database, path: Path) -> None:
    def some_of_each() -> None:
        db.execute_unsynced(INSERT, ["soon"])
        db.execute_unsynced(INSERT, ["soon too"])
        assert texts(db) == ["soon", "soon too"]
        db.execute(INSERT, ["durable"])
        db.execute_unsynced(INSERT, ["soon again"])
        db.executemany(INSERT, [["durable, too"]])
        with pytest.raises(sqlite3.OperationalError):
            db.execute_unsynced("INSERT INTO nothing VALUES (1)")
        db.execute(INSERT, ["at last"])

    soon, durable = "INSERT NORMAL", "INSERT FULL"
    assert settings_of_changes(db, some_of_each) == [soon, soon, durable, soon, durable, durable]
    other = open_database(path, SCRIPTS)
    assert texts(other)[:2] == ["soon", "soon too"]
    other.close()


def test_a_transaction_that_is_not_synced_holds_nothing_that_has_to_be(db: Database) -> None:
    def some_of_each() -> None:
        with transaction(db, is_synced=False), transaction(db, is_synced=False):
            db.execute(INSERT, ["soon"])
        with transaction(db), transaction(db, is_synced=False):
            db.execute(INSERT, ["both"])
            db.execute_unsynced(INSERT, ["as both"])

    soon, durable = ["INSERT NORMAL", "COMMIT NORMAL"], ["INSERT FULL", "INSERT FULL", "COMMIT FULL"]
    assert settings_of_changes(db, some_of_each) == [*soon, *durable]
    with pytest.raises(AssertionError), transaction(db, is_synced=False), transaction(db):
        db.execute(INSERT, ["durable"])
    assert texts(db) == ["soon", "both", "as both"]
    assert settings_of_changes(db, lambda: db.execute(INSERT, ["after a failure"])) == ["INSERT FULL"]


def test_a_setting_that_is_refused_is_made_before_the_next_change(db: Database) -> None:
    db.execute_unsynced(INSERT, ["soon"])
    db.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_PRAGMA else sqlite3.SQLITE_OK)
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        db.execute(INSERT, ["refused"])
    db.set_authorizer(None)
    assert settings_of_changes(db, lambda: db.execute(INSERT, ["durable"])) == ["INSERT FULL"]


def test_in_a_transaction_what_is_not_synced_shares_its_fate(db: Database) -> None:
    with transaction(db):
        db.execute_unsynced("INSERT INTO note (text) VALUES (?)", ["kept"])
    with pytest.raises(KeyError), transaction(db):  # noqa: PT012 - what is undone
        db.execute_unsynced("INSERT INTO note (text) VALUES (?)", ["undone"])
        raise KeyError
    assert texts(db) == ["kept"]
    assert db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_snapshot_keeps_to_what_was_there_and_hides_no_error_behind_its_end(db: Database, path: Path) -> None:
    other = open_database(path, SCRIPTS)
    with db.snapshot():
        assert texts(db) == []
        other.execute("INSERT INTO note (text) VALUES ('meanwhile')")
        assert texts(db) == []
    assert texts(db) == ["meanwhile"]
    with pytest.raises(KeyError), db.snapshot():  # noqa: PT012 - what SQLite does after a failing disk
        db.execute("ROLLBACK")
        raise KeyError
    other.close()


def test_a_transaction_holds_the_write_lock_from_its_beginning(db: Database, path: Path) -> None:
    other = open_database(path, SCRIPTS)
    other.execute("PRAGMA busy_timeout = 0")
    with transaction(db):
        assert db.in_transaction
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO note (text) VALUES ('between')")
    other.close()


def test_what_another_thread_runs_waits_for_the_end_of_a_transaction(db: Database) -> None:
    done = threading.Event()

    def write() -> None:
        db.execute("INSERT INTO note (text) VALUES ('alone')")
        with transaction(db):
            db.execute("INSERT INTO note (text) VALUES ('in a transaction')")
        done.set()

    thread = threading.Thread(target=write)
    with pytest.raises(ValueError, match="undo"), transaction(db):  # noqa: PT012 - the thread runs meanwhile
        db.execute("INSERT INTO note (text) VALUES ('undone')")
        thread.start()
        assert not done.wait(0.2)
        raise ValueError("undo")
    thread.join(10)
    assert texts(db) == ["alone", "in a transaction"]


def test_threads_that_run_the_same_statement_read_their_own_rows(tmp_path: Path) -> None:
    database = open_database(tmp_path / "shared.sqlite", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)",))
    with transaction(database):
        for number in range(50):
            database.execute("INSERT INTO note VALUES (?, ?)", [number, f"text {number}"])
    wrong: list[object] = []

    def read(start: int) -> None:
        for turn in range(1500):
            number = (start + turn) % 50
            row = database.execute("SELECT * FROM note WHERE id = ?", [number]).fetchone()
            if row is None or tuple(row) != (number, f"text {number}"):
                wrong.append(row)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        database.close()
    assert wrong == []


def test_a_transaction_within_another_is_part_of_it(db: Database) -> None:
    with transaction(db):
        with transaction(db):
            db.execute("INSERT INTO note (text) VALUES ('kept')")
        assert db.in_transaction
    assert texts(db) == ["kept"]

    def add_in_vain() -> None:
        with transaction(db):
            with transaction(db):
                db.execute("INSERT INTO note (text) VALUES ('undone')")
            raise KeyError

    with pytest.raises(KeyError):
        add_in_vain()
    assert texts(db) == ["kept"]
    with transaction(db):
        db.execute("INSERT INTO note (text) VALUES ('later')")
    assert not db.in_transaction
