"""Copying bytes between two connections, unread."""

import asyncio
from collections.abc import Callable

from veiltab.common.relay.lines import PIECE, Streams


async def splice(one: Streams, other: Streams, count: Callable[[int, int], None] = lambda _side, _size: None) -> None:
    """Copy both ways until either side ends; then end both, once what came before has gone.

    What one side does not take is not read from the other. TLS knows no half-closed connection, and gRPC uses none.

    Args:
        count: called with the side that sent, 0 or 1, and the number of its bytes.
    """

    async def copy(source: Streams, sink: Streams, side: int) -> None:
        while data := await source.reader.read(PIECE):
            sink.writer.write(data)
            count(side, len(data))
            await sink.writer.drain()

    ways = [asyncio.create_task(copy(one, other, 0)), asyncio.create_task(copy(other, one, 1))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        # A connection that broke ends the pair as one that was closed does.
        await asyncio.gather(*ways, return_exceptions=True)
        await asyncio.gather(one.end(), other.end())
