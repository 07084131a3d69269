"""Curators of one private alignment in this process: the product's code, and what each receives from the others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import cast

import numpy as np

from tests.curator.made_rows import rows_of, workplace
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import NotReadyError
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.private.masking import Masking
from veiltab.curator.alignment.private.private_exchange import PrivateExchange
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins
from veiltab.curator.peers.ring import Flow, Standing
from veiltab.curator.records.private_sessions import PrivateSessions
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import tokens

KEY = bytes(range(32))
NAMES = ("alice", "bob", "carol", "dora")
MANY = dict.fromkeys(NAMES, 10**6)
"""Ids that each may show, however few another has."""

Tampering = Callable[[Flow, bytes], bytes]
"""What a curator sends instead of a flow that it made."""

Lie = Callable[[bytes, bytes, bytes], bytes]
"""What a curator makes of something under its scalar, given that, the scalar, and what it ought to make."""


def table_of(ids: Sequence[str], version: str) -> Table:
    symbols: Symbols = np.array([len(name) % 251 for name in ids], np.uint8)
    return Table(
        respondents=rows_of([ids[::2], ids[1::2]], {"length": symbols}),
        rows_read=len(ids),
        rows_dropped=0,
        missing={},
        content_digest=version,
    )


class NotedSessions(PrivateSessions):
    """A curator's private sessions, and all secrets that they ever had."""

    def __init__(self, store: CuratorStore) -> None:
        super().__init__(store.connection, store.audit)
        self.scalars: list[bytes] = []
        self.seeds: list[bytes] = []

    def enter(self, alignment_id: str, name: str, scalar: bytes, seed: bytes, parts: Mapping[str, bytes]) -> None:
        self.scalars.append(scalar)
        self.seeds.append(seed)
        super().enter(alignment_id, name, scalar, seed, parts)


class NotedStore(CuratorStore):
    """A curator's database, and every secret of a private session that was ever in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.private: NotedSessions = NotedSessions(self)

    @property
    def scalars(self) -> list[bytes]:
        return self.private.scalars


class NotedExchange(PrivateExchange):
    """A curator's exchange, and every file of its sessions before it deleted any."""

    files: tuple[bytes, ...] = ()

    def finish(self, name: str, folder: Path) -> None:
        self.files += tuple(path.read_bytes() for path in folder.rglob("*") if path.parent != folder)
        super().finish(name, folder)


class LyingMasking(Masking):
    """A curator's masking, and what it makes of a query of others or of its own set instead of what it ought to."""

    query: Lie = staticmethod(lambda _received, _scalar, made: made)
    own: Lie = staticmethod(lambda _ids, _scalar, made: made)

    async def mask_ids(self, table: Table, scalar: bytes, path: Path) -> None:
        await super().mask_ids(table, scalar, path)
        ids = "\n".join(table.respondents.ids(0, table.rows).to_pylist()).encode()
        path.write_bytes(self.own(ids, scalar, path.read_bytes()))

    async def mask_elements(self, source: Path, scalar: bytes, path: Path, what: str) -> None:
        await super().mask_elements(source, scalar, path, what)
        if path.name.startswith("query"):
            path.write_bytes(self.query(source.read_bytes(), scalar, path.read_bytes()))


class Seat:
    """What curators of one process have in common, with ids or linked."""

    name: str
    folder: Path
    table: Table
    circle: Mapping[str, "Seat"]
    exchange: PrivateExchange
    alignment: Alignment
    store: CuratorStore

    def close(self) -> None:
        self.exchange.close()
        self.store.close()

    async def table_versions(self, _: Ledger) -> dict[str, str]:
        versions = {name: one.alignment.table_version for name, one in self.circle.items() if name != self.name}
        if not all(versions.values()):
            raise NotReadyError("has no table loaded yet", where="curator peer")
        return versions

    async def toss(self, _coin: str, _peers: Peers) -> bytes:
        return KEY

    async def session(self, peer: str, name: str) -> Standing:
        return self.circle[peer].exchange.standing(name)

    @property
    def peers(self) -> Peers:
        return cast("Peers", self)

    def tokens_file(self) -> bytes:
        """Return the tokens of the common respondents."""
        return self.alignment.table(self.alignment.result()[1]).tokens().tobytes()


class Curator(Seat):
    """One curator; `received` is all that others sent it, and `tampering` changes what it sends."""

    exchange: NotedExchange
    store: NotedStore
    circle: Mapping[str, "Curator"]

    def __init__(
        self, name: str, names: Sequence[str], folder: Path, ids: Sequence[str], most_ids: Mapping[str, int]
    ) -> None:
        self.name = name
        self.folder = folder
        self.ids = [*ids[::2], *ids[1::2]]
        self.table = table_of(ids, f"content of {name}")
        self.circle = {}
        self.received: dict[tuple[str, str, str], bytes] = {}
        self.tampering: Tampering = lambda _flow, data: data
        self._names, self._most_ids = names, most_ids
        self.open()

    def open(self) -> None:
        """Start it on its folder, as a process does."""
        name, names, folder = self.name, self._names, self.folder
        self.store = NotedStore(folder / "curator.sqlite")
        self.room = Room(folder)
        self.masking = LyingMasking(folder)
        self.exchange = NotedExchange(
            name, names, folder / "alignments", self.store, self.masking, self.room, most_ids=self._most_ids
        )
        ledger = Ledger(self.store.connection, Decimal(1))
        place = workplace(folder)
        self.alignment = Alignment(
            name,
            folder,
            self.store,
            ledger,
            cast("Coins", self),
            self.exchange,
            self.room,
            place,
            most_respondents=10**9,
            id_rules="",
        )

    @property
    def curators(self) -> list[str]:
        return [name for name in self.circle if name != self.name]

    async def flow(
        self, flow: Flow, name: str, session: str, most: int, admit: Callable[[int], None]
    ) -> AsyncIterator[bytes]:
        peer = self.circle[flow.producer]
        path = peer.exchange.flow_file(name, session, flow.kind, flow.owner, self.name)
        data = peer.tampering(flow, path.read_bytes())
        assert len(data) <= most
        admit(len(data))
        self.received[flow.kind.value, flow.owner, flow.producer] = data
        for start in range(0, len(data), 1000):
            yield data[start : start + 1000]

    def common(self) -> set[str]:
        """Return which of its own ids it found to be common."""
        own = tokens(self.table.respondents.ids(0, self.table.rows), derive(KEY, "tokens"))
        kept = {bytes(token) for token in self.alignment.table(self.alignment.result()[1]).tokens()}
        return {name for name, token in zip(self.ids, own, strict=True) if bytes(token) in kept}


@contextmanager
def circle(
    folder: Path, tables: Sequence[Sequence[str]], most_ids: Mapping[str, int] = MANY
) -> Iterator[list[Curator]]:
    names = NAMES[: len(tables)]
    made = [Curator(name, names, folder / name, ids, most_ids) for name, ids in zip(names, tables, strict=True)]
    for curator in made:
        curator.circle = {each.name: each for each in made}
    try:
        yield made
    finally:
        for curator in made:
            curator.close()


async def outcome(curator: Seat) -> None:
    """Wait until a curator has its alignment and has erased its scalar; raise what it refuses."""
    while True:
        await asyncio.sleep(0.01)
        with suppress(NotReadyError):
            curator.alignment.result()
            own = curator.store.private.session(curator.alignment._current)
            if own is not None and own.finished:
                return


def align(*curators: Seat, seconds: float = 120) -> None:
    """Run until every curator has its alignment; raise the first refusal."""

    for curator in curators:
        curator.alignment._waiting = NotReadyError("is only beginning")

    async def together() -> None:
        running = [asyncio.create_task(c.alignment.run(c.table, c.peers)) for c in curators]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*map(outcome, curators))
        finally:
            for task in running:
                task.cancel()

    asyncio.run(together())
