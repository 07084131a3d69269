"""The server's work on releases: it receives columns, perturbs complete releases and deletes finished ones.

Several processes may share one state. Each works on a column or a release under a lease; another takes over unfinished
work.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from veiltab.common.errors import UnavailableError, VeiltabError
from veiltab.common.observe.progress import Stages
from veiltab.common.process.cores import cores
from veiltab.common.release.messages.witness import Shown, Witnessed
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.rpc.statuses import every, refusal_of
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.study.file import Study
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.canaries import Canaries
from veiltab.server.release.perturbation import perturb_release
from veiltab.server.release.publications import Publications
from veiltab.server.release.receiving import Announced, Chunks, Receiver, Whole
from veiltab.server.release.retention import end, sweep
from veiltab.server.release.spec_check import check_spec
from veiltab.server.sharing.leases import BusyError, Lease
from veiltab.server.sharing.quota import Quota

if TYPE_CHECKING:
    from veiltab.server.release.canaries import CanaryStream

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 30
_LOOK_SECONDS = 5
_SECONDS_A_DAY = 86_400
_LONGEST_WAIT_FOR_OTHERS = 0.05
"""Seconds that an answer waits for what another process may do."""


class Releases(Publications):
    """What the server does, behind its RPCs.

    Args:
        study: the study file; its columns and parties.
        retention_days: how long a published release can be fetched after its deadline.
        quota: what one curator may have open here.
    """

    def __init__(
        self, study: Study, store: ServerStore, *, retention_days: int = 30, quota: Quota | None = None
    ) -> None:
        self._study = study
        super().__init__(store)
        self._retention = retention_days * _SECONDS_A_DAY
        self._quota = quota or Quota()
        self._receiver = Receiver(store, self._completed)
        self._canaries = Canaries(store)
        self._perturbing: dict[str, asyncio.Task[None]] = {}
        self._stages = Stages()
        self.changes = Changes()
        # More at a time would not be faster, and would block other processes.
        self._room = asyncio.Semaphore(cores())

    async def run(self) -> None:
        """Continue unfinished work of this and other processes, and sweep, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(every(_LOOK_SECONDS, self._take_up, _log, "releases cannot be taken up"))
            tasks.create_task(every(_SWEEP_SECONDS, self._sweep_now, _log, "releases could not be swept"))

    async def _take_up(self) -> None:
        """Start pending perturbations: a full disk, or another process, may have left some."""
        for session in await asyncio.to_thread(self._store.perturbing):
            self._begin_perturbation(session.spec)

    async def _sweep_now(self) -> None:
        await asyncio.to_thread(self._sweep, int(time.time()))

    def _sweep(self, now: int) -> None:
        sweep(self._store, now, self._retention)

    async def look_up(self, question: Callable[..., Answer], *arguments: object) -> Answer:
        """Return what one of the short questions below is answered with; see `ServerStore.look_up`."""
        return await self._store.look_up(question, *arguments)

    def witness(self, curator: str, ledger: Witnessed) -> Witnessed:
        """Remember a curator's ledger; return the longest one that it showed before."""
        return self._store.witness(curator, ledger)

    def open_release(self, spec: TableSpec, curator: str) -> tuple[Session, dict[str, int]]:
        """Record or find a release; return it with the bytes held of the caller's columns."""
        check_spec(spec, curator, self._study)
        session = self._store.open_session(spec, curator, self._quota)
        folder = self._store.folder(spec.release_id)
        received = {column.attribute: column.byte_length(spec.uploaded_rows) for column in spec.columns_of(curator)}
        if session.state is ReleaseState.UPLOADING:
            parts = {column.attribute: column.part_of(curator) for column in spec.columns_of(curator)}
            received |= {name: folder.received(part) for name, part in parts.items() if part not in session.complete}
        return session, received

    async def upload(self, announced: Announced, chunks: Chunks) -> tuple[int, bool]:
        """Take the chunks of one column; return the bytes held and whether it is complete."""
        return await self._receiver.take(announced, chunks)

    async def upload_whole(self, spec: TableSpec, shown: Shown, columns: Whole, noise_digest: bytes) -> Session:
        """Take whole columns of a release of a curator's, which was announced; return it with them.

        Args:
            shown: the curator, and the ledger that came with them.
            columns: the curator's parts of the columns, by attribute.
            noise_digest: of the noise that the release has, as the curator knows it.
        """
        session = await self._store.look_up(self._store.session, spec.release_id)
        session.check_same(spec)
        session.check_same_noise(noise_digest)
        if session.state.unsuccessful:
            session.check_open()
        return await self._receiver.take_whole(session, shown, columns)

    def _completed(self, session: Session) -> None:
        if session.state is ReleaseState.PERTURBING:
            self._begin_perturbation(session.spec)

    def _begin_perturbation(self, spec: TableSpec) -> None:
        if spec.release_id not in self._perturbing:
            self._perturbing[spec.release_id] = asyncio.create_task(self._perturb(spec))

    async def _perturb(self, spec: TableSpec) -> None:
        try:
            async with self._room, self._store.leases.hold(spec.release_id) as lease:
                await self._perturb_under(lease, spec.release_id)
        except BusyError:
            pass  # another process works on it
        except Exception as error:  # noqa: BLE001 - the disk is full, the database away, another process took over
            # The ciphertext is kept for the next attempt, by any process.
            _log.warning(
                "perturbation given up: %s",
                refusal_of(error)[1],
                extra={"release": spec.release_id, "error": type(error).__name__},
            )
        finally:
            del self._perturbing[spec.release_id]
            self.changes.notify(spec.release_id)

    async def _perturb_under(self, lease: Lease, release_id: str) -> None:
        session = await self._store.look_up(self._store.session, release_id)
        if session.state is not ReleaseState.PERTURBING:
            return  # another process was faster
        try:
            with self._stages.stage(release_id) as stage:
                await asyncio.to_thread(perturb_release, self._store, session, lease, stage)
        except UnavailableError:
            raise
        except VeiltabError as error:
            _log.error("perturbation failed", extra={"release": release_id, "error": type(error).__name__})
            await asyncio.to_thread(end, self._store, session, ReleaseState.FAILED, error.problem, lease)

    @property
    def perturbing(self) -> int:
        """Number of releases that are being perturbed."""
        return len(self._perturbing)

    def progress_of(self, release_id: str) -> str:
        """Return how far this process is with a release, for people; empty if it takes no while here."""
        return self._stages.texts.get(release_id, "")

    async def wait_for_publication(self, session: Session, version: bytes, curator: Party, seconds: float) -> Session:
        """Return a release; wait at most some seconds until this process has published it or ended its work on it.

        Args:
            session: the release, as it stood once its changes had this version.
        """
        release_id = session.spec.release_id
        if seconds and not session.state.finished:
            seconds = min(seconds, _LONGEST_WAIT_FOR_OTHERS) if self._store.connection.shared else seconds
            await self.changes.until(
                lambda: self.changes.version(release_id) != version, [release_id], curator, seconds
            )
            session = await self._store.look_up(self._store.session, release_id)
        return session

    async def canaries_of(self, release_id: str, curator: str, key: bytes) -> "CanaryStream":
        """Return the published symbols of the canaries in a curator's columns; see Canaries.of."""
        return await self._canaries.of(release_id, curator, key)
