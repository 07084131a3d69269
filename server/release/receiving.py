"""Receives the columns of a release: one process for each column, under a lease and into a file of its own."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

import numpy as np

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError, TransferError, UnavailableError
from veiltab.common.observe.steps import step
from veiltab.common.release.messages.witness import Shown
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import PART
from veiltab.common.storage.files import named_in_errors, sync_folder, written_whole
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import check_column, mapped_column
from veiltab.server.release.retention import end
from veiltab.server.release.upload import ColumnUpload
from veiltab.server.sharing.leases import Lease, LostLeaseError

Chunks = AsyncIterator[tuple[int, bytes]]
Whole = Mapping[str, tuple[bytes, bytes]]
"""Columns and the SHA-256 of each, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A curator's announcement of a column.

    Args:
        attribute: one of the curator's columns.
        column_digest: SHA-256 of the whole column.
        noise_digest: of the noise that the release has, as the curator knows it.
    """

    curator: str
    release_id: str
    attribute: str
    spec_digest: bytes
    column_digest: bytes
    noise_digest: bytes


class Receiver:
    """Takes columns.

    Args:
        completed: called with a release whenever one of its columns is complete.
    """

    def __init__(self, store: ServerStore, completed: Callable[[Session], None]) -> None:
        self._store = store
        self._completed = completed
        # A lock exists while an upload holds it or waits for it.
        self._columns = WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    async def take(self, announced: Announced, chunks: Chunks) -> tuple[int, bool]:
        """Take the chunks of one column; return the bytes held and whether it is complete."""
        release_id = announced.release_id
        # Check first, so that invented releases and columns allocate nothing, and nobody waits for a complete one.
        session, part = await self._session(announced)
        if part in session.complete:
            return await self._check_again(session, part, announced)
        session.check_open()
        async with self._turn(release_id, part) as lease:
            # Another call, or another process, may have received more before this one got the lease.
            session, part = await self._session(announced)
            if part in session.complete:
                return await self._check_again(session, part, announced)
            session.check_open()
            async with self._under({part: lease}, release_id):
                return await self._receive(part, announced, session, chunks, lease)

    async def take_whole(self, session: Session, shown: Shown, columns: Whole) -> Session:
        """Take whole columns of a curator's; return the session with them, all of which became durable together.

        Args:
            shown: the curator, and the ledger that came with them.
            columns: the curator's parts of the columns, by attribute.
        """
        release_id, curator = session.spec.release_id, shown[0]
        parts = {session.column_of(name, curator).part_of(curator): whole for name, whole in columns.items()}
        async with AsyncExitStack() as turns:
            leases = {}
            # In one order everywhere, so that no two calls wait for each other.
            for part in await self._incomplete(session, parts):
                leases[part] = await turns.enter_async_context(self._turn(release_id, part))
            # Another call, or another process, may have received some of them before.
            session = await self._store.look_up(self._store.session, release_id)
            missing = {name: leases[name] for name in await self._incomplete(session, parts)}
            if not missing:
                return session
            session.check_open()
            async with self._under(missing, release_id):
                session = await asyncio.to_thread(self._take, session, parts, missing, shown)
        self._completed(session)
        return session

    async def _incomplete(self, session: Session, parts: Whole) -> list[str]:
        """Return which parts of columns are not whole here, by name; refuse other bytes of those that are."""
        for part, (_, digest) in parts.items():
            if part in session.complete:
                await self._store.look_up(self._store.check_column_digest, session.spec.release_id, part, digest)
        return sorted(parts.keys() - session.complete)

    def _take(self, session: Session, parts: Whole, leases: Mapping[str, Lease], shown: Shown) -> Session:
        """Write whole parts of columns under their leases; return the session with them."""
        spec, first = session.spec, min(leases)
        for part, lease in leases.items():
            data, digest = parts[part]
            column = spec.column_of_part(part)
            with step("take column", release_id=spec.release_id, attribute=part, size=len(data)):
                if len(data) != (length := column.byte_length(spec.uploaded_rows)):
                    problem = f"the column has {length} bytes, and {len(data)} came"
                    raise InvalidInputError(problem, where=f"attribute {part}")
                if hashlib.sha256(data).digest() != digest:
                    problem = "the column does not have its digest"
                    raise TransferError(problem, where=f"attribute {part}", remedy="Send it again.")
                self._check(np.frombuffer(data, np.uint8).view(symbol_dtype(column.size)), session, part, lease)
        # One file waits for the disk once; another name keeps it apart from what came of the first part in chunks.
        name, whole = f"{PART}{first}", {part: (parts[part][1], leases[part]) for part in sorted(leases)}
        with written_whole(self._store.folder(spec.release_id).column(name, leases[first].fence)) as file:
            file.writelines(parts[part][0] for part in whole)
        return self._store.complete_columns(spec.release_id, whole, name, shown)

    @asynccontextmanager
    async def _turn(self, release_id: str, part: str) -> AsyncIterator[Lease]:
        """Hold a part of a column, which one call of one process receives at a time."""
        lock = self._columns.setdefault((release_id, part), asyncio.Lock())
        async with lock, self._store.leases.hold(f"{release_id}/{part}") as lease:
            yield lease

    @asynccontextmanager
    async def _under(self, leases: Mapping[str, Lease], release_id: str) -> AsyncIterator[None]:
        """Receive columns in a block, whose files may be another process's before it ends."""
        try:
            yield
        except FileNotFoundError:
            await asyncio.to_thread(self._say_why_gone, release_id, leases.values())
            raise
        except LostLeaseError:
            # No other process reads files of these fences.
            for part, lease in leases.items():
                for name in (part, f"{PART}{part}"):
                    self._store.folder(release_id).column(name, lease.fence).unlink(missing_ok=True)
            raise

    async def _session(self, announced: Announced) -> tuple[Session, str]:
        session = await self._store.look_up(self._store.session, announced.release_id)
        if session.spec.digest() != announced.spec_digest:
            raise InvalidInputError("the column belongs to another spec", where=f"release {announced.release_id}")
        session.check_same_noise(announced.noise_digest)
        column = session.column_of(announced.attribute, announced.curator)
        return session, column.part_of(announced.curator)

    async def _check_again(self, session: Session, part: str, announced: Announced) -> tuple[int, bool]:
        """Answer an upload of a complete part of a column: accept the same bytes, refuse others."""
        await self._store.look_up(self._store.check_column_digest, announced.release_id, part, announced.column_digest)
        return session.spec.column_of_part(part).byte_length(session.spec.uploaded_rows), True

    def _say_why_gone(self, release_id: str, leases: Iterable[Lease]) -> None:
        """Raise the reason for a missing file: another process took over, or the release ended."""
        for lease in leases:
            self._store.check_current(lease)
        self._store.session(release_id).check_open()

    async def _receive(
        self, part: str, announced: Announced, session: Session, chunks: Chunks, lease: Lease
    ) -> tuple[int, bool]:
        spec = session.spec
        path = await self._store.look_up(self._store.folder(spec.release_id).begin_column, part, lease.fence)
        upload = ColumnUpload(path, spec.column_of_part(part).byte_length(spec.uploaded_rows))
        received = upload.received
        try:
            with named_in_errors(path), step("take column", release_id=spec.release_id, attribute=part) as size:
                async for offset, data in chunks:
                    self._check_held(offset, upload.received)
                    upload.write(offset, data)
                size.bytes = upload.received - received
                whole = part, announced.column_digest, lease
                session = await asyncio.to_thread(self._finished, upload, session, *whole)
            if is_complete := part in session.complete:
                self._completed(session)
            return upload.received, is_complete
        finally:
            upload.close()

    def _finished(self, upload: ColumnUpload, session: Session, part: str, digest: bytes, lease: Lease) -> Session:
        """Make what came durable; return the session with the part complete, if it is."""
        if not upload.finish(digest):
            return session
        sync_folder(upload.path.parent)
        symbols = mapped_column(upload.path, 0, session.spec.column_of_part(part), session.spec.uploaded_rows)
        self._check(symbols, session, part, lease)
        return self._store.complete_columns(session.spec.release_id, {part: (digest, lease)})

    def _check_held(self, offset: int, received: int) -> None:
        """Ask a curator to start again if this process could not take over all bytes of another."""
        if offset > received and self._store.connection.shared:
            raise UnavailableError("the server holds less of the column than it said before", remedy="Ask again.")

    def _check(self, symbols: Symbols, session: Session, part: str, lease: Lease) -> None:
        """End the release if a whole part of a column is not as its alphabet says."""
        try:
            check_column(symbols, session.spec.column_of_part(part))
        except IntegrityError as error:
            end(self._store, session, ReleaseState.FAILED, f"attribute {part}: {error.problem}", lease)
            raise
