"""Curators that talk to each other, in one process."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from tests.worlds.loops import blocking
from tests.worlds.states import curator_parts
from veiltab.common.errors import NotReadyError
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.peer import Peer
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.party.service import CuratorPeerServicer
from veiltab.curator.peers.calls import Pace, Peers
from veiltab.curator.peers.coins import NO_COMMITMENTS
from veiltab.curator.peers.subscriptions import PeerAnswer
from veiltab.curator.release.curator import Curator
from veiltab.curator.release.rpc_answers import RpcAnswers

CAROL = b'[[curator]]\nname = "carol"\nendpoint = "localhost:7403"\nid_columns = ["id"]\n'


ID = "0" * 31 + "1"


ALIGNMENT, OTHER, RELEASE = "alignment/" + "a" * 32, "alignment/" + "b" * 32, f"release/{ID}"


class AskedOnce(Peer[Any]):
    """A peer whose answer counts at once: what is not ready is not asked for again for five seconds."""

    async def ask(self, method: Any, request: Any, *, within: float = 1.0, once: bool = True) -> Any:  # noqa: ANN401 - of any kind
        del once
        return await super().ask(method, request, within=within, once=True)


@dataclass
class Village:
    """Three curators in this process; a call is a call of the peer's servicer."""

    study: Study
    folder: Path
    parts: dict[str, Curator] = field(default_factory=dict)
    twist: dict[tuple[str, str], Callable[[Any], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("alice", "bob", "carol"):
            party = Party(study="survey", role=Role.CURATOR, name=name)
            self.parts[name] = curator_parts(self.folder / name, self.study, identity=party)
            for coin in (ALIGNMENT, OTHER):  # it has begun both
                self.parts[name].coins.share(coin)

    def peers(self, name: str) -> Peers:
        peers = object.__new__(Peers)
        peers._study, peers._paces = self.study, defaultdict(Pace)
        others = [other for other in self.parts if other != name]
        peers.curators = {
            other: AskedOnce(
                Party(study="survey", role=Role.CURATOR, name=other), cast("Any", other), partial(self.stub, name)
            )
            for other in others
        }
        return peers

    def stub(self, caller: str, peer: Any) -> Any:  # noqa: ANN401 - a channel that is the peer's name
        servicer = CuratorPeerServicer(RpcAnswers(self.parts[peer]))

        def method(rpc: str) -> Callable[..., Any]:
            async def called(request: Any, timeout: float) -> Any:  # noqa: ANN401, ASYNC109 - as gRPC's
                del timeout
                answer = await getattr(servicer, rpc)(request, caller)
                return self.twist.get((peer, rpc), lambda unchanged: unchanged)(answer)

            return called

        def follow(requests: AsyncIterator[Any], timeout: float) -> "Following":
            assert timeout > 0
            twist = self.twist.get((peer, "FollowProgress"), lambda unchanged: unchanged)
            return Following(servicer.FollowProgress(requests, cast("Any", caller)), twist)

        unary = {rpc: method(rpc) for rpc in ("Hello", "Commit", "Reveal")}
        return SimpleNamespace(**unary, FollowProgress=follow)

    async def tossed(self, name: str, coin: str, shown: Mapping[str, bytes] = NO_COMMITMENTS) -> bytes:
        """Let one curator toss once."""
        return await self.parts[name].coins.toss(coin, self.peers(name), shown)

    def toss(self, coin: str, rounds: int = 5, names: Sequence[str] = ("alice", "bob", "carol")) -> dict[str, bytes]:
        """Let curators toss, again and again, as the drivers do; raise the first refusal that is not "not ready"."""
        values: dict[str, bytes] = {}
        for _ in range(rounds):
            for name in names:
                try:
                    values[name] = asyncio.run(self.tossed(name, coin))
                except NotReadyError:
                    continue
        return values


@pytest.fixture(name="village")
def village_fixture(tmp_path: Path, study_bytes: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Village]:
    study = study_from_bytes(study_bytes + CAROL, "study.toml")
    monkeypatch.setattr(
        "veiltab.curator.party.service.caller", lambda context: Party(study="survey", role=Role.CURATOR, name=context)
    )
    village = Village(study, tmp_path)
    yield village
    for parts in village.parts.values():
        parts.store.close()


class Following:
    """A call that follows releases, as gRPC's client has it."""

    def __init__(self, answers: AsyncIterator[Any], twist: Callable[[Any], Any]) -> None:
        self.answers = answers
        self.twist = twist

    async def read(self) -> Any:  # noqa: ANN401 - a message, or the end
        return self.twist(await anext(self.answers, grpc.aio.EOF))

    def cancel(self) -> None:
        """Take notice."""


async def names_of(*names: tuple[str, ...]) -> AsyncIterator[tuple[str, ...]]:
    """Ask for some releases, and for no more until the call is over."""
    for some in names:
        yield some
    await asyncio.sleep(1000)


@blocking
async def said_of(village: Village, *release_ids: str, curator: str = "bob") -> Mapping[str, PeerAnswer]:
    """Let alice follow some releases at another curator, and return what it says first."""
    async with aclosing(village.peers("alice").follow(curator, names_of(release_ids))) as answers:
        return await anext(answers)
