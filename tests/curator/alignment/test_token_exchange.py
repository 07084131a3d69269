"""Tokens of a hub whose table is larger: they are fetched only where the disk has room for them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from tests.conftest import PlayedDisk, refuses
from tests.curator.alignment.circle import table_of
from veiltab.common.errors import DeniedError, TransferError, UnavailableError, VeiltabError
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART, DiskReservations
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.peers.calls import Peers
from veiltab.curator.table.table import Table

TOKENS = bytes(range(240)) * 20


class Hub:
    """A hub that sends 300 tokens in two pieces."""

    async def tokens(self, _: str, __: str, offset: int, admit: Callable[[int], None]) -> AsyncIterator[bytes]:
        for start, stop in ((offset, 4000), (max(offset, 4000), len(TOKENS))):
            admit(len(TOKENS))
            if start < stop:
                yield TOKENS[start:stop]


def people(count: int) -> Table:
    return table_of([f"person {n}" for n in range(count)], "one")


@pytest.mark.parametrize(
    ("rows", "begun", "written"),
    [
        (1, 0, 299 * 33),
        (100, 0, 200 * 33),
        (299, 0, 33),
        (1, 3000, 1800 + 299 * 17),
        (1, 4800, 299 * 17),
        (299, 3000, 33),
    ],
)
def test_tokens_of_a_larger_table_are_not_begun_without_room_for_them(
    tmp_path: Path, disk: PlayedDisk, rows: int, begun: int, written: int
) -> None:
    room = DiskReservations(tmp_path)
    exchange, table = TokenExchange("bob", "alice", tmp_path, room), people(rows)
    part, whole = tmp_path / "hub-tokens.part", tmp_path / "hub-tokens.bin"
    part.write_bytes(TOKENS[:begun])
    disk.free = written + LEAST_RESERVE + written // RESERVE_PART - 1
    with pytest.raises(UnavailableError, match="disk is full"):
        asyncio.run(exchange.run("a", table, tmp_path, cast("Peers", Hub())))
    assert part.read_bytes() == TOKENS[:begun]
    disk.free += 1
    assert asyncio.run(exchange.run("a", table, tmp_path, cast("Peers", Hub()))) == whole
    assert whole.read_bytes() == TOKENS
    with pytest.raises(UnavailableError):
        room.keep("another work", written)
    exchange.finish("a", tmp_path)
    assert not whole.exists()
    room.keep("another work", written)  # nothing is kept for this one any more


def test_what_is_written_takes_no_room_a_second_time(tmp_path: Path, disk: PlayedDisk) -> None:
    class Filling(Hub):
        async def tokens(
            self, curator: str, name: str, offset: int, admit: Callable[[int], None]
        ) -> AsyncIterator[bytes]:
            async for data in super().tokens(curator, name, offset, admit):
                yield data
                disk.free -= len(data)

    excess = 299 * 33
    disk.free = excess + LEAST_RESERVE + excess // RESERVE_PART
    exchange = TokenExchange("bob", "alice", tmp_path, DiskReservations(tmp_path))
    asyncio.run(exchange.run("a", people(1), tmp_path, cast("Peers", Filling())))
    assert (tmp_path / "hub-tokens.bin").read_bytes() == TOKENS


@pytest.mark.parametrize("rows", [300, 301])
def test_tokens_of_a_table_that_is_no_larger_have_room_already(tmp_path: Path, disk: PlayedDisk, rows: int) -> None:
    disk.free = 0
    exchange = TokenExchange("bob", "alice", tmp_path, DiskReservations(tmp_path))
    asyncio.run(exchange.run("a", people(rows), tmp_path, cast("Peers", Hub())))
    assert (tmp_path / "hub-tokens.bin").read_bytes() == TOKENS


@pytest.mark.parametrize("error", [TransferError("was altered"), UnavailableError("no connection")])
def test_only_what_a_broken_connection_left_is_gone_on_with(tmp_path: Path, error: VeiltabError) -> None:
    asked = list[int]()

    class Breaking(Hub):
        async def tokens(
            self, curator: str, name: str, offset: int, admit: Callable[[int], None]
        ) -> AsyncIterator[bytes]:
            asked.append(offset)
            async for data in super().tokens(curator, name, offset, admit):
                yield data
                if len(asked) == 1:
                    raise error

    exchange, hub = TokenExchange("bob", "alice", tmp_path, DiskReservations(tmp_path)), cast("Peers", Breaking())
    with pytest.raises(type(error)):
        asyncio.run(exchange.run("a", people(300), tmp_path, hub))
    asyncio.run(exchange.run("a", people(300), tmp_path, hub))
    assert asked == [0, 4000 if isinstance(error, UnavailableError) else 0]
    assert (tmp_path / "hub-tokens.bin").read_bytes() == TOKENS


def test_a_hub_fetches_nothing_and_a_spoke_sends_nothing(tmp_path: Path) -> None:
    hub, spoke = (TokenExchange(name, "alice", tmp_path, DiskReservations(tmp_path)) for name in ("alice", "bob"))
    assert asyncio.run(hub.run("a", people(1), tmp_path, cast("Peers", None))) is None
    hub.check_tokens_are_shared()
    with refuses(DeniedError, where="hub alice"):
        spoke.check_tokens_are_shared()
