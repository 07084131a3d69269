"""A study of nodes on this machine: its server is a process, its nodes and researchers are the test."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from tests.common.collection.rounds import support_of
from tests.protocol.world import CLOUD, Answer, Who, ran_alone
from veiltab.common.collection.oracles import Report
from veiltab.common.collection.round import Round
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.collection.tokens import new_token
from veiltab.common.errors import VeiltabError
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.parties.identity import Identity, Party, Role, load_identity
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki
from veiltab.play.local.processes import LocalStudy, free_ports
from veiltab.researcher.collection.rounds_client import Rounds
from veiltab.v1 import collection_pb2, collection_pb2_grpc

FLEET: Who = (Role.NODE, "fleet")
STRATA = ("north", "south")
SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Poll:
    """A study of nodes.

    Args:
        local: its server's process, and its files.
    """

    local: LocalStudy

    @property
    def cloud(self) -> Party:
        return Party(study=self.local.study.id, role=Role.SERVER, name=CLOUD[1])

    def start(self, how: tuple[str, ...] | None = None) -> None:
        """Start the server and wait until it serves."""
        self.local.start(*CLOUD, launcher=how)
        self.local.wait_for(*CLOUD)

    def rounds(self, name: str = "rosa") -> Rounds:
        """Return a researcher's connection."""
        return Rounds(
            self.local.study_path,
            identity=self.local.identity_folder(Role.RESEARCHER, name),
            name=name,
            timeout=SECONDS,
        )

    def opened(self, nodes: int, *, rate: str = "1", oracle: str = "krr", lifetime: int = 3600) -> "Asked":
        """Open a round of the northern stratum's nodes, and one in the south who is not asked for more."""
        with self.rounds() as rounds:
            strata = rounds.strata
            spec = rounds.open(
                "value",
                epsilon="1",
                rates=dict.fromkeys(strata, rate),
                populations=dict.fromkeys(strata, nodes),
                oracle=oracle,
                lifetime_seconds=lifetime,
            )
            tokens = {stratum: [new_token() for _ in range(nodes)] for stratum in strata}
            for stratum, batch in tokens.items():
                rounds.enrol(spec.round_id, stratum, batch)
        return Asked(poll=self, spec=spec, tokens=tokens)

    def command(
        self, *words: str | Path, as_json: bool = True, launcher: Sequence[str] = LocalStudy.launcher
    ) -> Answer:
        """Run `veiltab` as a process of its own."""
        code, text, errors = ran_alone([*map(str, words), *(["--json"] if as_json else [])], launcher)
        return Answer(code=code, data=json.loads(text) if as_json and text.strip() else {}, text=text, errors=errors)

    def identity(self, who: Who = FLEET, folder: Path | None = None) -> Identity:
        """Return a party's identity, or one from another folder."""
        return load_identity(folder or self.local.identity_folder(*who), *who)

    @asynccontextmanager
    async def stub(
        self, who: Who = FLEET, folder: Path | None = None
    ) -> "AsyncIterator[collection_pb2_grpc.CollectionServiceAsyncStub]":
        """Connect a party to the server."""
        channel = connect(self.identity(who, folder), self.cloud, self.local.endpoint(*CLOUD))
        try:
            yield collection_pb2_grpc.CollectionServiceStub(channel)
        finally:
            await channel.close()

    def own_channel(self, identity: Identity) -> grpc.aio.Channel:
        """Return a connection that no other channel of this process shares, as a node of its own has it."""
        credentials = grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
        options = [
            ("grpc.ssl_target_name_override", self.cloud.dns_name),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),
            ("grpc.initial_reconnect_backoff_ms", 200),
        ]
        return grpc.aio.secure_channel(self.local.endpoint(*CLOUD), credentials, options=options)

    def files(self) -> bytes:
        """Return all that the server has on disk."""
        folder = self.local.state_folder(*CLOUD)
        return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())

    def log(self) -> bytes:
        """Return all that the server logged."""
        return self.local.log(*CLOUD).read_bytes()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A round that nodes are asked in.

    Args:
        poll: the study.
        spec: the round.
        tokens: of each stratum.
    """

    poll: Poll
    spec: Round
    tokens: dict[str, list[bytes]]

    def request(
        self, token: bytes, report: Report, *, stratum: str = STRATA[0], round_id: str = ""
    ) -> collection_pb2.ReportRequest:
        """Return a report as a node sends it."""
        return report_to_proto(round_id or self.spec.round_id, token, stratum, report)

    def counts(self) -> list[list[int]]:
        """Close the round, and return its counts, stratum by stratum."""
        with self.poll.rounds() as rounds:
            rounds.close_round(self.spec.round_id)
            return [[int(count) for count in row] for row in rounds.tally(self.spec.round_id).counts]

    def reports(self) -> list[int]:
        """Return how many reports were counted, stratum by stratum."""
        with self.poll.rounds() as rounds:
            return list(rounds.status(self.spec.round_id).reports)

    def sum_of(self, requests: Iterable[collection_pb2.ReportRequest]) -> list[list[int]]:
        """Return what reports add up to."""
        total = np.zeros((len(self.spec.strata), self.spec.size), np.int64)
        names = [stratum.name for stratum in self.spec.strata]
        for request in requests:
            total[names.index(request.stratum)][support_of(self.spec.randomiser, report_from_proto(request))] += 1
        return [[int(count) for count in row] for row in total]


async def reason(
    stub: "collection_pb2_grpc.CollectionServiceAsyncStub", request: collection_pb2.ReportRequest, poll: Poll
) -> str:
    """Hand in a report, again while the server has no room for it; return why it was refused, if it was."""
    try:
        await call(stub.Report, request, peer=poll.cloud, within=60.0, attempt=15.0)
    except VeiltabError as error:
        return error.reason
    return ""


async def all_at_once(poll: Poll, requests: Sequence[collection_pb2.ReportRequest], *, connections: int) -> list[str]:
    """Hand in reports, all at the same time, spread over some connections; return why each was refused, if it was."""
    identity = poll.identity()
    channels = [poll.own_channel(identity) for _ in range(connections)]
    stubs = [collection_pb2_grpc.CollectionServiceStub(channel) for channel in channels]
    try:
        return await asyncio.gather(
            *(reason(stubs[place % connections], request, poll) for place, request in enumerate(requests))
        )
    finally:
        await asyncio.gather(*(channel.close() for channel in channels))


def study_text(*, port: int, others: Sequence[int], strata: Sequence[str], budget: str) -> bytes:
    named = f"strata = {json.dumps(list(strata))}\n" if strata else ""
    return f"""
[study]
id = "poll"
title = "A poll"
[server]
name = "cloud"
endpoint = "localhost:{port}"
[[researcher]]
name = "rosa"
endpoint = "localhost:{others[0]}"
[[researcher]]
name = "rita"
endpoint = "localhost:{others[1]}"
[nodes]
name = "fleet"
budget_epsilon = {budget}
{named}
[[question]]
name = "value"
integers = [1, 20]
""".encode()


def made_poll(folder: Path, *, strata: Sequence[str] = STRATA, budget: str = "40") -> Poll:
    """Make study file and certificates; nothing is started."""
    folder.mkdir(parents=True, exist_ok=True)
    port, *others = free_ports(3)
    text = study_text(port=port, others=others, strata=strata, budget=budget)
    (folder / "study.toml").write_bytes(text)
    init_pki(study_from_bytes(text, "study.toml"), folder / "pki")
    return Poll(local=LocalStudy(folder=folder, tables={}))


def plain(answer: Any) -> Any:  # noqa: ANN401 - what a command printed
    """Return a command's answer without what differs from run to run."""
    return {key: value for key, value in answer.items() if key != "seconds"}


@pytest.fixture(name="poll", scope="module")
def poll_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Poll]:
    """A study of nodes whose server runs; nobody may stop it."""
    poll = made_poll(tmp_path_factory.mktemp("poll") / "study")
    with poll.local:
        poll.start()
        yield poll
