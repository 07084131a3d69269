"""A party's forwarder: Unix sockets of this process on one side, a relay or a proxy on the other.

gRPC connects to a socket in a private folder for each peer that is not called straight, and where the party itself is
reached through the relay its server listens on one too. The forwarder has an event loop in a thread of its own, which
starts with the first connection that needs it.
"""

import asyncio
import logging
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from veiltab.common.errors import InvalidInputError, UnavailableError, VeiltabError
from veiltab.common.relay.dialling import Proxy, dialled
from veiltab.common.relay.lines import LINE_SECONDS, PIECE, Streams, tls_context
from veiltab.common.relay.pauses import Pauses
from veiltab.common.relay.splice import splice
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.rpc.way import ProxyOption, Standing
from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.common.study.members import RELAYED

SPARE = 2
"""Connections that a party keeps parked."""

_DIAL_SECONDS = 10.0
_OWN, _RELAY = "own", "the relay"
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Forwarder:
    """The way of a party's connections; see `Way`, which it is.

    Args:
        relay: the study's relay and its endpoint; None if it has none.
        proxy: passes every connection that this party opens.
    """

    def __init__(self, identity: Identity, relay: tuple[Party, str] | None, proxy: Proxy | None) -> None:
        self._identity = identity
        self._relay = relay
        self._proxy = proxy
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder: TemporaryFolder | None = None
        self._targets: dict[tuple[Party, str], str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._parked = 0
        self._since: int | None = None
        self._troubles: dict[str, str] = {}

    def target(self, peer: Party, endpoint: str) -> str:
        """Return the socket of a peer that is relayed, or behind the proxy; else the endpoint.

        Raises:
            InvalidInputError: the folder of temporary files has too long a path for a socket.
        """
        if endpoint.startswith("unix:") or (endpoint != RELAYED and self._proxy is None):
            return endpoint
        path = self._path(str(len(self._targets)))
        with self._lock:
            if (peer, endpoint) not in self._targets:
                serve = asyncio.start_unix_server(
                    partial(self._passed_on, peer, endpoint, Pauses(), asyncio.Lock()), path, limit=PIECE
                )
                self._in_loop(serve)
                self._targets[peer, endpoint] = f"unix:{path}"
            return self._targets[peer, endpoint]

    def own_socket(self) -> str:
        """Return the address of the socket at which this party's server is to listen."""
        return f"unix:{self._path(_OWN)}"

    def park(self, address: str) -> None:
        """Wait at the relay for callers, and pass them on to the server at this address."""
        self._since = int(time.time())
        path = address.removeprefix("unix:")

        async def begin() -> None:
            for _ in range(SPARE):
                self._keep(self._park(path))

        self._in_loop(begin())

    def try_relay(self) -> None:
        """Park a connection and take it back.

        Raises:
            UnavailableError: says why that failed.
        """

        async def attempt() -> None:
            streams, _ = await self._outer("PARK")
            await streams.end()

        try:
            self._in_loop(attempt())
        except _FAILURES as error:
            raise UnavailableError(_words(error), where="[relay]") from None

    def standing(self) -> Standing | None:
        """Return how this party stands with the relay; None if it does not wait there."""
        if self._since is None or self._relay is None:
            return None
        trouble = self._troubles.get(_RELAY, "")
        return Standing(endpoint=self._relay[1], parked=self._parked, since=self._since, trouble=trouble)

    def _path(self, name: str) -> str:
        if self._folder is None:
            self._folder = TemporaryFolder()
        path = str(self._folder.path / name)
        if len(path.encode()) > 100:
            raise InvalidInputError(
                "the path of the temporary files is too long for a socket",
                where=str(Path(path).parent),
                remedy="Set TMPDIR to a shorter one, such as /tmp.",
            )
        return path

    def _in_loop(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run something short in the forwarder's thread, and return what it returns."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(self._loop,), name="veiltab-relay", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _passed_on(  # noqa: PLR0913, PLR0917 - the first four are the peer's
        self,
        peer: Party,
        endpoint: str,
        pauses: Pauses,
        turn: asyncio.Lock,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Pass one connection on to a peer. One call is made at a time, and soon after one that failed none."""
        local = Streams(reader, writer)
        async with turn:
            remote = None
            if not pauses.are_on:
                remote = await self._attempt(partial(self._reached, peer, endpoint), str(peer))
                pauses.note(succeeded=remote is not None)
        if remote is None:
            await local.end()
        else:
            await splice(local, remote)

    async def _reached(self, peer: Party, endpoint: str) -> Streams:
        if endpoint == RELAYED:
            streams, _ = await self._outer(f"CALL {peer.role.value}/{peer.name}")
            return streams
        async with asyncio.timeout(_DIAL_SECONDS):
            plain = await dialled(endpoint, self._proxy)
            return Streams(*await asyncio.open_connection(sock=plain, limit=PIECE))

    async def _outer(self, line: str) -> tuple[Streams, str]:
        """Return a connection to the relay that has said OK to a line, and what it said beside that."""
        if self._relay is None:
            raise InvalidInputError("the study has no [relay]")
        relay, endpoint = self._relay
        async with asyncio.timeout(_DIAL_SECONDS):
            plain = await dialled(endpoint, self._proxy)
            context = tls_context(self._identity, is_server=False)
            streams = Streams(
                *await asyncio.open_connection(sock=plain, ssl=context, server_hostname=relay.dns_name, limit=PIECE)
            )
        try:
            await streams.say(line)
            word, _, rest = (await streams.line(2 * LINE_SECONDS)).partition(" ")
            if word != "OK":
                raise _answered(f"{word} {rest}")  # noqa: TRY301 - the connection ends whatever the cause
        except BaseException:
            streams.writer.transport.abort()
            raise
        return streams, rest

    async def _park(self, path: str) -> None:
        """Keep one connection parked, for ever."""
        pauses = Pauses()
        while True:
            called = await self._attempt(partial(self._called, path), _RELAY)
            pauses.note(succeeded=called is not None)
            if called is None:
                await pauses.wait()
            else:
                self._keep(splice(*called))

    async def _called(self, path: str) -> tuple[Streams, Streams]:
        """Park a connection until somebody calls; return it and one to the own server."""
        remote, seconds = await self._outer("PARK")
        self._count(1)
        try:
            # Twice the interval, and a moment: one heartbeat may be late.
            patience = 2 * float(seconds) + LINE_SECONDS
            while (line := await remote.line(patience)) == "BEAT":
                await remote.say("BEAT")
            if not line.startswith("FROM "):
                raise _answered(line)  # noqa: TRY301 - as above
            local = Streams(*await asyncio.open_unix_connection(path, limit=PIECE))
            await remote.say("OK")
        except BaseException:
            remote.writer.transport.abort()
            raise
        finally:
            self._count(-1)
        return remote, local

    def _count(self, change: int) -> None:
        was, self._parked = self._parked, self._parked + change
        if (was == 0) != (self._parked == 0):
            self._since = int(time.time())

    async def _attempt(self, work: Callable[[], Awaitable[_T]], whom: str) -> _T | None:
        """Return what an attempt returns; or None if it failed, which is logged once a cause."""
        try:
            result = await work()
        except _FAILURES as error:
            words = _words(error)
            if self._troubles.get(whom) != words:
                _log.warning("no connection to %s: %s", whom, words)
            self._troubles[whom] = words
            return None
        self._troubles.pop(whom, None)
        return result


def forwarder(identity: Identity, relay: tuple[Party, str] | None, proxy: ProxyOption | None) -> Forwarder:
    """Return the way of a party's connections through a relay and a proxy, as options name it."""
    return Forwarder(identity, relay, None if proxy is None else Proxy.of(proxy))


def _answered(line: str) -> UnavailableError:
    return UnavailableError(f"the relay answered: {line}")


_FAILURES = (OSError, TimeoutError, VeiltabError, ValueError)


def _words(error: BaseException) -> str:
    """Say why there is no connection."""
    if isinstance(error, VeiltabError):
        return f"{error.problem}. {error.remedy}".rstrip(". ") if error.remedy else error.problem
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the relay is not accepted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "TLS with the relay failed: its or the own certificate is not accepted, or something else answers"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return f"no connection ({error.strerror or type(error).__name__})"
    return "the relay answered what is not understood"


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
