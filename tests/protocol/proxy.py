"""What stands between parties and does what networks do: delay, loss, broken connections, partitions.

TCP hides the loss of a packet but for the time until it is sent again, so a piece that is lost arrives late.
"""

import asyncio
import random
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
PIECE = 1448
"""Bytes that a packet carries."""
AGAIN = 0.3
"""Seconds until a lost packet is sent again."""


@dataclass(frozen=True, kw_only=True)
class Weather:
    """What happens to each piece.

    Args:
        delay: seconds until it arrives.
        loss: probability that it is lost, and arrives later.
        cut: probability that its connection breaks.
    """

    delay: float = 0.0
    loss: float = 0.0
    cut: float = 0.0


class Proxy:
    """Passes connections on to a party.

    Args:
        port: where callers find it.
        behind: where the party listens.
        weather: what happens on the way, in both directions.
        chance: decides about pieces.
    """

    def __init__(self, port: int, behind: int, weather: Weather, chance: random.Random) -> None:
        self._behind, self._weather, self._chance = behind, weather, chance
        self._open = asyncio.Event()
        self.pieces = self.lost = self.cuts = 0
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open.set()
        self._server = self._run(asyncio.start_server(self._serve, "localhost", port))

    def close(self) -> None:
        """Break every connection and accept no more."""

        async def end() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def partition(self) -> Iterator[None]:
        """Let nothing pass while the block lasts; what was sent meanwhile arrives after it."""
        self._loop.call_soon_threadsafe(self._open.clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._open.set)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            await self._open.wait()
            behind = await asyncio.open_connection("localhost", self._behind)
            pumps = [
                asyncio.create_task(self._pump(reader, behind[1])),
                asyncio.create_task(self._pump(behind[0], writer)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                behind[1].transport.abort()
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass pieces on until the connection ends or breaks."""
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                self.pieces += 1
                seconds = self._weather.delay
                if self._chance.random() < self._weather.loss:
                    self.lost += 1
                    seconds += AGAIN
                if self._chance.random() < self._weather.cut:
                    self.cuts += 1
                    return
                await asyncio.sleep(seconds)
                await self._open.wait()
                writer.write(piece)
                await writer.drain()
