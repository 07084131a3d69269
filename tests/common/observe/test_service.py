"""The status RPC over real TLS, and its encoding."""

import asyncio
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest

from tests.worlds.parties import ALICE
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.observe.sinks import observing
from veiltab.common.observe.span_messages import PartyStatus, status_from_proto, status_to_proto
from veiltab.common.observe.status import Activity, Budget, Observation
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.parties.identity import Identity, Party, Role, load_identity
from veiltab.common.rpc.server import build_server
from veiltab.common.study.file import Study
from veiltab.deploy.pki.certificates import init_pki
from veiltab.v1 import status_pb2
from veiltab.v1.status_pb2_grpc import StatusServiceStub

SEEN = Observation(
    work=(
        Activity(
            kind="alignment",
            id="",
            about="5 common respondents",
            state="aligned",
            waiting_for="",
            since=0,
            n=5,
            matched=9,
        ),
        Activity(
            kind="release", id="ab" * 16, about="sex for rosa", state="requested", waiting_for="a person", since=9
        ),
    ),
    counts={("release", "requested"): 1},
    queues={"releases": 1},
    budgets=(
        Budget(protects="respondents", epsilon=Decimal("3.5"), left=Decimal("1E-7"), delta=Decimal("1E-6")),
        Budget(protects="nodes", epsilon=Decimal(2), left=Decimal(0)),
    ),
)
OTHERS = [
    Party(study="survey", role=role, name=name)
    for role, name in ((Role.CURATOR, "bob"), (Role.SERVER, "cloud"), (Role.RESEARCHER, "rosa"))
]


def status(observation: Observation = SEEN) -> PartyStatus:
    return PartyStatus(party=ALICE, version="0.1.0", started=5, certificate_ends=7, observation=observation)


def test_what_is_sent_is_what_arrives() -> None:
    sent = status_pb2.GetStatusResponse.FromString(status_to_proto(status()).SerializeToString())
    assert status_from_proto(sent) == status()
    assert (sent.budgets[0].left, sent.budgets[0].delta, sent.budgets[1].delta) == ("0.0000001", "0.000001", "")


def test_very_much_work_is_cut_to_the_newest() -> None:
    long = "x" * 5000
    work = tuple(
        Activity(kind="release", id=f"{n:032x}", about=long, state="requested", waiting_for=long, since=n)
        for n in range(10_000)
    )
    sent = status_to_proto(status(Observation(work=work)))
    assert sent.ByteSize() < 1 << 20
    assert sent.work[-1].id == work[-1].id


def test_what_is_no_status_is_refused() -> None:
    wrong = status_to_proto(status())
    wrong.budgets[0].left = "much"
    with pytest.raises(InvalidInputError, match="the budget is not a number"):
        status_from_proto(wrong)
    wrong = status_to_proto(status())
    wrong.party = "alice"
    with pytest.raises(InvalidInputError, match="URI"):
        status_from_proto(wrong)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, study: Study) -> Path:
    folder = tmp_path_factory.mktemp("identities") / "pki"
    init_pki(study, folder)
    return folder


def identity_of(folders: Path, party: Party) -> Identity:
    return load_identity(folders / f"{party.role.value}-{party.name}", party.role, party.name)


def test_a_party_tells_its_status_to_itself_alone(folders: Path) -> None:
    threads: list[int] = []

    def observe() -> Observation:
        threads.append(threading.get_ident())
        return SEEN

    async def ask(server_port: int, who: Party) -> PartyStatus:
        async with connect(identity_of(folders, who), ALICE, f"localhost:{server_port}") as channel:
            answer = await call(
                StatusServiceStub(channel).GetStatus, status_pb2.GetStatusRequest(), peer=ALICE, once=True
            )
        return status_from_proto(answer)

    async def scenario() -> PartyStatus:
        own = identity_of(folders, ALICE)
        with observing(own, observe, metrics=None) as registration:
            async with build_server(own, OTHERS, [registration], "localhost:0") as server:
                for other in OTHERS:
                    with pytest.raises(DeniedError, match="not among the parties that may call here"):
                        await ask(server.port, other)
                assert threads == []
                return await ask(server.port, ALICE)

    began = int(time.time())
    found = asyncio.run(scenario())
    assert (found.party, found.observation) == (ALICE, SEEN)
    assert began <= found.started <= time.time()
    assert found.certificate_ends == int(identity_of(folders, ALICE).certificate_facts.not_after.timestamp())
    assert found.version.count(".") == 2
    assert len(threads) == 1
    assert threads[0] != threading.get_ident(), "it may take a while, so it keeps nobody waiting"
