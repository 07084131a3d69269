"""What a crash, a failing power or a full disk leaves of a release."""

import hashlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.conftest import PlayedDisk
from tests.curator.driver_world import ALICE, APPROVE, ID, Make, World, carried_to, driver_fixture, world_fixture  # noqa: F401 - fixtures
from tests.curator.made_records import unsynced_statements
from tests.curator.made_rows import workplace
from tests.power import UNRAISABLE, FailingPower, Power, PowerFailure
from veiltab.common.errors import InvalidInputError, NotReadyError, TransferError, UnavailableError
from veiltab.common.observe.progress import Stage, Stages
from veiltab.common.release.modes import Pad
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART
from veiltab.common.storage.files import file_digest
from veiltab.common.study.file import Study
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.parts import Parts


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
    left = power.content_after_failure(driver.parts.store.connection)
    driver.parts.store.close()
    (tmp_path / "curator.sqlite").write_bytes(left)
    with closing(CuratorStore(tmp_path / "curator.sqlite")) as store:
        ledger = Ledger(store.connection, Decimal(1))
        place = workplace(tmp_path)
        again = CuratorDriver(Parts(ALICE, driver.parts.study, tmp_path, store, ledger, APPROVE, place))
        later = World(again, monkeypatch)
        later.bob, later.has_columns, later.sent = world.bob, bool(world.uploads), getattr(world, "sent", {})
        for _ in range(10):
            later.follow()
            later.step()
        assert (later.state(), store.releases.release(ID).failure) == (ReleaseState.READY, "")
        assert ledger.budget.spent == Decimal("0.1")
        assert len(world.uploads + later.uploads) == 1


def test_a_curator_without_columns_keeps_the_coin_through_a_failing_power_as_the_others_forget_it(
    world: World, make_request: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    power, driver, value = Power(monkeypatch), world.driver, bytes(range(32))

    async def toss(coin: str, *_: object) -> bytes:
        driver.parts.store.coins.set_coin_value(coin, value)
        return value

    monkeypatch.setattr(driver.parts.coins, "toss", toss)
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400, attributes=("salary",)))
    (tmp_path / "later.sqlite").write_bytes(power.content_after_failure(driver.parts.store.connection))
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


def fails(tmp_path: Path, study: Study, request: Any, at: int, seed: int) -> bool:  # noqa: ANN401 - of any kind
    """Let the power fail before a step of a release, and go on; return whether there was such a step."""

    def opened(folder: Path, patch: pytest.MonkeyPatch) -> World:
        store = CuratorStore(folder / "curator.sqlite")
        ledger = Ledger(store.connection, Decimal(1))
        return KnownServer(CuratorDriver(Parts(ALICE, study, folder, store, ledger, APPROVE, workplace(folder))), patch)

    (tmp_path / "first").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        world = opened(tmp_path / "first", patch)
        world.tells_at_once = at % 2 == 1
        world.parts.store.releases.add(request, 1)
        with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure):
            power = FailingPower(watching, tmp_path / "first", world.parts.store.connection, at=at, seed=seed)
            carried_to(world, ReleaseState.READY, request)
        power.close()
        world.parts.store.close()
    if power.left is None:
        return False
    power.restore(tmp_path / "later")
    with pytest.MonkeyPatch.context() as patch:
        later = opened(tmp_path / "later", patch)
        later.tells_at_once = world.tells_at_once
        with closing(later.driver.parts.store) as store:
            later.bob, later.has_columns, later.sent = world.bob, bool(world.uploads), getattr(world, "sent", {})
            for _ in range(12):
                later.follow()
                later.step()
            assert (later.state(), store.releases.release(ID).failure) == (ReleaseState.READY, "")
            assert later.driver.parts.ledger.budget.spent == Decimal("0.1")
            assert len(world.uploads + later.uploads) == 1
            assert len(set(map(bytes, world.keys + later.keys))) == 1
            known = store.keys.pad(ID, "sex")
            assert known is not None
            assert known[1] == hashlib.sha256(later.sent["sex"]).digest()
            if request.pad is Pad.OTP:
                assert file_digest(later.driver.parts.encryption(ID).pad_file("sex")) == known[0]
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

    world.parts.store.releases.add(make_request(sample=400), 1)
    while world.state() is not state:
        world.follow()
        before = world.parts.changes.version(ID)
        world.step()
    assert world.parts.changes.version(ID) == before
    if is_refused:
        monkeypatch.setattr(world.parts.ledger, "reserve", refused)
        world.refusal = NotReadyError("not now")
    for _ in range(2):  # what is uploaded is said with the test of the server
        world.step()
    assert world.parts.changes.version(ID) != before


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
    world.parts.stages = Stages(lambda: now[0])
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    said = list[str]()

    def waiting_for() -> str:
        world.driver._show_work()
        return world.parts.store.releases.release(ID).waiting_for

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
    world.parts.store.releases.set_planned(release_of(make_spec(sample=400, delta=Decimal("1e-6"))))
    world.bob = replace(world.bob, spec_digest=b"", reserved=False)
    forbid_accounting()
    assert not world.step()
    assert "has not planned the release yet" in world.parts.store.releases.release(ID).waiting_for
    world.answers.progress(ID)
    assert (
        world.parts.store.releases.releases()
        == world.parts.store.releases.latest(1)
        == (world.parts.store.releases.release(ID),)
    )


def test_nothing_is_charged_before_the_server_knows_the_release(world: World, make_request: Make) -> None:
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    world.follow()
    world.refusal = UnavailableError("no connection", where="server cloud")
    assert not world.step()
    assert world.parts.ledger.budget.spent == 0
    world.refusal = InvalidInputError("the release is of another study file than the server's")
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert (world.parts.ledger.budget.spent, world.parts.ledger.budget.remaining) == (Decimal(0), Decimal(1))


def test_without_room_for_its_columns_a_release_is_neither_planned_nor_charged(
    world: World, make_request: Make, disk: PlayedDisk
) -> None:
    carried_to(world, ReleaseState.APPROVED, make_request(sample=400))
    disk.free = 2**20
    world.follow()
    assert not world.step()
    stored = world.parts.store.releases.release(ID)
    assert (stored.state, stored.spec) == (ReleaseState.APPROVED, None)
    assert "curator alice: this party's disk is full but for 1.0 MiB, and this takes" in stored.waiting_for
    disk.free = 2**30
    carried_to(world, ReleaseState.PLANNED, make_request(sample=400))
    disk.free = 2**20  # somebody else has filled it since
    world.follow()
    assert not world.step()
    assert world.announced == []
    assert (world.parts.ledger.chain.is_reserved(ID), world.parts.ledger.chain.is_charged(ID)) == (True, False)
    disk.free = 2**30
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))


def test_the_room_of_a_release_is_kept_until_its_columns_are_written(
    world: World, make_request: Make, disk: PlayedDisk
) -> None:
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400))
    size = 2**20
    disk.free = size + size // RESERVE_PART + LEAST_RESERVE
    with pytest.raises(UnavailableError):
        world.parts.room.keep("another", size)
    carried_to(world, ReleaseState.UPLOADING, make_request(sample=400))
    world.parts.room.keep("another", size)
