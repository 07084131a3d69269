"""A curator's driver among played curators and a played server."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NoReturn, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import request_with
from tests.curator.audit.exported_evidence import identity
from tests.curator.made_records import shown
from tests.curator.made_rows import aligned
from tests.worlds.states import curator_parts
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.coin import transcript
from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.errors import NotReadyError, UnavailableError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.checkpoint import signed_checkpoint
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Party, Role, utc_now
from veiltab.common.study.file import Study
from veiltab.curator.columns.shared_sample import check_indices, index_pieces_of
from veiltab.curator.officer.policy import Policy, Rule
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.subscriptions import Others
from veiltab.curator.planning.plans import ANSWERS
from veiltab.curator.progress.progress import APPROVED
from veiltab.curator.progress.release_record import CuratorRelease, PublicationDigests
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.curator.release.upload import ServerLink
from veiltab.v1 import ingest_pb2

ID = "0" * 31 + "1"


ALICE = identity(Party(study="survey", role=Role.CURATOR, name="alice"))


REQUEST = request_with(sample=400)


APPROVE = Policy(
    rules=(Rule(researcher=None, attributes=None, maximum_epsilon=None, verdict=APPROVED, expires_days=None),)
)


@pytest.fixture(name="driver")
def driver_fixture(tmp_path: Path, study: Study) -> Iterator[CuratorDriver]:
    parts = curator_parts(tmp_path, study, APPROVE, identity=ALICE)
    yield CuratorDriver(parts)
    parts.store.close()


@cache
def bob_s_checkpoint(release: str) -> bytes:
    """Return what bob signed of his ledger with his charge."""
    bob = identity(Party(study="survey", role=Role.CURATOR, name="bob"))
    return canonical_text(signed_checkpoint(bob, LedgerHead(length=1, digest="ab" * 32), release, utc_now())).encode()


def as_bytes(rows: list[int]) -> bytes:
    return np.array(rows, "<i8").tobytes()


def checked_indices(folder: Path, data: bytes, spec: TableSpec) -> NDArray[np.int64]:
    """Check the indices of a file, and return them."""
    path = folder / "checked.bin"
    path.write_bytes(data)
    check_indices(path, spec)
    return np.concatenate(list(index_pieces_of(path)))


UNREADY = NotReadyError("does not hold every commitment yet", where="curator bob")
AWAY = UnavailableError("no connection", where="curator bob")


class World:
    """Bob as alice sees him, and the server."""

    def __init__(self, driver: CuratorDriver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver, self.curator, self.answers = driver, driver.curator, RpcAnswers(driver.curator)
        self.patch = monkeypatch
        self.store, self.ledger = driver.curator.store, driver.curator.ledger
        self.bob = shown(state=ReleaseState.REQUESTED, granted=frozenset({"salary"}))
        self.tosses: list[str] = []
        self.shown: dict[str, bytes] = {}
        self.questions: list[str] = []
        self.looks = 0
        self.is_bob_there = True
        self.forgotten: list[str] = []
        self.announced: list[bytes] = []
        self.uploads: list[dict[str, tuple[Path, bytes]]] = []
        self.has_columns = False
        self.sent: dict[str, bytes] = {}
        self.refusal: Exception | None = None
        self.is_published = True
        self.tells_at_once = False
        self.publications = 0
        self.keys: list[bytes] = []
        self.noise = 1.0
        self.bob_s_refusal: Exception | None = None
        self.lists_asked = 0
        self.drawn: bytes = b""
        self.tokens = np.random.default_rng(1).integers(0, 256, (1000, 16), dtype=np.uint8)
        tokens = self.tokens[np.lexsort(self.tokens.T[::-1])]
        table = aligned(driver.curator.folder / "aligned", tokens, {"sex": (np.arange(1000) % 2).astype(np.uint8)})
        monkeypatch.setattr(driver.curator.alignment, "result", lambda: (1000, "ab" * 16))
        monkeypatch.setattr(driver.curator.decisions, "_aligned", lambda: driver.curator.alignment.result())  # noqa: PLW0108 - patched
        monkeypatch.setattr(driver.curator.alignment, "table", lambda _: table)
        monkeypatch.setattr(driver.curator.coins, "toss", self.toss)
        monkeypatch.setattr(driver.curator.planner, "_ask", self.ask_the_worker)
        monkeypatch.setattr(driver.curator, "subscriptions", self)

    wakes = 0

    @property
    def stored(self) -> CuratorRelease:
        """The release as alice has recorded it."""
        return self.store.releases.release(ID)

    def ask(self, request: ReleaseRequest = REQUEST, study_digest: str = "") -> None:
        self.store.releases.add(request, 1, study_digest)

    async def progress(self, release_id: str, awaited: Collection[str] | None = None) -> Others:
        self.looks += 1
        if self.is_bob_there:
            digest = self.bob.request_digest or self.store.releases.release(release_id).request_digest
            signed = self.bob.checkpoint or (bob_s_checkpoint(release_id) if self.bob.charged else b"")
            return (replace(self.bob, request_digest=digest, checkpoint=signed),)
        return AWAY if awaited is None or "bob" in awaited else ()

    async def close(self) -> None:
        """A peer and a server that are played here need no end."""

    async def news(self, *_: object, **__: object) -> None:
        await asyncio.sleep(0.01)

    def ended(self, release_ids: Iterable[str]) -> set[str]:
        return set(release_ids) if self.bob.state.unsuccessful else set()

    def forget(self, release_id: str) -> None:
        self.forgotten.append(release_id)

    async def ask_the_worker(self, kind: str, text: str, _tables: int) -> str:
        self.questions.append(kind)
        return ANSWERS[kind](text)

    async def toss(self, coin: str, _: Peers, shown: Mapping[str, bytes]) -> bytes:
        self.tosses.append(coin)
        self.shown = dict(shown)
        return bytes(range(32))

    async def indices(self, *_: str) -> AsyncIterator[bytes]:
        yield self.drawn

    async def announce(self, spec: TableSpec) -> ingest_pb2.OpenReleaseResponse:
        if self.refusal is not None:
            raise self.refusal
        self.announced.append(spec.digest())
        return ingest_pb2.OpenReleaseResponse(noise_digest=b"n" * 32)

    async def upload(
        self, spec: TableSpec, columns: dict[str, tuple[Path, bytes]], *, stage: Stage
    ) -> PublicationDigests | None:
        assert not str(stage)
        if self.refusal is not None:
            raise self.refusal
        assert self.store.tests.noise_digest(spec.release_id) == b"n" * 32
        if self.has_columns:
            assert {name: digest for name, (_, digest) in columns.items()} == {
                name: hashlib.sha256(column).digest() for name, column in self.sent.items()
            }, "it takes the same bytes alone"
            return None
        assert all(path.stat().st_size == spec.uploaded_rows for path, _ in columns.values())
        self.uploads.append(columns)
        self.sent = {attribute: path.read_bytes() for attribute, (path, _) in columns.items()}
        return await self.publication(spec) if self.tells_at_once else None

    name = "server cloud"

    async def publication(self, spec: TableSpec) -> PublicationDigests:
        if self.refusal is not None:
            raise self.refusal
        self.publications += 1
        if not self.is_published:
            raise NotReadyError("has not published the release yet", where=self.name)
        return PublicationDigests(columns={column.attribute: bytes(32) for column in spec.columns})

    async def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Return the canaries of alice's column, some of them replaced."""
        assert set(self.store.tests.publication(ID).columns) == {column.attribute for column in spec.columns}
        self.keys.append(places_key)
        places = CanaryPlaces.of(places_key, rows=spec.uploaded_rows, canaries=spec.canaries).all()
        sent = np.frombuffer(self.sent["sex"], np.uint8)[places]
        replaced, rng = self.replaced(spec), np.random.default_rng(2)
        yield bytes(np.where(replaced, rng.integers(0, 2, len(sent)), sent).astype(np.uint8))

    def replaced(self, spec: TableSpec) -> NDArray[np.bool_]:
        """Return which canaries the server replaces."""
        return np.random.default_rng(1).random(spec.canaries) < self.noise * spec.server_replacement / 2**64

    async def changes(self, curator: str, release_id: str) -> bytes:
        """Return which canaries changed in bob's column."""
        assert curator == "bob"
        if self.bob_s_refusal is not None:
            raise self.bob_s_refusal
        self.lists_asked += 1
        spec, rng = self.store.releases.release(release_id).planned_spec, np.random.default_rng(3)
        offsets, sent = rng.integers(0, 2, (2, spec.canaries))
        numbers = np.flatnonzero(offsets * self.replaced(spec))
        return CanaryChanges(
            columns=spec.columns_of("bob"),
            numbers=numbers,
            offsets=(offsets[numbers],),
            symbols=(sent[numbers],),
            is_listed=np.ones(len(numbers), np.bool_),
        ).to_bytes()

    def step(self) -> bool:
        """Let alice take her steps; return whether the release has left its state, or is over."""
        stored = self.stored
        after = asyncio.run(self.driver._take_steps(stored, 0.0, cast("Peers", self), cast("ServerLink", self)))
        self.driver._show_work()
        return after.state is not stored.state or after.state.finished

    def state(self) -> ReleaseState:
        return self.stored.state

    def follow(self) -> None:
        """Let bob do what alice has done."""
        own = self.answers.progress(ID, "bob")
        self.bob = replace(
            self.bob,
            spec_digest=own.spec_digest,
            reserved=own.reserved,
            charged=own.charged,
            sample_check=own.sample_check,
            tested=own.tested,
            state=ReleaseState.PERTURBING if own.state is ReleaseState.PERTURBING else self.bob.state,
        )


@pytest.fixture(name="world")
def world_fixture(driver: CuratorDriver, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(driver, monkeypatch)


def opened_world(folder: Path, study: Study, patch: pytest.MonkeyPatch) -> World:
    """Start alice on a folder, as a process does."""
    return World(CuratorDriver(curator_parts(folder, study, APPROVE, identity=ALICE)), patch)


def refuse_toss(world: World, error: Exception = UNREADY, *, asks: bool = True) -> None:
    """Let bob commit, perhaps ask for alice's share, and refuse to open his own."""

    async def toss(coin: str, _: Peers, _shown: Mapping[str, bytes]) -> NoReturn:
        coins = world.curator.coins
        coins.exchange_commitments(coin, "bob", bytes(32))
        if asks:
            coins.open_share(coin, "bob", transcript(world.store.coins.commitments(coin)))
        raise error

    world.patch.setattr(world.curator.coins, "toss", toss)


def carried_to(world: World, state: ReleaseState, request: ReleaseRequest = REQUEST) -> None:
    world.ask(request)
    for _ in range(20):
        if world.state() is state and (state is not ReleaseState.PLANNED or world.ledger.chain.standing(ID)[0]):
            return
        world.follow()
        world.step()
    raise AssertionError(state)


def drive(world: World, release_id: str = ID) -> None:
    """Drive a release until it is over, or waits for a person."""
    driving = world.driver._drive(release_id, cast("Peers", world), cast("ServerLink", world))
    asyncio.run(asyncio.wait_for(driving, 20))
