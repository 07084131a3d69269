from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.common.collection.rounds import ID, OTHER_ID, PLAIN, plain_round, study
from tests.common.rpc.test_release_certificate import OTHER_AUTHORITY
from tests.conftest import refuses
from tests.curator.audit.exported_evidence import PEM, identity
from tests.node.loopback import ANSWER_LOST, INCIDENT_AFTER, INCIDENT_BEFORE, REQUEST_LOST, Loopback, enrol, serving
from tests.worlds.loops import blocking
from veiltab.common.collection.oracles import Category
from veiltab.common.collection.round import Round, RoundState
from veiltab.common.collection.round_messages import report_to_proto, round_to_proto, state_to_proto
from veiltab.common.errors import (
    ClosedRoundError,
    DeniedError,
    IntegrityError,
    NotFoundError,
    SpentTokenError,
    UnavailableError,
)
from veiltab.common.rpc.parties.identity import Party, Role, utc_now
from veiltab.common.rpc.parties.signing import SignedText, signed, signed_to_proto
from veiltab.node.answers.journal import State
from veiltab.node.answers.sending import Outcome, fetch_round, hand_in, is_answer, server_of
from veiltab.v1 import collection_pb2

STUDY = study(PLAIN)
TOKEN, FORGED = bytes(16), bytes([1] * 16)


def report(token: bytes = TOKEN, symbol: int = 7) -> collection_pb2.ReportRequest:
    return report_to_proto(ID, token, "everyone", Category(symbol=symbol))


@blocking
async def outcomes(
    folder: Path,
    faults: list[str],
    *,
    tried: bool = False,
    token: bytes = TOKEN,
    before: Callable[[Loopback], Any] = lambda _: None,
) -> tuple[Outcome, int, int]:
    """Hand in one report; return what came of it, how often it was sent, and how many were counted."""
    async with serving(STUDY, folder, faults) as stub:
        enrol(stub.rounds, plain_round(), [TOKEN])
        made = before(stub)
        if made is not None:
            await made
            stub.sent.clear()
        outcome = await hand_in(cast("Any", stub), STUDY, report(token), tried=tried, within=0.3)
        return outcome, len(stub.sent), sum(stub.rounds.status(ID, "rosa").reports)


def close(stub: Loopback) -> None:
    stub.rounds.close_round(ID, "rosa")


def spend(stub: Loopback) -> Any:  # noqa: ANN401 - what is to be awaited
    """Somebody else hands in a report with the token."""
    return stub.Report(report(symbol=3), 1.0)


COUNTED = Outcome(state=State.COUNTED)


def test_a_report_is_handed_in_once_if_it_is_answered(tmp_path: Path) -> None:
    assert outcomes(tmp_path, []) == (COUNTED, 1, 1)


@pytest.mark.parametrize(
    ("faults", "attempts"),
    [
        ([REQUEST_LOST], 2),
        ([ANSWER_LOST], 2),
        ([REQUEST_LOST, ANSWER_LOST, REQUEST_LOST], 4),
        ([ANSWER_LOST, REQUEST_LOST, ANSWER_LOST], 4),
    ],
)
def test_a_report_is_handed_in_until_it_is_known_to_be_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: list[str], attempts: int
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.retries.FIRST_PAUSE", 0.0)
    assert outcomes(tmp_path, faults) == (COUNTED, attempts, 1)


@pytest.mark.parametrize("counted", [0, 1])
def test_without_an_answer_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: int) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.retries.FIRST_PAUSE", 0.01)
    outcome, attempts, counts = outcomes(tmp_path, [[REQUEST_LOST, ANSWER_LOST][counted]] * 500)
    assert (outcome.state, counts) == (State.WAITING, counted)
    assert isinstance(outcome.error, UnavailableError)
    assert attempts > 2


def test_a_spent_token_is_somebody_elses_at_the_first_attempt_alone(tmp_path: Path) -> None:
    outcome, attempts, counts = outcomes(tmp_path / "first", [], before=spend)
    assert (outcome.state, attempts, counts) == (State.REFUSED, 1, 1)
    assert isinstance(outcome.error, SpentTokenError)
    assert outcomes(tmp_path / "tried", [], tried=True, before=spend) == (COUNTED, 1, 1)


def test_a_refusal_of_a_report_that_was_never_sent_before_is_certain(tmp_path: Path) -> None:
    outcome, attempts, counts = outcomes(tmp_path / "forged", [], token=FORGED)
    assert (outcome.state, attempts, counts) == (State.REFUSED, 1, 0)
    assert isinstance(outcome.error, DeniedError)
    outcome, _, counts = outcomes(tmp_path / "closed", [], before=close)
    assert (outcome.state, counts) == (State.REFUSED, 0)
    assert isinstance(outcome.error, ClosedRoundError)


def test_a_refusal_after_an_attempt_without_an_answer_is_not_certain(tmp_path: Path) -> None:
    for folder, faults, tried in (("lost", [REQUEST_LOST], False), ("before", [], True)):
        outcome, _, _ = outcomes(tmp_path / folder, faults, tried=tried, token=FORGED)
        assert outcome.state is State.WAITING
        assert isinstance(outcome.error, DeniedError)


@pytest.mark.parametrize("counted", [0, 1])
def test_a_failure_of_the_servers_own_says_nothing(tmp_path: Path, counted: int) -> None:
    outcome, attempts, counts = outcomes(tmp_path, [[INCIDENT_BEFORE, INCIDENT_AFTER][counted]])
    assert (outcome.state, attempts, counts) == (State.WAITING, 1, counted)
    assert outcome.error is not None
    assert "incident" in str(outcome.error)
    assert not is_answer(outcome.error)


async def test_a_round_is_described(tmp_path: Path) -> None:
    async with serving(STUDY, tmp_path) as stub:
        enrol(stub.rounds, plain_round(), [TOKEN])
        assert await fetch_round(cast("Any", stub), STUDY, PEM, ID) == (
            plain_round(),
            RoundState.OPEN,
            stub.rounds.signed(ID),
        )
        close(stub)
        assert await fetch_round(cast("Any", stub), STUDY, PEM, ID) == (
            plain_round(),
            RoundState.CLOSED,
            stub.rounds.signed(ID),
        )
        with pytest.raises(NotFoundError, match=r"server cloud, round .*no such round here"):
            await fetch_round(cast("Any", stub), STUDY, PEM, OTHER_ID)


ROSA = Party(study="poll", role=Role.RESEARCHER, name="rosa")


class Answering:
    """A server that describes a round, and always shows one signature."""

    def __init__(self, spec: Round, one: SignedText | None = None) -> None:
        shown = None if one is None else signed_to_proto(one)
        self._answer = collection_pb2.GetRoundResponse(
            round=round_to_proto(spec), state=state_to_proto(RoundState.OPEN), signed=shown
        )

    async def GetRound(self, _request: object, timeout: float) -> collection_pb2.GetRoundResponse:  # noqa: ASYNC109, N802 - gRPC's names
        assert timeout
        return self._answer


async def fetched(stub: Answering, authority: bytes = PEM) -> None:
    await fetch_round(cast("Any", stub), STUDY, authority, ID)


async def test_a_server_that_describes_another_round_is_not_believed() -> None:
    with pytest.raises(IntegrityError, match="the server described another round"):
        await fetched(Answering(plain_round(round_id=OTHER_ID)))


RITA = Party(study="poll", role=Role.RESEARCHER, name="rita")
FOREIGN = Party(study="poll2", role=Role.RESEARCHER, name="rosa")
SERVER = Party(study="poll", role=Role.SERVER, name="cloud")


@pytest.mark.parametrize("signer", [RITA, FOREIGN, SERVER], ids=str)
async def test_a_round_that_its_researcher_did_not_sign_is_not_answered(signer: Party) -> None:
    text = plain_round().to_json()
    for one in (signed(identity(signer), text, utc_now()), signed(identity(ROSA), f"{text} ", utc_now()), None):
        with pytest.raises(IntegrityError, match="researcher rosa did not sign this round"):
            await fetched(Answering(plain_round(), one))


async def test_a_signature_under_another_authority_is_not_believed() -> None:
    one = signed(identity(ROSA), plain_round().to_json(), utc_now())
    with refuses(IntegrityError, where="signature"):
        await fetched(Answering(plain_round(), one), OTHER_AUTHORITY.certificate.public_bytes(Encoding.PEM))


def test_nodes_report_to_the_studys_server() -> None:
    assert server_of(STUDY).uri == "veiltab://poll/server/cloud"
