"""Curators that align by tokens, in one process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.curator.made_rows import rows_of, workplace
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import NotReadyError, UnavailableError, VeiltabError
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table

KEY = bytes(range(32))
ABSENT = 251
"""The symbol of people who are not in a table."""


def table_of(ids: list[str], version: str) -> Table:
    symbols: Symbols = np.array([len(name) % ABSENT for name in ids], np.uint8)
    return Table(
        respondents=rows_of([ids], {"length": symbols}),
        rows_read=len(ids),
        rows_dropped=0,
        missing={},
        content_digest=version,
    )


class Curator:
    """One curator of two, whose peer is another object in this process; alice is the hub."""

    def __init__(self, name: str, folder: Path, ids: list[str]) -> None:
        self.name = name
        self.store = CuratorStore(folder / "curator.sqlite")
        room = Room(folder)
        self.alignment = Alignment(
            name,
            folder,
            self.store,
            Ledger(self.store.connection, Decimal(1)),
            cast("Coins", self),
            TokenExchange(name, "alice", folder / "alignments", room),
            room,
            workplace(folder),
            most_respondents=10**9,
            lacking={"length": Lacking(categories=ABSENT, parts=1)},
        )
        self.table = table_of(ids, "content of " + name)
        self.ids = ids
        self.peer: Curator = self
        self.key = KEY
        self.tokens: Callable[[bytes], bytes] = lambda data: data
        self.curators = {"peer": None}
        self.asked_from: list[int] = []
        self.breaks = 0

    async def table_versions(self, _: Ledger) -> dict[str, str]:
        if not self.peer.alignment.table_version:
            raise NotReadyError("has no table loaded yet", where="curator peer")
        return {self.peer.name: self.peer.alignment.table_version}

    async def toss(self, coin_id: str, _: Peers) -> bytes:
        assert coin_id.startswith("alignment/")
        return self.key

    async def stream(self, _: str, name: str, offset: int, admit: Callable[[int], None]) -> AsyncIterator[bytes]:
        self.asked_from.append(offset)
        path = self.peer.alignment.shared_tokens(name)
        data = self.tokens(path.read_bytes())
        admit(len(data))
        for start in range(offset, len(data), 1000):
            yield data[start : start + 1000]
            if self.breaks:
                self.breaks -= 1
                raise UnavailableError("no connection", where="curator peer")

    async def align(self) -> None:
        """Run until the first alignment or the first refusal for good."""
        peers = cast("Peers", PeersOf(self))
        self.alignment._waiting = NotReadyError("is only beginning")
        running = asyncio.create_task(self.alignment.run(self.table, peers))
        for _ in range(1000):
            await asyncio.sleep(0.02)
            try:
                self.alignment.result()
                break
            except NotReadyError:
                continue
            except VeiltabError:
                break
        running.cancel()


class PeersOf:
    def __init__(self, curator: Curator) -> None:
        self.curators = {curator.peer.name: None}
        self.table_versions = curator.table_versions
        self.tokens = curator.stream


@pytest.fixture(name="both")
def both_fixture(tmp_path: Path) -> Iterator[tuple[Curator, Curator]]:
    alice = Curator("alice", tmp_path / "alice", [f"person {n}" + "x" * (n % 50) for n in range(300)])
    bob = Curator("bob", tmp_path / "bob", [f"person {n}" + "x" * (n % 50) for n in range(399, 99, -1)])
    alice.peer, bob.peer = bob, alice
    yield alice, bob
    alice.store.close()
    bob.store.close()


def align(*curators: Curator) -> None:
    async def together() -> None:
        await asyncio.gather(*(curator.align() for curator in curators))

    asyncio.run(together())


def folder_of(curator: Curator) -> Path:
    """Return the folder of a curator's alignments."""
    return curator.alignment.tokens_file("x").parents[1]


def files(curator: Curator) -> dict[str, bytes]:
    """Return the files of a curator's alignments."""
    folder = folder_of(curator)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
