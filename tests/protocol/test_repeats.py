"""Replies that are lost and calls that come again: each has its effect once."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from itertools import cycle, islice, product

import grpc
import pytest

from tests.protocol.chance import agreement
from tests.protocol.wire import Published, answer, connection, fetch_key
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World
from veiltab.common.errors import ConflictError, UnavailableError
from veiltab.common.release.messages.release_messages import request_to_proto, state_from_proto
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.v1 import curator_pb2, curator_pb2_grpc, researcher_pb2, researcher_pb2_grpc

NAMES = ("region", "income")
SURE = 1e-6  # level at which an answer is wrong


def request() -> ReleaseRequest:
    return ReleaseRequest(
        release_id=secrets.token_hex(16),
        researcher="rosa",
        attributes=NAMES,
        epsilon=Decimal(4),
        deadline=int(time.time()) + 3600,
    )


@dataclass(frozen=True, kw_only=True)
class Asker:
    """The researcher's certificate without her service: calls to the curators and to the server."""

    digest: str
    curators: tuple[grpc.aio.Channel, ...]
    server: Published

    def proposal(self, wanted: ReleaseRequest) -> curator_pb2.ProposeReleaseRequest:
        return curator_pb2.ProposeReleaseRequest(study_digest=self.digest, request=request_to_proto(wanted))

    async def submit(self, wanted: ReleaseRequest, *, within: float = 20.0) -> None:
        """Send a request to both curators."""
        message = self.proposal(wanted)
        stubs = [curator_pb2_grpc.CuratorServiceStub(channel) for channel in self.curators]
        await asyncio.gather(*(answer(stub.ProposeRelease(message, timeout=within)) for stub in stubs))

    async def ready(self, release_id: str) -> None:
        """Wait until the server has published, and every curator has tested it."""
        question = curator_pb2.GetProposalRequest(release_id=release_id)
        stubs = [curator_pb2_grpc.CuratorServiceStub(channel) for channel in self.curators]
        for _ in range(400):
            await asyncio.sleep(0.05)
            answers = [await answer(stub.GetProposal(question, timeout=20.0)) for stub in stubs]
            if all(state_from_proto(one.state) is ReleaseState.READY for one in answers):
                return
        raise AssertionError(release_id)


@asynccontextmanager
async def asker_of(world: World) -> AsyncIterator[Asker]:
    """Connect with the researcher's certificate."""
    async with (
        connection(world, ROSA, ALICE) as alice,
        connection(world, ROSA, BOB) as bob,
        connection(world, ROSA, CLOUD) as cloud,
    ):
        yield Asker(digest=world.local.study.digest, curators=(alice, bob), server=Published.on(cloud))


def check_charged_once(world: World, release_id: str) -> None:
    assert world.charges("alice").count(release_id) == world.charges("bob").count(release_id) == 1


async def test_fifty_identical_requests_at_once_are_one_release(village: World) -> None:
    wanted = request()
    async with asker_of(village) as asker:
        await asyncio.gather(*(asker.submit(wanted) for _ in range(50)))
        await asker.ready(wanted.release_id)
        before = village.published(wanted.release_id)
        await asyncio.gather(*(asker.submit(wanted) for _ in range(50)))
        await asyncio.sleep(0.5)
        assert village.published(wanted.release_id) == before
        with pytest.raises(ConflictError, match="another request is recorded under this release id"):
            await asker.submit(replace(wanted, epsilon=Decimal(5)))
    check_charged_once(village, wanted.release_id)


async def test_a_request_whose_reply_is_lost_is_one_release(village: World) -> None:
    wanted = request()
    async with asker_of(village) as asker:
        lost = 0
        for attempt in range(30):
            try:
                # From far too short to long enough: some arrive and lose their reply on the way.
                await asker.submit(wanted, within=0.00005 * 1.25**attempt)
            except UnavailableError:
                lost += 1
        assert lost
        await asker.submit(wanted)
        await asker.ready(wanted.release_id)
        columns = [await asker.server.column(wanted.release_id, "region") for _ in range(2)]
        assert columns[0] == columns[1]
        keys = [await fetch_key(asker.curators[0], wanted.release_id, "region", column) for column in columns]
        assert keys[0] == keys[1]
    check_charged_once(village, wanted.release_id)


async def test_a_connection_that_is_cut_after_the_request_changes_nothing(village: World) -> None:
    wanted = request()
    async with asker_of(village) as asker:
        message = asker.proposal(wanted)
        for _ in range(10):
            async with connection(village, ROSA, ALICE) as alice:
                call = curator_pb2_grpc.CuratorServiceStub(alice).ProposeRelease(message, timeout=20)
                await asyncio.sleep(0.01)
                call.cancel()
        await asker.submit(wanted)
        await asker.ready(wanted.release_id)
    check_charged_once(village, wanted.release_id)


async def test_fifty_identical_starts_at_the_researcher_s_service_are_one_release(village: World) -> None:
    label = village.label()
    digest = village.local.study.digest
    messages = [
        researcher_pb2.StartReleaseRequest(request=request_to_proto(request()), label=label, study_digest=digest)
        for _ in range(50)
    ]

    async with connection(village, ROSA, ROSA) as channel:
        stub = researcher_pb2_grpc.ResearcherServiceStub(channel)
        answers = await asyncio.gather(*(answer(stub.StartRelease(message, timeout=20)) for message in messages))
    (release_id,) = {one.release_id for one in answers}
    assert [one.continued for one in answers].count(False) == 1
    with village.client() as client:
        release = client.release(release_id)
        release.wait(30)
        assert agreement(release.estimate(), village.people.counts(NAMES)) > SURE
    check_charged_once(village, release_id)


@pytest.mark.parametrize("number", [8, pytest.param(50, marks=pytest.mark.long)])
def test_releases_at_once_of_two_researchers_keep_apart(village: World, number: int) -> None:
    before = len(village.charges("alice"))
    spent_before = {name: spent_keys(village, name) for name in ("alice", "bob")}
    tables = [("region", "income"), ("smoker", "employed"), ("region",), ("income", "smoker"), ("employed",)]
    modes = ((Pad.CHACHA20, Sampling.SEED), (Pad.OTP, Sampling.INDICES))
    with village.client("rosa") as rosa, village.client("rita") as rita:
        releases = [
            (names, client.request(names, epsilon="4", pad=pad, sampling=sampling, label=village.label()))
            for names, client, (pad, sampling) in islice(cycle(product(tables, (rosa, rita), modes)), number)
        ]
        for names, release in releases:
            release.wait(240)
            assert release.status().granted == names
            assert agreement(release.estimate(), village.people.counts(names)) > SURE
    ids = [release.id for _, release in releases]
    for curator in ("alice", "bob"):
        charges = village.charges(curator)
        assert len(charges) - before == len(set(ids)) == number
        assert all(charges.count(release_id) == 1 for release_id in ids)
    published = [piece for release_id in ids for piece in village.published(release_id).values()]
    assert len(set(published)) == len(published)
    made = []
    for curator in ("alice", "bob"):
        with village.store(curator) as store:
            pads = store.connection.execute("SELECT release_id, key FROM pad").fetchall()
            shared = store.connection.execute("SELECT fingerprint, release_id FROM spent_shared_key").fetchall()
        made += [row["key"] for row in pads if row["release_id"] in ids]
        fingerprints = {sha256(row["key"]).digest() for row in pads if row["release_id"] in ids}
        spent = spent_keys(village, curator) - spent_before[curator]
        # Beside its pad each column has the key of the symbols that replace others, which is spent and not kept.
        assert fingerprints < spent
        assert len(spent) == 2 * len(fingerprints)
        # Every release has a coin key and a canary key; no two releases have one in common.
        assert len({row["fingerprint"] for row in shared}) == len(shared)
        assert [sum(row["release_id"] == release_id for row in shared) for release_id in ids] == [2] * number
        assert not spent & {row["fingerprint"] for row in shared}
    assert len(set(made)) == len(made) == len(published)


def spent_keys(world: World, curator: str) -> set[bytes]:
    """Return the fingerprints of the keys that a curator made and will not take again."""
    with world.store(curator) as store:
        rows = store.connection.execute("SELECT fingerprint FROM spent_key").fetchall()
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    return {row["fingerprint"] for row in rows}
