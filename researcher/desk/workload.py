"""A release of several tables at a desk: it drives its tables, some at a time, and chooses which run a second time.

Each table is received as a release of its own, once every curator has charged all of them. The choice is made from the
results of the first phase alone, and recorded before any curator sees it. When the deadline comes after the first phase
is whole, that phase stands: it was paid for.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from veiltab.common.errors import FailedReleaseError, NotReadyError
from veiltab.common.observe.steps import step
from veiltab.common.release.messages.release_messages import workload_from_proto
from veiltab.common.release.receipts.noise_tests import Family
from veiltab.common.release.receipts.pooled_receipts import PooledCount, pooled_counts
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.workload import WorkloadSpec
from veiltab.common.study.file import Study
from veiltab.researcher.estimates.table_result import TableResult, table_result
from veiltab.researcher.parties.agreement import agreed_workload
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import Answers
from veiltab.researcher.records.releases import ResearcherRelease, StoredTable
from veiltab.researcher.records.store import ResearcherStore

_AT_ONCE = 8
"""Tables of a release that are under way at once."""

_CHARGED = {ReleaseState.CHARGED, ReleaseState.UPLOADING}


class _TableEndedError(Exception):
    """A table ended without a result, so the others need not go on."""


class Workloads:
    """The releases of several tables of a desk.

    Args:
        study: the study file.
        store: durable state.
        drive: brings a table to its end.
    """

    def __init__(
        self,
        study: Study,
        store: ResearcherStore,
        drive: Callable[[ReleaseSpec, PartyLinks], Awaitable[None]],
    ) -> None:
        self._study = study
        self._store = store
        self._drive = drive
        self._under_way: dict[str, list[str]] = {}

    def first_under_way(self, release_id: str) -> str:
        """Return the id of the first table of a release that is under way, or its own."""
        return next(iter(self._under_way.get(release_id, ())), release_id)

    def has_first_results(self, release_id: str) -> bool:
        """Whether a release has several tables, each of which has run once, and the server passes over all of them."""
        first = [one.state for one in self._store.tables(release_id) if not one.is_repeat]
        is_whole = bool(first) and all(state is ReleaseState.READY for state in first)
        return is_whole and not self._failures(release_id)

    async def advance(
        self,
        stored: ResearcherRelease,
        answers: Answers,
        parties: PartyLinks,
    ) -> None:
        """Bring a release of several tables to its end.

        Args:
            stored: the release.
            answers: what every curator says about it.
            parties: the curators and the server.

        Raises:
            NotReadyError, UnavailableError: a curator is not that far, or does not answer.
            ExpiredReleaseError: a curator's clock says that it is too late to choose.
            FailedReleaseError: the curators contradict one another, or the server fails over all tables together.
        """
        workload = self._store.workload(stored.request.release_id) or self._agreed(stored, answers)
        if not await self._run(workload, range(len(workload.tables)), parties):
            return
        await asyncio.to_thread(self._check_together, workload.release_id)
        if workload.repeats and time.time() <= workload.deadline:
            await self._choose(workload, parties)
            if not await self._run(workload, self._chosen(workload), parties):
                return
            await asyncio.to_thread(self._check_together, workload.release_id)
        self._store.finish(workload.release_id, ReleaseState.READY)

    def _check_together(self, release_id: str) -> None:
        """Refuse a server that left out a little noise in many tables.

        Raises:
            FailedReleaseError: it did.
        """
        if failures := self._failures(release_id):
            first = min(failures, key=lambda one: list(Family).index(one.test))
            raise FailedReleaseError(
                f"the server did not add the noise of the release: {first.sentence()}",
                where=f"server {self._study.server.name}",
            )

    def _failures(self, release_id: str) -> list[PooledCount]:
        """Return the sums over the tables that have results which are not accepted."""
        ready = [one.release_id for one in self._store.tables(release_id) if one.state is ReleaseState.READY]
        receipts = [one for name in ready for one in self._store.release(name).receipts if not one.tester]
        return [one for one in pooled_counts(receipts) if not one.passed]

    def _agreed(self, stored: ResearcherRelease, answers: Answers) -> WorkloadSpec:
        """Record what every curator planned, and its tables, once all of them have charged it."""
        planned = {name: workload_from_proto(one.workload) for name, one in answers.items() if one.HasField("workload")}
        workload = agreed_workload(stored.request, self._study, planned)
        if self._store.release(workload.release_id).state not in _CHARGED:
            raise NotReadyError("not every curator has charged the release yet", where=f"release {workload.release_id}")
        self._store.record_workload(workload)
        return workload

    async def _run(self, workload: WorkloadSpec, numbers: Sequence[int], parties: PartyLinks) -> bool:
        """Drive tables to their ends, in order of number; return whether the release goes on, which else is over."""
        under_way = self._under_way[workload.release_id] = list[str]()
        waiting = iter(numbers)

        async def work() -> None:
            for number in waiting:
                table = workload.table(number)
                under_way.append(table.release_id)
                await self._drive(table, parties)
                under_way.remove(table.release_id)
                if self._store.release(table.release_id).state.unsuccessful:
                    raise _TableEndedError

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_AT_ONCE):
                    tasks.create_task(work())
        except* _TableEndedError:
            self._end(workload)
        finally:
            del self._under_way[workload.release_id]
        return not self._store.release(workload.release_id).state.finished

    def _end(self, workload: WorkloadSpec) -> None:
        """End a release of which a table ended without a result; if only time ran out, a whole first phase stands."""
        ended = next(one for one in self._store.tables(workload.release_id) if one.state.unsuccessful)
        if ended.is_repeat and ended.state is ReleaseState.EXPIRED:
            self._store.finish(workload.release_id, ReleaseState.READY)
        else:
            failure = f"table {', '.join(ended.attributes)}: {ended.failure}"
            self._store.finish(workload.release_id, ended.state, failure)

    def _chosen(self, workload: WorkloadSpec) -> list[int]:
        return [one.number for one in self._store.tables(workload.release_id) if one.is_repeat]

    async def _choose(self, workload: WorkloadSpec, parties: PartyLinks) -> None:
        """Choose what runs a second time, once and for all, and name it to every curator."""
        if not self._store.has_chosen(workload.release_id):
            with step("choose tables", release_id=workload.release_id):
                chosen = await asyncio.to_thread(self._choice, workload)
            self._store.record_choice(workload, chosen)
        numbers = [number - len(workload.tables) for number in self._chosen(workload)]
        for curator in parties.curators:
            await parties.choose_tables(curator, workload.release_id, numbers)

    def _choice(self, workload: WorkloadSpec) -> list[int]:
        """Return the numbers of the tables that show the strongest dependences, ascending."""
        results = [self._result(workload, one) for one in self._store.tables(workload.release_id)]
        from veiltab.researcher.model.choosing import chosen_tables  # noqa: PLC0415 - linked releases alone

        chosen = chosen_tables(
            self._study.domain({name for one in results for name in one.names}),
            [one.measurement for one in results],
            rows=workload.population,
            count=workload.repeats,
        )
        numbers = {one.names: one.number for one in results}
        return sorted(numbers[names] for names in chosen)

    def _result(self, workload: WorkloadSpec, table: StoredTable) -> TableResult:
        histogram = self._store.histogram(table.release_id).read_bytes()
        return table_result(table.number, table.attributes, workload.table(table.number), histogram)
