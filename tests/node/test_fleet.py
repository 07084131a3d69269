import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.common.collection.rounds import EVERYBODY, ID, OTHER_ID, PLAIN, plain_round, study
from tests.conftest import refuses
from tests.node.loopback import ANSWER_LOST, INCIDENT_AFTER, INCIDENT_BEFORE, REQUEST_LOST, Loopback, enrol, serving
from veiltab.common.collection.oracles import ORACLE_NAMES, Category
from veiltab.common.collection.round import Round, RoundState
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.errors import BudgetExceededError, ConflictError, InvalidInputError
from veiltab.node.answers.journal import Journal, State
from veiltab.node.answers.values import Fleet, NodeValue
from veiltab.node.reporters.fleet import FleetResult, FleetRun
from veiltab.v1 import collection_pb2

STUDY = study(PLAIN)
SIZE = 40
TOKENS = [number.to_bytes(16, "big") for number in range(1, SIZE + 1)]
CROWD = replace(EVERYBODY, population=SIZE)
SPEC = plain_round(strata=(CROWD,))
HALF = plain_round(strata=(replace(CROWD, rate=Decimal("0.5")),))


def fleet_of(tokens: Iterable[bytes] = TOKENS, origin: bytes = bytes(32)) -> Fleet:
    nodes = [
        NodeValue(node=number, stratum="everyone", symbol=number % 20, token=token)
        for number, token in enumerate(tokens, 2)
    ]
    return Fleet(nodes=tuple(nodes), bad_rows=(), digest=origin)


async def run(  # noqa: PLR0913 - what a run depends on
    stub: Loopback,
    folder: Path,
    *,
    fleet: Fleet | None = None,
    spec: Round = SPEC,
    state: RoundState = RoundState.OPEN,
    within: float = 20.0,
    concurrency: int = 8,
) -> FleetResult:
    """Run a fleet once on its state folder, as the command does."""
    with closing(Journal(folder / "fleet")) as journal:
        started = FleetRun(
            cast("Any", stub), STUDY, spec, journal, signed="", state=state, concurrency=concurrency, within=within
        )
        return await started.run(fleet or fleet_of(), lambda _done, _total: None)


@asynccontextmanager
async def village(folder: Path, *, spec: Round = SPEC, faults: Iterable[str] = ()) -> AsyncIterator[Loopback]:
    """Open a round with a token for each node."""
    async with serving(STUDY, folder / "server", faults) as stub:
        enrol(stub.rounds, spec, TOKENS)
        yield stub


def kept(folder: Path) -> dict[int, State]:
    with closing(Journal(folder / "fleet")) as journal:
        return {node: decision.state for node, decision in journal.decisions(ID).items()}


def counts_of(requests: Iterable[collection_pb2.ReportRequest], spec: Round = SPEC) -> list[int]:
    """Return what reports add up to, each node's once."""
    once = {request.token: request for request in requests}
    total = np.zeros(spec.size, np.int64)
    spec.randomiser.aggregate([report_from_proto(request) for request in once.values()], total)
    return [int(count) for count in total]


def counted(stub: Loopback) -> list[int]:
    return [int(count) for count in stub.rounds._store.counts(ID)[0]]


def answers_differ(requests: Iterable[collection_pb2.ReportRequest]) -> bool:
    """Whether some node ever sent two different reports."""
    seen: dict[bytes, bytes] = {}
    return any(
        seen.setdefault(request.token, request.SerializeToString()) != request.SerializeToString()
        for request in requests
    )


@pytest.mark.parametrize("name", ORACLE_NAMES)
async def test_the_server_counts_exactly_what_the_nodes_sent(tmp_path: Path, name: str) -> None:
    spec = plain_round(randomiser=name, strata=(CROWD,))

    async with village(tmp_path, spec=spec) as stub:
        result = await run(stub, tmp_path, spec=spec)
        assert (result.nodes, result.counted, result.silent, result.unanswered) == (SIZE, SIZE, 0, 0)
        assert not result.refused
        assert len(stub.sent) == SIZE
        assert counted(stub) == counts_of(stub.sent, spec)
        assert result.bytes == result.bytes_full_participation == sum(request.ByteSize() for request in stub.sent)


async def test_silent_nodes_send_nothing_and_stay_silent(tmp_path: Path) -> None:
    async with village(tmp_path, spec=HALF) as stub:
        first = await run(stub, tmp_path, spec=HALF)
        assert first.silent + first.counted == SIZE
        assert 0 < first.silent < SIZE
        assert len(stub.sent) == first.counted
        assert first.bytes * SIZE == first.bytes_full_participation * first.counted
        assert await run(stub, tmp_path, spec=HALF) == first
        assert len(stub.sent) == first.counted


async def test_a_report_is_on_record_before_it_is_sent(tmp_path: Path) -> None:
    async with village(tmp_path) as stub:

        def check(request: collection_pb2.ReportRequest) -> None:
            # Another connection sees only what is committed.
            with closing(Journal(tmp_path / "fleet")) as journal:
                kept = {decision.request for decision in journal.decisions(ID).values()}
            assert request.SerializeToString() in kept

        stub.before = check
        assert (await run(stub, tmp_path, fleet=fleet_of(TOKENS[:5]))).counted == 5


@pytest.mark.parametrize("fault", [REQUEST_LOST, ANSWER_LOST])
async def test_what_was_lost_on_the_way_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.retries.FIRST_PAUSE", 0.01)

    async with village(tmp_path, faults=[fault, ""] * 30) as stub:
        result = await run(stub, tmp_path)
        assert (result.counted, result.unanswered, sum(result.refused.values())) == (SIZE, 0, 0)
        assert len(stub.sent) > SIZE
        assert not answers_differ(stub.sent)
        assert counted(stub) == counts_of(stub.sent)


@pytest.mark.parametrize("fault", [INCIDENT_BEFORE, INCIDENT_AFTER])
async def test_what_the_server_failed_at_is_settled_by_another_run(tmp_path: Path, fault: str) -> None:
    async with village(tmp_path, faults=[fault] * 10) as stub:
        first = await run(stub, tmp_path)
        assert (first.counted, first.unanswered, sum(first.refused.values())) == (SIZE - 10, 10, 0)
        assert Counter(kept(tmp_path).values()) == {State.COUNTED: SIZE - 10, State.WAITING: 10}
        second = await run(stub, tmp_path)
        assert (second.counted, second.unanswered, sum(second.refused.values())) == (SIZE, 0, 0)
        assert not answers_differ(stub.sent)
        assert counted(stub) == counts_of(stub.sent)


async def test_a_run_that_is_repeated_repeats_what_it_said(tmp_path: Path) -> None:
    """Forged tokens, and tokens that somebody else has spent, are refused in every run alike."""
    forged = [bytes([255]) + token[1:] for token in TOKENS[:4]]
    fleet = fleet_of([*forged, *TOKENS[4:]])

    async with village(tmp_path) as stub:
        for token in TOKENS[4:7]:
            await stub.Report(report_to_proto(ID, token, "everyone", Category(symbol=0)), 1.0)
        stub.sent.clear()
        results = [await run(stub, tmp_path, fleet=fleet) for _ in range(3)]
        assert results[0] == results[1] == results[2]
        assert (results[0].counted, dict(results[0].refused)) == (SIZE - 7, {"DENIED": 4, "TOKEN_SPENT": 3})
        assert sum(stub.rounds.status(ID, "rosa").reports) == SIZE - 4


async def test_a_server_that_is_away_for_good_ends_the_run(tmp_path: Path) -> None:
    """One wait for all of them, not one for each: 33 waits of up to a second would take longer than the guard."""

    async with village(tmp_path) as stub:
        stub.faults = iter([""] * 7 + [REQUEST_LOST] * 1_000_000)
        async with asyncio.timeout(8):
            result = await run(stub, tmp_path, within=1.0, concurrency=1)
        assert (result.counted, result.unanswered, sum(result.refused.values())) == (7, SIZE - 7, 0)
        assert Counter(kept(tmp_path).values()) == {State.COUNTED: 7, State.WAITING: SIZE - 7}
        stub.faults = iter(())
        assert (await run(stub, tmp_path)).counted == SIZE
        assert not answers_differ(stub.sent)
        assert counted(stub) == counts_of(stub.sent)


async def test_an_interruption_saves_what_was_settled(tmp_path: Path) -> None:
    async with village(tmp_path) as stub:

        async def interrupted() -> None:
            running = asyncio.create_task(run(stub, tmp_path, concurrency=1))
            stub.before = lambda _: running.cancel() if len(stub.sent) == 10 else None  # type: ignore[assignment]
            with suppress(asyncio.CancelledError):
                await running

        await interrupted()
        states = Counter(kept(tmp_path).values())
        assert states[State.COUNTED] >= 10
        assert states[State.COUNTED] + states[State.WAITING] == SIZE
        assert sum(stub.rounds.status(ID, "rosa").reports) - states[State.COUNTED] <= 1
        stub.before = lambda _: None
        assert (await run(stub, tmp_path)).counted == SIZE
        assert not answers_differ(stub.sent)
        assert counted(stub) == counts_of(stub.sent)


@pytest.mark.parametrize("moment", [1, 2, 20, SIZE])
async def test_a_fleet_that_is_killed_sends_the_same_reports_again(tmp_path: Path, moment: int) -> None:
    """The files as they are at some moment are what a kill would leave of the fleet."""

    async with village(tmp_path) as stub:

        def copy(_: object) -> None:
            if len(stub.sent) == moment - 1:
                shutil.copytree(tmp_path / "fleet", tmp_path / "killed" / "fleet")

        stub.before = copy
        assert (await run(stub, tmp_path)).counted == SIZE
        assert (await run(stub, tmp_path / "killed")).counted == SIZE
        assert len(stub.sent) > SIZE
        assert not answers_differ(stub.sent)
        assert counted(stub) == counts_of(stub.sent)


async def test_a_closed_round_is_not_decided_any_more_but_settled(tmp_path: Path) -> None:
    async with village(tmp_path) as stub:
        stub.faults = iter([ANSWER_LOST] * 1_000_000)
        first = await run(stub, tmp_path, fleet=fleet_of(TOKENS[:5]), within=0.3)
        assert first.unanswered == 5
        stub.rounds.close_round(ID, "rosa")
        stub.faults = iter(())
        stub.sent.clear()
        closed = await run(stub, tmp_path, fleet=fleet_of(), state=RoundState.CLOSED)
        assert (closed.counted, dict(closed.refused)) == (5, {"ROUND_CLOSED": SIZE - 5})
        assert {request.token for request in stub.sent} == set(TOKENS[:5])
        assert len(kept(tmp_path)) == 5


async def test_a_round_that_closes_meanwhile_refuses_the_rest(tmp_path: Path) -> None:
    async with village(tmp_path) as stub:

        def close(_: object) -> None:
            if len(stub.sent) == 10:
                stub.rounds.close_round(ID, "rosa")

        stub.before = close
        result = await run(stub, tmp_path, concurrency=1)
        assert (result.counted, dict(result.refused)) == (10, {"ROUND_CLOSED": SIZE - 10})
        assert counted(stub) == counts_of(stub.sent[:10])


@pytest.mark.parametrize("state", [RoundState.OPEN, RoundState.CLOSED])
async def test_a_run_in_which_nobody_decides_does_not_bind_the_folder(tmp_path: Path, state: RoundState) -> None:
    async with village(tmp_path) as stub:
        empty = Fleet(nodes=(), bad_rows=(), digest=bytes(31) + b"1")
        with pytest.raises(InvalidInputError, match="there is no node with a value and a token"):
            await run(stub, tmp_path, fleet=empty, state=state)
        if state is RoundState.CLOSED:
            late = await run(stub, tmp_path, fleet=fleet_of(origin=bytes(31) + b"2"), state=state)
            assert late.refused == {"ROUND_CLOSED": SIZE}
        assert (await run(stub, tmp_path)).counted == SIZE


async def test_a_fleet_answers_from_one_origin_one_round_and_within_its_budget(tmp_path: Path) -> None:
    async with village(tmp_path) as stub:
        few = fleet_of(TOKENS[:2])
        await run(stub, tmp_path, fleet=few)
        with refuses(ConflictError, where="round 00000000000000000000000000000001"):
            await run(stub, tmp_path, fleet=replace(few, digest=b"another"))
        dearer = plain_round(strata=(CROWD,), epsilon=Decimal(2))
        with refuses(ConflictError, where="round 00000000000000000000000000000001"):
            await run(stub, tmp_path, fleet=few, spec=dearer)
        # A server that forgot what the first round cost is not followed.
        with refuses(BudgetExceededError, where="epsilon"):
            await run(stub, tmp_path, fleet=few, spec=plain_round(round_id=OTHER_ID, epsilon=Decimal("3.5")))
        with pytest.raises(InvalidInputError, match="another study file"):
            await run(stub, tmp_path, fleet=few, spec=plain_round(round_id=OTHER_ID, study_digest="ab" * 32))
        assert len(stub.sent) == 2


async def test_no_more_reports_are_under_way_than_allowed_and_progress_is_told(tmp_path: Path) -> None:
    async with village(tmp_path) as stub:
        under_way, most = 0, 0
        report = stub.Report

        async def watched(request: collection_pb2.ReportRequest, timeout: float) -> object:  # noqa: ASYNC109 - gRPC's name
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            try:
                return await report(request, timeout)
            finally:
                under_way -= 1

        stub.Report = watched  # type: ignore[assignment,method-assign]
        told: list[tuple[int, int]] = []
        with closing(Journal(tmp_path / "fleet")) as journal:
            started = FleetRun(
                cast("Any", stub), STUDY, SPEC, journal, signed="", state=RoundState.OPEN, concurrency=5, within=20
            )
            await started.run(fleet_of(), lambda done, total: told.append((done, total)))
        assert most == 5
        assert told[-1] == (SIZE, SIZE)
        assert told == sorted(told)
