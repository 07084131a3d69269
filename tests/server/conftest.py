"""The two databases of the server's state, on both of which its tests run, and releases that it takes."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import spec_with
from tests.server.cluster import Cluster
from veiltab.common.release.table_spec import TableSpec
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
    store = ServerStore(tmp_path, database)
    yield store
    store.close()


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., TableSpec]:
    """Make specs whose deadline the server accepts: it lies ahead, and not too far."""
    return partial(spec_with, deadline=int(time.time()) + 30 * 86_400)
