"""A service with a release of two numbers, which clients in other languages ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.js_client import built
from tests.protocol.served import Served, http_beside
from tests.protocol.test_numbers import NUMBERS
from tests.protocol.village import Rules
from tests.protocol.world import made_world


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = made_world(tmp_path_factory.mktemp("clients"), people=900, rules=Rules(maximum_cells=500), more=NUMBERS)
    for curator, name in (("alice", "age"), ("bob", "hours")):
        path = made.local.tables[curator]
        first, *lines = path.read_text("utf-8").splitlines()
        numbered = [f"{line},{number % 80}" for number, line in enumerate(lines)]
        path.write_text("\n".join([f"{first},{name}", *numbered, ""]), "utf-8")
    with made.local:
        made.local.start_all()
        with made.client() as client:
            client.request(["region", "hours"], epsilon="4", delta="1e-6", label="r-table").wait(120)
        with http_beside(made) as found:
            yield found


@pytest.fixture(scope="package")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client in JavaScript, built once."""
    return built(tmp_path_factory.mktemp("js"))
