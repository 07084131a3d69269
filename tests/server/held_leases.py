"""Leases that tests hold at a database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.server import publishing
from tests.server.cluster import Cluster
from veiltab.common.release.table_spec import TableSpec
from veiltab.server.records.store import ServerStore
from veiltab.server.sharing.leases import Lease

Make = Callable[..., Any]


Two = tuple[ServerStore, ServerStore]


ID = "0" * 31 + "1"


DATA = {"sex": bytes([0, 1] * 200), "salary": bytes([1] * 400)}


@pytest.fixture(name="url")
def url_fixture(cluster: Cluster) -> str:
    return cluster.new_url()


@pytest.fixture(name="two")
def two_fixture(tmp_path: Path, url: str) -> Iterator[Two]:
    """The stores of two processes on one database and one folder."""
    stores = ServerStore(tmp_path, url), ServerStore(tmp_path, url)
    yield stores
    for store in stores:
        store.close()


def run_out(store: ServerStore, resource: str = ID) -> None:
    """Let a lease run out, as it does when its holder is paused."""
    store.connection.execute("UPDATE lease SET until = clock_timestamp() WHERE resource = ?", [resource])


def taken_over(store: ServerStore, resource: str = ID) -> Lease:
    run_out(store, resource)
    return store.leases.take(resource)


def complete(store: ServerStore, spec: TableSpec) -> None:
    """Put the columns of a release in their places."""
    publishing.complete(store, spec, *(np.frombuffer(data, np.uint8) for data in DATA.values()))
