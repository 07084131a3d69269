"""A virtual network: calls between machines through the product's own stubs, interceptor and servicers.

A call's messages are serialised, travel for a random time, and may be lost, cut off, delivered twice or late, or
altered by a hostile peer. Nothing in it knows what the calls mean.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import grpc

from tests.simulation.virtual import HERE, Killed, Machine
from veiltab.v1 import curator_pb2, curator_peer_pb2, server_release_pb2

NO_ANSWER_SECONDS = 40.0  # after so long gRPC's pings find that a connection is dead


@dataclass(kw_only=True)
class Faults:
    """What goes wrong in the network, as probabilities of one call; and whom nobody reaches."""

    lost_request: float = 0.0
    lost_reply: float = 0.0
    cut: float = 0.0
    repeat: float = 0.0
    slow: float = 0.0
    partitions: set[frozenset[str]] = field(default_factory=set)
    hostile: str = ""
    """Name of a party whose answers are altered, or empty."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a call: its status, OK without one."""

    code: grpc.StatusCode | None = None
    details: str = ""
    trailing: tuple[tuple[str, bytes], ...] = ()


_LOST = Ended(code=grpc.StatusCode.UNAVAILABLE, details="the connection was lost")
_LATE = Ended(code=grpc.StatusCode.DEADLINE_EXCEEDED, details="deadline exceeded")


@dataclass(kw_only=True)
class Service:
    """What a machine answers with: handlers by method, already behind the interceptor."""

    machine: Machine
    handlers: dict[str, Any]


class _Context:
    """What a handler sees of its call."""

    def __init__(self, call: "_Delivery", certificate: bytes, seconds: float, handler: Any) -> None:  # noqa: ANN401 - gRPC's
        self._call = call
        self._certificate = certificate
        self._seconds = seconds
        self._handler = handler
        self.ended: Ended | None = None

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        return {"x509_pem_cert": (self._certificate,)}

    def time_remaining(self) -> float:
        return self._seconds

    def peer(self) -> str:
        return "virtual:0"

    async def read(self) -> Any:  # noqa: ANN401 - a message
        data = await self._call.requests.get()
        return grpc.aio.EOF if data is None else self._handler.request_deserializer(data)

    async def write(self, message: Any) -> None:  # noqa: ANN401 - a message
        await self._call.answer(self._handler.response_serializer(message))

    async def abort(self, code: grpc.StatusCode, details: str, trailing: tuple[tuple[str, bytes], ...] = ()) -> None:
        self.ended = Ended(code=code, details=details, trailing=trailing)
        raise grpc.aio.AbortError

    async def messages(self) -> AsyncIterator[Any]:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message


@dataclass(kw_only=True, eq=False)
class _Delivery:
    """One arrival of a call at a machine."""

    network: "Network"
    method: str
    peer: str
    requests: "asyncio.Queue[bytes | None]"
    answers: "asyncio.Queue[bytes | Ended]"
    cut_after: int = 1 << 30

    async def answer(self, data: bytes) -> None:
        self.cut_after -= 1
        if self.cut_after < 0:
            self.answers.put_nowait(_LOST)
            return
        self.answers.put_nowait(self.network.altered(self.peer, self.method, data))

    async def run(self, service: Service, certificate: bytes, seconds: float) -> None:
        """Let the handler answer."""
        handler = service.handlers[self.method]
        context = _Context(self, certificate, seconds, handler)
        try:
            if handler.response_streaming:
                await handler.stream_stream(context.messages(), context)
            else:
                # The interceptor has serialised it.
                await self.answer(await handler.stream_unary(context.messages(), context))
            self.answers.put_nowait(Ended())
        except grpc.aio.AbortError:
            self.answers.put_nowait(context.ended or _LOST)
        except BaseException:
            self.answers.put_nowait(_LOST)
            raise


class Network:
    """All connections between machines.

    Args:
        rng: decides what goes wrong, and how long it takes.
        certificates: party -> its certificate, PEM.
        observe: shown each call that a handler has answered: method, caller, peer, requests, answers.
    """

    def __init__(
        self,
        rng: random.Random,
        certificates: dict[str, bytes],
        observe: Callable[[str, str, str, list[bytes], list[bytes]], None],
    ) -> None:
        self.faults = Faults()
        self.services: dict[str, Service] = {}
        self.trace: list[str] = []
        self.happened: Counter[str] = Counter()
        self._rng = rng
        self._certificates = certificates
        self._observe = observe
        self._earlier: dict[tuple[str, str], list[bytes]] = {}
        self._background: dict[asyncio.Task[None], None] = {}

    def channel(self, endpoint: str) -> "Channel":
        """Return a connection from the machine that asks for it; endpoints are "party:1"."""
        machine = HERE.get()
        assert machine is not None
        return Channel(self, machine, endpoint.partition(":")[0])

    def altered(self, peer: str, method: str, data: bytes) -> bytes:
        """Return what a peer says: the truth, or what a hostile one makes of it."""
        known = self._earlier.setdefault((peer, method), [])
        known.append(data)
        del known[:-20]
        if self.faults.hostile != peer or self._rng.random() > 0.08:
            return data
        self.happened["hostile answer"] += 1
        # Lists and receipts have a random length, on which nothing else that is drawn may depend.
        rng = random.Random(self._rng.getrandbits(64))  # noqa: S311 - what is played
        kind, place = rng.randrange(6), rng.randrange(len(data) + 1)
        return [
            b"",
            data[:place],
            data[:place] + rng.randbytes(1) + data[place + 1 :],
            data + data,
            rng.choice(known),
            rng.randbytes(len(data)),
        ][kind]

    def happens(self, fault: str, chance: float) -> bool:
        """Say whether a fault befalls a call."""
        happens = self._rng.random() < chance
        if happens:
            self.happened[fault] += 1
        return happens

    async def carry(  # noqa: PLR0913, PLR0917 - what a call is
        self,
        caller: Machine,
        peer: str,
        method: str,
        requests: "asyncio.Queue[bytes | None]",
        answers: "asyncio.Queue[bytes | Ended]",
        seconds: float,
    ) -> None:
        """Carry a call to its peer, and the answers back."""
        faults, rng = self.faults, self._rng
        lost_request, lost_reply = (
            self.happens("lost request", faults.lost_request),
            self.happens("lost reply", faults.lost_reply),
        )
        cut = rng.randrange(3) if self.happens("cut", faults.cut) else 1 << 30
        again = self.happens("repeat", faults.repeat)
        late = rng.uniform(0, 12) if self.happens("slow", faults.slow) else 0.0
        silent = rng.random() < 0.5
        await asyncio.sleep(rng.expovariate(200) + late)
        service = self.services.get(peer)
        apart = any({caller.name, peer} <= partition for partition in faults.partitions)
        name = f"{caller.name} -> {peer} {method.rpartition('/')[2]}"
        if lost_request or apart or service is None or service.machine.dead:
            self.note(f"{name} lost")
            answers.put_nowait(await self._silence(seconds) if silent and service is not None else _LOST)
            return
        kept: list[bytes] = []
        delivered: asyncio.Queue[bytes | None] = asyncio.Queue()
        delivery = _Delivery(
            network=self, method=method, peer=peer, requests=delivered, answers=asyncio.Queue(), cut_after=cut
        )
        serving = self._serve(delivery, service, caller.name, seconds - late)
        pumping = asyncio.create_task(_copied(requests, delivered, kept))
        said: list[bytes] = []
        try:
            while not isinstance(one := await delivery.answers.get(), Ended):
                said.append(one)
                if not lost_reply:
                    await asyncio.sleep(rng.expovariate(400))
                    answers.put_nowait(one)
            await asyncio.sleep(rng.expovariate(400))
            sizes = f"{sum(map(len, kept))} -> {sum(_size(method, one) for one in said)} bytes"
            sizes += f" in {len(kept)} -> {len(said)}"
            if method.endswith("Statement"):  # the length of an ECDSA signature is random
                sizes = "signed"
            elif method.endswith("FetchCanaries"):  # how many canaries a server samples is random
                sizes = f"{sum(map(len, kept))} bytes"
            self.note(f"{name} {one.code.name if one.code else 'OK'} {sizes}{' (reply lost)' if lost_reply else ''}")
            if one.code is None:
                self._observe(method, caller.name, peer, kept, said)
            answers.put_nowait((await self._silence(seconds) if silent else _LOST) if lost_reply else one)
        finally:
            pumping.cancel()
            if caller.dead and not serving.done():
                serving.cancel()
        if again:
            task = asyncio.create_task(self._repeat(method, caller.name, peer, kept, rng.uniform(0, 10)))
            self._background[task] = None
            task.add_done_callback(lambda done: self._background.pop(done, None))

    def _serve(self, delivery: _Delivery, service: Service, caller: str, seconds: float) -> "asyncio.Task[None]":
        """Start the handler on its machine."""
        context = copy_context()
        context.run(HERE.set, service.machine)
        task = asyncio.get_running_loop().create_task(
            delivery.run(service, self._certificates[caller], seconds), context=context
        )
        task.add_done_callback(looked_at)
        return task

    async def _repeat(self, method: str, caller: str, peer: str, requests: list[bytes], pause: float) -> None:
        """Deliver a call that was delivered before; nobody hears the answer."""
        await asyncio.sleep(pause)
        service = self.services.get(peer)
        if service is None or service.machine.dead:
            return
        again: asyncio.Queue[bytes | None] = asyncio.Queue()
        for request in [*requests, None]:
            again.put_nowait(request)
        delivery = _Delivery(network=self, method=method, peer=peer, requests=again, answers=asyncio.Queue())
        serving = self._serve(delivery, service, caller, 60.0)
        await asyncio.wait({serving})
        self.note(f"{caller} -> {peer} {method.rpartition('/')[2]} delivered again")

    async def _silence(self, seconds: float) -> Ended:
        await asyncio.sleep(min(seconds, NO_ANSWER_SECONDS))
        return _LATE

    def note(self, text: str) -> None:
        """Keep what happened, with its time."""
        self.trace.append(f"{asyncio.get_running_loop().time():10.4f} {text}")


async def _copied(
    source: "asyncio.Queue[bytes | None]", target: "asyncio.Queue[bytes | None]", kept: list[bytes]
) -> None:
    while (data := await source.get()) is not None:
        kept.append(data)
        target.put_nowait(data)
    target.put_nowait(None)


def looked_at(task: "asyncio.Task[None]") -> None:
    """Look at how a task ended, so that asyncio does not complain that nobody did."""
    if not task.cancelled():
        task.exception()


class _Method:
    """One RPC of a connection, called as gRPC's multi-callables are."""

    def __init__(self, channel: "Channel", method: str, to_bytes: Callable[..., bytes], from_bytes: Any) -> None:  # noqa: ANN401 - gRPC's
        self._channel = channel
        self._method = method
        self.to_bytes = to_bytes
        self._from_bytes = from_bytes

    def begin(self, requests: "asyncio.Queue[bytes | None]", seconds: float) -> "asyncio.Queue[bytes | Ended]":
        """Begin a call; return where its answers come."""
        answers: asyncio.Queue[bytes | Ended] = asyncio.Queue()
        network, machine = self._channel.network, self._channel.machine
        if machine.dead:
            raise Killed
        carrying = asyncio.get_running_loop().create_task(
            network.carry(machine, self._channel.peer, self._method, requests, answers, seconds), context=_nowhere()
        )
        carrying.add_done_callback(looked_at)
        asyncio.get_running_loop().call_later(seconds, answers.put_nowait, _LATE)
        return answers

    def read(self, one: bytes | Ended) -> Any:  # noqa: ANN401 - a message
        """Return a message, or raise what gRPC raises at the end of a call."""
        if isinstance(one, bytes):
            try:
                return self._from_bytes(one)
            except Exception:  # noqa: BLE001 - protobuf's
                one = Ended(code=grpc.StatusCode.INTERNAL, details="the answer is not a message of this RPC")
        raise grpc.aio.AioRpcError(
            one.code or grpc.StatusCode.UNKNOWN,
            grpc.aio.Metadata(),
            grpc.aio.Metadata(*one.trailing),
            details=one.details,
        )

    async def one(self, request: Any, timeout: float) -> Any:  # noqa: ANN401, ASYNC109 - gRPC's names
        """Send one message, and return one."""
        requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        requests.put_nowait(self.to_bytes(request))
        requests.put_nowait(None)
        return self.read(await self.begin(requests, timeout).get())

    async def upload(self, messages: AsyncIterator[Any], timeout: float) -> Any:  # noqa: ANN401, ASYNC109 - as above
        requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        answers = self.begin(requests, timeout)
        broken = False

        async def pump() -> None:
            nonlocal broken
            try:
                async for message in messages:
                    requests.put_nowait(self.to_bytes(message))
                    await asyncio.sleep(0.001)
                requests.put_nowait(None)
            except Exception:  # noqa: BLE001 - as gRPC does
                broken = True
                answers.put_nowait(_LOST)

        pumping = asyncio.create_task(pump())
        try:
            one = await answers.get()
        finally:
            pumping.cancel()
            requests.put_nowait(None)  # a call that its caller gives up ends at the peer too
        if broken:
            raise asyncio.CancelledError
        return self.read(one)

    def many(self, request: Any, timeout: float) -> "_Stream":  # noqa: ANN401 - gRPC's names
        """Send one message, and return what yields some."""
        requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        requests.put_nowait(self.to_bytes(request))
        requests.put_nowait(None)
        return _Stream(self, self.begin(requests, timeout))

    def both(self, messages: AsyncIterator[Any], timeout: float) -> "_Dialogue":
        """Send some messages, and return what reads some meanwhile."""
        return _Dialogue(self, messages, timeout)


class _Stream:
    """The answers of a call, one after another."""

    def __init__(self, method: _Method, answers: "asyncio.Queue[bytes | Ended]") -> None:
        self._method = method
        self._answers = answers
        self._over = False

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message
        if self._over:
            raise StopAsyncIteration
        one = await self._answers.get()
        self._over = isinstance(one, Ended)
        if one == Ended():
            raise StopAsyncIteration
        return self._method.read(one)

    def cancel(self) -> None:
        """Take no more answers."""
        self._over = True


class _Dialogue:
    """A call in which both sides send messages until one of them ends it."""

    def __init__(self, method: _Method, messages: AsyncIterator[Any], seconds: float) -> None:
        self._method = method
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answers = method.begin(self._requests, seconds)
        self._sending = asyncio.create_task(self._send(messages))

    async def _send(self, messages: AsyncIterator[Any]) -> None:
        try:
            async for message in messages:
                self._requests.put_nowait(self._method.to_bytes(message))
        finally:
            self._requests.put_nowait(None)

    async def read(self) -> Any:  # noqa: ANN401 - a message
        """Return the next answer, or what says that there is none."""
        one = await self._answers.get()
        return grpc.aio.EOF if one == Ended() else self._method.read(one)

    def cancel(self) -> None:
        """End the call."""
        self._sending.cancel()


def _nowhere() -> Any:  # noqa: ANN401 - a Context
    context = copy_context()
    context.run(HERE.set, None)
    return context


class Channel:
    """A connection from one machine to one party, as the generated stubs use it."""

    def __init__(self, network: Network, machine: Machine, peer: str) -> None:
        self.network = network
        self.machine = machine
        self.peer = peer

    def unary_unary(self, method: str, request_serializer: Any, response_deserializer: Any, **_: object) -> Any:  # noqa: ANN401 - of any kind
        return _Method(self, method, request_serializer, response_deserializer).one

    def unary_stream(self, method: str, request_serializer: Any, response_deserializer: Any, **_: object) -> Any:  # noqa: ANN401 - of any kind
        return _Method(self, method, request_serializer, response_deserializer).many

    def stream_unary(self, method: str, request_serializer: Any, response_deserializer: Any, **_: object) -> Any:  # noqa: ANN401 - of any kind
        return _Method(self, method, request_serializer, response_deserializer).upload

    def stream_stream(self, method: str, request_serializer: Any, response_deserializer: Any, **_: object) -> Any:  # noqa: ANN401 - of any kind
        return _Method(self, method, request_serializer, response_deserializer).both

    async def close(self) -> None:
        """Do nothing."""


def _size(method: str, answer: bytes) -> int:
    """Return the bytes of an answer, without what has a random length: changed canaries, their tests, signatures."""
    message: Any
    match method.rpartition("/")[2]:
        case "GetReceipt":
            message = curator_pb2.GetReceiptResponse.FromString(answer)
            _clear_tests(message)
        case "GetCanaryChanges":
            return 0
        case "ProposeRelease":
            message = curator_pb2.ProposeReleaseResponse.FromString(answer)
            if message.HasField("proposal"):
                _clear_random(message.proposal)
        case "GetProposal":
            message = curator_pb2.GetProposalResponse.FromString(answer)
            _clear_random(message)
        case "GetRelease":
            message = server_release_pb2.GetReleaseResponse.FromString(answer)
            message.ClearField("statement")
        case "FollowProgress":
            message = curator_peer_pb2.FollowProgressResponse.FromString(answer)
            for one in message.releases:
                one.ClearField("checkpoint")
        case _:
            return len(answer)
    return int(message.ByteSize())


def _clear_random(proposal: curator_pb2.GetProposalResponse) -> None:
    proposal.ClearField("statement")
    if proposal.HasField("receipt"):
        _clear_tests(proposal.receipt)


def _clear_tests(receipt: curator_pb2.GetReceiptResponse) -> None:
    receipt.ClearField("receipts")
    receipt.ClearField("changes")
