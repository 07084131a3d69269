"""The server's part in a round: it checks requests, and counts many reports in one transaction."""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial

from veiltab.common.collection.oracles import Report
from veiltab.common.collection.round import EVERYONE, Round, RoundState, RoundStatus
from veiltab.common.collection.tokens import token_digest
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import ClosedRoundError, DeniedError, InvalidInputError, NotReadyError, UnavailableError
from veiltab.common.observe.steps import step
from veiltab.common.rpc.statuses import every
from veiltab.common.study.file import Study
from veiltab.server.rounds.rounds_store import Arrival, CollectionStore, split_digests

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 1024
"""Most reports of one transaction."""

MOST_WAITING = 4 * MOST_AT_ONCE
"""Largest number of waiting reports; a further one is refused as UNAVAILABLE."""

MOST_WAITING_EACH = 16
"""Largest number of waiting reports with one token; an honest node sends one, and again if it gets no answer."""

GATHER_SECONDS = 0.005
"""How long the first report of a transaction waits for others, with which it shares what the transaction costs."""

_SWEEP_SECONDS = 30
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A checked report, and the future of its answer."""

    arrival: Arrival
    answer: "asyncio.Future[None]"


class RoundKeeper:
    """What the server does in rounds, behind its RPCs.

    Args:
        study: the study file; its researchers, nodes and questions.
        retention_days: how long a closed round can be fetched.
    """

    def __init__(self, study: Study, store: CollectionStore, *, retention_days: int = 30) -> None:
        self._study = study
        self._store = store
        self._retention = retention_days * _SECONDS_A_DAY
        self._rounds: dict[str, Round] = {}
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        # Counted by the digest of their token, so that one node cannot fill the queue.
        self._under_way: dict[bytes, int] = {}

    async def run(self) -> None:
        """Count reports as they arrive, and erase expired rounds, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._count())
            sweep = partial(asyncio.to_thread, self._sweep)
            tasks.create_task(every(_SWEEP_SECONDS, sweep, _log, "rounds could not be swept"))

    async def _count(self) -> None:
        """Count all waiting reports in one transaction, then answer them."""
        while True:
            batch = [await self._queue.get()]
            await asyncio.sleep(GATHER_SECONDS)
            while len(batch) < MOST_AT_ONCE and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            # A caller that left got no answer; its next attempt gets the report's outcome.
            batch = [waiting for waiting in batch if not waiting.answer.done()]
            if not batch:
                continue
            rounds = {waiting.arrival.round_id for waiting in batch}
            try:
                with step("count reports", round_id=rounds.pop() if len(rounds) == 1 else None) as size:
                    answers: Sequence[Exception | None] = await asyncio.to_thread(
                        self._store.record, [waiting.arrival for waiting in batch]
                    )
                    size.reports = sum(answer is None for answer in answers)
            except Exception as error:  # noqa: BLE001 - each caller gets it as its own incident
                answers = [error] * len(batch)
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.answer.done():
                    continue
                if answer is None:
                    waiting.answer.set_result(None)
                else:
                    waiting.answer.set_exception(answer)

    def _sweep(self) -> None:
        for record in self._store.rounds():
            self._store.status(record.round_id)
        self._store.forget(int(time.time()) - self._retention)
        self._store.erase_traces()

    def open_round(self, spec: Round, researcher: str, signed: str = "") -> RoundState:
        """Record or find a round, with what its researcher signed of it, which nodes check."""
        nodes = self._study.nodes
        if nodes is None:
            raise InvalidInputError("this study has no nodes", where="study file", remedy="Add [nodes] to it.")
        if spec.researcher != researcher:
            raise DeniedError("the round is in another researcher's name")
        if spec.study_digest != self._study.digest:
            raise InvalidInputError(
                "the round is of another study file than the server's",
                where="study file",
                remedy="Give every party the same bytes.",
            )
        if spec.size != self._study.question(spec.question).attribute.size:
            raise InvalidInputError("the question is not as the study says", where=f"question {spec.question}")
        if {stratum.name for stratum in spec.strata} - set(nodes.strata or (EVERYONE,)):
            raise InvalidInputError("a stratum is not in the study", where="strata")
        if spec.deadline <= time.time():
            raise InvalidInputError("the deadline has passed", where="deadline", remedy="Give the round more time.")
        with step("open round", round_id=spec.round_id):
            return self._store.open_round(spec, nodes.budget_epsilon, self._study.share_of(researcher), signed)

    def signed(self, round_id: str) -> str:
        """Return what the researcher of a round signed of it."""
        return self._store.signed(round_id)

    def enrol(self, round_id: str, stratum: str, joined: bytes, researcher: str) -> int:
        """Add tokens to a stratum of an open round; return how many it has."""
        spec = self._owned(round_id, researcher)
        where = spec.strata.index(spec.stratum(stratum))
        with step("enrol", round_id=round_id):
            return self._store.enrol(round_id, where, list(split_digests(joined)), spec.strata[where].population)

    def round(self, round_id: str) -> tuple[Round, RoundState]:
        """Return a round's description and state."""
        status = self._store.status(round_id)
        return status.round, status.state

    def status(self, round_id: str, researcher: str) -> RoundStatus:
        """Return the status of a researcher's round."""
        self._owned(round_id, researcher)
        return self._store.status(round_id)

    def rounds(self, researcher: str) -> list[str]:
        """Return the ids of a researcher's rounds, oldest first."""
        return [spec.round_id for spec in self._store.rounds() if spec.researcher == researcher]

    def close_round(self, round_id: str, researcher: str) -> tuple[int, bool]:
        """Close a round; return when it was closed, and whether it was before."""
        self._owned(round_id, researcher)
        self._store.status(round_id)
        with step("close round", round_id=round_id):
            return self._store.close_round(round_id, int(time.time()))

    def counts(self, round_id: str, researcher: str) -> bytes:
        """Return the counts of a closed round, 8-byte little-endian, stratum by stratum.

        Two looks at an open round would show the reports that came between them.
        """
        status = self.status(round_id, researcher)
        if status.state is not RoundState.CLOSED:
            raise NotReadyError(
                "the round is still open", where=f"round {round_id}", remedy="Close it with `veiltab collect close`."
            )
        if time.time() > status.closed + self._retention:
            raise ClosedRoundError("the round is no longer kept", where=f"round {round_id}")
        with step("read counts", round_id=round_id):
            return self._store.counts(round_id).tobytes()

    async def report(self, round_id: str, token: bytes, stratum: str, report: Report) -> None:
        """Count a report and spend its token; both are durable when this returns.

        Raises:
            NotFoundError: no such round.
            InvalidInputError: a stratum or a payload that the round does not have.
            DeniedError: the token belongs to another round or stratum.
            SpentTokenError: the token was spent before.
            ClosedRoundError: the round is closed.
            UnavailableError: too many reports wait, or too many with this token.
        """
        spec = await self.described(round_id)
        place = spec.strata.index(spec.stratum(stratum))
        spec.randomiser.check(report)
        arrival = Arrival(round_id=round_id, digest=token_digest(round_id, token), stratum=place, report=report)
        if self._queue.qsize() >= MOST_WAITING:
            raise UnavailableError("too many reports wait to be counted", remedy="Hand it in again later.")
        under_way = self._under_way.get(arrival.digest, 0)
        if under_way >= MOST_WAITING_EACH:
            raise UnavailableError("reports with this token wait to be counted", remedy="Hand it in again later.")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way[arrival.digest] = under_way + 1
        try:
            self._queue.put_nowait(_Waiting(arrival, answer))
            await answer
        finally:
            self._under_way[arrival.digest] -= 1
            if not self._under_way[arrival.digest]:
                del self._under_way[arrival.digest]

    async def described(self, round_id: str) -> Round:
        """Return a round's description.

        Raises:
            NotFoundError: no such round.
        """
        record = self._rounds.get(round_id)
        return await asyncio.to_thread(self._described, round_id) if record is None else record

    @property
    def waiting(self) -> int:
        """Number of reports that are not counted yet."""
        return self._queue.qsize()

    def _described(self, round_id: str) -> Round:
        if round_id not in self._rounds:
            self._rounds[round_id] = self._store.round(round_id)
        return self._rounds[round_id]

    def _owned(self, round_id: str, researcher: str) -> Round:
        spec = self._described(round_id)
        if spec.researcher != researcher:
            raise DeniedError("this round is another researcher's", where=f"round {round_id}")
        return spec
