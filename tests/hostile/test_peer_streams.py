"""A curator that sends another one numbers, texts and streams without an end; the other goes on, and stays small."""

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import psutil
import pytest

from tests.hostile.clients import Behaviour, Message, call, code_of, connection, impostor, message, number_of, proposal
from tests.protocol.village import Rules
from tests.protocol.world import ALICE, BOB, ROSA, World, made_world
from veiltab.common.core.coin import commitment
from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.rpc.certificates.checkpoint import signed_checkpoint
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import load_identity, utc_now
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.study.limits import MAX_RESPONDENTS
from veiltab.curator.budget.entries import GENESIS

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
PEER = "CuratorPeerService"
PIECE = b"\x5a" * 500_000
MOST = 64 * 2**20
"""Bytes of memory, or of disk, that an attack may cost for a while."""


@contextmanager
def alice_alone(folder: Path, alignment: str = "tokens", hub: str = "alice") -> Iterator[World]:
    """Start alice, whose peer is the test."""
    world = made_world(folder / "study", rules=Rules(alignment=alignment, complete=False))
    text = world.local.study_path.read_text("utf-8")
    world.local.study_path.write_text(text.replace('hub = "alice"', f'hub = "{hub}"'), "utf-8")
    with world.local:
        world.start(ALICE)
        yield world


@dataclass(kw_only=True)
class Bob:
    """What bob says: the truth, or what alice says herself, until a behaviour is replaced.

    Args:
        world: the study.
        alice: his connection to her.
    """

    world: World
    alice: grpc.aio.Channel
    shares: dict[str, bytes] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    sent: int = 0

    async def hello(self, _request: Message, _context: Context) -> Message:
        self.asked.add("Hello")
        return message("HelloResponse", study_digest=self.world.local.study.digest, table_version="b" * 32)

    async def commit(self, request: Message, _context: Context) -> Message:
        share = self.shares.setdefault(request.coin_id, secrets.token_bytes(32))
        mine = commitment(request.coin_id, "bob", share)
        own = message("CommitRequest", coin_id=request.coin_id, commitment=mine)
        await call(self.alice, f"{PEER}/Commit")(own, timeout=10)
        return message("CommitResponse", commitment=mine)

    async def reveal(self, request: Message, _context: Context) -> Message:
        return message("RevealResponse", share=self.shares[request.coin_id])

    async def tokens(self, request: Message, _context: Context) -> AsyncIterator[Message]:
        self.asked.add("FetchTokens")
        own = message("FetchTokensRequest", alignment_id=request.alignment_id)
        async for answer in call(self.alice, f"{PEER}/FetchTokens")(own, timeout=10):
            yield answer

    async def session(self, request: Message, _context: Context) -> Message:
        own = message("GetSessionRequest", alignment_id=request.alignment_id)
        await call(self.alice, f"{PEER}/GetSession")(own, timeout=10)
        return message("GetSessionResponse", part=bytes(16), size=3 * 2**15)

    def checkpoint(self, release: str) -> SignedText:
        """Return what he signs of a ledger of one entry."""
        identity = load_identity(self.world.local.identity_folder(*BOB), *BOB)
        return signed_checkpoint(identity, LedgerHead(length=1, digest="b" * 64), release, utc_now())

    async def progress(self, requests: AsyncIterator[Message], _context: Context) -> AsyncIterator[Message]:
        async for said in call(self.alice, f"{PEER}/FollowProgress")(requests, timeout=100):
            for release in said.releases:
                release.decided = release.reserved = release.charged = True
                release.granted[:] = ["income"]
                release.ClearField("commitment")
                release.checkpoint = canonical_text(self.checkpoint(release.release_id)).encode()
            yield said

    def endless(self, kind: str, total: int) -> Behaviour:
        """Return a stream of sound chunks that does not end."""

        async def stream(_request: Message, _context: Context) -> AsyncIterator[Message]:
            self.asked.add(kind)
            digest = sha256(PIECE).digest()
            while True:
                chunk = message("Chunk", offset=self.sent, data=PIECE, digest=digest)
                yield message(f"{kind}Response", total=total, chunk=chunk)
                self.sent += len(PIECE)

        return stream

    def behaviours(self, **replaced: Behaviour) -> dict[str, Behaviour]:
        """Return what he says to each question."""
        usual = {
            "Hello": self.hello,
            "Commit": self.commit,
            "Reveal": self.reveal,
            "FetchTokens": self.tokens,
            "GetSession": self.session,
            "FollowProgress": self.progress,
        }
        return {f"{PEER}/{name}": behaviour for name, behaviour in (usual | replaced).items()}


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for what another party does by itself."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.1)


async def check_alive(world: World) -> None:
    """Alice has not ended, and answers."""
    assert world.local._running[ALICE].poll() is None, world.log(ALICE)[-2000:]
    async with connection(world.local, BOB, ALICE) as channel:
        greeting = message("HelloRequest", study_digest=world.local.study.digest, ledger_head=GENESIS)
        assert await code_of(call(channel, f"{PEER}/Hello")(greeting, timeout=20)) is grpc.StatusCode.OK


def rss(world: World) -> int:
    """Return the memory that alice takes."""
    size: int = psutil.Process(world.local._running[ALICE].pid).memory_info().rss
    return size


def disk(world: World) -> int:
    """Return the bytes of alice's state."""
    total = 0
    for folder, _, names in os.walk(world.local.state_folder(*ALICE)):
        for name in names:
            path = Path(folder) / name
            total += path.stat().st_size if path.exists() else 0
    return total


@pytest.mark.parametrize(
    "answer",
    [
        {"witnessed_length": 2**64 - 1},
        pytest.param({"witnessed_length": 2**63, "witnessed_head": b"h" * 1_000_000}, marks=pytest.mark.long),
        {"table_version": "v" * 1_000_000},
        pytest.param({"table_version": "\x1b[2J\x1b]0;owned\x07"}, marks=pytest.mark.long),
    ],
    ids=["length", "length and head", "long version", "terminal"],
)
def test_a_greeting_that_no_curator_would_send_ends_nobody(tmp_path: Path, answer: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        async with connection(world.local, BOB, ALICE) as channel:
            bob = Bob(world=world, alice=channel)

            async def hello(request: Message, context: Context) -> Message:
                said = await bob.hello(request, context)
                said.MergeFrom(message("HelloResponse", **answer))
                return said

            async with impostor(world.local, BOB, bob.behaviours(Hello=hello)):
                await until(lambda: bob.asked == {"Hello"})
                await asyncio.sleep(1)
                await check_alive(world)

    with alice_alone(tmp_path) as world:
        asyncio.run(scenario(world))
        assert "\x1b" not in world.log(ALICE)
        assert "alignment refused" in world.log(ALICE)


def test_a_ledger_of_a_length_that_no_ledger_has_is_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> grpc.StatusCode:
        async with connection(world.local, BOB, ALICE) as channel:
            greeting = message("HelloRequest", study_digest=world.local.study.digest, ledger_length=2**64 - 1)
            return await code_of(call(channel, f"{PEER}/Hello")(greeting, timeout=20))

    with alice_alone(tmp_path) as world:
        assert asyncio.run(scenario(world)) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.long
@pytest.mark.parametrize(
    ("rpc", "alignment", "hub", "total"),
    [
        ("FetchTokens", "tokens", "bob", 2**40),
        ("FetchTokens", "tokens", "bob", 16 * (MAX_RESPONDENTS + 1)),
        ("FetchJoin", "oblivious", "alice", 2**40),
        ("FetchJoin", "oblivious", "alice", 32),
        ("FetchJoin", "oblivious", "bob", 2**15),
    ],
    ids=["tokens of anything", "more than all tokens", "a spoke's message", "one past its length", "a hub's"],
)
def test_streams_without_an_end_fill_no_disk(tmp_path: Path, rpc: str, alignment: str, hub: str, total: int) -> None:
    async def scenario(world: World) -> None:
        async with connection(world.local, BOB, ALICE) as channel:
            bob = Bob(world=world, alice=channel)
            async with impostor(world.local, BOB, bob.behaviours(**{rpc: bob.endless(rpc, total)})):
                await until(lambda: rpc in bob.asked)
                before, largest = rss(world), 0
                for _ in range(50):
                    largest = max(largest, disk(world))
                    await asyncio.sleep(0.1)
                assert largest < MOST
                assert rss(world) - before < MOST
                await check_alive(world)

    with alice_alone(tmp_path, alignment, hub) as world:
        asyncio.run(scenario(world))
        assert alignment == "tokens" or "alignment refused" in world.log(ALICE)


@pytest.mark.long
@pytest.mark.parametrize("total", [2**40, 2**33], ids=["of anything", "of all rows"])
def test_indices_without_an_end_fill_no_memory(tmp_path: Path, total: int) -> None:
    async def scenario(world: World) -> None:
        async with connection(world.local, BOB, ALICE) as channel, connection(world.local, ROSA, ALICE) as rosa:
            bob = Bob(world=world, alice=channel)
            stream = bob.endless("FetchIndices", total)
            async with impostor(world.local, BOB, bob.behaviours(FetchIndices=stream)):
                await until(lambda: "Hello" in bob.asked)
                indices = number_of("SamplingMode", "SAMPLING_MODE_INDICES")
                asked = proposal(world.local, 1, attributes=["income"], sampling=indices)
                await call(rosa, "CuratorService/ProposeRelease")(asked, timeout=20)
                await until(lambda: "FetchIndices" in bob.asked)
                before = rss(world)
                await asyncio.sleep(5)
                assert rss(world) - before < MOST
                await check_alive(world)

    with alice_alone(tmp_path) as world:
        asyncio.run(scenario(world))
