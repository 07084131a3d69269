"""Curators of one oblivious join in this process: the product's code, and what each receives from the others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np

from tests.curator.made_rows import execution, rows_of, table_with
from tests.worlds.loops import blocking
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import NotReadyError
from veiltab.common.storage.disk import DiskReservations
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.joining.id_join import IdJoin
from veiltab.curator.alignment.joining.join_exchange import JoinExchange
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message, message_from_proto
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.alignment.linking.link_join import LinkJoin
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
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
    return table_with(rows_of(batches, {"length": symbols}), len(ids), version)


class Killed(BaseException):
    """The process of the curator whose code raises it is killed here; `align` starts it again."""


class Peer:
    """Another curator of this process, as one asks it."""

    def __init__(self, asker: "Seat", name: str) -> None:
        self._asker, self._name = asker, name
        self.stub = SimpleNamespace(GetSession=None, FetchJoin=None)

    async def ask(self, _: object, request: curator_peer_pb2.GetSessionRequest) -> curator_peer_pb2.GetSessionResponse:
        said = self._asker.circle[self._name].exchange.sessions.standing(request.alignment_id, self._asker.name)
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
        path = peer.exchange.sessions.message_file(request.alignment_id, request.session, message, self._asker.name)
        data = peer.tampering(message, path.read_bytes())
        check(curator_peer_pb2.FetchJoinResponse(total=len(data)))
        assert len(data) <= most
        self._asker.received[self._name, message] = data
        for start in range(0, len(data), 10**6):
            yield data[start : start + 10**6]


class Seat:
    """One curator of several in this process; `received` is all that others sent it, and `tampering` changes what it
    sends.
    """

    exchange: JoinExchange
    lacking: ClassVar[Mapping[str, Lacking]] = {"length": Lacking(categories=ABSENT, parts=1)}
    most_rows = MANY

    def __init__(self, name: str, names: Sequence[str], folder: Path, table: Table) -> None:
        self.name, self.names, self.folder, self.table = name, names, folder, table
        self.circle: Mapping[str, Seat] = {}
        self.received: dict[tuple[str, Message], bytes] = {}
        self.tampering: Tampering = lambda _message, data: data
        self.open()

    @property
    def column(self) -> list[int]:
        """The symbols of the rows, in the order of all curators."""
        aligned = self.alignment.table(self.alignment.result()[1])
        return [int(symbol) for symbol in aligned.column("length")]

    def join(self, sessions: Sessions) -> IdJoin | LinkJoin:
        return IdJoin(sessions)

    def open(self) -> None:
        """Start it on its folder, as a process does."""
        (hub, *spokes), place = self.names, self.folder / "alignments"
        self.store, self.room = CuratorStore(self.folder / "curator.sqlite"), DiskReservations(self.folder)
        sessions = Sessions(
            self.name,
            spokes if self.name == hub else [hub],
            is_hub=self.name == hub,
            folder=place,
            store=self.store,
            room=self.room,
            most_rows=self.most_rows,
            maximum=10**9,
        )
        self.exchange = JoinExchange(sessions, self.join(sessions), place, self.folder, self.lacking)
        self.alignment = alignment_of(self, self.exchange)

    def close(self) -> None:
        self.store.close()

    @property
    def versions(self) -> dict[str, str]:
        return {name: one.alignment.table_version for name, one in self.circle.items() if name != self.name}

    async def table_versions(self, _: Ledger) -> dict[str, str]:
        if not all(self.versions.values()):
            raise NotReadyError("has no table loaded yet", where="curator peer")
        return self.versions

    async def toss(self, coin_id: str, _peers: Peers) -> bytes:
        self.store.coins.own_share(coin_id, KEY)
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


def alignment_of(seat: Any, exchange: Any) -> Alignment:  # noqa: ANN401 - of any kind
    """Return the alignment of a curator that tosses and is asked in this process."""
    return Alignment(
        seat.name,
        seat.folder,
        seat.store,
        Ledger(seat.store.connection, Decimal(1)),
        seat,
        exchange,
        seat.room,
        execution(seat.folder),
        most_respondents=10**9,
        lacking=seat.lacking,
    )


class Curator(Seat):
    """A curator whose people have ids."""

    circle: Mapping[str, "Curator"]

    def __init__(
        self, name: str, names: Sequence[str], folder: Path, ids: Sequence[str], most_rows: Mapping[str, int]
    ) -> None:
        self.ids, self.most_rows = [*ids[::2], *ids[1::2]], dict(most_rows)
        super().__init__(name, names, folder, table_of(ids, f"content of {name}"))

    def message(self, kind: JoinKind, sender: str) -> bytes:
        """Return a message that it received."""
        return self.received[sender, Message(kind=kind)]


@contextmanager
def seated(made: Sequence[Seat]) -> Iterator[None]:
    """Let curators of this process know each other."""
    for one in made:
        one.circle = {each.name: each for each in made}
    try:
        yield
    finally:
        for one in made:
            one.close()


@contextmanager
def circle(
    folder: Path, tables: Sequence[Sequence[str]], most_rows: Mapping[str, int] = MANY
) -> Iterator[list[Curator]]:
    """Make curators with these tables; the first is the hub."""
    names = NAMES[: len(tables)]
    made = [Curator(name, names, folder / name, ids, most_rows) for name, ids in zip(names, tables, strict=True)]
    with seated(made):
        yield made


async def outcome(curator: Seat) -> None:
    """Wait until a curator has its alignment and has erased its secrets; raise what it refuses."""
    while True:
        await asyncio.sleep(0.01)
        with suppress(NotReadyError):
            curator.alignment.result()
            name, sessions = curator.alignment._current, curator.exchange.sessions
            own = [curator.store.joins.session(name, peer) for peer in sessions.others]
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


@blocking
async def align(*curators: Seat, until: Seat | None = None, seconds: float = 120) -> None:
    """Run until every curator has its alignment, or one of them; raise the first refusal."""
    for curator in curators:
        curator.alignment._current = curator.alignment.table_version = ""
        curator.alignment._waiting = NotReadyError("is only beginning")
    running = [asyncio.create_task(process(curator)) for curator in curators]
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*map(outcome, (until,) if until else curators))
    finally:
        for task in running:
            task.cancel()
