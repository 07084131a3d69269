"""Receives the columns of a release: one process for each column, under a lease and into a file of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from veiltab.common.errors import IntegrityError, InvalidInputError, UnavailableError
from veiltab.common.observe.steps import step
from veiltab.common.release.spec import Column
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.disk import named_in_errors
from veiltab.server.leases import Lease, LostLeaseError
from veiltab.server.perturbation import check_column
from veiltab.server.retention import end
from veiltab.server.session import Session
from veiltab.server.store import ServerStore
from veiltab.server.upload import ColumnUpload

Chunks = AsyncIterator[tuple[int, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A curator's announcement of a column.

    Args:
        curator: the sender.
        release_id: of an open release.
        attribute: one of the curator's columns.
        spec_digest: of the release's description.
        column_digest: SHA-256 of the whole column.
    """

    curator: str
    release_id: str
    attribute: str
    spec_digest: bytes
    column_digest: bytes


class Receiver:
    """Takes columns.

    Args:
        store: durable state.
        completed: called with a release whenever one of its columns is complete.
    """

    def __init__(self, store: ServerStore, completed: Callable[[Session], None]) -> None:
        self._store = store
        self._completed = completed
        # A lock exists while an upload holds it or waits for it.
        self._columns = WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    async def take(self, announced: Announced, chunks: Chunks) -> tuple[int, bool]:
        """Take the chunks of one column; return the bytes held and whether it is complete."""
        release_id, attribute = announced.release_id, announced.attribute
        # Check first, so that invented releases and columns allocate nothing, and nobody waits for a complete one.
        session, column = await self._session(announced)
        if attribute in session.complete:
            return await self._check_again(session, column, announced)
        session.check_open()
        lock = self._columns.setdefault((release_id, attribute), asyncio.Lock())
        async with lock, self._store.leases.held(f"{release_id}/{attribute}") as lease:
            # Another call, or another process, may have received more before this one got the lease.
            session, column = await self._session(announced)
            if attribute in session.complete:
                return await self._check_again(session, column, announced)
            session.check_open()
            return await self._take(announced, session, chunks, lease)

    async def _session(self, announced: Announced) -> tuple[Session, Column]:
        session = await self._store.look_up(self._store.session, announced.release_id)
        if session.spec.digest() != announced.spec_digest:
            raise InvalidInputError("the column belongs to another spec", where=f"release {announced.release_id}")
        return session, session.column_of(announced.attribute, announced.curator)

    async def _check_again(self, session: Session, column: Column, announced: Announced) -> tuple[int, bool]:
        """Answer an upload of a complete column: accept the same bytes, refuse others."""
        await self._store.look_up(
            self._store.check_column_digest, announced.release_id, column.attribute, announced.column_digest
        )
        return column.byte_length(session.spec.uploaded_rows), True

    async def _take(self, announced: Announced, session: Session, chunks: Chunks, lease: Lease) -> tuple[int, bool]:
        folder = self._store.folder(announced.release_id)
        try:
            path = await self._store.look_up(folder.begin_column, announced.attribute, lease.fence)
            return await self._receive(path, announced, session, chunks, lease)
        except FileNotFoundError:
            await asyncio.to_thread(self._say_why_gone, announced.release_id, lease)
            raise
        except LostLeaseError:
            # No other process reads a file of this fence.
            folder.column(announced.attribute, lease.fence).unlink(missing_ok=True)
            raise

    def _say_why_gone(self, release_id: str, lease: Lease) -> None:
        """Raise the reason for a missing file: another process took over, or the release ended."""
        self._store.check_current(lease)
        self._store.session(release_id).check_open()

    async def _receive(
        self, path: Path, announced: Announced, session: Session, chunks: Chunks, lease: Lease
    ) -> tuple[int, bool]:
        spec, attribute = session.spec, announced.attribute
        upload = ColumnUpload(path, spec.column(attribute).byte_length(spec.uploaded_rows))
        held = upload.received
        try:
            with (
                named_in_errors(path),
                step("take column", release_id=spec.release_id, attribute=attribute) as measured,
            ):
                async for offset, data in chunks:
                    self._check_held(offset, upload.received)
                    upload.write(offset, data)
                measured.bytes = upload.received - held
                session = await asyncio.to_thread(self._finished, upload, path, announced, session, lease)
            if is_complete := attribute in session.complete:
                self._completed(session)
            return upload.received, is_complete
        finally:
            upload.close()

    def _finished(
        self, upload: ColumnUpload, path: Path, announced: Announced, session: Session, lease: Lease
    ) -> Session:
        """Make what came durable; return the session with the column complete, if it is."""
        if not upload.finish(announced.column_digest):
            return session
        return self._checked(path, session, announced, lease)

    def _check_held(self, offset: int, held: int) -> None:
        """Ask a curator to start again if this process could not take over all bytes of another."""
        if offset > held and self._store.connection.shared:
            raise UnavailableError("the server holds less of the column than it said before", remedy="Ask again.")

    def _checked(self, path: Path, session: Session, announced: Announced, lease: Lease) -> Session:
        """Record that a column is complete; end the release if the column is not as its alphabet says."""
        attribute, digest = announced.attribute, announced.column_digest
        try:
            check_column(path, session.spec, attribute)
        except IntegrityError as error:
            end(self._store, session, ReleaseState.FAILED, f"attribute {attribute}: {error.problem}", lease)
            raise
        return self._store.complete_column(announced.release_id, attribute, digest, lease)
