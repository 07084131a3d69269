"""Thousands of nodes in one process: each decides for itself and reports with an RPC of its own."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TYPE_CHECKING

from veiltab.common.collection.oracles import Report
from veiltab.common.collection.round import Round, RoundState, Stratum
from veiltab.common.collection.round_messages import report_to_proto
from veiltab.common.collection.tokens import TOKEN_BYTES
from veiltab.common.core.randomness import SystemSource
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import ClosedRoundError, InvalidInputError
from veiltab.common.study.file import Study
from veiltab.node.answers.decision import check_round, decide
from veiltab.node.answers.journal import Journal, ReportDecision, State
from veiltab.node.answers.sending import hand_in, is_answer
from veiltab.node.answers.values import Fleet, NodeValue
from veiltab.v1 import collection_pb2

if TYPE_CHECKING:
    # The generated module has this name for type checkers only.
    from veiltab.v1.collection_pb2_grpc import CollectionServiceAsyncStub as Stub

_BATCH = 1000
_SAVE_SECONDS = 0.5

Progress = Callable[[int, int], None]
"""Called with the number of settled reports and the number of all reports."""


@dataclass(slots=True, kw_only=True)
class FleetResult:
    """The outcome of a fleet's round.

    Args:
        nodes: nodes with a value and a token.
        silent: nodes whose coin said not to report.
        counted: reports that the server counted, in this run or before.
        refused: reports that the server refused, by reason.
        unanswered: reports that got no answer or an internal error; another run submits them again.
        bytes: length of all reports of nodes that were not silent.
        bytes_full_participation: length if every node had reported.
    """

    nodes: int
    silent: int = 0
    counted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    bytes: int = 0
    bytes_full_participation: int = 0


class FleetRun:
    """One run of a fleet through a round; it skips what an earlier run settled.

    Args:
        signed: what the researcher signed of the round.
        state: of the round; nodes decide only while it takes reports.
        journal: the nodes' decisions, from this run and earlier ones.
        concurrency: most reports in flight at a time.
        within: seconds without any answer after which the run stops; another run can continue.
    """

    def __init__(  # noqa: PLR0913 - what a run consists of
        self,
        stub: "Stub",
        study: Study,
        spec: Round,
        journal: Journal,
        *,
        signed: str,
        state: RoundState,
        concurrency: int,
        within: float,
    ) -> None:
        self._stub, self._study, self._spec, self._journal = stub, study, spec, journal
        self._signed = signed
        self._state, self._concurrency, self._within = state, concurrency, within
        self._heard = 0.0
        self._settled: dict[State, list[int]] = {state: [] for state in State}
        self._sizes = {stratum.name: self._size(stratum.name) for stratum in spec.strata}

    def _size(self, stratum: str) -> int:
        """Return the length of a report of a stratum; it does not depend on the value."""
        report = self._spec.randomiser.randomise(0, SystemSource())
        return report_to_proto(self._spec.round_id, bytes(TOKEN_BYTES), stratum, report).ByteSize()

    async def run(self, fleet: Fleet, progress: Progress) -> FleetResult:
        """Let every node decide, then submit the reports that are not settled.

        Raises:
            ConflictError: the journal belongs to other values or tokens.
            InvalidInputError: there is no node, or the round is not of this study.
            BudgetExceededError: with the journal's other rounds it would exceed a node's budget.
        """
        if not fleet.nodes:
            raise InvalidInputError(
                "there is no node with a value and a token",
                where="fleet",
                remedy="No node has decided; give other files.",
            )
        groups = {name: check_round(self._spec, self._study, name) for name in {node.stratum for node in fleet.nodes}}
        before = self._journal.decisions(self._spec.round_id)
        # A round in which nobody decides must not bind the folder to these files.
        if before or self._state is RoundState.OPEN:
            self._journal.begin(self._spec, fleet.digest, self._study, self._signed)
        if self._state is RoundState.OPEN:
            await self._decide_all([node for node in fleet.nodes if node.node not in before], groups)
        decisions = self._journal.decisions(self._spec.round_id)
        result = _initial_result(fleet, decisions)
        # A refused report was certainly not counted; a waiting one may have been.
        tried = {number for number, decision in before.items() if decision.state is State.WAITING}
        unsettled = [decision for decision in decisions.values() if decision.state in {State.WAITING, State.REFUSED}]
        await self._hand_in_all(unsettled, tried, result, progress)
        return result

    async def _decide_all(self, nodes: Sequence[NodeValue], groups: Mapping[str, Stratum]) -> None:
        """Record the decisions of nodes that have not decided yet, durably, in batches."""
        rest = iter(nodes)
        while batch := list(islice(rest, _BATCH)):
            # Yield, so that an interruption can end the loop here.
            await asyncio.sleep(0)
            self._journal.decide(
                self._spec.round_id,
                [self._decision(node, decide(self._spec, groups[node.stratum], node.symbol)) for node in batch],
            )

    def _decision(self, node: NodeValue, report: Report | None) -> ReportDecision:
        size = self._sizes[node.stratum]
        if report is None:
            return ReportDecision(node=node.node, state=State.SILENT, request=b"", size=size)
        request = report_to_proto(self._spec.round_id, node.token, node.stratum, report)
        return ReportDecision(node=node.node, state=State.WAITING, request=request.SerializeToString(), size=size)

    async def _hand_in_all(
        self, decisions: Sequence[ReportDecision], tried: AbstractSet[int], result: FleetResult, progress: Progress
    ) -> None:
        """Submit reports, at most `concurrency` at a time, and record their outcomes every few seconds."""
        rest, total = iter(decisions), len(decisions)
        already = result.counted + result.refused.total()
        self._heard = time.monotonic()

        async def work(turns: Iterator[ReportDecision]) -> None:
            for decision in turns:
                await self._hand_in_one(decision, result, tried=decision.node in tried)

        workers = [asyncio.create_task(work(rest)) for _ in range(self._concurrency)]
        try:
            while workers:
                done, pending = await asyncio.wait(workers, timeout=_SAVE_SECONDS)
                for finished in done:
                    finished.result()
                workers = list(pending)
                self._save()
                progress(result.counted + result.refused.total() + result.unanswered - already, total)
        finally:
            for worker in workers:
                worker.cancel()
            self._save()

    async def _hand_in_one(self, decision: ReportDecision, result: FleetResult, *, tried: bool) -> None:
        patience = self._heard + self._within - time.monotonic()
        if patience <= 0:
            result.unanswered += 1
            return
        request = collection_pb2.ReportRequest.FromString(decision.request)
        outcome = await hand_in(self._stub, self._study, request, tried=tried, within=patience)
        if outcome.error is None:
            result.counted += 1
        elif is_answer(outcome.error):
            result.refused[outcome.error.reason] += 1
        else:
            result.unanswered += 1
        if outcome.error is None or is_answer(outcome.error):
            self._heard = time.monotonic()
        if outcome.state is not decision.state:
            self._settled[outcome.state].append(decision.node)

    def _save(self) -> None:
        for state, nodes in self._settled.items():
            self._journal.finish(self._spec.round_id, nodes, state)
            nodes.clear()


def _initial_result(fleet: Fleet, decisions: Mapping[int, ReportDecision]) -> FleetResult:
    """Return a run's result before it submits anything; a node that has not decided by now is too late."""
    values = decisions.values()
    late = sum(node.node not in decisions for node in fleet.nodes)
    return FleetResult(
        nodes=len(fleet.nodes),
        silent=sum(decision.state is State.SILENT for decision in values),
        counted=sum(decision.state is State.COUNTED for decision in values),
        refused=Counter({ClosedRoundError.reason: late} if late else {}),
        bytes=sum(decision.size for decision in values if decision.state is not State.SILENT),
        bytes_full_participation=sum(decision.size for decision in values),
    )
