"""A server's reports over HTTPS, as tests ask for them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.common.collection.rounds import ID
from tests.common.collection.rounds import study as poll
from tests.server.collection.opened_rounds import running
from tests.worlds.loops import blocking
from veiltab.server.https.application import Reports
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import CollectionStore

PATH = f"/v1/rounds/{ID}"


REPORTS = f"{PATH}/reports"


Asked = tuple[int, dict[str, Any]]


@pytest.fixture(name="rounds")
def rounds_fixture(tmp_path: Path) -> Iterator[RoundKeeper]:
    store = CollectionStore(tmp_path / "state")
    yield RoundKeeper(poll(), store, retention_days=1)
    store.close()


@asynccontextmanager
async def client_of(rounds: RoundKeeper, seconds: float = 20.0, origin: str = "") -> AsyncIterator[httpx.AsyncClient]:
    """Connect a client to the application without a network, while the server counts."""
    transport = httpx.ASGITransport(app=Reports(rounds, seconds, origin))
    async with running(rounds), httpx.AsyncClient(transport=transport, base_url="https://cloud") as client:
        yield client


@blocking
async def answers(rounds: RoundKeeper, *requests: tuple[str, str, bytes]) -> list[Asked]:
    """Send (method, path, body) one after the other; return statuses and what the answers say."""
    async with client_of(rounds) as client:
        found = [await client.request(method, path, content=body) for method, path, body in requests]
    return [(one.status_code, one.json()) for one in found]
