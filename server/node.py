"""The server at work: takes columns, perturbs complete releases, forgets what is over."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

from common.errors import DeniedError, IntegrityError, InvalidInputError, NotFoundError, VeiltabError
from common.observe.steps import step
from common.release import Column, ReleaseSpec, ReleaseState, Sampling
from common.study import Study
from server.perturbation import PLACES, check_column, perturb_release
from server.session import Session
from server.store import ServerStore
from server.upload import ColumnUpload, received_bytes

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 30
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

    async def run(self) -> None:
        """Take up what an earlier process left, then sweep until cancelled."""
        for session in self._store.sessions():
            if session.state is ReleaseState.PERTURBING:
                self._begin_perturbation(session.spec)
            elif session.state is not ReleaseState.UPLOADING:
                self._store.delete_ciphertext(session.spec.release_id)
        while True:
            self._sweep(int(time.time()))
            await asyncio.sleep(_SWEEP_SECONDS)

    def _sweep(self, now: int) -> None:
        for session in self._store.sessions():
            release_id = session.spec.release_id
            if session.state is ReleaseState.UPLOADING and now > session.spec.deadline:
                self._store.end(release_id, ReleaseState.EXPIRED, "not all columns came before the deadline")
                self._store.delete_ciphertext(release_id)
            elif session.state is ReleaseState.READY and now > session.spec.deadline + self._retention:
                self._store.end(release_id, ReleaseState.EXPIRED, "the release is no longer kept")
                self._store.delete_published(release_id)

    def open_release(self, spec: ReleaseSpec, curator: str) -> tuple[Session, dict[str, int]]:
        """Record or find a release; return it with the bytes held of the caller's columns."""
        self._check_spec(spec, curator)
        session = self._store.open_session(spec)
        folder = self._store.ciphertext_folder(spec.release_id)
        columns = spec.columns_of(curator)
        if session.state is ReleaseState.UPLOADING:
            return session, {c.attribute: received_bytes(folder / c.attribute) for c in columns}
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
            session = self._store.session(release_id)
            if session.spec.digest() != spec_digest:
                raise InvalidInputError("the column belongs to another spec", where=f"release {release_id}")
            column = session.column_of(attribute, curator)
            length = column.byte_length(session.spec.uploaded_rows)
            if attribute in session.complete:
                return await self._check_again(session, column, column_digest)
            session.check_open()
            upload = ColumnUpload(self._store.ciphertext_folder(release_id) / attribute, length)
            held = upload.received
            try:
                with step("take column", release_id=release_id, attribute=attribute) as measured:
                    async for offset, data in chunks:
                        upload.write(offset, data)
                    measured.bytes = upload.received - held
                    whole = await asyncio.to_thread(upload.finish, column_digest)
                if not whole:
                    return upload.received, False
            finally:
                upload.close()
            await self._complete(session, attribute, column_digest)
        return length, True

    async def _check_again(self, session: Session, column: Column, digest: bytes) -> tuple[int, bool]:
        """Answer an upload of a column that is complete: the same bytes are fine, others are refused."""
        self._store.check_column_digest(session.spec.release_id, column.attribute, digest)
        return column.byte_length(session.spec.uploaded_rows), True

    async def _complete(self, session: Session, attribute: str, digest: bytes) -> None:
        release_id = session.spec.release_id
        try:
            await asyncio.to_thread(check_column, self._store, session.spec, attribute)
        except IntegrityError as error:
            self._store.end(release_id, ReleaseState.FAILED, f"attribute {attribute}: {error.problem}")
            self._store.delete_ciphertext(release_id)
            raise
        session = self._store.complete_column(release_id, attribute, digest)
        if session.state is ReleaseState.PERTURBING:
            self._begin_perturbation(session.spec)

    def _begin_perturbation(self, spec: ReleaseSpec) -> None:
        if spec.release_id not in self._perturbing:
            self._perturbing[spec.release_id] = asyncio.create_task(self._perturb(spec))

    async def _perturb(self, spec: ReleaseSpec) -> None:
        try:
            await asyncio.to_thread(perturb_release, self._store, spec)
        except (VeiltabError, OSError) as error:
            # A full disk heals when the operator makes room and starts the server again; the ciphertext is kept.
            _log.error("perturbation failed", extra={"release": spec.release_id, "error": type(error).__name__})
            if isinstance(error, VeiltabError):
                self._store.end(spec.release_id, ReleaseState.FAILED, error.problem)
                self._store.delete_ciphertext(spec.release_id)
        finally:
            del self._perturbing[spec.release_id]

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
        return self._store.published_folder(release_id) / attribute, column.byte_length(session.spec.sample)

    def sampled_places(self, release_id: str, researcher: str) -> Path:
        """Return the file of the places that the server sampled, for the researcher whose release it is."""
        session = self._store.session(release_id)
        session.check_readable(researcher)
        if session.spec.sampling is not Sampling.SERVER:
            raise NotFoundError("the server did not sample this release", where=f"release {release_id}")
        return self._store.published_folder(release_id) / PLACES
