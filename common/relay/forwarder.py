"""A party's forwarder: Unix sockets of this process on one side, a relay or a proxy on the other.

gRPC connects to a socket in a private folder for each peer that is not called straight, and where the party itself is
reached through the relay its server listens on one too. The forwarder has an event loop in a thread of its own, which
starts with the first connection that needs it.
"""

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.relay.attempts import FAILURES, Attempts, in_words
from veiltab.common.relay.dialling import Proxy, dialled
from veiltab.common.relay.lines import ALPN, LINE_SECONDS, PIECE, Streams
from veiltab.common.relay.splice import splice
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.proxy import ProxyOption, RelayState
from veiltab.common.rpc.tls import tls_context
from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.common.study.members import RELAYED, RelayMember

SPARE = 2
"""Connections that a party keeps parked."""

DIAL_SECONDS = 5.0
"""To connect, TLS included: with the longest pause between attempts, 15 seconds."""

_T = TypeVar("_T")


class Forwarder:
    """The way of a party's connections; see `Way`, which it is.

    Args:
        relay: the study's; None if it has none.
        proxy: passes every connection that this party opens.

    Raises:
        InvalidInputError: the option names no proxy.
    """

    def __init__(self, identity: Identity, relay: RelayMember | None, proxy: ProxyOption | None) -> None:
        self._identity = identity
        self._relay = relay
        self._proxy = None if proxy is None else Proxy.of(proxy)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder: TemporaryFolder | None = None
        self._targets: dict[tuple[Party, str], str] = {}
        self._parking = Attempts("the relay")
        self._parked = 0
        self._since: int | None = None

    def target(self, peer: Party, endpoint: str) -> str:
        """Return the socket of a peer that is relayed, or behind the proxy; else the endpoint.

        Raises:
            InvalidInputError: the folder of temporary files has too long a path for a socket.
        """
        if endpoint.startswith("unix:") or (endpoint != RELAYED and self._proxy is None):
            return endpoint
        with self._lock:
            if (peer, endpoint) not in self._targets:
                address = self._address(str(len(self._targets)))
                self._in_loop(self._listen(peer, endpoint, address.removeprefix("unix:"))).result()
                self._targets[peer, endpoint] = address
            return self._targets[peer, endpoint]

    def own_socket(self) -> str:
        """Return the address of the socket at which this party's server is to listen."""
        return self._address("own")

    def park(self, address: str) -> None:
        """Wait at the relay for callers, and pass them on to the server at this address."""
        self._since = int(time.time())
        self._work = self._in_loop(self._park(address.removeprefix("unix:")))

    def try_relay(self) -> None:
        """Park a connection and take it back.

        Raises:
            UnavailableError: says why that failed.
        """
        try:
            streams, _ = self._in_loop(self._outer("PARK")).result()
        except FAILURES as error:
            raise UnavailableError(in_words(error), where="[relay]") from None
        self._in_loop(streams.end()).result()

    def renew(self, identity: Identity) -> None:
        """Open connections with the party's renewed certificate from now on; what is parked stays so."""
        self._identity = identity

    def relay_state(self) -> RelayState | None:
        """Return how this party stands with the relay; None if it does not wait there."""
        if self._since is None or self._relay is None:
            return None
        state = "parked" if self._parked else "not parked"
        return RelayState(id=self._relay.endpoint, state=state, since=self._since, waiting_for=self._parking.trouble)

    def _address(self, name: str) -> str:
        if self._folder is None:
            self._folder = TemporaryFolder()
        path = str(self._folder.path / name)
        if len(path.encode()) > 100:
            raise InvalidInputError(
                "this path is too long for a socket", where=path, remedy="Set TMPDIR to a shorter one, such as /tmp."
            )
        return f"unix:{path}"

    def _in_loop(self, coroutine: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run something in the forwarder's thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="veiltab-relay", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _listen(self, peer: Party, endpoint: str, path: str) -> None:
        """Pass on to a peer what connects to a socket. One call is made at a time, and soon after a failure none."""
        attempts, turn = Attempts(str(peer)), asyncio.Lock()

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            local = Streams(reader, writer)
            async with turn:
                remote = None if attempts.pause else await attempts.run(self._reached(peer, endpoint))
            if remote is None:
                await local.end()
            else:
                await splice(local, remote)

        await asyncio.start_unix_server(pass_on, path, limit=PIECE)

    async def _reached(self, peer: Party, endpoint: str) -> Streams:
        if endpoint == RELAYED:
            streams, _ = await self._outer(f"CALL {peer.role.value}/{peer.name}")
            return streams
        async with asyncio.timeout(DIAL_SECONDS):
            return await Streams.on(await dialled(endpoint, self._proxy))

    async def _outer(self, line: str) -> tuple[Streams, str]:
        """Return a connection to the relay that has said OK to a line, and what it said beside that."""
        if self._relay is None:
            raise InvalidInputError("the study has no [relay]")
        party = Party(study=self._identity.party.study, role=Role.RELAY, name=self._relay.name)
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                plain = await dialled(self._relay.endpoint, self._proxy)
                streams = await Streams.on(plain, tls_context(self._identity, ALPN, is_server=False), party.dns_name)
        except OSError as error:
            problem = f"the relay at {self._relay.endpoint}: {in_words(error)}"
            raise UnavailableError(problem, remedy="See that `veiltab relay serve` runs there.") from None
        try:
            await streams.say(line)
            word, _, rest = (await streams.line(2 * LINE_SECONDS)).partition(" ")
            if word != "OK":
                raise UnavailableError(f"the relay answered: {word} {rest}")  # noqa: TRY301 - it ends whatever the cause
        except BaseException:
            streams.writer.transport.abort()
            raise
        return streams, rest

    async def _park(self, path: str) -> None:
        """Keep connections parked, for ever."""
        room = asyncio.Semaphore(SPARE)
        async with asyncio.TaskGroup() as group:
            while True:
                await room.acquire()
                await asyncio.sleep(self._parking.pause)
                parked = await self._parking.run(self._outer("PARK"))
                if parked is None:
                    room.release()
                else:
                    group.create_task(self._serve(path, room, *parked))

    async def _serve(self, path: str, room: asyncio.Semaphore, remote: Streams, seconds: str) -> None:
        """Wait at a parked connection until somebody calls, and pass that on to the own server."""
        self._count(1)
        local = await self._parking.run(self._called(path, remote, seconds))
        self._count(-1)
        room.release()
        if local is None:
            remote.writer.transport.abort()
        else:
            await splice(remote, local)

    async def _called(self, path: str, remote: Streams, seconds: str) -> Streams:
        """Return a connection to the own server once somebody calls at a parked one."""
        # Twice the interval, and a moment: one heartbeat may be late.
        patience = 2 * float(seconds) + LINE_SECONDS
        while (line := await remote.line(patience)) == "BEAT":
            await remote.say("BEAT")
        if not line.startswith("FROM "):
            raise UnavailableError(f"the relay answered: {line}")
        local = Streams(*await asyncio.open_unix_connection(path, limit=PIECE))
        await remote.say("OK")
        return local

    def _count(self, change: int) -> None:
        was, self._parked = self._parked, self._parked + change
        if (was == 0) != (self._parked == 0):
            self._since = int(time.time())
