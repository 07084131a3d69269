"""Releases of several tables, asked of curators by a raw client in the place of a researcher's service."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from secrets import token_hex

from tests.protocol.village import FREE, TWO
from tests.protocol.wire import SECONDS, answer, connection
from tests.protocol.world import ROSA, Who, World
from veiltab.common.release.messages.release_messages import release_from_proto, request_to_proto, state_from_proto
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Role
from veiltab.v1 import curator_pb2, curator_pb2_grpc

PAIRS = (("region", "income"), ("region", "smoker"), ("income", "employed"))
"""Three tables of four attributes, one of them of alice's alone."""


def several(**changes: object) -> ReleaseRequest:
    """Return a request for several tables, under an id of its own."""
    fields = {
        "release_id": token_hex(16),
        "researcher": "rosa",
        "attributes": FREE,
        "epsilon": Decimal(4),
        "delta": Decimal("1e-6"),
        "purpose": "linked data",
        "deadline": int(time.time()) + 60,
        "canaries": 20,
        "tables": PAIRS,
    } | changes
    return ReleaseRequest(**fields)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class RawDesk:
    """What asks curators, with a researcher's certificate."""

    world: World
    who: Who = ROSA

    @property
    def curators(self) -> list[Who]:
        return [(Role.CURATOR, curator.name) for curator in self.world.local.study.curators]

    def propose(self, request: ReleaseRequest) -> None:
        """Ask every curator."""
        for curator in self.curators:
            asyncio.run(self._propose(curator, request))

    async def _propose(self, curator: Who, request: ReleaseRequest) -> None:
        message = curator_pb2.ProposeReleaseRequest(
            study_digest=self.world.local.study.digest, request=request_to_proto(request)
        )
        async with connection(self.world, self.who, curator) as channel:
            await answer(curator_pb2_grpc.CuratorServiceStub(channel).ProposeRelease(message, timeout=SECONDS))

    def proposal(self, curator: Who, release_id: str) -> curator_pb2.GetProposalResponse:
        """Ask a curator how a release stands."""

        async def ask() -> curator_pb2.GetProposalResponse:
            request = curator_pb2.GetProposalRequest(release_id=release_id)
            async with connection(self.world, self.who, curator) as channel:
                stub = curator_pb2_grpc.CuratorServiceStub(channel)
                return await answer(stub.GetProposal(request, timeout=SECONDS))

        return asyncio.run(ask())

    def choose(self, curator: Who, release_id: str, numbers: Sequence[int]) -> None:
        """Choose at one curator the tables that run a second time."""

        async def ask() -> None:
            request = curator_pb2.ChooseTablesRequest(release_id=release_id, numbers=numbers)
            async with connection(self.world, self.who, curator) as channel:
                await answer(curator_pb2_grpc.CuratorServiceStub(channel).ChooseTables(request, timeout=SECONDS))

        asyncio.run(ask())

    def states(self, release_id: str) -> list[ReleaseState]:
        """Return how a release stands at every curator."""
        return [state_from_proto(self.proposal(curator, release_id).state) for curator in self.curators]

    def workload(self, release_id: str) -> ReleaseSpec:
        """Return the tables that every curator planned."""
        (planned,) = {release_from_proto(self.proposal(c, release_id).spec) for c in self.curators}
        return planned

    def wait(self, release_id: str, is_there: Callable[[list[ReleaseState]], bool], seconds: float = 40) -> None:
        """Wait until a release stands somewhere at the curators."""
        end = time.monotonic() + seconds
        while not is_there(states := self.states(release_id)):
            assert time.monotonic() < end, (states, [self.proposal(c, release_id) for c in self.curators])
            time.sleep(0.1)

    def wait_for(self, release_id: str, state: ReleaseState, seconds: float = 40) -> None:
        """Wait until a release is in a state at every curator."""
        self.wait(release_id, lambda states: set(states) == {state}, seconds)


def owner_of(attribute: str) -> Who:
    return (Role.CURATOR, TWO[attribute])
