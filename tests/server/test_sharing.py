"""Who may hold a state folder, alone or together; a database and a folder that do not belong together are refused."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.server.cluster import Cluster
from veiltab.common.errors import ConflictError
from veiltab.common.storage.database import Connection
from veiltab.common.storage.files import OwnedFolder
from veiltab.server.records.databases import hold_folder, open_state
from veiltab.server.sharing.shared_folder import SharedFolder

CLOUD, FOG = "veiltab://study/server/cloud", "veiltab://study/server/fog"
URL = "postgresql://somewhere/else"
SCRIPTS = ("CREATE TABLE note (number INTEGER PRIMARY KEY)",)


@pytest.fixture
def connection(tmp_path: Path, cluster: Cluster) -> Iterator[Connection]:
    with closing(open_state(tmp_path / "server.sqlite", SCRIPTS, cluster.new_url())) as connection:
        yield connection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def joined(path: Path, connection: Connection, owner: str = CLOUD) -> SharedFolder:
    held = SharedFolder(path, owner)
    try:
        held.join(connection)
    except ConflictError:
        held.release()
        raise
    return held


def test_several_processes_of_a_server_hold_its_folder_together(folder: Path, connection: Connection) -> None:
    held = [joined(folder, connection) for _ in range(3)]
    with pytest.raises(ConflictError, match="holds the state of"):
        SharedFolder(folder, FOG)
    for one in held:
        one.release()


def test_a_folder_is_held_alone_or_together(folder: Path) -> None:
    alone = hold_folder(folder, CLOUD, "")
    assert isinstance(alone, OwnedFolder)
    with pytest.raises(ConflictError, match="a process without --database runs on this folder"):
        hold_folder(folder, CLOUD, URL)
    alone.release()
    together = hold_folder(folder, CLOUD, URL)
    with pytest.raises(ConflictError, match="another process already runs"):
        hold_folder(folder, CLOUD, "")
    together.release()


def test_a_folder_whose_state_is_elsewhere_is_refused(folder: Path, connection: Connection) -> None:
    joined(folder, connection).release()
    with pytest.raises(ConflictError, match=r"state is in a PostgreSQL\. Name it with --database or VEILTAB_DATABASE"):
        hold_folder(folder, CLOUD, "")
    sqlite = folder.with_name("sqlite")
    sqlite.mkdir()
    (sqlite / "server.sqlite").touch()
    with pytest.raises(ConflictError, match="state is in SQLite"):
        hold_folder(sqlite, CLOUD, URL)
    hold_folder(sqlite, CLOUD, "").release()


def test_a_database_goes_with_one_folder_and_one_party(folder: Path, connection: Connection) -> None:
    joined(folder, connection).release()
    with pytest.raises(ConflictError, match="not the folder that goes with the database"):
        joined(folder.with_name("other"), connection)
    with pytest.raises(ConflictError, match="this database holds the state of 'veiltab://study/server/cloud'"):
        joined(folder.with_name("fog"), connection, FOG)
    joined(folder, connection).release()


def test_a_folder_with_columns_is_not_given_to_an_empty_database(
    folder: Path, connection: Connection, cluster: Cluster
) -> None:
    joined(folder, connection).release()
    empty = open_state(folder / "server.sqlite", SCRIPTS, cluster.new_url())
    # Nothing is lost with a folder that holds nothing, as after a start that was cut short.
    joined(folder, empty).release()
    (folder / "releases" / "1").mkdir(parents=True)
    third = open_state(folder / "server.sqlite", SCRIPTS, cluster.new_url())
    with pytest.raises(ConflictError, match="this folder goes with another database"):
        joined(folder, third)
    joined(folder, empty).release()
    for database in (empty, third):
        database.close()
