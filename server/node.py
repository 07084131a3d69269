"""The server at work: takes columns, perturbs complete releases, forgets what is over.

Several processes may do so on one state. Each works on a column, or perturbs a release, under a lease; what one of them
does not finish another takes up.
"""

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from common.errors import (
    DeniedError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
    VeiltabError,
)
from common.observe.steps import step
from common.release import Column, ReleaseSpec, ReleaseState, Sampling
from common.study import Study
from server.leases import BusyError, Lease, LostLeaseError
from server.perturbation import PLACES, check_column, perturb_release
from server.session import Session
from server.store import ServerStore
from server.upload import ColumnUpload

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 30
_LOOK_SECONDS = 5
_SECONDS_A_DAY = 86_400


class ServerNode:
    """What the server does, behind its RPCs.

    Args:
        study: the study file; names who may upload what.
        store: durable state.
        retention_days: how long a published release can be fetched after its deadline.
    """

    def __init__(self, study: Study, store: ServerStore, *, retention_days: int = 30) -> None:
        self._study = study
        self._store = store
        self._retention = retention_days * _SECONDS_A_DAY
        self._columns: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._perturbing: dict[str, asyncio.Task[None]] = {}
        # More at a time would be no faster, and would keep releases from another process.
        self._room = asyncio.Semaphore(os.cpu_count() or 1)

    async def run(self) -> None:
        """Take up what an earlier process left, or another does not finish, and sweep, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._take_up())
            tasks.create_task(self._sweep_again_and_again())

    async def _take_up(self) -> None:
        """Begin what is to be perturbed; look again and again if other processes may leave something."""
        while True:
            with suppress(UnavailableError):
                for session in await asyncio.to_thread(self._store.perturbing):
                    self._begin_perturbation(session.spec)
            if not self._store.connection.shared:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _sweep_again_and_again(self) -> None:
        while True:
            with suppress(UnavailableError):
                await asyncio.to_thread(self._sweep, int(time.time()))
            await asyncio.sleep(_SWEEP_SECONDS)

    def _sweep(self, now: int) -> None:
        for session in self._store.sessions():
            spec = session.spec
            if session.state is ReleaseState.UPLOADING and now > spec.deadline:
                self._expire(session, "not all columns came before the deadline")
            elif session.state is ReleaseState.READY and now > spec.deadline + self._retention:
                self._expire(session, "the release is no longer kept")
            elif session.state.finished:
                self._tidy(session)

    def _expire(self, session: Session, reason: str) -> None:
        with suppress(BusyError):
            lease = self._store.leases.take(session.spec.release_id)
            self._end(session, ReleaseState.EXPIRED, reason, lease)
            self._store.leases.give_back(lease)

    def _end(self, session: Session, state: ReleaseState, failure: str, lease: Lease) -> None:
        """End a release and delete its columns, unless it has gone on since."""
        session = self._store.end(session, state, failure, lease)
        if session.state.unsuccessful:
            self._tidy(session)

    def _tidy(self, session: Session) -> None:
        """Delete what a release that is published or ended needs no more, whoever left it."""
        self._store.delete_ciphertext(session.spec.release_id)
        self._store.delete_unpublished(session)

    def open_release(self, spec: ReleaseSpec, curator: str) -> tuple[Session, dict[str, int]]:
        """Record or find a release; return it with the bytes held of the caller's columns."""
        self._check_spec(spec, curator)
        session = self._store.open_session(spec)
        folder = self._store.folder(spec.release_id)
        columns = spec.columns_of(curator)
        if session.state is ReleaseState.UPLOADING:
            return session, {c.attribute: folder.received(c.attribute) for c in columns}
        return session, {c.attribute: c.byte_length(spec.uploaded_rows) for c in columns}

    def _check_spec(self, spec: ReleaseSpec, curator: str) -> None:
        if spec.study_digest != self._study.digest:
            raise InvalidInputError(
                "the release is of another study file than the server's",
                where="study file",
                remedy="Give every party the same bytes.",
            )
        for column in spec.columns:
            rule = next((rule for rule in self._study.attributes if rule.name == column.attribute), None)
            if rule is None or (rule.owner, rule.attribute.size) != (column.owner, column.size):
                raise InvalidInputError("a column is not as the study says", where=f"attribute {column.attribute}")
        if spec.cells > self._study.maximum_cells:
            raise InvalidInputError(f"the study allows {self._study.maximum_cells} cells", where="cells")
        if not spec.columns_of(curator):
            raise DeniedError("no column of this release is the caller's", where=f"curator {curator}")

    async def upload(
        self,
        curator: str,
        release_id: str,
        attribute: str,
        digests: tuple[bytes, bytes],
        chunks: AsyncIterator[tuple[int, bytes]],
    ) -> tuple[int, bool]:
        """Take the chunks of one column; return the bytes held and whether it is complete.

        Args:
            curator: who sends.
            release_id: of an open release.
            attribute: one of the caller's columns.
            digests: of the release spec and of the whole column.
            chunks: (offset, verified bytes).
        """
        spec_digest, column_digest = digests
        async with self._columns[release_id, attribute]:
            session = await asyncio.to_thread(self._store.session, release_id)
            if session.spec.digest() != spec_digest:
                raise InvalidInputError("the column belongs to another spec", where=f"release {release_id}")
            column = session.column_of(attribute, curator)
            if attribute in session.complete:
                return await self._check_again(session, column, column_digest)
            session.check_open()
            async with self._store.leases.held(f"{release_id}/{attribute}") as lease:
                return await self._take(release_id, column, column_digest, chunks, lease)

    async def _take(
        self,
        release_id: str,
        column: Column,
        digest: bytes,
        chunks: AsyncIterator[tuple[int, bytes]],
        lease: Lease,
    ) -> tuple[int, bool]:
        """Take the chunks of a column that is not complete, as the only process that does."""
        # Another process may have gone on with it until the lease was this one's.
        session = await asyncio.to_thread(self._store.session, release_id)
        if column.attribute in session.complete:
            return await self._check_again(session, column, digest)
        session.check_open()
        folder = self._store.folder(release_id)
        path = await asyncio.to_thread(folder.begin_column, column.attribute, lease.fence)
        try:
            received, whole = await self._receive(path, session.spec, column, digest, chunks)
            if whole:
                await self._complete(path, session, column.attribute, digest, lease)
        except LostLeaseError:
            # Nobody else reads a file of this fence.
            path.unlink(missing_ok=True)
            raise
        return received, whole

    async def _receive(
        self, path: Path, spec: ReleaseSpec, column: Column, digest: bytes, chunks: AsyncIterator[tuple[int, bytes]]
    ) -> tuple[int, bool]:
        upload = ColumnUpload(path, column.byte_length(spec.uploaded_rows))
        held = upload.received
        try:
            with step("take column", release_id=spec.release_id, attribute=column.attribute) as measured:
                async for offset, data in chunks:
                    upload.write(offset, data)
                measured.bytes = upload.received - held
                whole = await asyncio.to_thread(upload.finish, digest)
            return upload.received, whole
        finally:
            upload.close()

    async def _check_again(self, session: Session, column: Column, digest: bytes) -> tuple[int, bool]:
        """Answer an upload of a column that is complete: the same bytes are fine, others are refused."""
        await asyncio.to_thread(self._store.check_column_digest, session.spec.release_id, column.attribute, digest)
        return column.byte_length(session.spec.uploaded_rows), True

    async def _complete(self, path: Path, session: Session, attribute: str, digest: bytes, lease: Lease) -> None:
        try:
            await asyncio.to_thread(check_column, path, session.spec, attribute)
        except IntegrityError as error:
            failure = f"attribute {attribute}: {error.problem}"
            await asyncio.to_thread(self._end, session, ReleaseState.FAILED, failure, lease)
            raise
        session = await asyncio.to_thread(
            self._store.complete_column, session.spec.release_id, attribute, digest, lease
        )
        if session.state is ReleaseState.PERTURBING:
            self._begin_perturbation(session.spec)

    def _begin_perturbation(self, spec: ReleaseSpec) -> None:
        if spec.release_id not in self._perturbing:
            self._perturbing[spec.release_id] = asyncio.create_task(self._perturb(spec))

    async def _perturb(self, spec: ReleaseSpec) -> None:
        try:
            async with self._room, self._store.leases.held(spec.release_id) as lease:
                await self._perturb_under(lease, spec.release_id)
        except LostLeaseError:
            _log.warning("another server process took over", extra={"release": spec.release_id})
        except UnavailableError:
            # Another process works on it, or the database is away: it is looked at again.
            pass
        finally:
            del self._perturbing[spec.release_id]

    async def _perturb_under(self, lease: Lease, release_id: str) -> None:
        session = await asyncio.to_thread(self._store.session, release_id)
        if session.state is not ReleaseState.PERTURBING:
            return  # another process was faster
        try:
            await asyncio.to_thread(perturb_release, self._store, session.spec, lease)
        except UnavailableError:
            raise
        except (VeiltabError, OSError) as error:
            # A full disk heals when the operator makes room and starts the server again; the ciphertext is kept.
            _log.error("perturbation failed", extra={"release": release_id, "error": type(error).__name__})
            if isinstance(error, VeiltabError):
                await asyncio.to_thread(self._end, session, ReleaseState.FAILED, error.problem, lease)
            else:
                await asyncio.sleep(self._store.leases.seconds)

    @property
    def perturbing(self) -> int:
        """Releases that are being perturbed now."""
        return len(self._perturbing)

    def release_of(self, release_id: str, researcher: str) -> tuple[Session, float]:
        """Return a release of a researcher's, and how long its perturbation took."""
        session = self._store.session(release_id)
        if session.spec.researcher != researcher:
            raise DeniedError("this release is for another researcher", where=f"release {release_id}")
        return session, self._store.perturbation_seconds(release_id)

    def published_column(self, release_id: str, attribute: str, researcher: str) -> tuple[Path, int]:
        """Return the file and length of a perturbed column that a researcher may have."""
        session = self._store.session(release_id)
        session.check_readable(researcher)
        column = session.spec.column(attribute)
        return self._published(session) / attribute, column.byte_length(session.spec.sample)

    def sampled_places(self, release_id: str, researcher: str) -> Path:
        """Return the file of the places that the server sampled, for the researcher whose release it is."""
        session = self._store.session(release_id)
        session.check_readable(researcher)
        if session.spec.sampling is not Sampling.SERVER:
            raise NotFoundError("the server did not sample this release", where=f"release {release_id}")
        return self._published(session) / PLACES

    def _published(self, session: Session) -> Path:
        return self._store.folder(session.spec.release_id).published(session.publication)
