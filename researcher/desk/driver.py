"""The work of the researcher's service: ask every curator, wait, fetch, decrypt, count. Every step may be repeated."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.errors import (
    DeniedError,
    ExpiredReleaseError,
    InvalidInputError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.observe.progress import Stages
from veiltab.common.observe.steps import release_ended
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.statuses import failures_logged
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.study.file import Study, load_study
from veiltab.researcher.desk.certificates import Certificates
from veiltab.researcher.desk.request_check import check_asked, check_asked_under
from veiltab.researcher.parties.agreement import agreed_spec, agreed_table
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import CuratorAnswers, Polling, Statuses, planned_specs, tests_of
from veiltab.researcher.receiving.receiving import Fetch, Receiver
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.researcher.records.store import ResearcherStore

if TYPE_CHECKING:
    from veiltab.researcher.desk.workload import Workloads

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 1.0
_LONGEST_LIFETIME = 365 * 86_400

Agreement = Callable[[TableSpec, Mapping[str, TableSpec]], TableSpec]
"""Returns the spec that the server (what it published) and every curator (what it planned) state."""


class ResearcherDriver:
    """What a researcher's service does, behind its RPCs."""

    def __init__(self, identity: Identity, study: Study, store: ResearcherStore) -> None:
        self.name = identity.party.name
        self.study = study
        self.store = store
        self._identity = identity
        self.changes = Changes()
        self._polling = Polling(study, store)
        # Release of several tables -> ids of its tables that are under way.
        self._under_way = dict[str, list[str]]()
        self._receiver = Receiver(self.name, study.server.name, store)
        self._stages = Stages()
        self._parties: PartyLinks | None = None
        self._started = asyncio.Event()
        self._driven: set[str] = set()
        self._certificates = Certificates(identity, store)

    def start(self, request: ReleaseRequest, label: str, study_digest: str) -> tuple[ResearcherRelease, bool]:
        """Record a request, its attributes in study order, or return the one to continue.

        Args:
            label: the researcher's own name for the release; may be empty.
            study_digest: of the study file that the asker read.

        Returns:
            The release, and whether it was there.

        Raises:
            InvalidInputError: another study file, a deadline that is over or too far away, or what the study does not
                allow.
            BudgetExceededError: no budget can ever hold it.
        """
        if study_digest != self.study.digest:
            raise InvalidInputError(
                "the service runs with another study file",
                where=self._own,
                remedy="Give both the same bytes, and restart the service if its file is the wrong one.",
            )
        now = int(time.time())
        if not now < request.deadline <= now + _LONGEST_LIFETIME:
            raise InvalidInputError("a release lives at least a second and at most 365 days", where="lifetime")
        request = replace(
            request,
            attributes=self.study.domain(request.attributes).names,
            tables=tuple(self.study.domain(table).names for table in request.tables),
        )
        check_asked(request, self.study)
        started = self.store.start(request, label, now)
        self._started.set()
        return started

    @property
    def statuses(self) -> dict[str, Statuses]:
        """Release -> party -> where it stands there, and what the party waits for."""
        return self._polling.statuses

    def statuses_of(self, release_id: str) -> Statuses:
        """Return how a release stands at each party; of a release of several tables, how the first one under way does.

        While this service itself works on it, what the parties waited for before is no longer so.

        It is a copy: other threads than the one that asks the parties may read it.
        """
        name = next(iter(self._under_way.get(release_id, ())), release_id)
        statuses, work = dict(self.statuses.get(name, {})), self._stages.texts.get(name)
        if work is None:
            return statuses
        quiet = {party: (state, "") for party, (state, _) in statuses.items()}
        return quiet | {self._own: (self.store.release(name).state, work)}

    @property
    def _own(self) -> str:
        """Role and name of this service, as the parties' are among statuses."""
        return f"researcher {self.name}"

    async def run(self) -> None:
        """Drive every unfinished release until cancelled; delete what is left of the others."""
        self.store.delete_leftovers()
        parties = self._parties = PartyLinks(self._identity, self.study, self.store.witnessed)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._started.clear()
                    for release_id in self._unfinished():
                        if release_id not in self._driven:
                            self._driven.add(release_id)
                            tasks.create_task(self._drive_or_log(release_id, parties))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._started.wait(), _LOOK_AGAIN_SECONDS)
        finally:
            await parties.close()

    async def certificate(self, release: ResearcherRelease) -> Path:
        """Return the file of a release's certificate; as `Certificates.of`."""
        return await self._certificates.of(release, self._study_of, self._parties)

    def _study_of(self, release: ResearcherRelease) -> Study:
        """Return the study file under which a release was asked for."""
        if release.study_digest == self.study.digest:
            return self.study
        return load_study(self.store.files.study_file(release.study_digest))

    def _unfinished(self) -> tuple[str, ...]:
        with failures_logged(_log, "the releases under way cannot be read"):
            return self.store.unfinished()
        return ()

    async def _drive_or_log(self, release_id: str, parties: PartyLinks) -> None:
        """Drive a release; what goes wrong on the way, such as a full disk, is tried again at the next look."""
        with failures_logged(_log, "a release cannot go on", release=release_id):
            await self._drive(release_id, parties)
        self._driven.discard(release_id)

    async def _drive(self, release_id: str, parties: PartyLinks) -> None:
        began = time.monotonic()
        ended = await self._bring_to_end(release_id, partial(self._advance, parties=parties))
        self.store.files.delete_columns(release_id)
        seconds = time.monotonic() - began
        release_ended(ended.state.value, release_id=release_id, seconds=seconds)
        self.store.set_measure(release_id, {"total": seconds})
        if ended.state is ReleaseState.READY and ended.is_certified:
            # Anyone who asks for it later has it even if a party is gone; a party that is away now is asked then.
            with failures_logged(_log, "a release is not certified yet", release=release_id):
                await self.certificate(ended)
        self._certificates.forget(release_id)

    async def _bring_to_end(
        self, release_id: str, advance: Callable[[ResearcherRelease], Awaitable[None]]
    ) -> ResearcherRelease:
        """Repeat the steps of a release, or of a table, until it is over; return how it ended."""
        try:
            while not (release := self.store.release(release_id)).state.finished:
                try:
                    await advance(release)
                except VeiltabError as error:
                    if not _may_heal(error):
                        self._end(release_id, _end_after(error), str(error))
                    elif time.time() > release.request.deadline:
                        reason = "the deadline passed; " + self._waiting(release_id)
                        self._end(release_id, ReleaseState.EXPIRED, reason)
                    else:
                        await self._polling.pause(release_id)
        finally:
            self._polling.stop_asking(release_id)
        self.changes.notify(release_id)
        return release

    def _end(self, release_id: str, state: ReleaseState, failure: str) -> None:
        """Record how a release ended; when time runs out, the first results of several tables stand: they were paid."""
        is_late = state is ReleaseState.EXPIRED and self.store.tables(release_id)
        if is_late and self._workloads.has_first_results(release_id):
            self.store.finish(release_id, ReleaseState.READY)
        else:
            self.store.finish(release_id, state, failure)

    def _waiting(self, release_id: str) -> str:
        reasons = [reason for _, reason in self.statuses.get(release_id, {}).values() if reason]
        return "; ".join(reasons)

    async def _advance(self, release: ResearcherRelease, parties: PartyLinks) -> None:
        self._check_study(release)
        answers = await self._polling.ask_curators(release, parties)
        if release.request.tables:
            await self._workloads.advance(release, answers, parties)
            return
        await self._receive(release, answers, partial(agreed_spec, release.request, self.study), parties)

    @cached_property
    def _workloads(self) -> "Workloads":
        from veiltab.researcher.desk.workload import Workloads  # noqa: PLC0415 - not for releases of one table

        return Workloads(self.study, self.store, self._under_way, self._drive_table)

    async def _drive_table(self, table: TableSpec, parties: PartyLinks) -> None:
        """Bring a table of a release of several to its end."""

        async def advance(release: ResearcherRelease) -> None:
            answers = await self._polling.ask_curators(release, parties)
            await self._receive(release, answers, partial(agreed_table, table, self.study), parties)

        await self._bring_to_end(table.release_id, advance)
        self.store.files.delete_columns(table.release_id)
        self._polling.forget(table.release_id)

    async def _receive(
        self, release: ResearcherRelease, answers: CuratorAnswers, agreed: Agreement, parties: PartyLinks
    ) -> None:
        """Receive what the server published of a release, or of a table, once every party states the same of it."""
        published = await self._polling.ask_server(release, answers, parties)
        spec = agreed(published.spec, planned_specs(answers))
        self.store.set_spec(spec)
        if release.is_certified:
            self._certificates.keep_statements(self.study, spec.release_id, published, answers)
        self._keep_room(release, spec, are_sent=bool(published.columns))
        try:
            with self._stages.stage(spec.release_id) as stage:
                fetch = Fetch(
                    spec=spec,
                    parties=parties,
                    files=self.store.files,
                    stage=stage,
                    columns=published.columns,
                    tests=tests_of(answers, spec),
                )
                await self._receiver.receive(fetch, published.salt)
        finally:
            self.store.files.reservations.give_back(spec.release_id)

    def _keep_room(self, release: ResearcherRelease, spec: TableSpec, *, are_sent: bool) -> None:
        """Let a release wait for whose columns the disk has too little room; nothing of it is fetched till then."""
        statuses = self._polling.of(spec.release_id)
        try:
            self.store.files.reservations.keep(spec.release_id, self.store.files.bytes_to_come(spec, are_sent=are_sent))
        except UnavailableError as error:
            statuses[self._own] = (release.state, str(error))
            raise
        statuses.pop(self._own, None)

    def _check_study(self, release: ResearcherRelease) -> None:
        """Let a release wait that was asked for under another study file; going on would label its cells wrongly."""
        try:
            check_asked_under(release, self.study, self.store, self._own)
        except NotReadyError as error:
            text = f"{error.problem}. {error.remedy}"
            self._polling.of(release.request.release_id)[self._own] = (release.state, text)
            raise


def _may_heal(error: VeiltabError) -> bool:
    """Whether a refusal is worth asking again after: so is one that nobody foresaw, for the release is paid for."""
    return isinstance(error, NotReadyError | UnavailableError) or error.reason == VeiltabError.reason


def _end_after(error: VeiltabError) -> ReleaseState:
    """Return how a release ends with what no party will ever do."""
    match error:
        case DeniedError():
            return ReleaseState.DENIED
        case ExpiredReleaseError():
            return ReleaseState.EXPIRED
        case _:
            return ReleaseState.FAILED
