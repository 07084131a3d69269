import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.common.collection.rounds import EVERYBODY, ID, OTHER_ID, PLAIN, STUDY, plain_round, round_with, study
from tests.conftest import refuses
from tests.node.loopback import ANSWER_LOST, REQUEST_LOST, Loopback, ended, enrol
from tests.protocol.relays import proxied
from veiltab.common.collection.oracles import Category
from veiltab.common.collection.round import Round, Stratum
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    DeniedError,
    InvalidInputError,
    NotFoundError,
    SpentTokenError,
    UnavailableError,
)
from veiltab.common.storage.files import OwnedFolder
from veiltab.deploy.pki.certificates import init_pki
from veiltab.node.answers.journal import Journal, State
from veiltab.node.reporters.device import Node
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import CollectionStore
from veiltab.v1 import collection_pb2

TOKENS = [bytes([number] * 16) for number in range(1, 6)]
NEVER = Stratum(name="everyone", population=30, rate=Decimal("1e-18"))


class Device:
    """A node, and a server that it reaches without TLS, in the loop that its channel would have."""

    def __init__(self, folder: Path, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "study.toml").write_bytes(text)
        init_pki(study(text), folder / "pki")
        self.store = CollectionStore(folder)
        self.stub = Loopback(RoundKeeper(study(text), self.store))
        self.connections = 0
        self._study = study(text)
        monkeypatch.setattr("veiltab.node.reporters.device.connect", self._connect)
        monkeypatch.setattr(
            "veiltab.node.reporters.device.collection_pb2_grpc.CollectionServiceStub", lambda _: self.stub
        )

    def _connect(self, *_: object) -> "Channel":
        self.connections += 1
        # A queue belongs to one loop, and each call has a loop of its own.
        last = self.stub
        self.stub = Loopback(RoundKeeper(self._study, self.store), last.faults)
        self.stub.sent, self.stub.before = last.sent, last.before
        return Channel(asyncio.ensure_future(self.stub.rounds.run()))

    def node(self, name: str = "state") -> Node:
        return Node(self.folder / "study.toml", identity=self.folder / "pki" / "node-fleet", state=self.folder / name)

    def report(self, value: str = "7", token: bytes = TOKENS[0], **others: Any) -> State:  # noqa: ANN401 - those of report
        return self.node().report(ID, value=value, token=token.hex(), **({"within": 5.0} | others))

    def open(self, spec: Round, tokens: Iterable[bytes] = TOKENS, stratum: str = "everyone") -> None:
        enrol(self.stub.rounds, spec, tokens, stratum, self.folder / "pki")

    def kept(self) -> State:
        with closing(Journal(self.folder / "state")) as journal:
            return journal.decisions(ID)[0].state

    def counts(self) -> list[int]:
        return [int(count) for count in self.store.counts(ID)[0]]


class Channel:
    def __init__(self, server: "asyncio.Future[None]") -> None:
        self._server = server

    async def close(self) -> None:
        await ended(self._server)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    device = Device(tmp_path, PLAIN, monkeypatch)
    yield device
    device.store.close()


def counted_as_sent(device: Device) -> bool:
    """Whether what was sent, all of it the same report, was counted once."""
    reports = {report_from_proto(request) for request in device.stub.sent}
    (report,) = reports
    assert isinstance(report, Category)
    return device.counts() == [int(symbol == report.symbol) for symbol in range(20)]


def test_a_node_reports_once_and_repeats_its_answer(device: Device) -> None:
    device.open(plain_round())
    assert device.report() is State.COUNTED
    assert counted_as_sent(device)
    # Whatever the value, the token and the state of the round then are; nobody is asked.
    device.store.close_round(ID, int(time.time()))
    assert device.report("8", TOKENS[1]) is State.COUNTED
    assert (len(device.stub.sent), device.connections) == (1, 1)


def test_an_answer_is_on_record_before_it_is_sent(device: Device) -> None:
    device.open(plain_round())
    on_record = []

    def check(request: collection_pb2.ReportRequest) -> None:
        # Another connection sees only what is committed.
        with closing(Journal(device.folder / "state")) as journal:
            decision = journal.decisions(ID)[0]
        on_record.append((decision.state, decision.request == request.SerializeToString()))

    device.stub.before = check
    assert device.report() is State.COUNTED
    assert on_record == [(State.WAITING, True)]


def test_a_node_that_stays_silent_sends_nothing_ever(device: Device) -> None:
    device.open(plain_round(strata=(NEVER,)))
    assert [device.report() for _ in range(3)] == [State.SILENT] * 3
    assert (device.stub.sent, device.connections) == ([], 1)
    assert not np.any(device.counts())


def test_a_node_in_a_stratum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(tmp_path, STUDY, monkeypatch)
    device.open(round_with(), stratum="south")
    with pytest.raises(InvalidInputError, match=r"name the stratum of the node. Strata: north, south\."):
        device.report()
    assert device.report(stratum="south") is State.COUNTED
    assert device.store.status(ID).reports == (0, 1)
    device.store.close()


@pytest.mark.parametrize(
    "wrong", [{"value": 7j}, {"value": True}, {"value": None}, {"token": TOKENS[0]}, {"token": None}, {"token": 7}]
)
def test_another_type_is_refused_before_anything_is_asked(device: Device, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"neither a text nor|not a text"):
        device.node().report(ID, **({"value": "7", "token": TOKENS[0].hex()} | wrong))
    assert device.connections == 0


@pytest.mark.parametrize("token", ["", "0" * 31, "Z" * 32])
def test_a_token_that_cannot_be_is_refused_before_anything_is_asked(device: Device, token: str) -> None:
    with pytest.raises(InvalidInputError, match="the token is not 32 hexadecimal digits"):
        device.node().report(ID, value="7", token=token)
    assert device.connections == 0


def test_rounds_that_take_nothing_decide_nothing(device: Device) -> None:
    with pytest.raises(NotFoundError, match="no such round here"):
        device.report()
    device.open(plain_round())
    device.store.close_round(ID, int(time.time()))
    with pytest.raises(ClosedRoundError):
        device.report()
    with closing(Journal(device.folder / "state")) as journal:
        assert journal.decisions(ID) == {}


@pytest.mark.parametrize("fault", [REQUEST_LOST, ANSWER_LOST])
def test_without_an_answer_the_same_report_is_handed_in_later(device: Device, fault: str) -> None:
    device.open(plain_round())
    device.stub.faults = iter([fault] * 10_000)
    with pytest.raises(UnavailableError):
        device.report(within=0.3)
    assert device.kept() is State.WAITING
    device.stub.faults = iter(())
    # The token of the first call goes with it, whatever the second one is given.
    assert device.report("9", TOKENS[1]) is State.COUNTED
    assert {request.token for request in device.stub.sent} == {TOKENS[0]}
    assert counted_as_sent(device)


def test_a_refused_report_may_have_another_token(device: Device) -> None:
    device.open(plain_round())
    for _ in range(2):
        with pytest.raises(DeniedError, match="this is not a token of this round"):
            device.report(token=bytes(16))
    assert device.kept() is State.REFUSED
    assert device.report("9", TOKENS[1]) is State.COUNTED
    assert counted_as_sent(device)


def test_a_report_with_another_token_that_is_lost_is_not_given_a_third(device: Device) -> None:
    """It may have been counted with the second one."""
    device.open(plain_round())
    with pytest.raises(DeniedError):
        device.report(token=bytes(16))
    device.stub.faults = iter([ANSWER_LOST] * 10_000)
    with pytest.raises(UnavailableError):
        device.report(token=TOKENS[1], within=0.3)
    device.stub.faults = iter(())
    assert device.report(token=TOKENS[2]) is State.COUNTED
    assert counted_as_sent(device)
    assert device.store.status(ID).reports == (1,)


def test_a_token_that_somebody_else_spent_is_told(device: Device) -> None:
    device.open(plain_round())
    device.stub.sent.clear()
    assert device.node("another").report(ID, value="1", token=TOKENS[0].hex()) is State.COUNTED
    for _ in range(2):
        with pytest.raises(SpentTokenError, match="this token is spent"):
            device.report()
    assert device.store.status(ID).reports == (1,)


def test_a_node_counts_for_itself_what_rounds_cost(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    device.open(plain_round(epsilon=Decimal(3)))
    assert device.report() is State.COUNTED
    # A server that does not keep to the budget.
    monkeypatch.setattr(CollectionStore, "_check_budget", lambda *_: None)
    device.open(plain_round(round_id=OTHER_ID, epsilon=Decimal(2)))
    with refuses(BudgetExceededError, where="epsilon"):
        device.node().report(OTHER_ID, value="7", token=TOKENS[0].hex())
    assert device.store.status(OTHER_ID).reports == (0,)


def test_one_folder_serves_one_call_at_a_time_and_one_kind_of_node(device: Device) -> None:
    device.open(plain_round())
    held = OwnedFolder(device.folder / "state", "veiltab://poll/node/fleet (one node)")
    with pytest.raises(ConflictError, match="another process already runs on this folder"):
        device.report()
    held.release()
    fleet = OwnedFolder(device.folder / "fleet", "veiltab://poll/node/fleet (a fleet)")
    fleet.release()
    with pytest.raises(ConflictError, match="holds the state of"):
        device.node("fleet").report(ID, value="7", token=TOKENS[0].hex())
    # A refusal lets go of the folder.
    with pytest.raises(InvalidInputError):
        device.report("no value")
    assert device.report() is State.COUNTED


def test_a_report_names_its_round_and_nothing_else_of_the_node(device: Device) -> None:
    device.open(plain_round())
    device.report()
    (request,) = device.stub.sent
    report = report_from_proto(request)
    assert request == report_to_proto(ID, TOKENS[0], EVERYBODY.name, report)
    assert {field.name for field, _ in request.ListFields()} == {"round_id", "token", "stratum", "category"}


def test_a_node_calls_through_its_proxy(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(PLAIN)
    init_pki(study(PLAIN), tmp_path / "pki")
    paths = {"identity": tmp_path / "pki" / "node-fleet", "state": tmp_path / "state"}
    with proxied() as proxy:
        node = Node(tmp_path / "study.toml", **paths, proxy=proxy.url)
        with pytest.raises(UnavailableError):
            node.report(ID, value="7", token=TOKENS[0].hex(), within=2.0)
    assert proxy.asked == {study(PLAIN).server.endpoint}
