import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tests.common.collection.rounds import (
    BAD_PAYLOADS,
    EVERYBODY,
    FUTURE,
    GOOD_PAYLOADS,
    ID,
    NORTH,
    OTHER_ID,
    PLAIN,
    SOUTH,
    plain_round,
    round_with,
)
from tests.common.collection.rounds import study as poll
from tests.conftest import refuses
from tests.server.collection.opened_rounds import running
from tests.worlds.loops import blocking
from veiltab.common.collection.oracles import ORACLE_NAMES, Category, Report
from veiltab.common.collection.round import Round, RoundState
from veiltab.common.collection.tokens import token_digest
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    DeniedError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    SpentTokenError,
    VeiltabError,
)
from veiltab.common.study.file import Study
from veiltab.server.rounds.rounds import MOST_AT_ONCE, MOST_WAITING_EACH, RoundKeeper
from veiltab.server.rounds.rounds_store import Arrival, CollectionStore

TOKENS = [bytes([number] * 16) for number in range(1, 21)]
SOUTHERN = bytes([99] * 16)
DAY = 86_400


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CollectionStore]:
    with closing(CollectionStore(tmp_path)) as store:
        yield store


@pytest.fixture
def rounds(store: CollectionStore) -> RoundKeeper:
    return RoundKeeper(poll(), store, retention_days=1)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the server's clock."""
    return lambda now: monkeypatch.setattr("time.time", lambda: now)


@blocking
async def carry_out(rounds: RoundKeeper, *reports: Coroutine[Any, Any, None]) -> list[str]:
    """Hand in reports, one after the other, and return the reasons of their refusals."""
    async with running(rounds):
        return [await reason(report) for report in reports]


async def reason(report: Coroutine[Any, Any, None]) -> str:
    try:
        await report
    except VeiltabError as error:
        return error.reason
    return ""


def opened(rounds: RoundKeeper, spec: Round | None = None) -> Round:
    """Open a round with ten tokens in the north and one in the south."""
    spec = spec or round_with()
    rounds.open_round(spec, "rosa")
    digests = [token_digest(spec.round_id, token) for token in TOKENS[:10]]
    assert rounds.enrol(spec.round_id, "north", b"".join(digests), "rosa") == 10
    assert rounds.enrol(spec.round_id, "south", token_digest(spec.round_id, SOUTHERN), "rosa") == 1
    return spec


NOT_OF_THE_STUDY: dict[str, tuple[dict[str, Any], type[VeiltabError], str]] = {
    "another's name": ({"researcher": "rita"}, DeniedError, "in another researcher"),
    "another study": ({"study_digest": "ab" * 32}, InvalidInputError, "another study file"),
    "another question": ({"question": "age"}, InvalidInputError, "no question 'age'"),
    "a larger domain": ({"size": 21}, InvalidInputError, "not as the study says"),
    "another question's domain": ({"question": "pet"}, InvalidInputError, "not as the study says"),
    "another stratum": ({"strata": (EVERYBODY,)}, InvalidInputError, "a stratum is not in the study"),
    "a deadline that has passed": ({"deadline": 1}, InvalidInputError, "the deadline has passed"),
    "a deadline before time": ({"deadline": -1}, InvalidInputError, "the deadline is not a Unix time"),
    "too dear": ({"epsilon": Decimal("4.01")}, BudgetExceededError, "a node epsilon 4 over all rounds"),
}


@pytest.mark.parametrize("case", NOT_OF_THE_STUDY)
def test_a_round_that_is_not_of_the_study_is_not_opened(rounds: RoundKeeper, case: str) -> None:
    changes, kind, problem = NOT_OF_THE_STUDY[case]
    with pytest.raises(kind, match=problem):
        rounds.open_round(round_with(**changes), "rosa")
    assert rounds.rounds("rosa") == []
    assert rounds.open_round(round_with(), "rosa") is RoundState.OPEN


def test_a_study_without_nodes_has_no_rounds(store: CollectionStore, study: Study) -> None:
    with pytest.raises(InvalidInputError, match="this study has no nodes"):
        RoundKeeper(study, store).open_round(round_with(study_digest=study.digest), "rosa")


def test_a_study_without_strata_has_one(store: CollectionStore) -> None:
    rounds = RoundKeeper(poll(PLAIN), store)
    with pytest.raises(InvalidInputError, match="a stratum is not in the study"):
        rounds.open_round(round_with(study_digest=poll(PLAIN).digest), "rosa")
    assert rounds.open_round(plain_round(), "rosa") is RoundState.OPEN


def test_a_round_is_its_researchers_own(rounds: RoundKeeper) -> None:
    opened(rounds)
    digest = token_digest(ID, bytes(16))
    for ask in (
        lambda: rounds.enrol(ID, "north", digest, "rita"),
        lambda: rounds.status(ID, "rita"),
        lambda: rounds.close_round(ID, "rita"),
        lambda: rounds.counts(ID, "rita"),
    ):
        with refuses(DeniedError, where="round 00000000000000000000000000000001"):
            ask()
    assert (rounds.rounds("rosa"), rounds.rounds("rita")) == ([ID], [])
    assert rounds.status(ID, "rosa").state is RoundState.OPEN
    assert rounds.status(ID, "rosa").enrolled == (10, 1)


def test_an_unknown_round_is_not_found(rounds: RoundKeeper) -> None:
    for ask in (
        lambda: rounds.enrol(ID, "north", bytes(32), "rosa"),
        lambda: rounds.status(ID, "rosa"),
        lambda: rounds.close_round(ID, "rosa"),
        lambda: rounds.counts(ID, "rosa"),
        lambda: rounds.round("x" * 1000),
    ):
        with pytest.raises(NotFoundError, match="no such round here"):
            ask()


def test_enrolment_is_checked(rounds: RoundKeeper) -> None:
    opened(rounds)
    with pytest.raises(InvalidInputError, match="no such stratum"):
        rounds.enrol(ID, "west", bytes(32), "rosa")
    for digests in (b"", bytes(31), bytes(33)):
        with pytest.raises(InvalidInputError, match="digests of 32 bytes each"):
            rounds.enrol(ID, "north", digests, "rosa")
    with pytest.raises(InvalidInputError, match="11 tokens would be more than the stratum's population of 10"):
        rounds.enrol(ID, "north", bytes(32), "rosa")
    rounds.close_round(ID, "rosa")
    with pytest.raises(ClosedRoundError):
        rounds.enrol(ID, "south", bytes(32), "rosa")


def test_counts_are_there_once_the_round_is_closed(rounds: RoundKeeper, at: Callable[[float], None]) -> None:
    opened(rounds)
    said = carry_out(
        rounds,
        rounds.report(ID, TOKENS[0], "north", Category(symbol=0)),
        rounds.report(ID, TOKENS[1], "north", Category(symbol=19)),
        rounds.report(ID, SOUTHERN, "south", Category(symbol=19)),
    )
    assert said == ["", "", ""]
    with refuses(NotReadyError, where="round 00000000000000000000000000000001"):
        rounds.counts(ID, "rosa")
    closed, already = rounds.close_round(ID, "rosa")
    assert (rounds.close_round(ID, "rosa"), already) == ((closed, True), False)
    counts = np.frombuffer(rounds.counts(ID, "rosa"), "<i8").reshape(2, 20)
    assert counts[:, [0, 19]].tolist() == [[1, 1], [0, 1]]
    assert counts.sum() == 3
    at(closed + DAY)
    assert rounds.counts(ID, "rosa") == counts.tobytes()
    at(closed + DAY + 1)
    with refuses(ClosedRoundError, where="round 00000000000000000000000000000001"):
        rounds.counts(ID, "rosa")


def test_a_deadline_closes_a_round(rounds: RoundKeeper, at: Callable[[float], None]) -> None:
    opened(rounds)
    at(FUTURE + 1)
    assert rounds.round(ID)[1] is RoundState.CLOSED
    assert rounds.close_round(ID, "rosa") == (FUTURE + 1, True)
    assert not any(rounds.counts(ID, "rosa"))


REFUSED: dict[str, tuple[dict[str, Any], type[VeiltabError]]] = {
    "an unknown round": ({"round_id": OTHER_ID}, NotFoundError),
    "no round": ({"round_id": ""}, NotFoundError),
    "a forged token": ({"token": bytes(16)}, DeniedError),
    "a token of another stratum": ({"token": SOUTHERN}, DeniedError),
    "a stratum that is not the token's": ({"stratum": "south"}, DeniedError),
    "an unknown stratum": ({"stratum": "west"}, InvalidInputError),
    "no stratum": ({"stratum": ""}, InvalidInputError),
    "no token": ({"token": b""}, InvalidInputError),
    "a long token": ({"token": bytes(17)}, InvalidInputError),
    "no category": ({"report": Category(symbol=20)}, InvalidInputError),
    "a spent token": ({"token": TOKENS[9]}, SpentTokenError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_report_that_is_refused_is_not_counted(rounds: RoundKeeper, case: str) -> None:
    changes, kind = REFUSED[case]
    opened(rounds)
    good: dict[str, Any] = {"round_id": ID, "token": TOKENS[0], "stratum": "north", "report": Category(symbol=7)}
    said = carry_out(
        rounds,
        rounds.report(**(good | {"token": TOKENS[9]})),
        rounds.report(**(good | changes)),
        rounds.report(**good),
        rounds.report(**(good | {"token": SOUTHERN, "stratum": "south"})),
    )
    assert said == ["", kind.reason, "", ""]
    rounds.close_round(ID, "rosa")
    assert np.frombuffer(rounds.counts(ID, "rosa"), "<i8").reshape(2, 20)[:, 7].tolist() == [2, 1]
    assert rounds.status(ID, "rosa").reports == (2, 1)


def test_a_token_of_another_round_is_refused(rounds: RoundKeeper) -> None:
    opened(rounds)
    rounds.open_round(round_with(round_id=OTHER_ID), "rosa")
    assert carry_out(rounds, rounds.report(OTHER_ID, TOKENS[0], "north", Category(symbol=7))) == ["DENIED"]
    assert rounds.status(OTHER_ID, "rosa").reports == (0, 0)


def payloads(name: str) -> dict[str, Report]:
    """Return what a round of this oracle must refuse: malformed reports, and good ones of the other oracles."""
    others = {f"a report of {other}": report for other, report in GOOD_PAYLOADS.items() if other != name}
    return BAD_PAYLOADS[name] | others


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_a_payload_that_no_node_could_have_sent_is_refused(rounds: RoundKeeper, name: str) -> None:
    opened(rounds, round_with(name))
    sent = payloads(name) | {"a good one": GOOD_PAYLOADS[name]}
    said = carry_out(rounds, *(rounds.report(ID, TOKENS[0], "north", report) for report in sent.values()))
    assert dict(zip(sent, said, strict=True)) == dict.fromkeys(sent, "INVALID_INPUT") | {"a good one": ""}
    assert rounds.status(ID, "rosa").reports == (1, 0)


def test_a_closed_round_takes_no_report_and_tells_those_who_reported(rounds: RoundKeeper) -> None:
    opened(rounds)

    async def close() -> None:
        rounds.close_round(ID, "rosa")

    first, again, late = (rounds.report(ID, token, "north", Category(symbol=7)) for token in (*TOKENS[:1], *TOKENS[:2]))
    assert carry_out(rounds, first, close(), again, late) == ["", "", "TOKEN_SPENT", "ROUND_CLOSED"]


async def test_many_reports_at_once_are_counted_together_each_once(
    rounds: RoundKeeper, store: CollectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = opened(rounds, round_with(strata=(replace(NORTH, population=2010), SOUTH)))
    tokens = [number.to_bytes(16, "big") for number in range(2000)]
    rounds.enrol(ID, "north", b"".join(token_digest(ID, token) for token in tokens), "rosa")
    batches: list[int] = []
    record = store.record

    def counted(arrivals: Sequence[Arrival]) -> list[VeiltabError | None]:
        batches.append(len(arrivals))
        return record(arrivals)

    monkeypatch.setattr(store, "record", counted)
    async with running(rounds):
        twice = [*tokens, *tokens[:200]]
        reports = [rounds.report(ID, token, "north", Category(symbol=token[-1] % spec.size)) for token in twice]
        reasons = await asyncio.gather(*(reason(report) for report in reports))
    assert Counter(reasons) == {"": 2000, "TOKEN_SPENT": 200}
    assert sum(batches) == 2200
    assert max(batches) <= MOST_AT_ONCE
    assert len(batches) < 50
    expected = np.bincount([token[-1] % 20 for token in tokens], minlength=20)
    assert np.array_equal(store.counts(ID)[0], expected)


async def test_nobody_is_answered_before_the_counts_are_durable(
    rounds: RoundKeeper, store: CollectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)
    gate, record = threading.Event(), store.record

    def held(arrivals: Sequence[Arrival]) -> list[VeiltabError | None]:
        assert gate.wait(10)
        return record(arrivals)

    monkeypatch.setattr(store, "record", held)
    async with running(rounds):
        waiting = asyncio.create_task(rounds.report(ID, TOKENS[0], "north", Category(symbol=7)))
        await asyncio.wait({waiting}, timeout=0.1)
        assert not waiting.done()
        gate.set()
        await waiting
        assert store.status(ID).reports == (1, 0)


async def test_a_failing_disk_is_told_to_everybody_and_the_next_reports_count(
    rounds: RoundKeeper, store: CollectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(rounds)

    async with running(rounds):
        with monkeypatch.context() as patched:
            patched.setattr(store, "record", Mock(side_effect=sqlite3.OperationalError("disk I/O error")))
            reports = [rounds.report(ID, token, "north", Category(symbol=7)) for token in TOKENS[:3]]
            answers = await asyncio.gather(*reports, return_exceptions=True)
        assert [type(answer) for answer in answers] == [sqlite3.OperationalError] * 3
        await rounds.report(ID, TOKENS[0], "north", Category(symbol=7))
    assert store.status(ID).reports == (1, 0)


async def test_a_caller_that_goes_away_keeps_nobody_else_waiting(rounds: RoundKeeper, store: CollectionStore) -> None:
    opened(rounds)
    async with running(rounds):
        first, *others = [
            asyncio.create_task(rounds.report(ID, token, "north", Category(symbol=7))) for token in TOKENS[:3]
        ]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(*others)
        # Nobody waits for its answer, so it was left aside; the node that asks again is counted, once.
        assert not await reason(rounds.report(ID, TOKENS[0], "north", Category(symbol=7)))
    assert store.status(ID).reports == (3, 0)


async def test_rounds_end_and_are_forgotten_by_themselves(
    rounds: RoundKeeper, store: CollectionStore, monkeypatch: pytest.MonkeyPatch, at: Callable[[float], None]
) -> None:
    monkeypatch.setattr("veiltab.server.rounds.rounds._SWEEP_SECONDS", 0.01)
    opened(rounds)
    store.close_round(ID, int(time.time()))
    rounds.open_round(round_with(round_id=OTHER_ID), "rosa")

    def states() -> list[str]:
        return [row["state"] for row in store.connection.execute("SELECT state FROM round ORDER BY id")]

    def tokens() -> int:
        return int(store.connection.execute("SELECT COUNT(*) FROM token").fetchone()[0])

    async with running(rounds):
        await asyncio.sleep(0.05)
        assert (states(), tokens()) == (["closed", "open"], 11)
        at(FUTURE + 1)
        for _ in range(1000):
            await asyncio.sleep(0.01)
            if (states(), tokens()) == (["closed", "closed"], 0):
                return
        raise AssertionError
    assert store.status(OTHER_ID).closed == FUTURE + 1


@pytest.mark.parametrize(
    ("tokens", "most", "waiting"),
    [(TOKENS[:1] * (MOST_WAITING_EACH + 5), 1000, MOST_WAITING_EACH), (TOKENS[:5], 3, 3)],
    ids=["of one token", "of all"],
)
async def test_so_many_reports_wait_and_no_more(
    rounds: RoundKeeper, monkeypatch: pytest.MonkeyPatch, tokens: list[bytes], most: int, waiting: int
) -> None:
    monkeypatch.setattr("veiltab.server.rounds.rounds.MOST_WAITING", most)
    opened(rounds)
    answers = asyncio.gather(*(reason(rounds.report(ID, one, "north", Category(symbol=7))) for one in tokens))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert rounds.waiting == waiting
    counted, refused = len(set(tokens[:waiting])), len(tokens) - waiting
    async with running(rounds):
        assert Counter(await answers) == Counter(
            {"": counted, "TOKEN_SPENT": waiting - counted, "UNAVAILABLE": refused}
        )
        assert await reason(rounds.report(ID, TOKENS[0], "north", Category(symbol=7))) == "TOKEN_SPENT"
    assert rounds.status(ID, "rosa").reports == (counted, 0)
