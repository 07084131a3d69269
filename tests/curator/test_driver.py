import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import PlayedDisk, reserve
from tests.curator.made_records import deny, unsynced_statements
from tests.curator.made_rows import aligned, workplace
from tests.power import UNRAISABLE, FailingPower, Power, PowerFailure
from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.core.coin import commitment, transcript
from veiltab.common.errors import (
    ConflictError,
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    TransferError,
    UnavailableError,
)
from veiltab.common.observe.progress import Stage, Stages
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.canary_changes import CanaryChanges, lists_digest
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec, requested_columns
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.storage.database import Database, transaction
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART
from veiltab.common.storage.files import file_digest
from veiltab.common.study.file import Study
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.shared_sample import check_indices, index_pieces_of
from veiltab.curator.officer.policy import Policy, Rule
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.looks import Others
from veiltab.curator.planning.checks import plan_question
from veiltab.curator.planning.planner import ANSWERS
from veiltab.curator.planning.plans import planned_release
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import End, GrantDecision, Progress, PublicationDigests
from veiltab.curator.records.server_tests import ServerTests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.server_check import ServerCheck
from veiltab.curator.release.upload import ServerLink
from veiltab.curator.table.table import Table
from veiltab.v1 import ingest_pb2

Make = Callable[..., Any]
ID = "0" * 31 + "1"
APPROVE = Policy(
    rules=(Rule(researcher=None, attributes=None, maximum_epsilon=None, verdict=APPROVED, expires_days=None),)
)


@pytest.fixture
def driver(tmp_path: Path, study: Study) -> Iterator[CuratorDriver]:
    store = CuratorStore(tmp_path / "curator.sqlite")
    identity = SimpleNamespace(party=Party(study="survey", role=Role.CURATOR, name="alice"))
    ledger = Ledger(store.connection, Decimal(1))
    yield CuratorDriver(cast("Identity", identity), study, tmp_path, store, ledger, APPROVE, workplace(tmp_path))
    store.close()


# Row indices from a peer


def as_bytes(rows: list[int]) -> bytes:
    return np.array(rows, "<i8").tobytes()


def checked_indices(folder: Path, data: bytes, spec: TableSpec) -> NDArray[np.int64]:
    """Check the indices of a file, and return them."""
    path = folder / "checked.bin"
    path.write_bytes(data)
    check_indices(path, spec)
    return np.concatenate(list(index_pieces_of(path)))


def test_indices_are_a_sample_without_replacement(tmp_path: Path, make_spec: Make) -> None:
    spec = make_spec(population=10, sample=4)
    rows: NDArray[np.int64] = checked_indices(tmp_path, as_bytes([9, 0, 3, 4]), spec)
    assert rows.tolist() == [9, 0, 3, 4]
    assert rows.dtype == np.int64


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        as_bytes([9, 0, 3]),
        as_bytes([9, 0, 3, 4, 5]),
        as_bytes([9, 0, 3, 4])[:-1],
        as_bytes([9, 0, 3, 4]) + b"\0",
        as_bytes([9, 0, 3, 3]),
        as_bytes([10, 0, 3, 4]),
        as_bytes([-1, 0, 3, 4]),
        as_bytes([2**63 - 1, 0, 3, 4]),
    ],
)
def test_indices_that_are_no_such_sample_are_refused(tmp_path: Path, make_spec: Make, data: bytes) -> None:
    with pytest.raises(IntegrityError, match="not a sample without replacement"):
        checked_indices(tmp_path, data, make_spec(population=10, sample=4))


# What the RPCs ask


def test_a_request_is_taken_once_even_after_its_deadline(driver: CuratorDriver, make_request: Make) -> None:
    request = make_request(deadline=int(time.time()) + 2)
    stored = driver.propose(request, driver.study.digest)
    late = make_request(release_id="f" * 32, deadline=int(time.time()) - 1)
    with pytest.raises(InvalidInputError, match="must lie ahead"):
        driver.propose(late, driver.study.digest)
    driver.store.releases.add(late, 1)
    assert driver.propose(late, driver.study.digest).request == late
    assert driver.propose(request, driver.study.digest) == stored
    with pytest.raises(ConflictError):
        driver.propose(replace(request, purpose="another"), driver.study.digest)


def test_progress_tells_own_decisions_only(driver: CuratorDriver, make_request: Make, make_spec: Make) -> None:
    driver.store.releases.add(make_request(attributes=("sex", "age", "salary")), 1)
    assert driver.decisions.own_attributes == {"sex", "age"}
    before = driver.progress(ID)
    assert (before.curator, before.decided, before.granted, before.denied) == (
        "alice",
        False,
        frozenset(),
        frozenset(),
    )
    steps = [("sex", HELD, False), ("sex", APPROVED, False), ("age", DENIED, True)]
    for attribute, verdict, decided in steps:
        driver.store.decisions.decide(
            ID, (GrantDecision(attribute=attribute, verdict=verdict, expires=None, decided_by="person"),)
        )
        assert driver.progress(ID).decided is decided
    driver.store.releases.set_sample_check(ID, b"check", has_columns=True)
    driver.store.releases.set_planned(release_of(make_spec()))
    reserve(driver.ledger, make_spec())
    now = driver.progress(ID)
    assert (now.granted, now.denied, now.sample_check) == (frozenset({"sex"}), frozenset({"age"}), b"check")
    assert (now.spec_digest, now.reserved, now.charged) == (make_spec().digest(), True, False)
    driver.ledger.charge(ID)
    assert (driver.progress(ID).reserved, driver.progress(ID).charged) == (False, True)


def test_a_curator_without_attributes_in_a_request_has_decided(driver: CuratorDriver, make_request: Make) -> None:
    driver.store.releases.add(make_request(attributes=("salary",)), 1)
    assert driver.progress(ID).decided


def test_a_seed_costs_its_epsilon_first(driver: CuratorDriver, make_spec: Make) -> None:
    with pytest.raises(NotReadyError, match="has not charged the release yet"):
        driver.coins.share(f"release/{ID}")
    reserve(driver.ledger, make_spec())
    with pytest.raises(NotReadyError):
        driver.coins.share(f"release/{ID}")
    driver.ledger.charge(ID)
    share = driver.coins.share(f"release/{ID}")
    assert len(share) == 32
    assert driver.coins.share(f"release/{ID}") == share
    driver.store.coins.forget_coin(f"release/{ID}")
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        driver.coins.share(f"release/{ID}")


@pytest.mark.parametrize(
    "coin",
    [
        "",
        "alignment",
        "alignment/",
        "alignment/../../../../etc/passwd00000000",
        "alignment/" + "a" * 31,
        "alignment/" + "A" * 32,
        "alignment/" + "\N{DEVANAGARI DIGIT ZERO}" * 32,
        "x/" + "a" * 32,
    ],
)
def test_there_are_no_other_coins(driver: CuratorDriver, coin: str) -> None:
    with pytest.raises(InvalidInputError, match="there is no such coin"):
        driver.coins.share(coin)
    assert len(driver.coins.share("alignment/" + "a" * 32)) == 32


AWAY = UnavailableError("no connection", where="curator bob")


# One release, with a peer and a server that are played here


class World:
    """Bob as alice sees him, and the server."""

    def __init__(self, driver: CuratorDriver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver = driver
        self.bob = Progress(
            curator="bob",
            state=ReleaseState.REQUESTED,
            considered=True,
            decided=True,
            granted=frozenset({"salary"}),
            denied=frozenset(),
            spec_digest=b"",
            reserved=False,
            charged=False,
            sample_check=b"",
            tested=False,
            failure="",
        )
        self.tosses: list[str] = []
        self.shown: dict[str, bytes] = {}
        self.questions: list[str] = []
        self.looks = 0
        self.is_bob_there = True
        self.forgotten: list[str] = []
        self.announced: list[bytes] = []
        self.uploads: list[dict[str, tuple[Path, bytes]]] = []
        self.has_columns = False
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
        table = aligned(driver._folder / "aligned", tokens, {"sex": (np.arange(1000) % 2).astype(np.uint8)})
        monkeypatch.setattr(driver.alignment, "result", lambda: (1000, "ab" * 16))
        monkeypatch.setattr(driver.decisions, "_aligned", lambda: driver.alignment.result())  # noqa: PLW0108 - patched
        monkeypatch.setattr(driver.alignment, "table", lambda _: table)
        monkeypatch.setattr(driver.coins, "toss", self.toss)
        monkeypatch.setattr(driver.planner, "_ask", self.ask_the_worker)
        monkeypatch.setattr(driver, "looks", self)

    wakes = 0

    async def progress(self, release_id: str, awaited: Collection[str] | None = None) -> Others:
        self.looks += 1
        if self.is_bob_there:
            digest = self.bob.request_digest or self.driver.store.releases.release(release_id).request_digest
            return (replace(self.bob, request_digest=digest),)
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
        assert self.driver.store.tests.noise_digest(spec.release_id) == b"n" * 32
        if self.has_columns:
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
        assert set(self.driver.store.tests.published_digests(ID)) == {column.attribute for column in spec.columns}
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
        spec, rng = self.driver.store.releases.release(release_id).planned_spec, np.random.default_rng(3)
        offsets, sent = rng.integers(0, 2, (2, spec.canaries))
        numbers = np.flatnonzero(offsets * self.replaced(spec))
        return CanaryChanges(
            columns=spec.columns_of("bob"),
            numbers=numbers,
            offsets=(offsets[numbers],),
            sent=(sent[numbers],),
            is_listed=np.ones(len(numbers), np.bool_),
        ).to_bytes()

    def step(self) -> bool:
        """Let alice take her steps; return whether the release has left its state, or is over."""
        stored = self.driver.store.releases.release(ID)
        after = asyncio.run(self.driver._take_steps(stored, 0.0, cast("Peers", self), cast("ServerLink", self)))
        return after.state is not stored.state or after.state.finished

    def state(self) -> ReleaseState:
        return self.driver.store.releases.release(ID).state

    def follow(self) -> None:
        """Let bob do what alice has done."""
        own = self.driver.progress(ID)
        self.bob = replace(
            self.bob,
            spec_digest=own.spec_digest,
            reserved=own.reserved,
            charged=own.charged,
            sample_check=own.sample_check,
            tested=own.tested,
            state=ReleaseState.PERTURBING if own.state is ReleaseState.PERTURBING else self.bob.state,
        )


@pytest.fixture
def world(driver: CuratorDriver, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(driver, monkeypatch)


def test_a_release_takes_its_steps_one_by_one(world: World, make_request: Make) -> None:
    driver = world.driver
    driver.store.releases.add(make_request(sample=400), 1)
    world.bob = replace(world.bob, decided=False)
    assert world.step()
    assert world.state() is ReleaseState.APPROVED
    assert not world.step()
    assert "has not decided about the request yet" in driver.store.releases.release(ID).waiting_for
    world.bob = replace(world.bob, decided=True)
    assert world.step()
    assert world.state() is ReleaseState.PLANNED
    assert not driver.ledger.is_reserved(ID)
    assert not world.step()
    assert (driver.ledger.is_reserved(ID), driver.ledger.is_charged(ID)) == (True, False)
    assert not world.step()
    assert driver.ledger.spent == 0
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.CHARGED
    assert driver.ledger.spent == Decimal("0.1")
    assert not world.step()
    assert not world.tosses  # bob has not charged
    world.follow()
    assert not world.step()
    assert not driver.encryption(ID).ciphertext("sex").exists()  # bob has not drawn
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.UPLOADING
    assert world.step()
    assert world.state() is ReleaseState.PERTURBING
    assert not world.step()  # bob has not sent his column
    world.follow()
    assert not world.step()  # bob has not tested the server
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.READY
    assert len(world.keys) == 1  # that of the canaries' places
    (sent,) = world.uploads
    assert list(sent) == ["sex"]
    assert not driver.encryption(ID).ciphertext("sex").exists()
    assert driver.store.releases.release(ID).bytes_uploaded == sum(len(column) for column in world.sent.values())


@pytest.mark.parametrize("attributes", [("sex",), ("sex", "salary")])
def test_a_curator_without_columns_that_is_away_is_waited_for_until_the_sample_is_drawn(
    world: World, make_request: Make, attributes: tuple[str, ...]
) -> None:
    world.bob = replace(world.bob, granted=frozenset(attributes[1:]))
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400, attributes=attributes))
    world.is_bob_there = False
    assert not world.step()
    assert not world.tosses
    assert world.driver.store.releases.release(ID).waiting_for == str(AWAY)
    world.is_bob_there = True
    world.follow()
    world.step()
    assert world.tosses
    world.is_bob_there = False
    for _ in range(5):
        world.step()
    left = world.driver.store.releases.release(ID)
    if len(attributes) == 1:
        assert left.state is ReleaseState.READY
    else:
        assert (left.state, left.waiting_for) == (ReleaseState.CHARGED, str(AWAY))


def carried_to(world: World, state: ReleaseState, request: Any) -> None:  # noqa: ANN401
    world.driver.store.releases.add(request, 1)
    for _ in range(20):
        if world.state() is state and (state is not ReleaseState.PLANNED or world.driver.ledger.is_reserved(ID)):
            return
        world.follow()
        world.step()
    raise AssertionError(state)


def test_what_a_failing_power_may_undo_is_what_is_reached_again(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsynced = unsynced_statements(monkeypatch)
    carried_to(world, ReleaseState.READY, make_request(sample=400))
    assert unsynced == {
        "UPDATE release SET state",
        "UPDATE release SET waiting_for",
        "UPDATE release SET spec",
        "UPDATE release SET sample_check",
        "INSERT INTO plan",
        "INSERT INTO charge",
        "INSERT INTO spent_shared_key",
        "INSERT INTO canary_key",
    }


@pytest.mark.parametrize(
    "state", [ReleaseState.CHARGED, ReleaseState.UPLOADING, ReleaseState.PERTURBING, ReleaseState.READY]
)
def test_a_charged_release_outlives_a_failing_power(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: ReleaseState
) -> None:
    """Files that were deleted stay so, while the records since the last that waited for the disk are gone."""
    power, driver = Power(monkeypatch), world.driver
    carried_to(world, state, make_request(sample=400))
    left = power.content_after_failure(driver.store.connection)
    driver.store.close()
    (tmp_path / "curator.sqlite").write_bytes(left)
    identity = SimpleNamespace(party=Party(study="survey", role=Role.CURATOR, name="alice"))
    with closing(CuratorStore(tmp_path / "curator.sqlite")) as store:
        ledger = Ledger(store.connection, Decimal(1))
        place = workplace(tmp_path)
        again = CuratorDriver(cast("Identity", identity), driver.study, tmp_path, store, ledger, APPROVE, place)
        later = World(again, monkeypatch)
        later.bob, later.has_columns, later.sent = world.bob, bool(world.uploads), getattr(world, "sent", {})
        for _ in range(10):
            later.follow()
            later.step()
        assert (later.state(), store.releases.release(ID).failure) == (ReleaseState.READY, "")
        assert ledger.spent == Decimal("0.1")
        assert len(world.uploads + later.uploads) == 1


def test_a_curator_without_columns_keeps_the_coin_through_a_failing_power_as_the_others_forget_it(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    power, driver, value = Power(monkeypatch), world.driver, bytes(range(32))

    async def toss(coin: str, *_: object) -> bytes:
        driver.store.coins.set_coin_value(coin, value)
        return value

    monkeypatch.setattr(driver.coins, "toss", toss)
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400, attributes=("salary",)))
    (tmp_path / "later.sqlite").write_bytes(power.content_after_failure(driver.store.connection))
    with closing(CuratorStore(tmp_path / "later.sqlite")) as store:
        assert (store.releases.release(ID).state, store.coins.coin_value(f"release/{ID}")) == (
            ReleaseState.CHARGED,
            value,
        )


class KnownServer(World):
    """A server that has perhaps had a column before the power failed, and takes the same bytes alone."""

    async def upload(
        self, spec: TableSpec, columns: dict[str, tuple[Path, bytes]], *, stage: Stage
    ) -> PublicationDigests | None:
        if self.has_columns:
            assert {name: digest for name, (_, digest) in columns.items()} == {
                name: hashlib.sha256(column).digest() for name, column in self.sent.items()
            }
        return await super().upload(spec, columns, stage=stage)


def fails(tmp_path: Path, study: Study, request: Any, at: int, seed: int) -> bool:  # noqa: ANN401
    """Let the power fail before a step of a release, and go on; return whether there was such a step."""

    def opened(folder: Path, patch: pytest.MonkeyPatch) -> World:
        store = CuratorStore(folder / "curator.sqlite")
        identity = SimpleNamespace(party=Party(study="survey", role=Role.CURATOR, name="alice"))
        ledger = Ledger(store.connection, Decimal(1))
        return KnownServer(
            CuratorDriver(cast("Identity", identity), study, folder, store, ledger, APPROVE, workplace(folder)), patch
        )

    (tmp_path / "first").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        world = opened(tmp_path / "first", patch)
        world.tells_at_once = at % 2 == 1
        world.driver.store.releases.add(request, 1)
        with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure):
            power = FailingPower(watching, tmp_path / "first", world.driver.store.connection, at=at, seed=seed)
            carried_to(world, ReleaseState.READY, request)
        power.close()
        world.driver.store.close()
    if power.left is None:
        return False
    power.restore(tmp_path / "later")
    with pytest.MonkeyPatch.context() as patch:
        later = opened(tmp_path / "later", patch)
        later.tells_at_once = world.tells_at_once
        with closing(later.driver.store) as store:
            later.bob, later.has_columns, later.sent = world.bob, bool(world.uploads), getattr(world, "sent", {})
            for _ in range(12):
                later.follow()
                later.step()
            assert (later.state(), store.releases.release(ID).failure) == (ReleaseState.READY, "")
            assert later.driver.ledger.spent == Decimal("0.1")
            assert len(world.uploads + later.uploads) == 1
            assert len(set(map(bytes, world.keys + later.keys))) == 1
            known = store.pads.pad(ID, "sex")
            assert known is not None
            assert known[1] == hashlib.sha256(later.sent["sex"]).digest()
            if request.pad is Pad.OTP:
                assert file_digest(later.driver.encryption(ID).pad_file("sex")) == known[0]
    return True


@pytest.mark.parametrize("at", [12, 19, 26, 33])
@pytest.mark.filterwarnings(UNRAISABLE)
def test_a_release_outlives_a_power_that_fails(tmp_path: Path, study: Study, make_request: Make, at: int) -> None:
    assert fails(tmp_path, study, make_request(sample=400), at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings(UNRAISABLE)
def test_a_release_outlives_a_power_that_fails_at_any_step(
    tmp_path: Path, study: Study, make_request: Make, pad: Pad, seed: int
) -> None:
    at = 0
    while fails(tmp_path / str(at), study, make_request(sample=400, pad=pad), at, 1000 * seed + at):
        at += 1
    assert at > 30


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("state", [ReleaseState.PLANNED, ReleaseState.UPLOADING])
def test_a_step_that_another_follows_is_said_with_it_or_when_it_has_to_wait(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, state: ReleaseState, *, is_refused: bool
) -> None:
    def refused(*_: object) -> NoReturn:
        raise NotReadyError("not now")

    world.driver.store.releases.add(make_request(sample=400), 1)
    while world.state() is not state:
        world.follow()
        before = world.driver.changes.version(ID)
        world.step()
    assert world.driver.changes.version(ID) == before
    if is_refused:
        monkeypatch.setattr(world.driver.ledger, "reserve", refused)
        world.refusal = NotReadyError("not now")
    for _ in range(2):  # what is uploaded is said with the test of the server
        world.step()
    assert world.driver.changes.version(ID) != before


@pytest.mark.parametrize("error", [TransferError("a file was altered", where="disk"), OSError(28, "No space left")])
def test_a_sample_whose_files_are_damaged_is_drawn_again(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What is damaged before the encryption costs no charged release."""
    encrypt, errors = ColumnEncryption.encrypt_together, [error]

    def encrypt_once_in_vain(*args: Any) -> None:  # noqa: ANN401 - those of the method
        if errors:
            raise errors.pop()
        encrypt(*args)

    monkeypatch.setattr(ColumnEncryption, "encrypt_together", encrypt_once_in_vain)
    carried_to(world, ReleaseState.READY, make_request(sample=400))
    assert not errors
    assert len(world.tosses) == 2


def test_a_release_says_what_is_done_for_it_instead_of_what_it_waited_for(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    world.driver._stages = Stages(lambda: now[0])
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    said = list[str]()

    def waiting_for() -> str:
        world.driver._show_work()
        return world.driver.store.releases.release(ID).waiting_for

    def encrypt_in_vain(*_: object) -> NoReturn:
        said.append(waiting_for())
        now[0] += 1
        said.append(waiting_for())
        raise UnavailableError("not now")

    monkeypatch.setattr(ColumnEncryption, "encrypt_together", encrypt_in_vain)
    world.follow()
    for _ in range(3):
        assert not world.step()
        world.follow()
        said.append(waiting_for())
    bob, encrypting = "curator bob: has not drawn the sample yet", "encrypting columns: 0 %"
    assert said == [bob, bob, encrypting, "not now", "not now", encrypting, "not now"]


def test_an_upload_that_failed_is_made_again(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))
    world.refusal = UnavailableError("no connection", where="server cloud")
    assert not world.step()
    world.refusal = None
    assert world.step()
    assert len(world.uploads) == 1


def test_a_look_at_a_release_works_out_no_guarantee(
    world: World, make_request: Make, make_spec: Make, forbid_accounting: Callable[[], None]
) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400, delta=Decimal("1e-6")))
    world.driver.store.releases.set_planned(release_of(make_spec(sample=400, delta=Decimal("1e-6"))))
    world.bob = replace(world.bob, spec_digest=b"", reserved=False)
    forbid_accounting()
    assert not world.step()
    assert "has not planned the release yet" in world.driver.store.releases.release(ID).waiting_for
    world.driver.progress(ID)
    assert (
        world.driver.store.releases.releases()
        == world.driver.store.releases.latest(1)
        == (world.driver.store.releases.release(ID),)
    )


def test_nothing_is_charged_before_the_server_knows_the_release(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    world.follow()
    world.refusal = UnavailableError("no connection", where="server cloud")
    assert not world.step()
    assert world.driver.ledger.spent == 0
    world.refusal = InvalidInputError("the release is of another study file than the server's")
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert (world.driver.ledger.spent, world.driver.ledger.remaining) == (Decimal(0), Decimal(1))


def test_without_room_for_its_columns_a_release_is_neither_planned_nor_charged(
    world: World, make_request: Make, disk: PlayedDisk
) -> None:
    carried_to(world, ReleaseState.APPROVED, make_request(sample=400))
    disk.free = 2**20
    world.follow()
    assert not world.step()
    stored = world.driver.store.releases.release(ID)
    assert (stored.state, stored.spec) == (ReleaseState.APPROVED, None)
    assert "curator alice: this party's disk is full but for 1.0 MiB, and this takes" in stored.waiting_for
    disk.free = 2**30
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    disk.free = 2**20  # somebody else has filled it since
    world.follow()
    assert not world.step()
    assert world.announced == []
    assert (world.driver.ledger.is_reserved(ID), world.driver.ledger.is_charged(ID)) == (True, False)
    disk.free = 2**30
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))


def test_the_room_of_a_release_is_kept_until_its_columns_are_written(
    world: World, make_request: Make, disk: PlayedDisk
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    size = 2**20
    disk.free = size + size // RESERVE_PART + LEAST_RESERVE
    with pytest.raises(UnavailableError):
        world.driver._room.keep("another", size)
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))
    world.driver._room.keep("another", size)


def test_another_plan_ends_the_release_with_nothing_charged(world: World, make_request: Make, make_spec: Make) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    world.bob = replace(world.bob, spec_digest=make_spec(sample=399).digest(), reserved=True)
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert (world.driver.ledger.spent, world.driver.ledger.remaining) == (Decimal(0), Decimal(1))


def test_another_sample_ends_the_release_before_anything_is_encrypted(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()
    world.bob = replace(world.bob, sample_check=b"another")
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert not world.driver.encryption(ID).ciphertext("sex").exists()
    assert world.driver.store.connection.execute("SELECT count(*) FROM spent_key").fetchone()[0] == 0
    assert world.driver.ledger.spent == Decimal("0.1")


def test_a_budget_that_does_not_hold_it_denies_the_release(world: World, make_request: Make) -> None:
    world.driver.store.releases.add(make_request(epsilon=Decimal("1.1"), sample=400), 1)
    assert world.step()
    assert world.step()
    assert world.step()
    assert world.state() is ReleaseState.DENIED
    assert "of the budget of 1 there is 1.000000 left" in world.driver.store.releases.release(ID).failure
    assert world.driver.ledger.remaining == 1


def asked_under_another_file(world: World) -> None:
    """Let the study file have been exchanged at all parties since the request was made."""
    world.driver.store.connection.execute("UPDATE release SET study_digest = ?", ["0" * 64])


@pytest.mark.parametrize("state", [ReleaseState.REQUESTED, ReleaseState.APPROVED, ReleaseState.PLANNED])
def test_a_request_that_was_made_under_another_study_file_costs_nothing(
    world: World, make_request: Make, state: ReleaseState
) -> None:
    world.driver.store.releases.add(make_request(sample=400), 1, world.driver.study.digest)
    while world.state() is not state:
        world.step()
    asked_under_another_file(world)
    for _ in range(3):
        world.follow()
        world.step()
    stored = world.driver.store.releases.release(ID)
    assert (stored.state, world.driver.ledger.remaining) == (ReleaseState.FAILED, Decimal(1))
    assert stored.failure.startswith(f"release {ID}: the request was made under another study file")


def test_what_is_charged_goes_on_whatever_study_file_it_was_asked_under(world: World, make_request: Make) -> None:
    world.driver.store.releases.add(make_request(sample=400), 1, world.driver.study.digest)
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    asked_under_another_file(world)
    carried_to(world, ReleaseState.READY, make_request(sample=400))


def test_a_denial_elsewhere_denies_it_here(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.APPROVED, make_request())
    world.bob = replace(world.bob, granted=frozenset(), denied=frozenset({"salary"}))
    assert world.step()
    assert world.state() is ReleaseState.DENIED
    assert "denied: salary (by bob)" in world.driver.store.releases.release(ID).failure
    assert world.driver.ledger.remaining == 1


def test_what_is_held_waits_for_a_person(world: World, make_request: Make) -> None:
    world.driver.decisions.policy = Policy()
    world.driver.store.releases.add(make_request(), 1)
    assert not world.step()
    assert "a person decides about sex" in world.driver.store.releases.release(ID).waiting_for
    world.driver.store.decisions.decide(
        ID, (GrantDecision(attribute="sex", verdict=APPROVED, expires=None, decided_by="person"),)
    )
    assert world.step()
    assert world.state() is ReleaseState.APPROVED


def drive(world: World, release_id: str = ID) -> None:
    """Drive a release until it is over, or waits for a person."""
    driving = world.driver._drive(release_id, cast("Peers", world), cast("ServerLink", world))
    asyncio.run(asyncio.wait_for(driving, 20))


def held(world: World, *requests: Any) -> None:  # noqa: ANN401 - requests
    """Let alice hold some requests for a person."""
    world.driver.decisions.policy = Policy()
    for request in requests:
        world.driver.store.releases.add(request, 1)
        drive(world, request.release_id)


def test_what_is_held_is_planned_once_and_by_all_curators_alike(world: World, make_request: Make) -> None:
    held(world, make_request())
    for _ in range(3):
        drive(world)
    assert world.questions == ["plan", "charge", "card"]
    assert "a person decides about sex" in world.driver.store.releases.release(ID).waiting_for
    world.driver.store.decisions.decide(
        ID, (GrantDecision(attribute="sex", verdict=APPROVED, expires=None, decided_by="person"),)
    )
    assert world.step()
    assert world.step()
    assert world.state() is ReleaseState.PLANNED
    assert world.questions == ["plan", "charge", "card"]  # what was foreseen is what is granted


def test_what_is_held_and_cannot_be_planned_is_refused(world: World, make_request: Make) -> None:
    world.bob = replace(world.bob, state=ReleaseState.READY)  # it has no use for the seed
    held(world, make_request(scheme="wr", sample=1000, epsilon=Decimal("1e-10")))
    assert world.state() is ReleaseState.DENIED
    assert "the epsilon is too small for so many draws" in world.driver.store.releases.release(ID).failure


def test_what_is_held_and_the_budget_does_not_hold_is_refused(world: World, make_request: Make) -> None:
    world.bob = replace(world.bob, state=ReleaseState.READY)
    held(world, make_request(epsilon=Decimal("1.1")))
    assert world.state() is ReleaseState.DENIED
    assert "of the budget of 1 there is 1.000000 left" in world.driver.store.releases.release(ID).failure


async def run_for(world: World, rounds: int) -> None:
    """Run the driver until it has looked for releases so many times."""
    looked = 0
    unfinished = world.driver._unfinished

    def counted() -> tuple[str, ...]:
        nonlocal looked
        looked += 1
        return unfinished()

    async def idle(*_: object) -> None:
        await asyncio.sleep(1000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("veiltab.curator.release.driver.Peers", lambda *_: world)
        patch.setattr("veiltab.curator.release.driver.ServerLink", lambda *_: world)
        patch.setattr("veiltab.curator.release.driver._LOOK_AGAIN_SECONDS", 0.01)
        patch.setattr(world.driver.alignment, "run", idle)
        patch.setattr(world, "run", idle, raising=False)
        patch.setattr(world.driver, "_unfinished", counted)
        patch.setattr(world.driver, "_submitted", asyncio.Event())
        running = asyncio.create_task(world.driver.run(cast("Table", None)))
        async with asyncio.timeout(20):
            while looked < rounds:  # noqa: ASYNC110 - the looks are counted
                await asyncio.sleep(0.01)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def test_a_curator_at_work_erases_what_was_forgotten(world: World) -> None:
    store = world.driver.store
    store.coins.own_share("coin", b"a share to be forgotten, 32 bytes")
    store.coins.forget_coin("coin")
    asyncio.run(run_for(world, 3))
    assert not store.coins.has_traces


def test_requests_that_are_held_cost_an_idle_curator_nothing(world: World, make_request: Make) -> None:
    ids = [f"{number:032x}" for number in range(1, 33)]
    held(world, *(make_request(release_id=release_id) for release_id in ids))
    questions, looks = len(world.questions), world.looks
    assert questions == 32 + 1 + 32  # plans, the charge of the one kind that they are, and cards
    asyncio.run(run_for(world, 20))
    assert (len(world.questions), world.looks) == (questions, looks)
    world.driver.store.decisions.decide(
        ids[3], (GrantDecision(attribute="sex", verdict=DENIED, expires=None, decided_by="person"),)
    )
    asyncio.run(run_for(world, 20))
    assert world.looks > looks
    assert world.driver.store.releases.release(ids[3]).state is ReleaseState.DENIED
    assert len(world.questions) == questions


def test_what_is_held_is_followed_until_a_person_decides(world: World, make_request: Make) -> None:
    held(world, make_request())
    asyncio.run(run_for(world, 3))
    assert not world.forgotten
    deny(world.driver.store, ID)
    asyncio.run(run_for(world, 3))
    assert ID in world.forgotten


def test_a_held_request_expires_and_ends_where_it_ended_elsewhere(world: World, make_request: Make) -> None:
    other = "f" * 32
    held(world, make_request(), make_request(release_id=other, deadline=int(time.time()) + 2))
    world.bob = replace(world.bob, state=ReleaseState.DENIED, failure="why")
    asyncio.run(run_for(world, 20))
    stored = world.driver.store.releases.release(ID)
    assert (stored.state, stored.failure) == (ReleaseState.DENIED, "curator bob: why")
    assert world.driver.store.releases.release(other).state in {ReleaseState.DENIED, ReleaseState.EXPIRED}


def test_a_held_request_ends_once_the_budget_is_gone_and_is_not_planned_again(
    world: World, make_request: Make, make_spec: Make
) -> None:
    small, ledger = "f" * 32, world.driver.ledger
    held(world, make_request(), make_request(release_id=small, epsilon=Decimal("0.01")))
    world.bob = replace(world.bob, state=ReleaseState.READY)
    other = make_spec(release_id="e" * 32, epsilon=Decimal("0.95"))
    reserve(ledger, other)
    asyncio.run(run_for(world, 20))
    assert world.state() is ReleaseState.REQUESTED  # what is reserved may be given back
    ledger.charge(other.release_id)
    questions = len(world.questions)
    asyncio.run(run_for(world, 20))
    assert world.state() is ReleaseState.DENIED
    assert "of the budget of 1 there is 0.05" in world.driver.store.releases.release(ID).failure
    assert world.driver.store.releases.release(small).state is ReleaseState.REQUESTED
    assert len(world.questions) == questions


def test_no_person_is_asked_before_the_alignment_shows_whether_the_budget_holds_a_request(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def result() -> tuple[int, str]:
        raise NotReadyError("has not aligned its table yet")

    world.driver.decisions.policy = Policy()
    world.driver.store.releases.add(make_request(epsilon=Decimal(2)), 1)
    with monkeypatch.context() as early:
        early.setattr(world.driver.alignment, "result", result)
        assert not world.step()
    assert "not aligned" in world.driver.store.releases.release(ID).waiting_for
    assert world.step()
    assert world.state() is ReleaseState.DENIED  # the budget is 1
    assert not world.driver.store.decisions.decisions(ID)
    assert not world.driver.asks_a_person


def test_no_person_is_asked_before_every_curator_has_considered_the_request(world: World, make_request: Make) -> None:
    world.driver.decisions.policy = Policy()
    world.driver.store.releases.add(make_request(), 1)
    for bob in (replace(world.bob, considered=False), AWAY):
        world.is_bob_there = bob is not AWAY
        world.bob = bob if isinstance(bob, Progress) else world.bob
        assert not world.step()
        assert not asyncio.run(world.driver._waits_for_a_person(world.driver.store.releases.release(ID)))
    world.is_bob_there, world.bob = True, replace(world.bob, considered=True)
    drive(world)
    assert world.driver.asks_a_person == {ID}


def test_a_person_is_asked_no_more_once_another_curator_denies(world: World, make_request: Make) -> None:
    held(world, make_request())
    world.bob = replace(world.bob, state=ReleaseState.DENIED, failure="denied: salary (by bob)")
    asyncio.run(run_for(world, 3))
    stored = world.driver.store.releases.release(ID)
    assert (stored.state, stored.failure) == (ReleaseState.DENIED, "curator bob: denied: salary (by bob)")
    assert not world.driver.asks_a_person


@pytest.mark.parametrize(("epsilon", "attributes"), [("0.5", None), ("1.1", None), ("1.1", ("salary",))])
def test_a_request_that_no_budget_holds_is_refused_at_once_whoever_decides_about_it(
    world: World, make_request: Make, epsilon: str, attributes: tuple[str, ...] | None
) -> None:
    asked = {} if attributes is None else {"attributes": attributes}
    world.driver.store.releases.add(make_request(epsilon=Decimal(epsilon), **asked), 1)
    world.bob = replace(world.bob, considered=False, decided=False)
    world.step()
    assert world.state() is (ReleaseState.APPROVED if epsilon == "0.5" else ReleaseState.DENIED)


def test_what_a_person_denies_in_another_process_ends_at_once(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    world.bob = replace(world.bob, state=ReleaseState.UPLOADING)
    with closing(CuratorStore(world.driver._folder.parent / "curator.sqlite")) as elsewhere:
        assert world.driver.store.has_changed_elsewhere()
        assert not world.driver.store.has_changed_elsewhere()
        deny(elsewhere, ID)
        assert world.driver.store.has_changed_elsewhere()
    drive(world)
    assert world.state() is ReleaseState.DENIED
    assert not world.uploads


def test_so_many_requests_of_a_researcher_are_open_and_so_many_in_all(
    driver: CuratorDriver, make_request: Make
) -> None:
    digest, deadline = driver.study.digest, int(time.time()) + 1000

    def request(number: int, researcher: str) -> Any:  # noqa: ANN401 - a request
        return make_request(release_id=f"{number:032x}", researcher=researcher, deadline=deadline)

    for number in range(32):
        driver.propose(request(number, "rosa"), digest)
    with pytest.raises(DeniedError, match=r"32 requests of researcher rosa are open here.*Wait until some end"):
        driver.propose(request(99, "rosa"), digest)
    driver.propose(request(0, "rosa"), digest)  # it is known
    driver.propose(request(1000, "rita"), digest)
    driver.store.releases.set_state(f"{7:032x}", ReleaseState.EXPIRED)
    driver.propose(request(99, "rosa"), digest)
    for number in range(256 - 33):
        driver.store.releases.add(request(2000 + number, f"r{number}"), 1)
    with pytest.raises(DeniedError, match=r"256 requests are open here.*Ask again later"):
        driver.propose(request(98, "rita"), digest)


def test_after_its_deadline_a_release_expires_and_gives_back_what_it_kept(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    assert world.driver.ledger.remaining == Decimal("0.9")
    with monkeypatch.context() as later:
        later.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_000)
        assert not world.step()
        later.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_001)
        assert world.step()
    assert world.state() is ReleaseState.EXPIRED
    assert world.driver.ledger.remaining == 1


@pytest.mark.parametrize("pad", Pad)
def test_what_ends_a_release_takes_its_keys_and_ciphertexts(world: World, make_request: Make, pad: Pad) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400, pad=pad))
    encryption = world.driver.encryption(ID)
    assert encryption.ciphertext("sex").exists()
    assert encryption.pad_file("sex").exists() is (pad is Pad.OTP)
    world.bob = replace(world.bob, state=ReleaseState.FAILED, failure="why")
    assert world.step()
    assert (world.state(), world.driver.store.releases.release(ID).failure) == (ReleaseState.FAILED, "curator bob: why")
    assert not encryption.ciphertext("sex").exists()
    assert not encryption.pad_file("sex").exists()
    found = world.driver.store.pads.pad(ID, "sex")
    assert found is not None
    assert found[0] == b""


@pytest.mark.parametrize(
    ("refusal", "state", "waiting"),
    [
        (
            UnavailableError("no connection", where="server cloud"),
            ReleaseState.UPLOADING,
            "server cloud: no connection",
        ),
        (OSError(28, "No space left on device"), ReleaseState.UPLOADING, "disk: OSError (No space left on device)"),
        (IntegrityError("bad"), ReleaseState.FAILED, ""),
        (DeniedError("no"), ReleaseState.UPLOADING, "no"),
    ],
)
def test_what_may_heal_is_waited_for_and_the_rest_ends_the_release(
    world: World, make_request: Make, refusal: Exception, state: ReleaseState, waiting: str
) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))
    world.refusal = refusal
    assert world.step() is (not waiting)
    stored = world.driver.store.releases.release(ID)
    assert stored.state is state
    assert waiting in stored.waiting_for
    if waiting:
        world.refusal = None
        assert world.step()
        assert world.state() is ReleaseState.PERTURBING


def test_a_step_that_is_repeated_encrypts_the_same_bytes(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))
    before = world.driver.encryption(ID).ciphertext("sex").read_bytes()
    world.driver.store.connection.execute("UPDATE release SET state = 'charged'")
    assert world.step()
    assert world.driver.encryption(ID).ciphertext("sex").read_bytes() == before
    assert world.driver.store.connection.execute("SELECT count(*) FROM spent_key").fetchone()[0] == 2


def drawn_before_a_crash(world: World, request: Any) -> None:  # noqa: ANN401
    """Let alice draw, and forget the rows as a new process has."""
    carried_to(world, ReleaseState.CHARGED, request)
    world.follow()
    assert not world.step()
    world.driver._runs.clear()


@pytest.mark.parametrize("sampling", Sampling)
def test_a_sample_that_an_earlier_process_drew_is_drawn_again(
    world: World, make_request: Make, sampling: Sampling
) -> None:
    drawn_before_a_crash(world, make_request(sample=400, sampling=sampling))
    check = world.driver.store.releases.release(ID).sample_check
    world.follow()
    assert world.step()
    assert (world.state(), world.driver.store.releases.release(ID).sample_check) == (ReleaseState.UPLOADING, check)
    assert world.tosses == [f"release/{ID}"] * 2


def test_another_sample_than_before_the_crash_is_not_encrypted(world: World, make_request: Make) -> None:
    drawn_before_a_crash(world, make_request(sample=400))
    world.driver.store.releases.set_sample_check(ID, b"another", has_columns=True)
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert "drew another sample than before" in world.driver.store.releases.release(ID).failure
    assert not world.driver.encryption(ID).ciphertext("sex").exists()


@pytest.mark.parametrize("pad", Pad)
def test_a_look_at_a_release_that_is_over_takes_nothing_from_it(world: World, make_request: Make, pad: Pad) -> None:
    carried_to(world, ReleaseState.READY, make_request(sample=400, pad=pad))
    before = world.driver.store.pads.pad(ID, "sex")
    world.bob = replace(world.bob, state=ReleaseState.FAILED, failure="why")
    assert world.step()
    assert (world.state(), world.driver.store.pads.pad(ID, "sex")) == (ReleaseState.READY, before)
    assert world.driver.encryption(ID).pad_file("sex").exists() is (pad is Pad.OTP)


def test_explicit_indices_are_drawn_once_by_the_first_owner(world: World, make_request: Make, make_spec: Make) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400, sampling=Sampling.INDICES))
    world.follow()
    world.step()
    drawn = world.driver.sampler.indices_file(ID).read_bytes()
    spec = make_spec(sample=400, sampling=Sampling.INDICES)
    rows = checked_indices(world.driver.sampler._folder, drawn, spec)
    assert own_indices(world, spec) == rows.tolist()
    assert world.driver.sampler.indices_file(ID).read_bytes() == drawn


def own_indices(world: World, spec: TableSpec) -> list[int]:
    pieces = asyncio.run(world.driver.sampler._indices(spec, cast("Peers", world)))
    return [row for piece in pieces for row in piece.tolist()]


def test_explicit_indices_of_another_are_checked(world: World, make_spec: Make) -> None:
    spec = make_spec(sampling=Sampling.INDICES, sample=2, population=1000)
    spec = replace(spec, columns=spec.columns[::-1])
    world.drawn = as_bytes([1, 1])
    with pytest.raises(IntegrityError, match="not a sample without replacement"):
        own_indices(world, spec)
    world.driver.sampler.indices_file(ID).unlink()
    world.drawn = as_bytes([1, 7])
    assert own_indices(world, spec) == [1, 7]


def test_the_seed_is_forgotten_when_nobody_needs_it(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.READY, make_request(sample=400, sampling=Sampling.INDICES))
    coin = f"release/{ID}"
    world.driver.coins.share(coin)
    world.driver.store.coins.set_coin_value(coin, bytes(32))
    world.bob = replace(world.bob, state=ReleaseState.UPLOADING)
    assert world.driver.sampler.indices_file(ID).exists()
    asyncio.run(world.driver._tidy(ID, 2**31))
    assert world.driver.store.coins.own_share(coin, b"") == b""
    assert world.driver.store.coins.coin_value(coin) is None
    assert not world.driver.sampler.indices_file(ID).exists()


def test_the_seed_is_kept_while_another_may_still_need_it(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.READY, make_request(sample=400))
    share = world.driver.coins.share(f"release/{ID}")
    world.bob = replace(world.bob, state=ReleaseState.CHARGED)

    async def briefly() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await world.driver._tidy(ID, 2**31)

    asyncio.run(briefly())
    assert world.driver.store.coins.own_share(f"release/{ID}", b"") == share


# The test of the server

NOISY = {"sample": 400, "noise_split": Decimal("0.5"), "canaries": 1000, "epsilon": Decimal("0.9")}


def test_the_server_is_tested_once_it_has_published(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    encryption, store = world.driver.encryption(ID), world.driver.store
    world.follow()
    world.is_published = False
    assert not world.step()
    assert store.releases.release(ID).waiting_for == "server cloud: has not published the release yet"
    assert not world.keys
    assert encryption.canaries("sex").stat().st_size == 1000
    world.is_published = True
    assert not world.step()
    assert store.releases.release(ID).waiting_for == "curator bob: has not tested the server yet"
    with pytest.raises(NotReadyError, match="not every curator has tested the server yet"):
        world.driver.receipt(ID, "rosa")
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.READY
    assert world.keys == [places_key(store.pads.canary_key(ID))]
    assert not encryption.canaries("sex").exists()
    receipt = world.driver.receipt(ID, "rosa")
    assert [(one.tester, one.canaries, one.passed) for one in receipt.receipts] == [
        ("alice", 1000, True),
        ("", 1000, True),
    ]
    assert set(receipt.changes) == {"alice", "bob"}
    assert receipt.receipts[0].changes == hashlib.sha256(receipt.changes["alice"]).hexdigest()
    assert receipt.receipts[1].changes == lists_digest(receipt.changes)
    assert receipt.canary_key == store.pads.canary_key(ID)
    assert set(receipt.digests.columns) == {"sex", "salary"}


def test_a_server_that_says_at_once_what_it_published_is_tested_without_a_word_of_the_others(
    world: World, make_request: Make
) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(**NOISY))
    world.tells_at_once = True
    assert world.step()
    assert world.state() is ReleaseState.PERTURBING
    assert set(world.driver.store.tests.published_digests(ID)) == {"sex", "salary"}
    assert not world.keys
    assert not world.step()
    assert world.driver.store.releases.release(ID).waiting_for == "curator bob: has not tested the server yet"
    assert (len(world.keys), world.publications) == (1, 1)


def test_no_key_leaves_where_the_server_told_another_curator_otherwise(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    world.follow()
    assert not world.step()
    world.follow()
    told = PublicationDigests(columns={"sex": bytes(32), "salary": b"x" * 32})
    world.bob = replace(world.bob, publication=told.digest())
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert (
        "curators alice and bob heard of different publications from the server"
        in world.driver.store.releases.release(ID).failure
    )
    with pytest.raises(FailedReleaseError):
        world.driver.receipt(ID, "rosa")


def test_what_is_not_recorded_as_published_is_asked_for_before_the_test(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(**NOISY))
    world.tells_at_once = True

    @contextmanager
    def full(database: Database) -> Iterator[Database]:
        with transaction(database) as db:
            yield db
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("veiltab.curator.release.steps.transaction", full)
        assert not world.step()
    assert not world.driver.store.tests.published_digests(ID)
    world.tells_at_once = False
    assert world.step()
    world.follow()
    assert not world.step()
    assert set(world.driver.store.tests.published_digests(ID)) == {"sex", "salary"}
    assert (len(world.keys), world.publications) == (1, 2)


def test_one_s_own_decision_waits_for_no_other_curator(world: World, make_request: Make) -> None:
    driver = world.driver
    driver.store.releases.add(make_request(sample=400), 1)
    world.is_bob_there = False
    assert not world.step()
    assert driver.progress(ID).decided
    assert world.state() is ReleaseState.REQUESTED, "nothing is approved before all have shown the same request"
    world.is_bob_there = True
    assert world.step()
    assert world.state() is ReleaseState.APPROVED


def test_without_room_for_what_it_sends_the_server_is_not_asked_for_canaries(
    world: World, make_request: Make, disk: PlayedDisk
) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    disk.free = 2**20
    world.follow()
    assert not world.step()
    assert not world.keys
    assert "curator alice: this party's disk is full but for" in world.driver.store.releases.release(ID).waiting_for
    disk.free = 2**30
    assert not world.step()
    assert world.driver.progress(ID).tested
    disk.free = LEAST_RESERVE
    world.driver._room.keep("another", 0)


def test_a_server_that_fails_at_another_curator_gets_no_key_out_here(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    world.follow()
    assert not world.step()
    assert world.driver.progress(ID).tested
    world.bob = replace(world.bob, state=ReleaseState.FAILED, failure="server cloud: it did not add the noise")
    assert world.step()
    stored = world.driver.store.releases.release(ID)
    assert (stored.state, stored.failure) == (
        ReleaseState.FAILED,
        "curator bob: server cloud: it did not add the noise; the test of curator alice passed",
    )
    assert (world.driver.store.pads.pad(ID, "sex") or (b"?",))[0] == b""
    with pytest.raises(NotFoundError):
        world.driver.store.pads.canary_key(ID)


def test_the_canaries_are_erased_after_a_crash_between_the_receipt_and_that(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    world.follow()
    world.bob = replace(world.bob, tested=True)

    def crash(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(ColumnEncryption, "forget_canaries", crash)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert world.driver.encryption(ID).canaries("sex").exists()
    assert world.step()
    assert world.state() is ReleaseState.READY
    assert not world.driver.encryption(ID).canaries("sex").exists()
    assert len(world.keys) == 1


@pytest.mark.parametrize("pad", Pad)
def test_a_server_without_noise_ends_the_release_and_gets_no_key_out(
    world: World, make_request: Make, pad: Pad
) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY, pad=pad))
    world.follow()
    world.noise = 0.0
    assert world.step()
    stored = world.driver.store.releases.release(ID)
    assert stored.state is ReleaseState.FAILED
    assert stored.failure.startswith(
        "server cloud: it did not add the noise of the release: alice's columns fail: amount (all columns): 0 canaries"
    )
    assert stored.failure.endswith("; no key leaves")
    encryption = world.driver.encryption(ID)
    assert not encryption.canaries("sex").exists()
    assert not encryption.pad_file("sex").exists()
    assert (world.driver.store.pads.pad(ID, "sex") or (b"?",))[0] == b""
    with pytest.raises(NotFoundError):
        world.driver.store.pads.canary_key(ID)
    (receipt,) = world.driver.store.tests.receipts(ID)
    assert (receipt.tester, receipt.canaries, receipt.changed, receipt.passed) == ("alice", 1000, 0, False)
    assert not world.lists_asked


# The test of all columns together


def carried_beyond_own_tests(world: World, request: Any) -> None:  # noqa: ANN401
    """Let alice test her own columns, and bob his."""
    carried_to(world, ReleaseState.PERTURBING, request)
    world.follow()
    assert not world.step()
    assert [one.tester for one in world.driver.store.tests.receipts(ID)] == ["alice"]
    world.follow()


def check_ended_without_keys(world: World, words: str) -> None:
    stored = world.driver.store.releases.release(ID)
    assert (stored.state, words in stored.failure) == (ReleaseState.FAILED, True), stored.failure
    assert (world.driver.store.pads.pad(ID, "sex") or (b"?",))[0] == b""
    with pytest.raises(FailedReleaseError):
        world.driver.receipt(ID, "rosa")


@pytest.mark.parametrize("listed", [b"none", b"\xff" * 600, bytes(12)], ids=["bytes", "many", "no change"])
def test_a_curator_whose_list_is_none_ends_the_release_and_is_named(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, listed: bytes
) -> None:
    carried_beyond_own_tests(world, make_request(**NOISY))

    async def changes(*_: str) -> bytes:
        return listed

    monkeypatch.setattr(world, "changes", changes)
    assert world.step()
    check_ended_without_keys(world, "curator bob: its list of changed canaries is none of this release")
    assert [one.tester for one in world.driver.store.tests.receipts(ID)] == ["alice"]


def test_noise_that_is_right_in_each_column_but_not_in_both_ends_the_release(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_beyond_own_tests(world, make_request(**NOISY))
    monkeypatch.setattr(world, "replaced", lambda spec: ~World.replaced(world, spec))
    assert world.step()
    check_ended_without_keys(world, "it did not add the noise of the release: all columns together fail: ")
    assert [(one.tester, one.passed) for one in world.driver.store.tests.receipts(ID)] == [("alice", True), ("", False)]
    assert not world.driver.progress(ID).tested


@pytest.mark.parametrize("refusal", [AWAY, NotReadyError("has not tested the server yet", where="curator bob")])
def test_a_curator_that_cannot_show_its_list_yet_is_asked_again(
    world: World, make_request: Make, refusal: Exception
) -> None:
    carried_beyond_own_tests(world, make_request(**NOISY))
    world.bob_s_refusal = refusal
    assert not world.step()
    assert world.state() is ReleaseState.PERTURBING
    with pytest.raises(NotReadyError):
        world.driver.receipt(ID, "rosa")
    world.bob_s_refusal = None
    assert world.step()
    assert world.state() is ReleaseState.READY


def test_a_process_that_ends_between_the_tests_is_followed_by_one_that_goes_on(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_beyond_own_tests(world, make_request(**NOISY))
    driver = world.driver
    monkeypatch.setattr(driver, "server_check", ServerCheck("alice", driver.store))
    assert world.step()
    assert world.state() is ReleaseState.READY
    assert (len(world.keys), world.lists_asked) == (1, 1)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_what_a_crash_leaves_of_the_test_of_all_columns_is_gone_on_with(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, *, is_recorded: bool
) -> None:
    carried_beyond_own_tests(world, make_request(**NOISY))
    record = ServerTests.set_joint_receipt

    def crash(*given: Any) -> NoReturn:  # noqa: ANN401 - as for a store
        if is_recorded:
            record(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(ServerTests, "set_joint_receipt", crash)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert world.state() is ReleaseState.PERTURBING
    monkeypatch.setattr(world.driver, "server_check", ServerCheck("alice", world.driver.store))
    assert world.step()
    assert [one.tester for one in world.driver.store.tests.receipts(ID)] == ["alice", ""]
    assert world.state() is ReleaseState.READY


def test_the_list_of_changed_canaries_is_for_owners_once_the_server_has_passed(
    world: World, make_request: Make
) -> None:
    driver = world.driver
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    with pytest.raises(NotReadyError, match="has not tested the server yet"):
        driver.changes_of_canaries(ID, "bob")
    world.follow()
    assert not world.step()
    assert driver.changes_of_canaries(ID, "bob") == driver.store.tests.canary_changes(ID)["alice"]
    with pytest.raises(DeniedError, match="this is for those with columns in the release"):
        driver.changes_of_canaries(ID, "carol")
    world.follow()
    world.step()
    assert driver.changes_of_canaries(ID, "bob") == driver.store.tests.canary_changes(ID)["alice"]


def test_a_server_that_fails_gets_no_list_out(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    world.follow()
    world.noise = 0.0
    assert world.step()
    with pytest.raises(NotReadyError):
        world.driver.changes_of_canaries(ID, "bob")


def test_what_ends_a_release_before_the_test_takes_the_canaries(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    assert world.driver.encryption(ID).canaries("sex").exists()
    world.driver.store.releases.end(ID, ReleaseState.FAILED, "why")  # and here the process was killed
    assert world.driver.store.releases.unfinished() == (ID,)
    drive_to_the_end(world)
    assert not world.driver.encryption(ID).canaries("sex").exists()
    with pytest.raises(NotFoundError):
        world.driver.store.pads.canary_key(ID)
    assert world.driver.store.releases.unfinished() == ()


@pytest.mark.parametrize("step", ["record_publication", "set_receipt", "set_state"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_test_that_a_crash_cut_off_is_made_again_with_the_same_result(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, step: str, noise: float
) -> None:
    carried_to(world, ReleaseState.PERTURBING, make_request(**NOISY))
    world.follow()
    world.bob = replace(world.bob, tested=True)
    world.noise = noise
    with monkeypatch.context() as broken:
        if step == "set_state" and not noise:
            step = "end"

        def crash(*_: object, **__: object) -> NoReturn:
            raise KeyboardInterrupt

        store = world.driver.store
        broken.setattr(store.releases if step in {"set_state", "end"} else store.tests, step, crash)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert world.state() is ReleaseState.PERTURBING
    assert world.step()
    assert world.state() is (ReleaseState.READY if noise else ReleaseState.FAILED)
    assert len(set(world.keys)) == 1
    assert not world.driver.encryption(ID).canaries("sex").exists()


# What a crash or a person leaves behind


def drive_to_the_end(world: World) -> None:
    """Let the driver take up a release that is over here, and at bob."""
    world.bob = replace(world.bob, state=ReleaseState.FAILED)
    drive(world)


@pytest.mark.parametrize("pad", Pad)
def test_what_a_crash_left_of_a_release_that_ended_is_erased_at_the_next_look(
    world: World, make_request: Make, pad: Pad
) -> None:
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400, pad=pad))
    world.driver.store.releases.end(ID, ReleaseState.FAILED, "why")  # and here the process was killed
    assert world.driver.store.releases.unfinished() == (ID,)
    drive_to_the_end(world)
    encryption = world.driver.encryption(ID)
    assert not encryption.ciphertext("sex").exists()
    assert not encryption.pad_file("sex").exists()
    found = world.driver.store.pads.pad(ID, "sex")
    assert found is not None
    assert found[0] == b""
    assert world.driver.store.releases.unfinished() == ()


def test_an_end_gives_the_reservation_back_at_once(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    world.driver.store.releases.end(ID, ReleaseState.EXPIRED, "why")
    assert (world.driver.ledger.is_reserved(ID), world.driver.ledger.remaining) == (False, Decimal(1))


def test_what_a_person_denied_while_it_was_being_reserved_is_given_back(
    world: World, make_request: Make, make_spec: Make
) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    deny(world.driver.store, ID)
    reserve(world.driver.ledger, make_spec(sample=400))  # the driver was about to
    assert world.driver.store.releases.unfinished() == (ID,)
    drive_to_the_end(world)
    assert world.driver.ledger.remaining == 1
    assert world.driver.store.releases.unfinished() == ()


def test_what_is_reserved_for_another_release_is_waited_for_and_what_is_charged_is_not(
    world: World, make_request: Make, make_spec: Make
) -> None:
    other = make_spec(release_id="f" * 32, epsilon=Decimal("0.95"))
    reserve(world.driver.ledger, other)
    world.driver.store.releases.add(make_request(sample=400), 1)
    for _ in range(3):
        world.follow()
        world.step()
    assert world.state() is ReleaseState.PLANNED
    waiting = "curator alice: the rest of the budget is reserved for other releases"
    assert world.driver.store.releases.release(ID).waiting_for == waiting
    world.driver.ledger.charge(other.release_id)
    assert world.step()
    assert world.state() is ReleaseState.DENIED
    assert "of the budget of 1 there is 0.05" in world.driver.store.releases.release(ID).failure


def test_a_charge_and_the_commitment_to_a_share_of_the_coin_are_one_record(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    world.follow()
    driver, coin = world.driver, f"release/{ID}"
    with monkeypatch.context() as broken:

        def crash(*_: object) -> NoReturn:
            raise KeyboardInterrupt

        broken.setattr(driver.store.coins, "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert not driver.ledger.is_charged(ID)
    assert driver.store.coins.own_share(coin, b"") == b""  # none was kept
    assert not driver.progress(ID).commitment
    assert world.step()
    share = driver.store.coins.own_share(coin, b"")
    assert driver.progress(ID).commitment == commitment(coin, "alice", share)


def test_what_another_curator_committed_to_with_its_charge_goes_into_the_toss(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.bob = replace(world.bob, charged=True, commitment=b"c" * 32)
    world.step()
    assert world.shown == {"bob": b"c" * 32}


# A curator that withholds its part of the coin


def withheld(world: World, monkeypatch: pytest.MonkeyPatch, *, asks: bool = True) -> None:
    """Let bob commit, ask for alice's share if he asks for any, and never open his own."""

    async def toss(coin: str, _: Peers, _shown: Mapping[str, bytes]) -> bytes:
        coins = world.driver.coins
        coins.exchange_commitments(coin, "bob", bytes(32))
        if asks:
            coins.open_share(coin, "bob", transcript(world.driver.store.coins.commitments(coin)))
        raise NotReadyError("does not hold every commitment yet", where="curator bob")

    monkeypatch.setattr(world.driver.coins, "toss", toss)


def test_a_toss_that_hangs_is_logged_once_and_counted_when_the_release_ends(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()
    withheld(world, monkeypatch)
    assert not world.step()
    assert not caplog.records
    world.driver.store.connection.execute("UPDATE release SET since = since - 61")
    for _ in range(3):
        assert not world.step()
    (hangs,) = caplog.records
    assert (hangs.message, vars(hangs)["curator"]) == ("a toss of a charged release hangs", "bob")
    assert not world.driver.store.coins.aborted()
    monkeypatch.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_001)
    assert world.step()
    assert world.state() is ReleaseState.EXPIRED
    assert world.driver.store.coins.aborted() == {"bob": 1}
    assert world.driver.ledger.spent == Decimal("0.1")


def test_a_draw_that_waits_for_something_else_than_its_toss_is_not_logged_as_one_that_hangs(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()

    async def no_worker(*_: object) -> NoReturn:
        raise UnavailableError("the Dask scheduler has no worker", where="tls://scheduler:8786")

    world.driver.store.coins.set_opening_received(f"release/{ID}", "bob")
    monkeypatch.setattr(world.driver.coins, "awaited", lambda _coin: frozenset[str]())
    monkeypatch.setattr(world.driver.sampler, "draw", no_worker)
    world.driver.store.connection.execute("UPDATE release SET since = since - 61")
    assert not world.step()
    assert "has no worker" in world.driver.store.releases.release(ID).waiting_for
    assert not caplog.records


def test_a_toss_that_comes_to_its_end_is_not_counted(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()
    with monkeypatch.context() as patch:
        withheld(world, patch)
        assert not world.step()
    world.driver.store.coins.set_opening_received(f"release/{ID}", "bob")  # as a toss does at its end
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))
    assert not world.driver.coins.withheld(f"release/{ID}")


def test_a_curator_that_is_away_until_the_deadline_aborted_nothing(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()
    withheld(world, monkeypatch, asks=False)
    assert not world.step()
    monkeypatch.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_001)
    assert world.step()
    assert world.state() is ReleaseState.EXPIRED
    assert not world.driver.store.coins.aborted()


def test_another_process_counts_the_toss_that_a_curator_aborted(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()
    withheld(world, monkeypatch)
    assert not world.step()
    driver = world.driver
    folder = driver._folder.parent
    place = workplace(folder)
    again = CuratorDriver(driver._identity, driver.study, folder, driver.store, driver.ledger, APPROVE, place)
    again._end(driver.store.releases.release(ID), End(ReleaseState.EXPIRED, "the deadline passed"), 0.0)
    assert driver.store.coins.aborted() == {"bob": 1}


@pytest.mark.parametrize("ended", [{"sample_check": b"another"}, {"state": ReleaseState.FAILED, "failure": "why"}])
def test_a_curator_by_which_a_charged_release_ends_is_counted(
    world: World, make_request: Make, ended: dict[str, Any]
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    world.follow()
    assert not world.step()
    world.bob = replace(world.bob, **ended)
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert world.driver.store.coins.aborted() == {"bob": 1}


def test_nothing_is_paid_for_with_a_curator_that_aborts_tosses_until_a_person_clears_it(
    world: World, make_request: Make
) -> None:
    for number in range(2, 5):
        release_id = f"{number:032x}"
        world.driver.store.releases.add(make_request(release_id=release_id), 1)
        world.driver.store.coins.add_aborted(release_id, "bob")
    world.driver.store.releases.add(make_request(sample=400), 1)
    for _ in range(3):
        world.step()
    stored = world.driver.store.releases.release(ID)
    assert stored.state is ReleaseState.DENIED
    assert stored.failure.startswith(
        "curator bob: 3 releases that were charged ended without a result, as it withheld its part of the coin"
    )
    assert "`veiltab curator clear-tosses --peer bob`" in stored.failure
    assert world.driver.ledger.remaining == 1
    assert world.driver.store.coins.clear_aborted("bob", person="Ana Diaz") == 3
    another = make_request(release_id="f" * 32, sample=400)
    world.driver.store.releases.add(another, 1)
    spec = planned_release(
        plan_question(
            another,
            requested_columns(another, world.driver.study),
            world.driver.study,
            population=1000,
            alignment="ab" * 16,
        )
    )
    asyncio.run(world.driver._reserve(spec))
    assert world.driver.ledger.is_reserved("f" * 32)
