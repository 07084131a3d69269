"""Everything that a round refuses, over real TLS: with its reason, and without counting any of it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.protocol.polling import FLEET, STRATA, Asked, Poll, made_poll, poll_fixture, reason  # noqa: F401 - a fixture
from tests.protocol.world import ALICE, CLOUD, ROSA, Who
from veiltab.common.collection.oracles import Category
from veiltab.common.collection.tokens import new_token
from veiltab.common.errors import (
    BudgetExceededError,
    DeniedError,
    InvalidInputError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki, issue_party
from veiltab.v1 import collection_pb2

NORTH, SOUTH = STRATA
GOOD = Category(symbol=7)


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
        "a forged token": (asked.request(new_token(), GOOD), "DENIED"),
        "a token of another stratum": (asked.request(asked.tokens[SOUTH][0], GOOD), "DENIED"),
        "a token of another round": (asked.request(other.tokens[NORTH][0], GOOD), "DENIED"),
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
