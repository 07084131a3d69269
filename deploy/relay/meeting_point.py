"""The meeting point: pairs a caller with a parked connection of the party that it wants, and copies bytes.

It keeps nothing on disk and has nobody's key. Inside each pair runs the mutual TLS of its two parties.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter, deque
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from veiltab.common.errors import InvalidInputError, VeiltabError
from veiltab.common.relay.lines import ALPN, PIECE, Streams, tls_context
from veiltab.common.relay.splice import splice
from veiltab.common.rpc.parties.identity import Identity, Party, PartyCertificate, party_of_certificate
from veiltab.common.rpc.parties.revocation import FILE, RevocationList
from veiltab.deploy.relay.limits import Allowance, RelayLimits

_ANSWER_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_log = logging.getLogger(__name__)


class _Refused(Exception):  # noqa: N818 - it is what a party hears, and nothing failed here
    """A refusal: its cause for the metrics, and the line that the party gets."""

    def __init__(self, cause: str, line: str) -> None:
        super().__init__(line)
        self.cause = cause


@dataclass(eq=False, slots=True, kw_only=True)
class _Parked:
    """A connection that waits for a caller.

    Args:
        is_claimed: a caller has chosen it.
        is_taken: its party takes the caller.
        answered: set once that is decided.
        done: set once the bytes are copied, or the caller has gone.
    """

    streams: Streams
    is_claimed: bool = False
    is_taken: bool = False
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False, slots=True, kw_only=True)
class _Account:
    """What a party has here at the moment; `arrived` is set when it parks a connection."""

    allowance: Allowance
    parked: deque[_Parked] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    pairs: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class _Handler:
    """A connection whose party is known; `last` is when its pair last copied a byte."""

    certificate: PartyCertificate
    task: "asyncio.Task[None]"
    last: float | None = None


class MeetingPoint:
    """One relay.

    Args:
        identity: the relay's own.
        parties: who may connect.

    Raises:
        InvalidInputError: the revocation list beside the identity is not the authority's.
    """

    def __init__(self, identity: Identity, parties: Collection[Party], limits: RelayLimits | None = None) -> None:
        self._limits = limits or RelayLimits()
        self._context = tls_context(identity, is_server=True)
        folder = identity.folder
        self._revocations = None if folder is None else RevocationList(folder / FILE, identity.authority)
        self._accounts = {party: _Account(allowance=Allowance(self._limits)) for party in parties}
        self._handlers = set[_Handler]()
        self._strangers = 0
        self.bytes = Counter[Party]()
        self.refusals = Counter[str]()

    @property
    def parked(self) -> dict[Party, int]:
        """How many connections each party has parked."""
        return {party: len(account.parked) for party, account in self._accounts.items()}

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return sum(one.last is not None for one in self._handlers)

    async def serve(self, listener: socket.socket) -> None:
        """Take connections from a listening socket, for ever."""
        listener.setblocking(False)  # noqa: FBT003 - the name of the standard library
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            while True:
                try:
                    plain, _ = await loop.sock_accept(listener)
                except OSError:  # such as too many open files
                    await asyncio.sleep(_LOOK_SECONDS)
                    continue
                if self._strangers >= self._limits.strangers:
                    self._refuse("too many handshakes")
                    plain.close()
                else:
                    self._strangers += 1
                    group.create_task(self._accept(plain))

    async def _watch(self) -> None:
        """Cut pairs without a byte for too long, and every connection of a revoked certificate."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            oldest = time.monotonic() - self._limits.idle
            for one in list(self._handlers):
                if one.last is not None and one.last < oldest:
                    self._refuse("idle", one.certificate.party)
                    one.task.cancel()
                elif self._is_revoked(one.certificate):
                    self._refuse("revoked", one.certificate.party)
                    one.task.cancel()

    def _is_revoked(self, certificate: PartyCertificate) -> bool:
        return self._revocations is not None and self._revocations.revokes(certificate.serial)

    def _refuse(self, cause: str, party: Party | None = None) -> None:
        self.refusals[cause] += 1
        _log.info("refused", extra={"reason": cause, "party": party and str(party)})

    async def _accept(self, plain: socket.socket) -> None:
        """Take one TCP connection from its handshake to its end."""
        streams, handler = None, None
        try:
            try:
                streams = await self._encrypted(plain)
                handler = self._admitted(streams)
            finally:
                self._strangers -= 1
            self._handlers.add(handler)
            await self._serve(handler, streams)
        except _Refused as refusal:
            self._refuse(refusal.cause, None if handler is None else handler.certificate.party)
            with suppress(OSError):
                if streams is not None:
                    await streams.say(str(refusal))
        except (OSError, VeiltabError):
            pass  # the connection broke, or its other end does not keep to the lines
        finally:
            if handler is not None:
                self._handlers.discard(handler)
            if streams is not None:
                await streams.end()

    async def _encrypted(self, plain: socket.socket) -> Streams:
        reader = asyncio.StreamReader(limit=PIECE)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, plain, ssl=self._context, ssl_handshake_timeout=self._limits.handshake
            )
        except OSError:
            self._refuse("no TLS with a certificate of the study")
            raise
        return Streams(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    def _admitted(self, streams: Streams) -> _Handler:
        """Return the handler of a connection whose party may have it."""
        inner = streams.writer.get_extra_info("ssl_object")
        if inner.selected_alpn_protocol() != ALPN:
            raise _Refused("another protocol", "this relay speaks veiltab-relay alone")
        shown = ssl.DER_cert_to_PEM_cert(inner.getpeercert(binary_form=True))
        certificate = party_of_certificate(shown.encode())
        if certificate.party not in self._accounts:
            raise _Refused("not a party", "the study has no such party")
        if self._is_revoked(certificate):
            raise _Refused("revoked", "the certificate is revoked")
        if not self._accounts[certificate.party].allowance.take():
            raise _Refused("too many connections", "this party opens too many connections; wait a minute")
        task = asyncio.current_task()
        if task is None:
            raise InvalidInputError("a connection is served outside of a task")
        return _Handler(certificate=certificate, task=task)

    async def _serve(self, handler: _Handler, streams: Streams) -> None:
        try:
            line = await streams.line()
        except TimeoutError:
            raise _Refused("no line in time", "no line came in time") from None
        verb, _, name = line.partition(" ")
        if line == "PARK":
            await self._park(self._accounts[handler.certificate.party], streams)
        elif verb == "CALL":
            wanted = next((one for one in self._accounts if f"{one.role.value}/{one.name}" == name), None)
            if wanted is None:
                raise _Refused("an unknown party", "the study has no such party")
            await self._call(handler, wanted, streams)
        else:
            raise _Refused("an unknown line", "this line is not known here")

    async def _park(self, account: _Account, streams: Streams) -> None:
        """Keep a connection until a caller comes and its bytes are copied; heartbeats show that it is alive."""
        if len(account.parked) >= self._limits.parked:
            raise _Refused("too many parked", "this party has parked too many connections")
        await streams.say(f"OK {self._limits.heartbeat:g}")
        own = _Parked(streams=streams)
        account.parked.append(own)
        account.arrived.set()
        beating = asyncio.create_task(self._beat(own))
        try:
            while (line := await streams.line(2 * self._limits.heartbeat)) == "BEAT":
                pass
            own.is_taken = own.is_claimed and line == "OK"
        finally:
            beating.cancel()
            if own in account.parked:
                account.parked.remove(own)
            own.answered.set()
        if own.is_taken:
            await own.done.wait()

    async def _beat(self, own: _Parked) -> None:
        while not own.is_claimed:
            with suppress(OSError):
                await own.streams.say("BEAT")
            await asyncio.sleep(self._limits.heartbeat)

    async def _call(self, handler: _Handler, wanted: Party, streams: Streams) -> None:
        """Find a parked connection of a party, and copy until either side closes."""
        caller, theirs = self._accounts[handler.certificate.party], self._accounts[wanted]
        if caller.waiting >= self._limits.waiting:
            raise _Refused("too many waiting calls", "too many calls of this party wait")
        if max(caller.pairs, theirs.pairs) >= self._limits.pairs:
            raise _Refused("too many pairs", "one of the two parties has too many connections")
        caller.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait):
                parked = await self._claimed(handler.certificate.party, theirs)
        except TimeoutError:
            raise _Refused("nobody parked", f"{wanted} has no connection here") from None
        finally:
            caller.waiting -= 1
        parties = (handler.certificate.party, wanted)

        def count(side: int, size: int) -> None:
            handler.last = time.monotonic()
            self.bytes[parties[side]] += size

        # A connection that somebody else's call took is not the party's own doing.
        theirs.allowance.give_back()
        caller.pairs += 1
        theirs.pairs += 1
        handler.last = time.monotonic()
        try:
            await streams.say("OK")
            await splice(streams, parked.streams, count)
        finally:
            parked.done.set()
            caller.pairs -= 1
            theirs.pairs -= 1

    async def _claimed(self, caller: Party, theirs: _Account) -> _Parked:
        """Return a parked connection whose party takes the caller."""
        while True:
            while not theirs.parked:
                theirs.arrived.clear()
                await theirs.arrived.wait()
            parked = theirs.parked.popleft()
            parked.is_claimed = True
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await parked.streams.say(f"FROM {caller.role.value}/{caller.name}")
                    await parked.answered.wait()
            except (OSError, TimeoutError):
                pass
            except BaseException:
                parked.done.set()
                raise
            if parked.is_taken:
                return parked
            parked.done.set()
            parked.streams.writer.transport.abort()
