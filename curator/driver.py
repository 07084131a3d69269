"""The curator at work: one driver that aligns tables and takes every release through its steps.

A step that cannot be done yet raises NotReadyError or UnavailableError; the driver records what it waits for and tries
again. Any other refusal ends the release. Every step is durable before the next, and repeats without harm.
"""

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.coin import SHARE_LENGTH
from veiltab.common.core.derivation import derive
from veiltab.common.core.sampling import sample_by_priority, sample_indices
from veiltab.common.errors import (
    BudgetExceededError,
    ConflictError,
    DeniedError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.observe.steps import left, step
from veiltab.common.release.modes import Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.identity import Identity
from veiltab.common.storage.files import written_whole
from veiltab.common.study.file import Study
from veiltab.curator.alignment import Alignment
from veiltab.curator.coordination import Peers, Progress, all_have
from veiltab.curator.encryption import ColumnEncryption
from veiltab.curator.intersection import AlignedTable
from veiltab.curator.ledger import Ledger
from veiltab.curator.policy import Policy
from veiltab.curator.release import (
    agreed_columns,
    check_peers_alive,
    check_request,
    check_same_sample,
    check_same_spec,
    foreseen_plan,
    planned_spec,
    union,
)
from veiltab.curator.store import APPROVED, DENIED, HELD, CuratorRelease, CuratorStore
from veiltab.curator.table import Table
from veiltab.curator.upload import ServerLink

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 1.0
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_FINISHED = {state for state in ReleaseState if state.finished}


class CuratorDriver:
    """What a curator does, behind its RPCs.

    Args:
        identity: the curator's own.
        study: the study file.
        folder: the curator's state folder.
        store: the curator's database in it.
        ledger: what was spent.
        policy: who may have what.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a curator consists of
        self, identity: Identity, study: Study, folder: Path, store: CuratorStore, ledger: Ledger, policy: Policy
    ) -> None:
        self.name = identity.party.name
        self.study = study
        self.store = store
        self.ledger = ledger
        self.alignment = Alignment(self.name, folder, store, ledger)
        self._folder = folder
        self._policy = policy
        self._identity = identity
        self._submitted = asyncio.Event()
        self._driven: set[str] = set()
        # Rows and check of samples that are drawn and not encrypted yet.
        self._samples: dict[str, tuple[NDArray[np.int64], bytes]] = {}

    # What the RPCs ask

    def submit(self, request: ReleaseRequest) -> CuratorRelease:
        """Take a request; one that is known is answered even when its deadline is over."""
        now = int(time.time())
        if not self.store.knows(request.release_id):
            check_request(request, self.study, now)
        stored = self.store.add(request, now)
        self._submitted.set()
        return stored

    @property
    def own_attributes(self) -> frozenset[str]:
        """Names of this curator's attributes."""
        return frozenset(rule.name for rule in self.study.attributes_of(self.name))

    def progress(self, release_id: str) -> Progress:
        """Say how far this curator is with a release."""
        stored = self.store.release(release_id)
        wanted = self.own_attributes & set(stored.request.attributes)
        verdicts = {d.attribute: d.verdict for d in self.store.decisions(release_id)}
        return Progress(
            curator=self.name,
            state=stored.state,
            decided=all(verdicts.get(name, HELD) != HELD for name in wanted),
            granted=frozenset(name for name in wanted if verdicts.get(name) == APPROVED),
            denied=frozenset(name for name in wanted if verdicts.get(name) == DENIED),
            spec_digest=b"" if stored.spec is None else stored.spec.digest(),
            reserved=self.ledger.is_reserved(release_id),
            charged=self.ledger.is_charged(release_id),
            sample_check=stored.sample_check,
            failure=stored.failure,
        )

    def own_share(self, coin_id: str) -> bytes:
        """Return this curator's share of a coin that may be tossed now.

        Raises:
            NotReadyError: the coin's release is not charged here; a seed costs its epsilon first.
            ConflictError: the coin was tossed and forgotten.
        """
        kind, _, name = coin_id.partition("/")
        if kind == "release":
            if not self.ledger.is_charged(name):
                raise NotReadyError("has not charged the release yet", where=f"curator {self.name}")
        elif kind != "alignment" or len(name) != 32 or not name.isalnum():
            raise InvalidInputError("there is no such coin", where="coin toss")
        share = self.store.own_share(coin_id, secrets.token_bytes(SHARE_LENGTH))
        if not share:
            raise ConflictError("this coin was tossed and is forgotten", where="coin toss")
        return share

    def encryption(self, release_id: str) -> ColumnEncryption:
        """Return the encrypted columns of a release."""
        return ColumnEncryption(self.store, self._release_folder(release_id), release_id)

    def indices_file(self, release_id: str) -> Path:
        """Return where explicit row indices of a release lie."""
        return self._release_folder(release_id) / "indices.bin"

    def _release_folder(self, release_id: str) -> Path:
        return self._folder / "releases" / release_id

    # The driver

    async def run(self, table: Table) -> None:
        """Align the table and drive releases until cancelled."""
        peers = Peers(self._identity, self.study, self.store)
        server = ServerLink(self._identity, self.study)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.alignment.run(table, peers))
                while True:
                    self._submitted.clear()
                    for release_id in self.store.unfinished():
                        if release_id not in self._driven:
                            self._driven.add(release_id)
                            tasks.create_task(self._drive(release_id, peers, server))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._submitted.wait(), _LOOK_AGAIN_SECONDS)
        finally:
            await peers.close()
            await server.close()

    async def _drive(self, release_id: str, peers: Peers, server: ServerLink) -> None:
        attempt, entered = 0, time.monotonic()
        while not (state := self.store.release(release_id).state).finished:
            if await self._try_step(release_id, peers, server):
                seconds = time.monotonic() - entered
                left(state.value, release_id=release_id, seconds=seconds)
                self.store.add_seconds(release_id, state.value, seconds)
                attempt, entered = 0, time.monotonic()
            else:
                await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
                attempt += 1
        await self._tidy(release_id, peers)
        self._driven.discard(release_id)

    async def _try_step(self, release_id: str, peers: Peers, server: ServerLink) -> bool:
        stored = self.store.release(release_id)
        try:
            if time.time() > stored.request.deadline:
                self._end(release_id, ReleaseState.EXPIRED, f"the deadline passed; {stored.waiting_for}")
                return True
            progress = await peers.progress(release_id)
            check_peers_alive(progress)
            await self._step(stored, progress, peers, server)
        except (NotReadyError, UnavailableError) as error:
            self.store.set_waiting(release_id, str(error))
            return False
        except (DeniedError, BudgetExceededError) as error:
            self._end(release_id, ReleaseState.DENIED, str(error))
        except VeiltabError as error:
            self._end(release_id, ReleaseState.FAILED, str(error))
        except OSError as error:
            self.store.set_waiting(release_id, f"this curator's disk: {type(error).__name__} ({error.strerror})")
            return False
        return True

    def _end(self, release_id: str, state: ReleaseState, failure: str) -> None:
        _log.warning("release ended", extra={"release": release_id, "state": state.value})
        self.store.set_state(release_id, state, failure)
        self.ledger.cancel(release_id)
        self._samples.pop(release_id, None)
        self.encryption(release_id).forget_ciphertext()
        self.encryption(release_id).forget_pads()
        self.store.forget_keys(release_id)

    async def _step(
        self, stored: CuratorRelease, progress: tuple[Progress, ...], peers: Peers, server: ServerLink
    ) -> None:
        steps: dict[ReleaseState, Callable[[], Awaitable[ReleaseState]]] = {
            ReleaseState.REQUESTED: lambda: self._decide(stored),
            ReleaseState.APPROVED: lambda: self._plan(stored, progress),
            ReleaseState.PLANNED: lambda: self._charge(stored, progress, server),
            ReleaseState.CHARGED: lambda: self._draw_and_encrypt(stored, progress, peers),
            ReleaseState.UPLOADING: lambda: self._upload(stored, server),
        }
        state = await steps[stored.state]()
        self.store.set_state(stored.request.release_id, state)

    async def _decide(self, stored: CuratorRelease) -> ReleaseState:
        release_id = stored.request.release_id
        self.store.decide(release_id, self._policy.decide(stored.request, self.own_attributes, int(time.time())))
        held = sorted(d.attribute for d in self.store.decisions(release_id) if d.verdict == HELD)
        if held:
            await self._check_budget(stored.request)
            raise NotReadyError(
                f"a person decides about {', '.join(held)}",
                where=f"curator {self.name}",
                remedy=f"Run `veiltab curator approve` or `deny` for {release_id}.",
            )
        return ReleaseState.APPROVED

    async def _check_budget(self, request: ReleaseRequest) -> None:
        """Refuse a request that the budget cannot hold before a person spends time on it."""
        population = self.store.latest_population()
        if population is not None:
            cells = self.study.domain(request.attributes).cells
            await asyncio.to_thread(self.ledger.check, foreseen_plan(request, population=population, cells=cells))

    async def _plan(self, stored: CuratorRelease, progress: tuple[Progress, ...]) -> ReleaseState:
        all_have(progress, lambda peer: peer.decided, "has not decided about the request yet")
        own = self.progress(stored.request.release_id)
        columns = agreed_columns(
            stored.request,
            self.study,
            own.granted | union(peer.granted for peer in progress),
            own.denied | union(peer.denied for peer in progress),
        )
        population, digest = self.alignment.result()
        with step("plan", release_id=stored.request.release_id):
            spec = planned_spec(stored.request, columns, self.study, population=population, alignment=digest)
            await asyncio.to_thread(self.ledger.reserve, spec)
        self.store.set_spec(spec.release_id, spec)
        return ReleaseState.PLANNED

    async def _charge(self, stored: CuratorRelease, progress: tuple[Progress, ...], server: ServerLink) -> ReleaseState:
        spec = _spec(stored)
        check_same_spec(spec, progress)
        if spec.columns_of(self.name):
            # A server that is away, or has another study file, is found before anything is spent.
            with step("announce", release_id=spec.release_id):
                await server.announce(spec)
        with step("charge", release_id=spec.release_id):
            self.ledger.charge(spec.release_id)
        return ReleaseState.CHARGED

    async def _draw_and_encrypt(
        self, stored: CuratorRelease, progress: tuple[Progress, ...], peers: Peers
    ) -> ReleaseState:
        all_have(progress, lambda peer: peer.charged, "has not charged the release yet")
        spec = _spec(stored)
        table = self.alignment.table(spec.alignment)
        if spec.release_id not in self._samples:
            self._samples[spec.release_id] = await self._sample(spec, table, peers)
        rows, check = self._samples[spec.release_id]
        self.store.set_sample_check(spec.release_id, check)
        check_same_sample(check, progress)
        await asyncio.to_thread(self._encrypt, spec, table, rows)
        del self._samples[spec.release_id]
        return ReleaseState.UPLOADING

    def _encrypt(self, spec: ReleaseSpec, table: AlignedTable, rows: NDArray[np.int64]) -> None:
        for column in spec.columns_of(self.name):
            size = column.byte_length(spec.uploaded_rows)
            with step("encrypt", release_id=spec.release_id, attribute=column.attribute, size=size):
                values = table.column(column.attribute).take(rows)
                self.encryption(spec.release_id).encrypt(column.attribute, values, column.size, spec.pad)

    async def _sample(self, spec: ReleaseSpec, table: AlignedTable, peers: Peers) -> tuple[NDArray[np.int64], bytes]:
        with step("toss", release_id=spec.release_id):
            seed = await peers.toss(f"release/{spec.release_id}")
        with step("draw", release_id=spec.release_id):
            if spec.sampling is Sampling.SEED:
                key = derive(seed, "sampling")
                rows = await asyncio.to_thread(spec.description.scheme.draw, table.tokens(), key)
            elif spec.sampling is Sampling.SERVER:
                key = derive(seed, "sampling")
                rows = await asyncio.to_thread(sample_by_priority, table.tokens(), spec.population, key)
            else:
                rows = await self._shared_indices(spec, peers)
            check = hmac.new(derive(seed, "sample check"), digestmod="sha256")
            await asyncio.to_thread(check.update, rows.astype("<i8", copy=False).data)
        return rows, check.digest()

    async def _shared_indices(self, spec: ReleaseSpec, peers: Peers) -> NDArray[np.int64]:
        """Draw the row indices if this curator is the one that does, else take them from the one that did."""
        drawer = spec.columns[0].owner
        path = self.indices_file(spec.release_id)
        if not path.exists():
            if drawer == self.name:
                drawn = await asyncio.to_thread(sample_indices, spec.population, spec.sample, secrets.token_bytes(32))
                data = drawn.astype("<i8").tobytes()
            else:
                data = await peers.indices(drawer, spec.release_id)
            with written_whole(path) as file:
                file.write(data)
        return checked_indices(path.read_bytes(), spec)

    async def _upload(self, stored: CuratorRelease, server: ServerLink) -> ReleaseState:
        spec = _spec(stored)
        encryption = self.encryption(spec.release_id)
        columns = {
            c.attribute: (
                encryption.ciphertext(c.attribute),
                self.store.ciphertext_digest(spec.release_id, c.attribute),
            )
            for c in spec.columns_of(self.name)
        }
        if columns:
            size = sum(column.byte_length(spec.uploaded_rows) for column in spec.columns_of(self.name))
            with step("upload", release_id=spec.release_id, size=size):
                await server.upload(spec, columns, lambda sent: self.store.set_bytes_uploaded(spec.release_id, sent))
        encryption.forget_ciphertext()
        return ReleaseState.READY

    async def _tidy(self, release_id: str, peers: Peers) -> None:
        """Forget the seed once every curator has encrypted, or the release is over everywhere."""
        deadline = self.store.release(release_id).request.deadline
        while time.time() < deadline:
            # Whatever a peer answers, also that one's own certificate has expired, is no reason to end here.
            with suppress(VeiltabError):
                progress = await peers.progress(release_id)
                if all(p.state in {ReleaseState.UPLOADING, *_FINISHED} for p in progress):
                    break
            await asyncio.sleep(_PAUSES[-1])
        self.store.forget_coin(f"release/{release_id}")
        self.indices_file(release_id).unlink(missing_ok=True)


def _spec(stored: CuratorRelease) -> ReleaseSpec:
    if stored.spec is None:
        raise IntegrityError("a planned release has no spec", where=f"release {stored.request.release_id}")
    return stored.spec


def checked_indices(data: bytes, spec: ReleaseSpec) -> NDArray[np.int64]:
    """Return explicit row indices: m different ones below n.

    Raises:
        IntegrityError: they are not.
    """
    # A length that is no multiple of 8 would not convert at all.
    whole = data if len(data) == 8 * spec.sample else b""
    indices: NDArray[np.int64] = np.frombuffer(whole, "<i8").astype(np.int64)
    right = len(indices) == spec.sample and indices.min() >= 0 and indices.max() < spec.population
    if not right or len(np.unique(indices)) != spec.sample:
        raise IntegrityError("the row indices are not a sample without replacement", where="shared indices")
    return indices
