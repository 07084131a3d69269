"""The steps of a release at a curator: each is durable before the next, and may be repeated."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import assert_never

from veiltab.common.core.pads import ZeroShare
from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import BudgetExceededError, IntegrityError, NotReadyError, UnavailableError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.spec import ReleaseSpec, release_of
from veiltab.common.release.table_spec import PLACE_BYTES, TableSpec
from veiltab.common.storage.database import transaction
from veiltab.curator.alignment.disk_needs import release_bytes
from veiltab.curator.columns.noise_and_canaries import PlainColumn
from veiltab.curator.columns.shared_sample import SharedSample
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import release_coin
from veiltab.curator.peers.witnesses import keep_checkpoints, note_seen, sign_charge
from veiltab.curator.planning.checks import agreed_columns, check_aborted, joint_decision
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.progress.release_record import CuratorRelease, Progress, Step
from veiltab.curator.release.curator import Curator
from veiltab.curator.release.server_check import canary_width
from veiltab.curator.release.upload import ServerLink

_log = logging.getLogger(__name__)
_HANGS_AFTER_SECONDS = 60.0


class StepExecutor:
    """The steps that `curator/progress` names, taken."""

    def __init__(self, curator: Curator) -> None:
        self.curator, self.store, self.name = curator, curator.store, curator.name

    async def take(  # noqa: C901 - one for each step
        self, next_step: Step, release: CuratorRelease, others: tuple[Progress, ...], peers: Peers, server: ServerLink
    ) -> None:
        """Take a step; what is refused is raised."""
        with self.curator.stages.stage(release.request.release_id) as stage:
            match next_step:
                case Step.DECIDE:
                    await self.curator.decisions.apply_policy(release.request)
                case Step.APPROVE:
                    pass
                case Step.PLAN:
                    await self._plan(release, others, stage)
                case Step.RESERVE:
                    await self._reserve(release.planned_release, stage)
                case Step.CHARGE:
                    await self._charge(release, server)
                case Step.OPEN_TABLES:
                    self._witness(release, others)
                    self._open_tables(release)
                case Step.DRAW:
                    self._witness(release, others)
                    commitments = {peer.curator: peer.commitment for peer in others if peer.commitment}
                    await self._draw(release.planned_spec, commitments, stage, peers)
                case Step.ENCRYPT:
                    await self._encrypt(release, stage, peers)
                case Step.UPLOAD:
                    await self._upload(release.planned_spec, stage, server)
                case Step.TEST:
                    await self._test(release, stage, peers, server)
                case Step.FINISH:
                    await self._finish(release, {one.curator: one.changes for one in others}, peers, server)
                case _:
                    assert_never(next_step)

    async def _plan(self, release: CuratorRelease, others: tuple[Progress, ...], stage: Stage) -> None:
        everyone = (self.curator.progress(release), *others)
        granted, denied = joint_decision(everyone, self.curator.study)
        columns = agreed_columns(release.request, self.curator.study, granted, denied)
        population, digest = self.curator.alignment.result()
        with step("plan", release_id=release.request.release_id), stage.of("planning", None):
            question = plan_question(
                release.request, columns, self.curator.study, population=population, alignment=digest
            )
            spec = await self.curator.planner.spec(question)
        await self.curator.decisions.check_rest(release.request, spec)
        # Before any curator reserves anything.
        self._keep_room(spec)
        self.store.releases.set_planned(spec)

    def _keep_room(self, spec: ReleaseSpec) -> None:
        """Keep room for what a release writes here."""
        size = release_bytes(spec, self.name, copies=self.curator.execution.is_remote)
        self.curator.room.keep(spec.release_id, size)

    async def _reserve(self, spec: ReleaseSpec, stage: Stage) -> None:
        check_aborted(self.store.coins)
        with step("reserve", release_id=spec.release_id):
            with stage.of("computing the charge", None):
                charge = await self.curator.planner.charge(spec, self.curator.ledger.budget.allowance)
            self.curator.decisions.check_shares(spec, charge)
            note_seen(self.store.connection, spec.release_id)
            try:
                self.curator.ledger.reserve(spec, charge)
            except BudgetExceededError:
                if not self.curator.ledger.budget.fits_what_is_charged(spec.release_id, charge):
                    raise
                raise NotReadyError(
                    "the rest of the budget is reserved for other releases", where=f"curator {self.name}"
                ) from None

    async def _charge(self, release: CuratorRelease, server: ServerLink) -> None:
        tables = (release.planned_spec,) if release.several is None else release.several.each_table()
        spec = release.planned or release_of(release.planned_spec)
        own = next((table for table in tables if table.columns_of(self.name)), None)
        # The disk may have filled up since the release was planned.
        self._keep_room(spec)
        if own is not None:
            # An unreachable server, or one with another study file, is noticed before the charge.
            with step("announce", release_id=own.release_id):
                announced = await server.announce(own)
        with step("charge", release_id=spec.release_id), transaction(self.store.connection):
            self.curator.ledger.charge(spec.release_id)
            sign_charge(self.store.connection, self.curator.identity, spec.release_id, self.curator.ledger.chain.head)
            if own is not None:
                self.store.tests.record_noise_digest(own.release_id, announced.noise_digest)
            if not spec.several:
                self.curator.coins.commit(spec.release_id)

    def _witness(self, release: CuratorRelease, others: tuple[Progress, ...]) -> None:
        """Keep what the others signed of their ledgers with the charge, before anything else is done for it."""
        if not release.part_of:
            keep_checkpoints(self.store.connection, self.curator.identity, release.request.release_id, others)

    def _open_tables(self, release: CuratorRelease) -> None:
        numbers = range(len(release.planned_release.tables))
        self.store.tables.open_tables(release.request.release_id, numbers, int(time.time()))
        self.curator.submitted.set()

    async def _draw(self, spec: TableSpec, commitments: Mapping[str, bytes], stage: Stage, peers: Peers) -> None:
        table = self.curator.alignment.table(spec.alignment)
        try:
            sample = await self.curator.sampler.draw(spec, table, peers, stage, commitments)
        except (NotReadyError, UnavailableError):
            self._log_hanging(spec.release_id)
            raise
        run = self.curator.runs[spec.release_id]
        run.is_hanging, run.sample = False, sample
        self.store.releases.set_sample_check(
            spec.release_id, sample.check, has_columns=bool(spec.columns_of(self.name))
        )

    def _log_hanging(self, release_id: str) -> None:
        """Log a toss that hangs although every curator has charged the release, once a process."""
        since = self.store.releases.release(release_id).since
        if self.curator.runs[release_id].is_hanging or time.time() - since <= _HANGS_AFTER_SECONDS:
            return
        if missing := ", ".join(sorted(self.curator.coins.awaited(release_coin(release_id)))):
            self.curator.runs[release_id].is_hanging = True
            _log.warning("a toss of a charged release hangs", extra={"release": release_id, "curator": missing})

    async def _encrypt(self, release: CuratorRelease, stage: Stage, peers: Peers) -> None:
        spec = release.planned_spec
        sample = self.curator.runs[spec.release_id].sample
        if sample is None:  # an earlier process drew it
            table = self.curator.alignment.table(spec.alignment)
            sample = await self.curator.sampler.draw(spec, table, peers, stage)
            if sample.check != release.sample_check:
                raise IntegrityError("drew another sample than before", where=f"curator {self.name}")
        with step("toss in pairs", release_id=spec.release_id):
            shares = await self.curator.coins.shares_of_zero(spec, peers)
        try:
            await asyncio.to_thread(self._encrypt_columns, spec, sample, shares, stage)
        finally:
            # After a failure, too: its files may be damaged or gone, and the next attempt draws the same again.
            self.curator.runs[spec.release_id].sample = None
        self.curator.room.give_back(spec.release_id)

    def _encrypt_columns(
        self, spec: TableSpec, sample: SharedSample, shares: Mapping[str, ZeroShare], stage: Stage
    ) -> None:
        columns, encryption = spec.columns_of(self.name), self.curator.encryption(spec.release_id)
        with stage.of("encrypting columns", len(columns) * spec.uploaded_rows) as progress:
            plain = [
                PlainColumn(
                    attribute=column.attribute,
                    symbols=sample.rows.column(sample.table, column.attribute),
                    size=column.size,
                    share=shares[column.attribute],
                    has_canaries=column.owner == self.name,
                )
                for column in columns
            ]
            # A long column is recorded by itself: after a crash it is not made again.
            for some in [plain] if spec.uploaded_rows <= CHUNK else [[one] for one in plain]:
                encryption.encrypt(some, spec.pad, sample.noise, progress.advance)

    async def _upload(self, spec: TableSpec, stage: Stage, server: ServerLink) -> None:
        encryption = self.curator.encryption(spec.release_id)
        columns = {
            c.attribute: (
                encryption.ciphertext(c.attribute),
                self.store.keys.ciphertext_digest(spec.release_id, c.attribute),
            )
            for c in spec.columns_of(self.name)
        }
        if columns:
            if not self.store.tests.noise_digest(spec.release_id):  # a table that was not announced with the charge
                self.store.tests.record_noise_digest(spec.release_id, (await server.announce(spec)).noise_digest)
            size = sum(column.byte_length(spec.uploaded_rows) for column in spec.columns_of(self.name))
            with step("upload", release_id=spec.release_id, size=size):
                published = await server.upload(spec, columns, stage=stage)
            with transaction(self.store.connection):
                self.store.releases.set_bytes_uploaded(spec.release_id, size)
                if published is not None:
                    self.store.tests.record_publication(spec.release_id, published)
            if published is not None:  # and not before it is durable
                self.curator.runs[spec.release_id].is_published = True

    async def _test(self, release: CuratorRelease, stage: Stage, peers: Peers, server: ServerLink) -> None:
        spec, own = release.planned_spec, release.planned_spec.columns_of(self.name)
        if own:
            # For what the server and other holders send, until it is compared, and for the places.
            parts = sum(column.byte_length(1) * (len(column.holders) - 1) for column in own)
            width = canary_width(spec, self.name) + PLACE_BYTES + parts
            self.curator.room.keep(spec.release_id, spec.canaries * width)
        with step("test server", release_id=spec.release_id):
            encryption = self.curator.encryption(spec.release_id)
            is_published = self.curator.runs[spec.release_id].is_published
            await self.curator.server_check.run(spec, server, encryption, peers, stage, is_published=is_published)
        self.curator.room.give_back(spec.release_id)

    async def _finish(self, release: CuratorRelease, said: dict[str, bytes], peers: Peers, server: ServerLink) -> None:
        """Erase the ciphertexts, and test all columns together on every owner's list of changed canaries."""
        spec = release.spec
        self.curator.encryption(release.request.release_id).forget_ciphertext()
        if spec is None or not spec.columns_of(self.name):  # of several tables, each has been tested
            return
        owners = spec.owners - {self.name}
        with step("test server together", release_id=spec.release_id):
            lists = {name: said.get(name) or await peers.changes(name, spec.release_id) for name in sorted(owners)}
            await self.curator.server_check.run_together(spec, server, lists, self.curator.folder)
