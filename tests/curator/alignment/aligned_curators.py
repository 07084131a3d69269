"""Curators that align by tokens, in one process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.curator.alignment.circle import KEY, Seat, alignment_of, table_of
from tests.worlds.loops import blocking
from veiltab.common.errors import NotReadyError, UnavailableError, VeiltabError
from veiltab.common.storage.disk import DiskReservations
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.records.store import CuratorStore


class Curator:
    """One curator of two, whose peer is another object in this process; alice is the hub."""

    lacking = Seat.lacking

    def __init__(self, name: str, folder: Path, ids: list[str]) -> None:
        self.name, self.folder = name, folder
        self.store, self.room = CuratorStore(folder / "curator.sqlite"), DiskReservations(folder)
        exchange = TokenExchange(name, "alice", folder / "alignments", self.room)
        self.alignment = alignment_of(self, exchange)
        self.table = table_of(ids, "content of " + name)
        self.ids = ids
        self.peer: Curator = self
        self.key = KEY
        self.twist: Callable[[bytes], bytes] = lambda data: data
        self.asked_from: list[int] = []
        self.breaks = 0

    async def table_versions(self, _: Ledger) -> dict[str, str]:
        if not self.peer.alignment.table_version:
            raise NotReadyError("has no table loaded yet", where="curator peer")
        return {self.peer.name: self.peer.alignment.table_version}

    async def toss(self, coin_id: str, _: Peers) -> bytes:
        assert coin_id.startswith("alignment/")
        return self.key

    @property
    def curators(self) -> dict[str, None]:
        return {self.peer.name: None}

    @property
    def peers(self) -> Peers:
        return cast("Peers", self)

    async def tokens(self, _: str, name: str, offset: int, admit: Callable[[int], None]) -> AsyncIterator[bytes]:
        self.asked_from.append(offset)
        path = self.peer.alignment.shared_tokens(name)
        data = self.twist(path.read_bytes())
        admit(len(data))
        for start in range(offset, len(data), 1000):
            yield data[start : start + 1000]
            if self.breaks:
                self.breaks -= 1
                raise UnavailableError("no connection", where="curator peer")

    async def align(self) -> None:
        """Run until the first alignment or the first refusal for good."""
        self.alignment._waiting = NotReadyError("is only beginning")
        running = asyncio.create_task(self.alignment.run(self.table, self.peers))
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


@pytest.fixture(name="both")
def both_fixture(tmp_path: Path) -> Iterator[tuple[Curator, Curator]]:
    alice = Curator("alice", tmp_path / "alice", [f"person {n}" + "x" * (n % 50) for n in range(300)])
    bob = Curator("bob", tmp_path / "bob", [f"person {n}" + "x" * (n % 50) for n in range(399, 99, -1)])
    alice.peer, bob.peer = bob, alice
    yield alice, bob
    alice.store.close()
    bob.store.close()


@blocking
async def align(*curators: Curator) -> None:
    await asyncio.gather(*(curator.align() for curator in curators))


def folder_of(curator: Curator) -> Path:
    """Return the folder of a curator's alignments."""
    return curator.alignment.tokens_file("x").parents[1]


def files(curator: Curator) -> dict[str, bytes]:
    """Return the files of a curator's alignments."""
    folder = folder_of(curator)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def align_once(curator: Curator, name: str) -> None:
    """Make the files of an alignment, or go on with them."""
    asyncio.run(curator.alignment._align(name, curator.table, curator.peers))
