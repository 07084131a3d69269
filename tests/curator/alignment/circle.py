"""Curators of one oblivious join in this process: the product's code, and what each receives from the others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from tests.curator.made_rows import rows_of, workplace
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import NotReadyError
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.joining.id_join import IdJoin
from veiltab.curator.alignment.joining.join_exchange import JoinExchange
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message, message_from_proto
from veiltab.curator.alignment.joining.legs import Legs
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.v1 import curator_peer_pb2

KEY = bytes(range(32))
NAMES = ("alice", "bob", "carol", "dora")
ABSENT = 250
"""The symbol of people of the hub who are not in a spoke's table."""

MANY = dict.fromkeys(NAMES, 10**6)
"""Rows that each may have, however few another has."""

Tampering = Callable[[Message, bytes], bytes]
"""What a curator sends in the place of a message that it made."""


def symbol_of(name: str) -> int:
    """Return the symbol of a person."""
    return sum(name.encode()) % ABSENT


def table_of(ids: Sequence[str], version: str) -> Table:
    batches = [ids[::2], ids[1::2]]
    symbols: Symbols = np.array([symbol_of(name) for batch in batches for name in batch], np.uint8)
    return Table(
        respondents=rows_of(batches, {"length": symbols}),
        rows_read=len(ids),
        rows_dropped=0,
        missing={},
        content_digest=version,
    )


class Killed(BaseException):
    """The process of the curator whose code raises it is killed here; `align` starts it again."""


class Peer:
    """Another curator of this process, as one asks it."""

    def __init__(self, asker: "Seat", name: str) -> None:
        self._asker, self._name = asker, name
        self.stub = SimpleNamespace(GetSession=None, FetchJoin=None)

    async def ask(self, _: object, request: curator_peer_pb2.GetSessionRequest) -> curator_peer_pb2.GetSessionResponse:
        said = self._asker.circle[self._name].exchange.legs.standing(request.alignment_id, self._asker.name)
        return curator_peer_pb2.GetSessionResponse(
            part=said.part, size=said.size, order=said.order, finished=said.finished, failed=said.failed
        )

    async def stream(
        self,
        _: object,
        request: curator_peer_pb2.FetchJoinRequest,
        *,
        most: int,
        check: Callable[[curator_peer_pb2.FetchJoinResponse], None],
    ) -> AsyncIterator[bytes]:
        peer, message = self._asker.circle[self._name], message_from_proto(request)
        path = peer.exchange.legs.message_file(request.alignment_id, request.session, message, self._asker.name)
        data = peer.tampering(message, path.read_bytes())
        check(curator_peer_pb2.FetchJoinResponse(total=len(data)))
        assert len(data) <= most
        self._asker.received[self._name, message] = data
        for start in range(0, len(data), 10**6):
            yield data[start : start + 10**6]


class Seat:
    """What curators of one process have in common, with ids or linked."""

    name: str
    folder: Path
    table: Table
    circle: Mapping[str, "Seat"]
    exchange: JoinExchange
    alignment: Alignment
    store: CuratorStore
    received: dict[tuple[str, Message], bytes]
    tampering: Tampering

    @property
    def column(self) -> list[int]:
        """The symbols of the rows, in the order of all curators."""
        aligned = self.alignment.table(self.alignment.result()[1])
        return [int(symbol) for symbol in aligned.column("length")]

    def open(self) -> None:
        """Start it on its folder, as a process does."""
        raise NotImplementedError

    def close(self) -> None:
        self.store.close()

    @property
    def versions(self) -> dict[str, str]:
        return {name: one.alignment.table_version for name, one in self.circle.items() if name != self.name}

    async def table_versions(self, _: Ledger) -> dict[str, str]:
        if not all(self.versions.values()):
            raise NotReadyError("has no table loaded yet", where="curator peer")
        return self.versions

    async def toss(self, _coin: str, _peers: Peers) -> bytes:
        return KEY

    @property
    def curators(self) -> dict[str, Peer]:
        return {name: Peer(self, name) for name in self.circle if name != self.name}

    @property
    def peers(self) -> Peers:
        return cast("Peers", self)

    def tokens_file(self) -> bytes:
        """Return the tokens of the rows of every table."""
        return self.alignment.table(self.alignment.result()[1]).tokens().tobytes()


class Curator(Seat):
    """One curator; `received` is all that others sent it, and `tampering` changes what it sends."""

    circle: Mapping[str, "Curator"]

    def __init__(
        self, name: str, names: Sequence[str], folder: Path, ids: Sequence[str], most_rows: Mapping[str, int]
    ) -> None:
        self.name, self.folder = name, folder
        self.ids = [*ids[::2], *ids[1::2]]
        self.table = table_of(ids, f"content of {name}")
        self.circle = {}
        self.received = {}
        self.tampering = lambda _message, data: data
        self._names, self._most_rows = names, most_rows
        self.open()

    def open(self) -> None:
        """Start it on its folder, as a process does."""
        name, (hub, *spokes), folder = self.name, self._names, self.folder
        self.store = CuratorStore(folder / "curator.sqlite")
        self.room = Room(folder)
        legs = Legs(
            name,
            spokes if name == hub else [hub],
            is_hub=name == hub,
            folder=folder / "alignments",
            store=self.store,
            room=self.room,
            most_rows=self._most_rows,
            maximum=10**9,
        )
        lacking = {"length": Lacking(categories=ABSENT, parts=1)}
        self.exchange = JoinExchange(legs, IdJoin(legs), folder / "alignments", folder, lacking)
        self.alignment = Alignment(
            name,
            folder,
            self.store,
            Ledger(self.store.connection, Decimal(1)),
            cast("Coins", self),
            self.exchange,
            self.room,
            workplace(folder),
            most_respondents=10**9,
            lacking=lacking,
        )

    def message(self, kind: JoinKind, sender: str) -> bytes:
        """Return a message that it received."""
        return self.received[sender, Message(kind=kind)]


@contextmanager
def circle(
    folder: Path, tables: Sequence[Sequence[str]], most_rows: Mapping[str, int] = MANY
) -> Iterator[list[Curator]]:
    """Make curators with these tables; the first is the hub."""
    names = NAMES[: len(tables)]
    made = [Curator(name, names, folder / name, ids, most_rows) for name, ids in zip(names, tables, strict=True)]
    for curator in made:
        curator.circle = {each.name: each for each in made}
    try:
        yield made
    finally:
        for curator in made:
            curator.close()


async def outcome(curator: Seat) -> None:
    """Wait until a curator has its alignment and has erased its secrets; raise what it refuses."""
    while True:
        await asyncio.sleep(0.01)
        with suppress(NotReadyError):
            curator.alignment.result()
            name, legs = curator.alignment._current, curator.exchange.legs
            own = [curator.store.joins.session(name, peer) for peer in legs.others]
            if all(one is not None and one.finished for one in own):
                return


async def process(curator: Seat) -> None:
    """Run a curator, and start it again when it is killed."""
    while True:
        try:
            await curator.alignment.run(curator.table, curator.peers)
        except Killed:
            curator.close()
            curator.open()
            curator.alignment._waiting = NotReadyError("is only beginning")


def align(*curators: Seat, until: Seat | None = None, seconds: float = 120) -> None:
    """Run until every curator has its alignment, or one of them; raise the first refusal."""
    for curator in curators:
        curator.alignment._current = curator.alignment.table_version = ""
        curator.alignment._waiting = NotReadyError("is only beginning")

    async def together() -> None:
        running = [asyncio.create_task(process(curator)) for curator in curators]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*map(outcome, (until,) if until else curators))
        finally:
            for task in running:
                task.cancel()

    asyncio.run(together())
