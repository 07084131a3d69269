"""Blocking calls: an event loop of their own, beside the running loop of a notebook."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import grpc

T = TypeVar("T")


class BlockingChannel:
    """A channel in a loop of its own.

    Args:
        open_channel: makes the channel, within that loop.
    """

    def __init__(self, open_channel: Callable[[], grpc.aio.Channel]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def opened() -> grpc.aio.Channel:
            return open_channel()

        try:
            self.channel = self.wait(opened())
        except BaseException:
            self._stop()
            raise

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result; an interruption of the waiting cancels it."""
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result()
        finally:
            running.cancel()

    def close(self) -> None:
        """Close the channel and end the loop."""
        self.wait(self.channel.close())
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
