"""Passes connections on to a party of this machine, and counts the bytes that go over the link."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Relay:
    """What passes connections on.

    Args:
        endpoint: "host:port" of the party.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._connections = set[asyncio.Task[None]]()
        self.received = 0
        """Bytes that the party received."""
        self.sent = 0
        """Bytes that it sent."""
        self.port = 0
        """Where callers find it."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on until both sides have ended it."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
        host, _, port = self._endpoint.rpartition(":")
        try:
            behind, before = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass(reader, before, "received"))
            tasks.create_task(self._pass(behind, writer, "sent"))

    async def ended(self) -> None:
        """Wait until no connection is left."""
        await asyncio.gather(*self._connections)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counter: str) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                setattr(self, counter, getattr(self, counter) + len(data))
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def relayed(endpoint: str, port: int = 0) -> AsyncIterator[Relay]:
    """Relay to an endpoint while the block lasts, and until its connections have ended.

    Args:
        endpoint: "host:port" of the party.
        port: where callers find the relay; 0 for a free one.
    """
    relay = Relay(endpoint)
    server = await asyncio.start_server(relay.serve, "localhost", port)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
        server.close()
        await relay.ended()
    finally:
        server.close()
