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
from veiltab.common.release.messages.release_messages import release_from_proto
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.pooled_receipts import PooledCount, pooled_counts
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.study.file import Study
from veiltab.researcher.estimates.table_result import TableResult, table_result
from veiltab.researcher.parties.agreement import agreed_tables
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import CuratorAnswers
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
        under_way: release -> ids of its tables that are under way; kept up to date.
        drive: brings a table to its end.
    """

    def __init__(
        self,
        study: Study,
        store: ResearcherStore,
        under_way: dict[str, list[str]],
        drive: Callable[[TableSpec, PartyLinks], Awaitable[None]],
    ) -> None:
        self._study = study
        self._store = store
        self._drive = drive
        self._under_way = under_way

    def has_first_results(self, release_id: str) -> bool:
        """Whether a release has several tables, each of which has run once, and the server passes over all of them."""
        first = [one.state for one in self._store.tables(release_id) if not one.is_repeat]
        is_whole = bool(first) and all(state is ReleaseState.READY for state in first)
        return is_whole and not self._failures(release_id)

    async def advance(self, release: ResearcherRelease, answers: CuratorAnswers, parties: PartyLinks) -> None:
        """Bring a release of several tables to its end.

        Args:
            answers: what every curator says about it.
            parties: the curators and the server.

        Raises:
            NotReadyError, UnavailableError: a curator is not that far, or does not answer.
            ExpiredReleaseError: a curator's clock says that it is too late to choose.
            FailedReleaseError: the curators contradict one another, or the server fails over all tables together.
        """
        spec = release.planned or self._agreed(release, answers)
        if not await self._run(spec, range(len(spec.tables)), parties):
            return
        await asyncio.to_thread(self._check_together, spec.release_id)
        if spec.repeats and time.time() <= spec.deadline:
            await self._choose(spec, parties)
            if not await self._run(spec, self._repeats(spec), parties):
                return
            await asyncio.to_thread(self._check_together, spec.release_id)
        self._store.finish(spec.release_id, ReleaseState.READY)

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

    def _agreed(self, release: ResearcherRelease, answers: CuratorAnswers) -> ReleaseSpec:
        """Record what every curator planned, and its tables, once all of them have charged it."""
        each = {name: release_from_proto(one.spec) for name, one in answers.items() if one.HasField("spec")}
        spec = agreed_tables(release.request, self._study, each)
        if self._store.release(spec.release_id).state not in _CHARGED:
            raise NotReadyError("not every curator has charged the release yet", where=f"release {spec.release_id}")
        self._store.record_tables(spec)
        return spec

    async def _run(self, spec: ReleaseSpec, numbers: Sequence[int], parties: PartyLinks) -> bool:
        """Drive tables to their ends, in order of number; return whether the release goes on, which else is over."""
        under_way = self._under_way[spec.release_id] = list[str]()
        waiting = iter(numbers)

        async def work() -> None:
            for number in waiting:
                table = spec.table(number)
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
            self._end(spec)
        finally:
            del self._under_way[spec.release_id]
        return not self._store.release(spec.release_id).state.finished

    def _end(self, spec: ReleaseSpec) -> None:
        """End a release of which a table ended without a result; if only time ran out, a whole first phase stands."""
        ended = next(one for one in self._store.tables(spec.release_id) if one.state.unsuccessful)
        if ended.is_repeat and ended.state is ReleaseState.EXPIRED:
            self._store.finish(spec.release_id, ReleaseState.READY)
        else:
            failure = f"table {', '.join(ended.attributes)}: {ended.failure}"
            self._store.finish(spec.release_id, ended.state, failure)

    def _repeats(self, spec: ReleaseSpec) -> list[int]:
        return [one.number for one in self._store.tables(spec.release_id) if one.is_repeat]

    async def _choose(self, spec: ReleaseSpec, parties: PartyLinks) -> None:
        """Choose what runs a second time, once and for all, and name it to every curator."""
        if not self._store.has_chosen(spec.release_id):
            with step("choose tables", release_id=spec.release_id):
                choice = await asyncio.to_thread(self._choice, spec)
            self._store.record_choice(spec, choice)
        numbers = [number - len(spec.tables) for number in self._repeats(spec)]
        for curator in parties.curators:
            await parties.choose_tables(curator, spec.release_id, numbers)

    def _choice(self, spec: ReleaseSpec) -> list[int]:
        """Return the numbers of the tables that show the strongest dependences, ascending."""
        results = [self._result(spec, one) for one in self._store.tables(spec.release_id)]
        from veiltab.researcher.model.choosing import chosen_tables  # noqa: PLC0415 - not for releases of one table

        choice = chosen_tables(
            self._study.domain({name for one in results for name in one.names}),
            [one.measurement for one in results],
            rows=spec.population,
            count=spec.repeats,
        )
        numbers = {one.names: one.number for one in results}
        return sorted(numbers[names] for names in choice)

    def _result(self, spec: ReleaseSpec, table: StoredTable) -> TableResult:
        histogram = self._store.files.histogram(table.release_id).read_bytes()
        return table_result(table.number, table.attributes, spec.table(table.number), histogram)
