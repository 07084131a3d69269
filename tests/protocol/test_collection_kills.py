"""SIGKILL of server and fleet in the middle of a round: nothing acknowledged is lost, nothing is counted twice."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.protocol.polling import STRATA, Asked, Poll, made_poll, reason
from tests.protocol.world import CLOUD, launcher
from veiltab.common.collection.round import RoundState
from veiltab.node.answers.journal import Journal
from veiltab.node.answers.values import Fleet, NodeValue
from veiltab.node.reporters.fleet import FleetResult, FleetRun
from veiltab.v1 import collection_pb2

STORE = "veiltab.server.rounds.rounds_store:CollectionStore"


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Poll]:
    """A study whose server may be killed."""
    poll = made_poll(tmp_path_factory.mktemp("mortal") / "study", budget="200")
    with poll.local:
        yield poll


class Ear:
    """The server's stub, and what went through it."""

    def __init__(self, stub: Any) -> None:  # noqa: ANN401 - as generated
        self._stub = stub
        self.sent: dict[bytes, bytes] = {}
        self.acknowledged: set[bytes] = set()
        self.bells: dict[int, asyncio.Event] = {}

    async def Report(  # noqa: N802 - its name in the protocol
        self,
        request: collection_pb2.ReportRequest,
        timeout: float,  # noqa: ASYNC109 - gRPC's name
    ) -> collection_pb2.ReportResponse:
        """Hand in a report; a node that has sent one never sends another."""
        data = request.SerializeToString()
        assert self.sent.setdefault(request.token, data) == data
        response: collection_pb2.ReportResponse = await self._stub.Report(request, timeout=timeout)
        self.acknowledged.add(request.token)
        if bell := self.bells.get(len(self.acknowledged)):
            bell.set()
        return response

    @property
    def requests(self) -> list[collection_pb2.ReportRequest]:
        """What each node sent."""
        return [collection_pb2.ReportRequest.FromString(data) for data in self.sent.values()]


def fleet_of(asked: Asked) -> Fleet:
    tokens = [(stratum, token) for stratum in STRATA for token in asked.tokens[stratum]]
    nodes = [
        NodeValue(node=number, stratum=stratum, symbol=number % asked.spec.size, token=token)
        for number, (stratum, token) in enumerate(tokens)
    ]
    return Fleet(nodes=tuple(nodes), bad_rows=(), digest=bytes(32))


async def run(poll: Poll, asked: Asked, ear: Ear, journal: Journal) -> FleetResult:
    started = FleetRun(
        cast("Any", ear),
        poll.local.study,
        asked.spec,
        journal,
        signed="",
        state=RoundState.OPEN,
        concurrency=16,
        within=60.0,
    )
    return await started.run(fleet_of(asked), lambda _done, _total: None)


async def restarted(poll: Poll, points: Sequence[str]) -> None:
    """Whenever the server has killed itself, start it again with another point; at last without one."""
    for point in (*points, ""):
        await asyncio.to_thread(poll.local.wait_for_end, *CLOUD)
        poll.local.start(*CLOUD, launcher=launcher(point) if point else None)


async def answers(poll: Poll, requests: Sequence[collection_pb2.ReportRequest]) -> Counter[str]:
    async with poll.stub() as stub:
        return Counter([await reason(stub, request, poll) for request in requests])


def check(asked: Asked, ear: Ear, result: FleetResult) -> None:
    """See that each report was counted once, whatever was killed, and that all acknowledged ones are known."""
    assert (result.counted, result.unanswered, sum(result.refused.values())) == (len(ear.sent), 0, 0)
    known = [request for request in ear.requests if request.token in ear.acknowledged]
    assert asyncio.run(answers(asked.poll, known)) == {"TOKEN_SPENT": len(known)}
    assert sum(asked.reports()) == len(ear.sent)
    assert asked.counts() == asked.sum_of(ear.requests)


def survive(poll: Poll, folder: Path, points: Sequence[str], *, nodes: int) -> None:
    """Run a fleet while the server kills itself at one point after the other."""
    poll.start(launcher(points[0]))
    asked = poll.opened(nodes // 2)

    async def scenario() -> tuple[Ear, FleetResult]:
        with closing(Journal(folder)) as journal:
            async with poll.stub() as stub:
                ear = Ear(stub)
                tending = asyncio.create_task(restarted(poll, points[1:]))
                result = await run(poll, asked, ear, journal)
                await tending
                return ear, result

    ear, result = asyncio.run(scenario())
    poll.local.wait_for(*CLOUD)
    check(asked, ear, result)
    poll.local.kill(*CLOUD, signal.SIGTERM)


def test_a_server_that_is_killed_loses_and_repeats_nothing(
    mortal: Poll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of a transaction: after tokens were spent, and after reports were counted too."""
    monkeypatch.setattr("veiltab.common.rpc.waiting.retries.LONGEST_PAUSE", 0.3)
    survive(mortal, tmp_path, [f"{STORE}._spend:3:after", f"{STORE}._count:2:after"], nodes=100)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_is_killed_at_random_points(mortal: Poll, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ("record:{}", "record:{}:after", "_spend:{}", "_spend:{}:after", "_count:{}", "_count:{}:after")
    points = [f"{STORE}.{kinds[rng.integers(6)]}".format(rng.integers(2, 9)) for _ in range(8)]
    survive(mortal, tmp_path, points, nodes=1000)
