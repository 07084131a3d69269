"""The meeting point: pairs a caller with a parked connection of the party that it wants, and copies bytes.

It keeps nothing on disk and has nobody's key. Inside each pair runs the mutual TLS of its two parties.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import VeiltabError
from veiltab.common.relay.lines import ALPN, CLOSE_SECONDS, PIECE, Streams
from veiltab.common.relay.splice import splice
from veiltab.common.rpc.parties.identity import Identity, Party, PartyCertificate, party_of_certificate
from veiltab.common.rpc.parties.revocation import FILE, RevocationList
from veiltab.common.rpc.statuses import failures_logged
from veiltab.common.rpc.tls import tls_context
from veiltab.deploy.relay.limits import Allowance, RelayLimits

_ANSWER_SECONDS = 5.0
_REFUSED_SECONDS = 1.0
_LOOK_SECONDS = 1.0
_log = logging.getLogger(__name__)


class _Refused(Exception):  # noqa: N818 - it is what a party hears, and nothing failed here
    """A refusal: its cause for the metrics, and the line that the party gets."""

    def __init__(self, cause: str, line: str) -> None:
        super().__init__(line)
        self.cause = cause


@dataclass(eq=False, slots=True, kw_only=True)
class _Connection:
    """A connection whose party is known.

    Args:
        task: serves it.
        pair: once it has called, its party and the one that it wants.
        last: when its pair last copied a byte, or when it last got a heartbeat.
        is_claimed: it is parked, and a caller has chosen it.
        is_taken: its party takes the caller.
        answered: set once that is decided.
        done: set once the bytes are copied, or the caller has gone.
    """

    streams: Streams
    certificate: PartyCertificate
    task: "asyncio.Task[None] | None" = field(default_factory=asyncio.current_task)
    pair: tuple[Party, Party] | None = None
    last: float = field(default_factory=time.monotonic)
    is_claimed: bool = False
    is_taken: bool = False
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False, slots=True, kw_only=True)
class _Account:
    """What a party has here at the moment; `arrived` is set when it parks a connection."""

    allowance: Allowance
    parked: list[_Connection] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0


class MeetingPoint:
    """One relay.

    Args:
        identity: the relay's own.
        parties: who may connect.

    Raises:
        InvalidInputError: the identity was not read from a folder, or the revocation list there is not the authority's.
    """

    def __init__(self, identity: Identity, parties: Collection[Party], limits: RelayLimits | None = None) -> None:
        self._limits = limits or RelayLimits()
        self._context = tls_context(identity, ALPN, is_server=True)  # refuses an identity without a folder
        self._revocations = RevocationList((identity.folder or Path()) / FILE, identity.authority)
        self._accounts = {party: _Account(allowance=Allowance(self._limits)) for party in parties}
        self._connections = set[_Connection]()
        self._strangers = 0
        self.bytes = Counter[Party]()
        self.refusals = Counter[str]()

    @property
    def parked(self) -> dict[Party, int]:
        """How many connections each party has parked."""
        return {party: len(account.parked) for party, account in self._accounts.items()}

    def pairs(self, *parties: Party) -> int:
        """Return how many pairs there are, of a party, between two, or of all."""
        return sum(one.pair is not None and Counter(parties) <= Counter(one.pair) for one in list(self._connections))

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
        """Cut pairs without a byte for too long and connections of revoked certificates; beat on those that wait."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            for one in list(self._connections):
                is_revoked = self._revocations.revokes(one.certificate.serial)
                if is_revoked or (one.pair is not None and one.last < now - self._limits.idle):
                    self._refuse("revoked" if is_revoked else "idle", one.certificate.party)
                    self._connections.discard(one)
                    if one.task is not None:
                        one.task.cancel()
                elif one in self._accounts[one.certificate.party].parked and one.last < now - self._limits.heartbeat:
                    one.streams.writer.write(b"BEAT\n")
                    one.last = now

    def _refuse(self, cause: str, party: Party | None = None) -> None:
        self.refusals[cause] += 1
        _log.info("refused", extra={"reason": cause, "party": party and str(party)})

    async def _accept(self, plain: socket.socket) -> None:
        """Take one TCP connection from its handshake to its end; what fails there ends no other one."""
        with failures_logged(_log, "a connection failed"):
            await self._take(plain)

    async def _take(self, plain: socket.socket) -> None:
        reader = asyncio.StreamReader(limit=PIECE)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, plain, ssl=self._context, ssl_handshake_timeout=self._limits.handshake
            )
            streams = Streams(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        except OSError:
            self._refuse("no TLS with a certificate of the study")
            return
        finally:
            self._strangers -= 1
        own = None
        try:
            own = self._admitted(streams)
            self._connections.add(own)
            await self._serve(own)
        except _Refused as refusal:
            self._refuse(refusal.cause, None if own is None else own.certificate.party)
            with suppress(OSError):
                await streams.say(str(refusal))
        except (OSError, ValueError, VeiltabError):
            pass  # the connection broke, or its other end does not keep to the lines
        finally:
            if own is not None:
                self._connections.discard(own)
            await streams.end(_REFUSED_SECONDS if own is None else CLOSE_SECONDS)

    def _admitted(self, streams: Streams) -> _Connection:
        """Return a connection whose party may have it."""
        inner = streams.writer.get_extra_info("ssl_object")
        if inner.selected_alpn_protocol() != ALPN:
            raise _Refused("another protocol", "this relay speaks veiltab-relay alone")
        pem = ssl.DER_cert_to_PEM_cert(inner.getpeercert(binary_form=True))
        certificate = party_of_certificate(pem.encode())
        if certificate.party not in self._accounts:
            raise _Refused("not a party", "the study has no such party")
        if self._revocations.revokes(certificate.serial):
            raise _Refused("revoked", "the certificate is revoked")
        if not self._accounts[certificate.party].allowance.take():
            raise _Refused("too many connections", "this party opens too many connections; wait a minute")
        return _Connection(streams=streams, certificate=certificate)

    async def _serve(self, own: _Connection) -> None:
        try:
            line = await own.streams.line()
        except TimeoutError:
            raise _Refused("no line in time", "no line came in time") from None
        verb, _, name = line.partition(" ")
        if line == "PARK":
            await self._park(own)
        elif verb == "CALL":
            party = next((one for one in self._accounts if f"{one.role.value}/{one.name}" == name), None)
            if party is None:
                raise _Refused("an unknown party", "the study has no such party")
            await self._call(own, party)
        else:
            raise _Refused("an unknown line", "this line is not known here")

    async def _park(self, own: _Connection) -> None:
        """Keep a connection until a caller comes and its bytes are copied; heartbeats show that it is alive."""
        account = self._accounts[own.certificate.party]
        if len(account.parked) >= self._limits.parked:
            raise _Refused("too many parked", "this party has parked too many connections")
        await own.streams.say(f"OK {self._limits.heartbeat:g}")
        account.parked.append(own)
        account.arrived.set()
        try:
            while (line := await own.streams.line(2 * self._limits.heartbeat)) == "BEAT":
                pass
            own.is_taken = own.is_claimed and line == "OK"
        finally:
            if own in account.parked:
                account.parked.remove(own)
            own.answered.set()
        if own.is_taken:
            await own.done.wait()

    async def _call(self, own: _Connection, party: Party) -> None:
        """Find a parked connection of a party, and copy until either side closes."""
        pair = (own.certificate.party, party)
        caller, theirs = (self._accounts[party] for party in pair)
        if caller.waiting >= self._limits.waiting:
            raise _Refused("too many waiting calls", "too many calls of this party wait")
        if self.pairs(*pair) >= self._limits.between or max(map(self.pairs, pair)) >= self._limits.pairs:
            raise _Refused("too many pairs", "one of the two parties has too many connections")
        caller.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait):
                parked = await self._claimed(pair[0], theirs)
        except TimeoutError:
            raise _Refused("nobody parked", f"{party} has no connection here") from None
        finally:
            caller.waiting -= 1

        def count(side: int, size: int) -> None:
            own.last = time.monotonic()
            self.bytes[pair[side]] += size

        # A connection that somebody else's call took is not the party's own doing.
        theirs.allowance.give_back()
        own.pair, own.last = pair, time.monotonic()
        try:
            await own.streams.say("OK")
            await splice(own.streams, parked.streams, count)
        finally:
            parked.done.set()

    async def _claimed(self, caller: Party, theirs: _Account) -> _Connection:
        """Return a parked connection whose party takes the caller."""
        while True:
            while not theirs.parked:
                theirs.arrived.clear()
                await theirs.arrived.wait()
            parked = theirs.parked.pop(0)
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
