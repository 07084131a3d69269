"""Everything that a round refuses, over real TLS: with its reason, and without counting any of it."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.common.collection.rounds import BAD_PAYLOADS, GOOD_PAYLOADS
from tests.protocol.polling import FLEET, STRATA, Asked, Poll, made_poll, poll_fixture, reason  # noqa: F401 - a fixture
from tests.protocol.world import ALICE, CLOUD, ROSA, Who
from veiltab.common.collection.oracles import ORACLE_NAMES, Category, Report
from veiltab.common.collection.round_messages import round_to_proto
from veiltab.common.collection.tokens import new_token, token_digest
from veiltab.common.errors import (
    BudgetExceededError,
    ConflictError,
    DeniedError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki, issue_party
from veiltab.node.answers.journal import State
from veiltab.node.reporters.device import Node
from veiltab.v1 import collection_pb2

NORTH, SOUTH = STRATA
GOOD = Category(symbol=7)


@pytest.fixture(scope="module", autouse=True)
def short(poll: Poll) -> Asked:
    """A round that is opened before all tests, and over when the last one needs it."""
    return poll.opened(5, lifetime=5)


@pytest.fixture
def asked(poll: Poll) -> Asked:
    """A round with five tokens in each stratum."""
    return poll.opened(5)


def said(poll: Poll, *requests: collection_pb2.ReportRequest) -> list[str]:
    """Hand in reports, one after the other; return why each was refused, if it was."""

    async def scenario() -> list[str]:
        async with poll.stub() as stub:
            return [await reason(stub, request, poll) for request in requests]

    return asyncio.run(scenario())


def refusal(poll: Poll, call: Callable[[Any], Any], who: Who = ROSA, folder: Path | None = None) -> VeiltabError | None:
    """Call the server as somebody; return the refusal."""

    async def scenario() -> VeiltabError | None:
        async with poll.stub(who, folder) as stub:
            answer = call(stub)
            try:
                if isinstance(answer, grpc.aio.UnaryStreamCall):
                    [_ async for _ in answer]
                else:
                    await answer
            except grpc.aio.AioRpcError as error:
                return error_from_rpc(error, "the server")
            return None

    return asyncio.run(scenario())


def test_bad_reports_are_refused_for_their_reason_and_not_counted(poll: Poll, asked: Asked) -> None:
    other, tokens = poll.opened(5), asked.tokens[NORTH]
    first = asked.request(tokens[0], GOOD)
    cases: dict[str, tuple[collection_pb2.ReportRequest, str]] = {
        "an unknown round": (asked.request(tokens[1], GOOD, round_id="a" * 32), "NOT_FOUND"),
        "no round": (collection_pb2.ReportRequest(token=tokens[1], stratum=NORTH, category=7), "NOT_FOUND"),
        "a spent token": (first, "TOKEN_SPENT"),
        "a spent token, another value": (asked.request(tokens[0], Category(symbol=8)), "TOKEN_SPENT"),
        "a forged token": (asked.request(new_token(), GOOD), "DENIED"),
        "a token of another stratum": (asked.request(asked.tokens[SOUTH][0], GOOD), "DENIED"),
        "another stratum than the token's": (asked.request(tokens[1], GOOD, stratum=SOUTH), "DENIED"),
        "a token of another round": (asked.request(other.tokens[NORTH][0], GOOD), "DENIED"),
        "in another round": (asked.request(tokens[1], GOOD, round_id=other.spec.round_id), "DENIED"),
        "an unknown stratum": (asked.request(tokens[1], GOOD, stratum="west"), "INVALID_INPUT"),
        "no stratum": (asked.request(tokens[1], GOOD, stratum=""), "INVALID_INPUT"),
        "no token": (
            collection_pb2.ReportRequest(round_id=asked.spec.round_id, stratum=NORTH, category=7),
            "INVALID_INPUT",
        ),
        "no payload": (
            collection_pb2.ReportRequest(round_id=asked.spec.round_id, token=tokens[1], stratum=NORTH),
            "INVALID_INPUT",
        ),
        "nothing": (collection_pb2.ReportRequest(), "INVALID_INPUT"),
    }
    answers = said(poll, first, *(request for request, _ in cases.values()))
    assert dict(zip(cases, answers[1:], strict=True)) == {case: expected for case, (_, expected) in cases.items()}
    assert (asked.reports(), other.reports()) == ([1, 0], [0, 0])
    assert asked.counts() == asked.sum_of([first])


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_bad_payloads_are_refused_and_spend_nothing(poll: Poll, name: str) -> None:
    asked = poll.opened(1, oracle=name)
    (token,) = asked.tokens[NORTH]
    others: dict[str, Report] = {f"of {other}": report for other, report in GOOD_PAYLOADS.items() if other != name}
    bad = BAD_PAYLOADS[name] | others
    answers = said(poll, *(asked.request(token, report) for report in bad.values()))
    assert dict(zip(bad, answers, strict=True)) == dict.fromkeys(bad, "INVALID_INPUT")
    if name == "olh":
        nameless = collection_pb2.ReportRequest(round_id=asked.spec.round_id, token=token, stratum=NORTH)
        nameless.hashed.seed = bytes(16)
        assert said(poll, nameless) == ["INVALID_INPUT"]
    good = asked.request(token, GOOD_PAYLOADS[name])
    assert said(poll, good) == [""]
    assert asked.counts() == asked.sum_of([good])


def test_a_closed_round_takes_nothing(poll: Poll, asked: Asked) -> None:
    first, late = (asked.request(token, GOOD) for token in asked.tokens[NORTH][:2])
    assert said(poll, first) == [""]
    counts = asked.counts()
    assert said(poll, first, late, asked.request(new_token(), GOOD)) == ["TOKEN_SPENT", "ROUND_CLOSED", "DENIED"]
    assert asked.counts() == counts == asked.sum_of([first])
    with poll.rounds() as rounds, pytest.raises(VeiltabError, match="the round is closed"):
        rounds.enrol(asked.spec.round_id, NORTH, [new_token()])


def test_a_value_outside_the_domain_is_refused_by_the_node_itself(poll: Poll, asked: Asked, tmp_path: Path) -> None:
    node = Node(poll.local.study_path, identity=poll.local.identity_folder(*FLEET), state=tmp_path / "node")
    token = asked.tokens[NORTH][0].hex()
    for value in ("0", "21", "seven"):
        with pytest.raises(InvalidInputError, match="the value is outside the domain"):
            node.report(asked.spec.round_id, value=value, token=token, stratum=NORTH)
    for stratum, problem in ((None, "give --stratum"), ("west", "no such stratum")):
        with pytest.raises(InvalidInputError, match=problem):
            node.report(asked.spec.round_id, value="7", token=token, stratum=stratum)
    with pytest.raises(NotFoundError, match="no such round here"):
        node.report("a" * 32, value="7", token=token, stratum=NORTH)
    assert asked.reports() == [0, 0]
    assert node.report(asked.spec.round_id, value="7", token=token, stratum=NORTH) is State.COUNTED
    assert asked.reports() == [1, 0]


def test_bad_rows_of_a_fleet_are_named_by_line_and_not_repeated(poll: Poll, asked: Asked, tmp_path: Path) -> None:
    canary = "a-value-of-somebody"
    tokens, values = tmp_path / "tokens.csv", tmp_path / "values.csv"
    lines = [f"{stratum},{token.hex()}\n" for stratum in STRATA for token in asked.tokens[stratum][:2]]
    tokens.write_text("stratum,token\n" + "".join(lines), "utf-8")
    values.write_text(f"stratum,value\nnorth,1\nnorth,{canary}\n{canary},3\nsouth,4\nnorth,5\n", "utf-8")
    answer = poll.command(
        "node",
        "fleet",
        poll.local.study_path,
        "--identity",
        poll.local.identity_folder(*FLEET),
        "--state",
        tmp_path / "fleet",
        "--round",
        asked.spec.round_id,
        "--tokens",
        tokens,
        "--values",
        values,
    )
    assert answer.code == InvalidInputError.exit_code
    assert (answer.data["nodes"], answer.data["counted"]) == (2, 2)
    assert [row["line"] for row in answer.data["bad_rows"]] == [3, 4, 6]
    assert "the value is outside the domain: 1 line: 3" in answer.errors
    assert canary not in answer.text + answer.errors
    assert asked.reports() == [1, 1]


BAD_ROUNDS: dict[str, tuple[Callable[[collection_pb2.Round], object], type[VeiltabError]]] = {
    "rate 0": (lambda m: setattr(m.strata[0], "rate", "0"), InvalidInputError),
    "a rate above 1": (lambda m: setattr(m.strata[0], "rate", "1.0001"), InvalidInputError),
    "a negative rate": (lambda m: setattr(m.strata[0], "rate", "-1"), InvalidInputError),
    "a rate that is no number": (lambda m: setattr(m.strata[0], "rate", "half"), InvalidInputError),
    "a rate of a billion digits": (lambda m: setattr(m.strata[0], "rate", "1e-999999999"), InvalidInputError),
    "a stratum without a probability": (lambda m: m.strata[1].ClearField("rate"), InvalidInputError),
    "a stratum without nodes": (lambda m: m.strata[1].ClearField("population"), InvalidInputError),
    "an unknown stratum": (lambda m: setattr(m.strata[1], "name", "west"), InvalidInputError),
    "no strata": (lambda m: m.ClearField("strata"), InvalidInputError),
    "epsilon 0": (lambda m: setattr(m, "epsilon", "0"), InvalidInputError),
    "a negative epsilon": (lambda m: setattr(m, "epsilon", "-1"), InvalidInputError),
    "epsilon below what the randomiser costs": (lambda m: setattr(m, "epsilon", "0.5"), InvalidInputError),
    "epsilon above the nodes' budget": (lambda m: setattr(m, "epsilon", "40.5"), BudgetExceededError),
    "an unknown oracle": (lambda m: setattr(m, "oracle", 99), InvalidInputError),
    "parameters of another oracle": (lambda m: setattr(m, "oracle", collection_pb2.ORACLE_OLH), InvalidInputError),
    "an unknown question": (lambda m: setattr(m, "question", "age"), InvalidInputError),
    "another domain": (lambda m: setattr(m, "size", 19), InvalidInputError),
    "a deadline that has passed": (lambda m: setattr(m, "deadline", int(time.time()) - 1), InvalidInputError),
    "another study": (lambda m: setattr(m, "study_digest", "ab" * 32), InvalidInputError),
    "another researcher's name": (lambda m: setattr(m, "researcher", "rita"), DeniedError),
    "no id": (lambda m: m.ClearField("round_id"), InvalidInputError),
}


def test_bad_rounds_are_not_opened(poll: Poll, asked: Asked) -> None:
    for case, (spoil, kind) in BAD_ROUNDS.items():
        message = round_to_proto(asked.spec)
        message.round_id = "b" * 32
        spoil(message)
        request = collection_pb2.OpenRoundRequest(round=message)
        assert type(refusal(poll, lambda stub, r=request: stub.OpenRound(r, timeout=20))) is kind, case  # type: ignore[misc]
    again = round_to_proto(asked.spec)
    again.deadline += 1
    other = collection_pb2.OpenRoundRequest(round=again)
    assert isinstance(refusal(poll, lambda stub: stub.OpenRound(other, timeout=20)), ConflictError)
    assert refusal(poll, lambda stub: stub.OpenRound(collection_pb2.OpenRoundRequest(), timeout=20)) is not None
    with poll.rounds() as rounds, pytest.raises(NotFoundError):
        rounds.status("b" * 32)


def test_a_researchers_client_refuses_what_is_left_out(poll: Poll) -> None:
    with poll.rounds() as rounds:
        before = rounds.rounds()
        both = dict.fromkeys(STRATA, 5)
        with pytest.raises(InvalidInputError, match="stratum south has no rate"):
            rounds.open("value", epsilon="1", rates={NORTH: "1"}, populations=both)
        with pytest.raises(InvalidInputError, match="stratum south has no population"):
            rounds.open("value", epsilon="1", rates=dict.fromkeys(STRATA, "1"), populations={NORTH: 5})
        with pytest.raises(BudgetExceededError, match="a node epsilon 40 over all rounds"):
            rounds.open("value", epsilon="40.5", rates=dict.fromkeys(STRATA, "1"), populations=both)
        assert rounds.rounds() == before


def test_enrolments_that_cannot_be_are_refused_whole(poll: Poll, asked: Asked) -> None:
    fresh = b"".join(token_digest(asked.spec.round_id, new_token()) for _ in range(2))
    known = token_digest(asked.spec.round_id, asked.tokens[NORTH][0])
    cases: dict[str, tuple[str, str, bytes, type[VeiltabError]]] = {
        "more tokens than nodes": (asked.spec.round_id, SOUTH, fresh, InvalidInputError),
        "a token of another stratum": (asked.spec.round_id, SOUTH, known, ConflictError),
        "an unknown stratum": (asked.spec.round_id, "west", fresh, InvalidInputError),
        "an unknown round": ("c" * 32, SOUTH, fresh, NotFoundError),
        "half a digest": (asked.spec.round_id, SOUTH, fresh[:48], InvalidInputError),
        "no digest": (asked.spec.round_id, SOUTH, b"", InvalidInputError),
    }
    for case, (round_id, stratum, digests, kind) in cases.items():
        request = collection_pb2.EnrolTokensRequest(round_id=round_id, stratum=stratum, digests=digests)
        assert type(refusal(poll, lambda stub, r=request: stub.EnrolTokens(r, timeout=20))) is kind, case  # type: ignore[misc]
    with poll.rounds() as rounds:
        assert rounds.status(asked.spec.round_id).enrolled == (5, 5)


def test_counts_are_for_the_rounds_own_researcher_and_after_its_end(
    poll: Poll, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.peer.ASK_SECONDS", 0.1)
    with poll.rounds() as rounds, pytest.raises(NotReadyError, match="the round is still open"):
        rounds.tally(asked.spec.round_id)
    with poll.rounds("rita") as others:
        assert others.rounds() == []
        for ask in (
            lambda: others.status(asked.spec.round_id),
            lambda: others.close_round(asked.spec.round_id),
            lambda: others.enrol(asked.spec.round_id, NORTH, [new_token()]),
            lambda: others.tally(asked.spec.round_id),
        ):
            with pytest.raises(DeniedError, match="this round is another researcher's"):
                ask()
        asked.counts()
        with pytest.raises(DeniedError, match="this round is another researcher's"):
            others.tally(asked.spec.round_id)


REQUESTS: dict[str, Any] = {
    "OpenRound": collection_pb2.OpenRoundRequest(),
    "EnrolTokens": collection_pb2.EnrolTokensRequest(),
    "GetRound": collection_pb2.GetRoundRequest(),
    "GetRoundStatus": collection_pb2.GetRoundStatusRequest(),
    "ListRounds": collection_pb2.ListRoundsRequest(),
    "CloseRound": collection_pb2.CloseRoundRequest(),
    "FetchCounts": collection_pb2.FetchCountsRequest(),
    "Report": collection_pb2.ReportRequest(),
}
MAY_CALL: dict[Who, set[str]] = {ROSA: set(REQUESTS) - {"Report"}, FLEET: {"GetRound", "Report"}}
"""Who may call what, from the design and not from the descriptors."""

STRANGERS: list[Who] = [ALICE, CLOUD, (Role.NODE, "swarm"), (Role.RESEARCHER, "steve")]


@pytest.fixture(scope="module")
def wider(poll: Poll) -> dict[Who, Path]:
    """Certificates of the study's own authority for parties that its study file does not have."""
    text = poll.local.study_path.read_text("utf-8")
    others = (
        '[budget]\nepsilon = 1\n[[researcher]]\nname = "steve"\nendpoint = "localhost:1"\n'
        '[[curator]]\nname = "alice"\nendpoint = "localhost:2"\nid_columns = ["id"]\n'
        '[[curator]]\nname = "bob"\nendpoint = "localhost:3"\nid_columns = ["id"]\n'
        '[[attribute]]\nname = "sex"\nowner = "alice"\ncategories = ["f", "m"]\n'
    )
    study = study_from_bytes((text.replace('"fleet"', '"swarm"') + others).encode(), "wider.toml")
    pki = poll.local.folder / "pki"
    made = {who: Party(study=study.id, role=who[0], name=who[1]) for who in STRANGERS if who != CLOUD}
    return {who: issue_party(study, pki, party) for who, party in made.items()} | {CLOUD: pki / "server-cloud"}


def test_every_role_at_every_rpc(poll: Poll, wider: dict[Who, Path]) -> None:
    assert set(REQUESTS) == {m.name for m in collection_pb2.DESCRIPTOR.services_by_name["CollectionService"].methods}
    for who in (ROSA, FLEET, *STRANGERS):
        for name, request in REQUESTS.items():
            call = refusal(poll, lambda stub, n=name, r=request: getattr(stub, n)(r, timeout=15), who, wider.get(who))  # type: ignore[misc]
            stopped = isinstance(call, DeniedError) and (
                "may not call this RPC" in call.problem or "not among the parties" in call.problem
            )
            assert stopped == (name not in MAY_CALL.get(who, set())), (who, name, str(call))


def test_nobody_is_let_in_with_a_certificate_of_another_authority_or_none(poll: Poll, tmp_path: Path) -> None:
    init_pki(poll.local.study, tmp_path / "pki")
    request = collection_pb2.ListRoundsRequest()
    rogue = refusal(poll, lambda stub: stub.ListRounds(request, timeout=20), ROSA, tmp_path / "pki" / "researcher-rosa")
    assert isinstance(rogue, UnavailableError)

    async def without() -> None:
        credentials = grpc.ssl_channel_credentials(poll.identity().authority)
        options = [("grpc.ssl_target_name_override", poll.cloud.dns_name)]
        async with grpc.aio.secure_channel(poll.local.endpoint(*CLOUD), credentials, options=options) as channel:
            raw: Any = channel
            await raw.unary_unary("/veiltab.v1.CollectionService/ListRounds")(b"", timeout=20)

    with pytest.raises(grpc.aio.AioRpcError) as nobody:
        asyncio.run(without())
    assert nobody.value.code() is grpc.StatusCode.UNAVAILABLE


def test_the_log_repeats_nothing_that_was_sent(poll: Poll, asked: Asked) -> None:
    canary = "a-value-in-the-wrong-field"
    token = asked.tokens[NORTH][0]
    assert said(poll, asked.request(token, GOOD, stratum=canary), asked.request(new_token(), GOOD)) == [
        "INVALID_INPUT",
        "DENIED",
    ]
    lines = [json.loads(line) for line in poll.log().decode().splitlines() if line.startswith("{")]
    assert lines
    for secret in (canary, token.hex(), asked.spec.round_id):
        assert secret not in poll.log().decode()


def test_a_round_past_its_deadline_is_closed(poll: Poll, short: Asked) -> None:
    time.sleep(max(0.0, short.spec.deadline + 1.1 - time.time()))
    assert said(poll, short.request(short.tokens[NORTH][0], GOOD)) == ["ROUND_CLOSED"]
    with poll.rounds() as rounds:
        closed = rounds.status(short.spec.round_id).closed
        assert closed >= short.spec.deadline
        assert rounds.close_round(short.spec.round_id) == (closed, True)
    assert short.reports() == [0, 0]
