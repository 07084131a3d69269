"""Planning and pricing a request away from the event loop: once, in a process of its own that has so much time.

Anyone who may ask can ask for what takes long to plan. The kernel ends the process that plans when it has used its
seconds of processor time for one question. A request is then refused, as one that cannot be planned; a release is
priced by its pure epsilon. The party that asks never waits on its own loop, and ends the process when it ends. Every
answer is stored.
"""

import asyncio
import sys
from collections import defaultdict
from contextlib import suppress
from typing import cast

from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.release.spec import ReleaseSpec
from veiltab.curator.budget.allowance import Allowance, Charge
from veiltab.curator.planning.plan_questions import (
    Card,
    ChargeQuestion,
    PlanAnswer,
    PlanInput,
    charge_question,
    seconds_for,
)
from veiltab.curator.records.store import CuratorStore

_MOST_KINDS = 256
"""Kinds of releases whose charges a process remembers; beyond, it forgets all."""

_WORKER = (sys.executable, "-P", "-m", "veiltab.curator.planning.plans")
_LONGEST_LINE = 2**20


def _too_long(tables: int) -> PlanAnswer:
    return PlanAnswer(
        problem=f"planning it takes more than {seconds_for(tables):g} s of processor time",
        where="request",
        remedy="Ask for fewer rows, fewer attributes, or another epsilon and delta.",
    )


def stored_plan(store: CuratorStore, question: PlanInput) -> ReleaseSpec | None:
    """Return the plan that answers a question, if it was ever asked.

    Raises:
        InvalidInputError: it was, and there is no plan.
    """
    answer = store.answers.plan(question.request.release_id, question.digest())
    return None if answer is None else read_canonical(PlanAnswer, answer).planned()


def stored_card(store: CuratorStore, spec: ReleaseSpec) -> tuple[Bound, ...] | None:
    """Return the bounds of a plan's card, if it was ever made; none at all if that took too long."""
    card = store.answers.card(spec.digest())
    return None if card is None else read_canonical(Card, card).bounds


def stored_charge(store: CuratorStore, question: ChargeQuestion) -> Charge | None:
    """Return the charge that answers a question, if it was ever asked."""
    charge = store.answers.charge(question.digest())
    return None if charge is None else read_canonical(Charge, charge)


def store_card(store: CuratorStore, spec: ReleaseSpec, bounds: tuple[Bound, ...]) -> None:
    """Store the bounds of a plan's card."""
    store.answers.set_card(spec.release_id, spec.digest(), canonical_text(Card(bounds=bounds)))


class Planner:
    """The plans, charges and cards of one curator.

    Args:
        store: keeps each of them with its release.
    """

    def __init__(self, store: CuratorStore) -> None:
        self._store = store
        # What is asked about several tables takes long, and delays nothing that is asked about one.
        self._worker, self._worker_for_tables = _Worker(), _Worker()
        # What a release takes, by its kind; most releases are of few kinds.
        self._charges = dict[tuple[object, ...], Charge]()
        # One question of a researcher at a time, so that those of one delay another's by one question.
        self._turns = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def spec(self, question: PlanInput) -> ReleaseSpec:
        """Return the plan of a request.

        Raises:
            InvalidInputError: it cannot be planned.
        """
        async with self._turns[question.request.researcher]:
            spec = stored_plan(self._store, question)
            if spec is None:
                tables = len(question.request.tables)
                answer = await self._ask("plan", question.text, tables)
                answer = answer or canonical_text(_too_long(tables))
                self._store.answers.set_plan(question.request.release_id, question.digest(), answer)
                spec = read_canonical(PlanAnswer, answer).planned()
        return spec

    async def charge(self, spec: ReleaseSpec, allowance: Allowance) -> Charge:
        """Return what a release takes of a budget; by its pure epsilon if pricing it takes too long."""
        question = charge_question(spec, allowance)
        async with self._turns[spec.researcher]:
            charge = stored_charge(self._store, question)
            if charge is None:
                charge = await self._new_charge(question, _tables_of(spec))
                self._store.answers.set_charge(spec.release_id, question.digest(), canonical_text(charge))
        return charge

    async def _new_charge(self, question: ChargeQuestion, tables: int) -> Charge:
        """Return a charge that is not stored; only the first release of a kind needs a process."""
        kind = _kind(question)
        if kind in self._charges:
            return self._charges[kind]
        answer = await self._ask("charge", question.text, tables)
        if not answer:
            return question.charge_at_once()
        charge = read_canonical(Charge, answer)
        if kind is not None:
            if len(self._charges) >= _MOST_KINDS:
                self._charges.clear()
            self._charges[kind] = charge
        return charge

    async def make_card(self, spec: ReleaseSpec) -> None:
        """Make the epsilon card of a plan for those who decide, unless that was done."""
        async with self._turns[spec.researcher]:
            if stored_card(self._store, spec) is None:
                card = await self._ask("card", spec.to_json(), _tables_of(spec)) or canonical_text(Card())
                self._store.answers.set_card(spec.release_id, spec.digest(), card)

    async def close(self) -> None:
        """End the processes."""
        await self._worker.close()
        await self._worker_for_tables.close()

    async def _ask(self, kind: str, text: str, tables: int) -> str:
        """Return a worker's answer; empty if it ended over the question."""
        worker = self._worker_for_tables if tables else self._worker
        return await worker.ask(f"{kind} {tables} {text}\n")


def _kind(question: ChargeQuestion) -> tuple[object, ...] | None:
    """Return all that the charge of a release of one table depends on; None of several."""
    table = question.spec.only_table
    if table is None:
        return None
    # As texts: the charge shows an epsilon with the digits of the spec's.
    return table.description, str(table.epsilon), str(table.delta), str(question.epsilon), str(question.delta)


def _tables_of(spec: ReleaseSpec) -> int:
    return len(spec.tables) if spec.several else 0


class _Worker:
    """A process that answers one question at a time; it starts with the first."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        # Killed by a caller that was cancelled while it worked.
        self._killed: list[asyncio.subprocess.Process] = []
        self._turn = asyncio.Lock()

    async def ask(self, line: str) -> str:
        """Return the answer; empty if the process ended over the question."""
        async with self._turn:
            if self._process is not None and self._process.returncode is not None:
                await self.close()  # the system ended it while it had no question
            process = self._process or await asyncio.create_subprocess_exec(
                *_WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
            # What is cancelled, or ends without an answer, leaves no process that still works on it.
            self._process = None
            try:
                answer = await _answer_of(process, line.encode())
            except BaseException:
                process.kill()
                self._killed.append(process)
                raise
            if answer:
                self._process = process
            else:
                await _ended(process)
            return answer

    async def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._killed.append(self._process)
            self._process = None
        while self._killed:
            await _ended(self._killed.pop())


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait until a process is over and its pipes are closed, of which asyncio hears apart."""
    await process.wait()
    if process.stdout is not None:
        await process.stdout.read()


async def _answer_of(worker: asyncio.subprocess.Process, line: bytes) -> str:
    to_worker, from_worker = cast("asyncio.StreamWriter", worker.stdin), cast("asyncio.StreamReader", worker.stdout)
    with suppress(BrokenPipeError, ConnectionResetError):
        to_worker.write(line)
        await to_worker.drain()
    answer = await from_worker.readline()
    return answer.decode().rstrip("\n") if answer.endswith(b"\n") else ""
