"""Start `veiltab relay serve` so that it does one thing to the bytes of each pair, at a random piece.

    python hostile_relay.py MODE relay serve ...

flip    changes one bit of the piece
drop    leaves it out
double  sends it twice
swap    sends it after the next one
hold    sends nothing more in its direction
"""

import asyncio
import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veiltab.common.relay.lines import Streams

MODES = ("flip", "drop", "double", "swap", "hold")
PIECE = 1024
FIRST, LAST = 4, 40
"""Which piece of a pair it is."""


class Mischief:
    """What is done to one pair."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._left = random.randint(FIRST, LAST)  # noqa: S311 - it decides about pieces
        self._done = False

    async def pass_on(self, one: "Streams", other: "Streams", _count: Callable[[int, int], None]) -> None:
        """Copy both ways until either side ends, and say if that was after the mischief."""
        ways = [asyncio.create_task(self._copy(one, other)), asyncio.create_task(self._copy(other, one))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if self._done:
                print("a pair ended after its mischief", file=sys.stderr, flush=True)  # noqa: T201 - for the test
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            one.writer.transport.abort()
            other.writer.transport.abort()

    async def _copy(self, source: "Streams", sink: "Streams") -> None:
        later = b""
        while data := await source.reader.read(PIECE):
            self._left -= 1
            self._done |= self._left == 0
            if self._left == 0 and self._mode == "flip":
                place = random.randrange(8 * len(data))  # noqa: S311 - as above
                number = int.from_bytes(data, "big") ^ 1 << place
                data = number.to_bytes(len(data), "big")
            elif self._left == 0 and self._mode == "drop":
                continue
            elif self._left == 0 and self._mode == "double":
                data += data
            elif self._left == 0 and self._mode == "swap":
                later = data
                continue
            elif self._left == 0:
                await asyncio.Event().wait()
            sink.writer.write(data + later)
            later = b""
            await sink.writer.drain()


def main() -> None:
    """Change the relay, then run the command line."""
    del sys.path[0]
    mode = sys.argv.pop(1)
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - the path is set before
    from veiltab.deploy.relay import meeting_point  # noqa: PLC0415 - as above

    vars(meeting_point)["splice"] = lambda one, other, count: Mischief(mode).pass_on(one, other, count)
    run()


if __name__ == "__main__":
    main()
