"""Rounds in a server's database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from decimal import Decimal
from pathlib import Path

import pytest

from tests.common.collection.rounds import ID, round_with
from veiltab.common.collection.oracles import Category
from veiltab.common.collection.tokens import token_digest
from veiltab.common.errors import VeiltabError
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import Arrival, CollectionStore

BUDGET = Decimal(4)


NORTH, SOUTH = 0, 1


DIGESTS = [token_digest(ID, bytes([number] * 16)) for number in range(30)]


ON_SQLITE = pytest.mark.parametrize("database", [""], ids=["sqlite"])


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path, database: str) -> Iterator[CollectionStore]:
    with closing(CollectionStore(tmp_path, database)) as store:
        yield store


@pytest.fixture(name="opened")
def opened_fixture(store: CollectionStore) -> CollectionStore:
    """An open round with three tokens in the north and four in the south."""
    store.open_round(round_with(), BUDGET)
    assert store.enrol(ID, NORTH, DIGESTS[:3], 10) == 3
    assert store.enrol(ID, SOUTH, DIGESTS[3:7], 20) == 4
    return store


@pytest.fixture(name="at")
def at_fixture(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the server's clock."""
    return lambda now: monkeypatch.setattr("veiltab.server.rounds.rounds_store.time.time", lambda: now)


def arrival(number: int, symbol: int = 7, stratum: int = NORTH, round_id: str = ID) -> Arrival:
    return Arrival(round_id=round_id, digest=DIGESTS[number], stratum=stratum, report=Category(symbol=symbol))


def said(answers: list[VeiltabError | None]) -> list[str]:
    return ["" if answer is None else answer.reason for answer in answers]


def counted(store: CollectionStore, symbol: int = 7) -> list[int]:
    return [int(count) for count in store.counts(ID)[:, symbol]]


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@asynccontextmanager
async def running(rounds: RoundKeeper) -> AsyncIterator[None]:
    """Let the server count meanwhile."""
    task = asyncio.create_task(rounds.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
