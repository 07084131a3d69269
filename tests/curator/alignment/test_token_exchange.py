"""Tokens of a peer whose table is larger: they are fetched only where the disk has room for them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from tests.conftest import PlayedDisk
from tests.curator.made_rows import rows_of
from veiltab.common.errors import TransferError, UnavailableError, VeiltabError
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART, Room
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.peers.calls import Peers
from veiltab.curator.table.table import Table

TOKENS = bytes(range(240)) * 20


class Bob:
    """A peer who sends 300 tokens in two pieces."""

    curators = {"bob": None}  # noqa: RUF012 - read alone

    async def tokens(self, _: str, __: str, offset: int, admit: Callable[[int], None]) -> AsyncIterator[bytes]:
        for start, stop in ((offset, 4000), (max(offset, 4000), len(TOKENS))):
            admit(len(TOKENS))
            if start < stop:
                yield TOKENS[start:stop]


def table_of(rows: int) -> Table:
    return Table(
        respondents=rows_of([[f"person {n}" for n in range(rows)]], {}),
        rows_read=rows,
        rows_dropped=0,
        missing={},
        content_digest="one",
    )


@pytest.mark.parametrize(
    ("rows", "begun", "written"),
    [(1, 0, 4800 - 16), (100, 0, 4800 - 1600), (299, 0, 16), (1, 3000, 1800), (1, 4800, 0), (299, 3000, 16)],
)
def test_tokens_of_a_larger_table_are_not_begun_without_room_for_them(
    tmp_path: Path, disk: PlayedDisk, rows: int, begun: int, written: int
) -> None:
    room = Room(tmp_path)
    exchange, table = TokenExchange(2, tmp_path, room), table_of(rows)
    part, whole = tmp_path / "bob-tokens.part", tmp_path / "bob-tokens.bin"
    part.write_bytes(TOKENS[:begun])
    disk.free = written + LEAST_RESERVE + written // RESERVE_PART - 1
    with pytest.raises(UnavailableError, match="disk is full"):
        asyncio.run(exchange.run("a", table, tmp_path, cast("Peers", Bob())))
    assert part.read_bytes() == TOKENS[:begun]
    disk.free += 1
    assert asyncio.run(exchange.run("a", table, tmp_path, cast("Peers", Bob()))) == {"bob": whole}
    assert whole.read_bytes() == TOKENS
    room.keep("another work", written)  # nothing is kept for this one any more


def test_what_is_written_takes_no_room_a_second_time(tmp_path: Path, disk: PlayedDisk) -> None:
    class Filling(Bob):
        async def tokens(
            self, curator: str, name: str, offset: int, admit: Callable[[int], None]
        ) -> AsyncIterator[bytes]:
            async for data in super().tokens(curator, name, offset, admit):
                yield data
                disk.free -= len(data)

    excess = len(TOKENS) - 16
    disk.free = excess + LEAST_RESERVE + excess // RESERVE_PART
    exchange = TokenExchange(2, tmp_path, Room(tmp_path))
    asyncio.run(exchange.run("a", table_of(1), tmp_path, cast("Peers", Filling())))
    assert (tmp_path / "bob-tokens.bin").read_bytes() == TOKENS


@pytest.mark.parametrize("rows", [300, 301])
def test_tokens_of_a_table_that_is_no_larger_have_their_room_already(
    tmp_path: Path, disk: PlayedDisk, rows: int
) -> None:
    disk.free = 0
    exchange = TokenExchange(2, tmp_path, Room(tmp_path))
    asyncio.run(exchange.run("a", table_of(rows), tmp_path, cast("Peers", Bob())))
    assert (tmp_path / "bob-tokens.bin").read_bytes() == TOKENS


@pytest.mark.parametrize("error", [TransferError("was altered"), UnavailableError("no connection")])
def test_only_what_a_broken_connection_left_is_gone_on_with(tmp_path: Path, error: VeiltabError) -> None:
    asked = list[int]()

    class Breaking(Bob):
        async def tokens(
            self, curator: str, name: str, offset: int, admit: Callable[[int], None]
        ) -> AsyncIterator[bytes]:
            asked.append(offset)
            async for data in super().tokens(curator, name, offset, admit):
                yield data
                if len(asked) == 1:
                    raise error

    exchange, bob = TokenExchange(2, tmp_path, Room(tmp_path)), cast("Peers", Breaking())
    with pytest.raises(type(error)):
        asyncio.run(exchange.run("a", table_of(300), tmp_path, bob))
    asyncio.run(exchange.run("a", table_of(300), tmp_path, bob))
    assert asked == [0, 4000 if isinstance(error, UnavailableError) else 0]
    assert (tmp_path / "bob-tokens.bin").read_bytes() == TOKENS
