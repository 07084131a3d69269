"""The two databases of the server's state, on both of which its tests run, and releases that it takes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.server.cluster import Cluster
from veiltab.server.records.store import ServerStore


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL, or a reason to skip."""
    with Cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """What a store is opened with: nothing for SQLite, or the URL of an empty PostgreSQL."""
    if request.param == "sqlite":
        return ""
    running: Cluster = request.getfixturevalue("cluster")
    return running.new_url()


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[ServerStore]:
    """An empty store."""
    with closing(ServerStore(tmp_path, database)) as store:
        yield store
