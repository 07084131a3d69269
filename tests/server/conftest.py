"""The two databases of the server's state: tests of stores run on both."""

from collections.abc import Iterator

import pytest

from tests.server.cluster import Cluster


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
