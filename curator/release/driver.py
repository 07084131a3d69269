"""The curator at work: it aligns tables, and takes every release through the steps that curator/progress names.

This file only executes the steps and records their outcomes. Every step is durable before the next, and may be
repeated.
"""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import replace

from veiltab.common.errors import DeniedError, VeiltabError
from veiltab.common.observe.steps import state_left
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.statuses import every, failures_logged, refusal_of
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import release_coin
from veiltab.curator.peers.subscriptions import Others
from veiltab.curator.planning.checks import check_asked_under
from veiltab.curator.progress.progress import awaited, check_receipt_may_leave, decides_alone, next_step, outcome_of
from veiltab.curator.progress.release_record import CuratorRelease, End, Review, Step, Wait
from veiltab.curator.progress.table_steps import next_step_of_tables
from veiltab.curator.release.curator import Curator, for_researcher
from veiltab.curator.release.step_executor import StepExecutor
from veiltab.curator.release.upload import ServerLink
from veiltab.curator.table.table import Table

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 1.0
_SECONDS_AN_HOUR = 3600.0
_FOLLOWED = frozenset({Step.PLAN, Step.ENCRYPT, Step.UPLOAD, Step.TEST})
"""Steps that are said with the next one, which follows at once if nothing is in its way."""


class CuratorDriver:
    """What a curator does, behind its RPCs."""

    def __init__(self, curator: Curator) -> None:
        self.curator, self.store, self.name = curator, curator.store, curator.name
        self.executor = StepExecutor(curator)

    async def run(self, table: Table) -> None:
        """Align the table and drive releases until cancelled."""
        peers = Peers(self.curator.identity, self.curator.study)
        server = ServerLink(
            self.curator.identity, self.curator.study, self.curator.ledger, self.store.tests.noise_digest
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.curator.alignment.run(table, peers))
                tasks.create_task(self.curator.subscriptions.run(peers))
                tasks.create_task(
                    every(_LOOK_AGAIN_SECONDS, self._erase_traces, _log, "the traces of seeds cannot be erased")
                )
                tasks.create_task(every(_SECONDS_AN_HOUR, self._erase_keys, _log, "old keys cannot be erased"))
                while True:
                    self.curator.submitted.clear()
                    self._show_work()
                    for release_id in self._unfinished():
                        run = self.curator.runs[release_id]
                        if not (run.is_driven or run.is_held):
                            run.is_driven = True
                            tasks.create_task(self._drive_or_log(release_id, peers, server))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.curator.submitted.wait(), _LOOK_AGAIN_SECONDS)
        finally:
            await self.curator.planner.close()
            await peers.close()
            await server.close()

    def _unfinished(self) -> tuple[str, ...]:
        with failures_logged(_log, "the releases under way cannot be read"):
            if self.store.has_changed_elsewhere():
                self.curator.subscriptions.wake()
                self.curator.changes.notify_all()
            waiting = set(self.curator.asks_a_person)
            decided = waiting - self.store.decisions.waiting_for_a_person(time.time())
            over = self.curator.decisions.refused_of(waiting) | self.curator.subscriptions.ended(waiting)
            for release_id in decided | over:
                self.curator.runs[release_id].is_held = False
            for release_id in decided:
                self.curator.subscriptions.forget(release_id)  # anyone who goes on with it looks anew
            return self.store.releases.unfinished()
        return ()

    def _show_work(self) -> None:
        """Let anyone who looks read what is done for a release, or what it waits for: a short wait is not recorded."""
        with failures_logged(_log, "the work under way cannot be shown"):
            texts = self.curator.stages.texts
            for release_id, run in tuple(self.curator.runs.items()):
                if (text := texts.get(release_id, run.waits_for)) not in {"", run.shown}:
                    self._say(self.store.releases.release(release_id), text)
                    run.shown = text

    def _say(self, release: CuratorRelease, text: str) -> None:
        """Record what a release waits for, or what is done for it; of one of several tables, with them."""
        self.store.releases.set_waiting(release.request.release_id, text)
        if release.part_of:
            self.store.releases.set_waiting(release.part_of, f"table {', '.join(release.request.attributes)}: {text}")

    async def _erase_traces(self) -> None:
        """Erase what was forgotten for good: of all releases of a second at once, and while none waits for it."""
        if self.store.coins.has_traces:
            await asyncio.to_thread(self.store.coins.erase_traces)

    async def _erase_keys(self) -> None:
        await asyncio.to_thread(self.forget_old_keys, time.time())

    def forget_old_keys(self, now: float) -> None:
        """Erase the keys that nobody may have any more: with a key, ciphertext that a server kept would be a column."""
        for release_id in self.store.keys.of_results():
            release, decisions = self.store.releases.release(release_id), self.store.decisions.decisions(release_id)
            try:
                check_receipt_may_leave(release, decisions, now)
            except DeniedError:
                self.curator.encryption(release_id).forget_pads()
                self.store.keys.forget_keys(release_id)

    async def _drive_or_log(self, release_id: str, peers: Peers, server: ServerLink) -> None:
        """Drive a release; a failure on the way, such as a full disk, is tried again later."""
        with failures_logged(_log, "a release cannot go on", release=release_id):
            await self._drive(release_id, peers, server)
        if release_id in self.curator.runs:
            self.curator.runs[release_id].is_driven = False

    async def _drive(self, release_id: str, peers: Peers, server: ServerLink) -> None:
        attempt, entered = 0, time.monotonic()
        release = self.store.releases.release(release_id)
        while not release.state.finished:
            before, wakes = release.state, self.curator.subscriptions.wakes
            release = await self._take_steps(release, entered, peers, server)
            if release.state is not before:
                attempt, entered = 0, time.monotonic()
            elif await self._waits_for_a_person(release):
                self.curator.runs[release_id].is_held = True
                return
            else:
                attempt = await self._wait(release, attempt, wakes)
                release = self.store.releases.release(release_id)
        if release.part_of:
            self.curator.look_after_tables()
        if release.state.unsuccessful:
            self.curator.forget(release_id)  # a person ended it, or a process that did not come to the end of it
        self.curator.decisions.forget(release_id)
        self.curator.room.give_back(release_id)
        await self._tidy(release_id, release.request.deadline)
        self._stop_looking(release_id)

    async def _waits_for_a_person(self, release: CuratorRelease) -> bool:
        """Whether every other curator has considered a request, and a person here has not."""
        others = self.curator.runs[release.request.release_id].others
        if others is None or isinstance(others, VeiltabError) or not all(peer.considered for peer in others):
            return False
        return await self.curator.decisions.waits_for_a_person(release)

    def _stop_looking(self, release_id: str) -> None:
        self.curator.subscriptions.forget(release_id)
        self.curator.runs.pop(release_id, None)

    async def _wait(self, release: CuratorRelease, attempt: int, wakes: int) -> int:
        """Wait until a step is worth another attempt; return how many failed."""
        release_id, deadline = release.request.release_id, release.request.deadline
        run = self.curator.runs[release_id]
        is_refused, others = run.is_refused, run.others
        await self.curator.subscriptions.news(
            release_id, others, attempt=attempt, wakes=wakes, deadline=deadline, is_refused=is_refused
        )
        return attempt + 1 if is_refused else 0

    async def _take_steps(
        self, release: CuratorRelease, entered: float, peers: Peers, server: ServerLink
    ) -> CuratorRelease:
        """Take the steps that can be taken now.

        Args:
            entered: when this process found it in its state, monotonic seconds.

        Returns:
            The release once it has left its state, or has to wait in it.
        """
        release_id, before = release.request.release_id, release.state
        run = self.curator.runs[release_id]
        while release.state is before:
            outcome = await self._step(release, peers, server)
            run.waits_for = outcome.reason if isinstance(outcome, Wait) else ""
            match outcome:
                case Wait(reason):
                    self._say_what_was_left_unsaid(release_id)
                    if before is ReleaseState.REQUESTED:
                        self._say(release, reason)
                        self.curator.changes.notify(for_researcher(release_id))  # it hears that a person decides
                    return release
                case End() as end:
                    self._end(release, end, _leave(release, entered))
                    return self._changed(release_id)
                case Step(leads_to=state) as step:
                    if state is not before:  # else there is more to do in this state
                        self.store.releases.set_state(release_id, state, seconds=_leave(release, entered))
                        run.shown = ""
            release = self._changed(release_id, step)
        return release

    def _changed(self, release_id: str, step: Step | None = None) -> CuratorRelease:
        """Return a release that has changed, by a step that was taken or otherwise; wake those who wait for that."""
        release = self.store.releases.release(release_id)
        run = self.curator.runs[release_id]
        run.is_unsaid = step in _FOLLOWED
        if not run.is_unsaid:
            self.curator.changes.notify(release_id)
        if self.curator.is_worth_saying(release):
            self.curator.changes.notify(for_researcher(release_id))
        return release

    def _say_what_was_left_unsaid(self, release_id: str) -> None:
        """Wake the other curators if a step was to be followed by another, which has to wait."""
        run = self.curator.runs[release_id]
        if run.is_unsaid:
            run.is_unsaid = False
            self.curator.changes.notify(release_id)

    async def _step(self, release: CuratorRelease, peers: Peers, server: ServerLink) -> Step | Wait | End:
        """Take the next step if there is one; return it, or the outcome that replaces it."""
        release_id = release.request.release_id
        try:
            run = self.curator.runs[release_id]
            was_refused, run.is_refused = run.is_refused, True
            own = replace(
                self.curator.decisions.review(release),
                is_published=run.is_published,
                is_tested=self.curator.is_tested(release),
                publication=self.curator.publication(release),
                is_present=run.others is not None,
            )
            if time.time() > release.request.deadline:
                own = self.curator.coins.with_debts(own, release_id)
                release = replace(release, waiting_for=run.waits_for or release.waiting_for)
            others: Others = ()
            # What is decided here alone waits for nobody, unless it was refused before.
            if was_refused or not decides_alone(release, own):
                others = run.others = await self.curator.subscriptions.progress(release_id, awaited(release))
            outcome = self._next(release, own, others)
            if isinstance(outcome, Step):
                if not own.is_charged:
                    check_asked_under(release, self.curator.study)
                await self.executor.take(
                    outcome, release, () if isinstance(others, VeiltabError) else others, peers, server
                )
            run.is_refused = False
        except (VeiltabError, OSError) as error:
            return _outcome_of(error, release, self.name, is_charged=self.curator.ledger.chain.is_charged(release_id))
        except Exception as error:  # noqa: BLE001 - also what a peer sent, and nobody foresaw, ends no more than a step
            refusal, logged = refusal_of(error)
            _log.error("a step failed: %s", logged, extra={"release": release_id})
            return _outcome_of(refusal, release, self.name, is_charged=self.curator.ledger.chain.is_charged(release_id))
        return outcome

    def _next(self, release: CuratorRelease, own: Review, others: Others) -> Step | Wait | End:
        if not release.request.tables:
            return next_step(release, own, others, time.time())
        tables = self.store.tables.tables(release.request.release_id)
        return next_step_of_tables(release, own, others, tables, time.time())

    def _end(self, release: CuratorRelease, ended: End, seconds: float) -> None:
        if release.state.finished:
            return  # it keeps what it has
        release_id = release.request.release_id
        _log.warning("release ended", extra={"release": release_id, "state": ended.state.value})
        for party in sorted(ended.by | ended.claimed_by):
            _log.warning("a charged release is counted", extra={"release": release_id, "party": party})
            is_claim = party not in ended.by
            self.store.coins.add_aborted(release.part_of or release_id, party, ended.reason, is_claim=is_claim)
        self.store.releases.end(release_id, ended.state, ended.reason, seconds=seconds)
        self.curator.forget(release_id)

    async def _tidy(self, release_id: str, deadline: int) -> None:
        """Forget the seed once every curator has encrypted, or the release is over everywhere."""
        # Whatever a peer answers, also that one's own certificate has expired, is no reason to end here.
        subscriptions = self.curator.subscriptions
        while time.time() < deadline and not _needs_no_seed(others := await subscriptions.progress(release_id)):
            await subscriptions.news(
                release_id, others, attempt=0, wakes=subscriptions.wakes, deadline=deadline, is_refused=False
            )
        self.store.coins.forget_coin(release_coin(release_id))
        self.curator.sampler.indices_file(release_id).unlink(missing_ok=True)


def _outcome_of(error: VeiltabError | OSError, release: CuratorRelease, name: str, *, is_charged: bool) -> Wait | End:
    """Return the outcome of a refused step; an end of a charged release is counted against whom it names."""
    outcome = outcome_of(error, is_charged=is_charged)
    if not is_charged or not isinstance(outcome, End):
        return outcome
    from veiltab.curator.progress.elimination import named_in  # noqa: PLC0415 - not for a release with a result

    return replace(outcome, by=named_in(outcome.reason, release, name))


def _leave(release: CuratorRelease, entered: float) -> float:
    """Log that a release leaves its state; return how many seconds it was in it."""
    seconds = time.monotonic() - entered
    state_left(release.state.value, release_id=release.request.release_id, seconds=seconds)
    return seconds


def _needs_no_seed(others: Others) -> bool:
    """Whether no other curator will draw the sample again."""
    return not isinstance(others, VeiltabError) and all(
        peer.state in {ReleaseState.UPLOADING, ReleaseState.PERTURBING} or peer.state.finished for peer in others
    )
