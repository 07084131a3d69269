"""What a crash, a failing power or a full disk leaves of a release."""

import hashlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest

from tests.conftest import PlayedDisk, request_with, spec_with
from tests.curator.driver_world import (  # noqa: F401 - fixtures
    ID,
    World,
    carried_to,
    driver_fixture,
    opened_world,
    world_fixture,
)
from tests.curator.made_records import unsynced_statements
from tests.power import UNRAISABLE, FailingPower, Power, PowerFailure
from veiltab.common.errors import InvalidInputError, NotReadyError, TransferError, UnavailableError
from veiltab.common.observe.progress import Stages
from veiltab.common.release.modes import Pad
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART
from veiltab.common.storage.files import file_digest
from veiltab.common.study.file import Study
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.records.store import CuratorStore


def test_what_a_failing_power_may_undo_is_what_is_reached_again(world: World) -> None:
    unsynced = unsynced_statements(world.patch)
    carried_to(world, ReleaseState.READY)
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


def goes_on(world: World, later: World) -> None:
    """Let the curator of another process end the release of one whose power failed."""
    later.bob, later.has_columns, later.sent = world.bob, bool(world.uploads), world.sent
    later.tells_at_once = world.tells_at_once
    for _ in range(12):
        later.follow()
        later.step()
    assert (later.state(), later.stored.failure) == (ReleaseState.READY, "")
    assert later.ledger.budget.spent == Decimal("0.1")
    assert len(world.uploads + later.uploads) == 1
    assert len(set(map(bytes, world.keys + later.keys))) == 1
    known = later.store.keys.pad(ID, "sex")
    assert known is not None
    assert known[1] == hashlib.sha256(later.sent["sex"]).digest()
    if later.stored.request.pad is Pad.OTP:
        assert file_digest(later.curator.encryption(ID).pad_file("sex")) == known[0]


@pytest.mark.parametrize(
    "state", [ReleaseState.CHARGED, ReleaseState.UPLOADING, ReleaseState.PERTURBING, ReleaseState.READY]
)
def test_a_charged_release_outlives_a_failing_power(world: World, tmp_path: Path, state: ReleaseState) -> None:
    """Files that were deleted stay so, while the records since the last that waited for the disk are gone."""
    power = Power(world.patch)
    carried_to(world, state)
    left = power.content_after_failure(world.store.connection)
    world.store.close()
    (tmp_path / "curator.sqlite").write_bytes(left)
    later = opened_world(tmp_path, world.curator.study, world.patch)
    with closing(later.store):
        goes_on(world, later)


def test_a_curator_without_columns_keeps_the_coin_through_a_failing_power_as_the_others_forget_it(
    world: World, tmp_path: Path
) -> None:
    power, value = Power(world.patch), bytes(range(32))

    async def toss(coin: str, *_: object) -> bytes:
        world.store.coins.set_coin_value(coin, value)
        return value

    world.patch.setattr(world.curator.coins, "toss", toss)
    carried_to(world, ReleaseState.UPLOADING, request_with(sample=400, attributes=("salary",)))
    (tmp_path / "later.sqlite").write_bytes(power.content_after_failure(world.store.connection))
    with closing(CuratorStore(tmp_path / "later.sqlite")) as store:
        assert store.releases.release(ID).state is ReleaseState.CHARGED
        assert store.coins.coin_value(f"release/{ID}") == value


def fails(tmp_path: Path, study: Study, request: ReleaseRequest, at: int, seed: int) -> bool:
    """Let the power fail before a step of a release, and go on; return whether there was such a step."""
    (tmp_path / "first").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        world = opened_world(tmp_path / "first", study, patch)
        world.tells_at_once = at % 2 == 1
        world.ask(request)
        with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure):
            power = FailingPower(watching, tmp_path / "first", world.store.connection, at=at, seed=seed)
            carried_to(world, ReleaseState.READY, request)
        power.close()
        world.store.close()
    if power.left is None:
        return False
    power.restore(tmp_path / "later")
    with pytest.MonkeyPatch.context() as patch:
        later = opened_world(tmp_path / "later", study, patch)
        with closing(later.store):
            goes_on(world, later)
    return True


@pytest.mark.parametrize("at", [9, 15, 21, 27])
@pytest.mark.filterwarnings(UNRAISABLE)
def test_a_release_outlives_a_power_that_fails(tmp_path: Path, study: Study, at: int) -> None:
    assert fails(tmp_path, study, request_with(sample=400), at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings(UNRAISABLE)
def test_a_release_outlives_a_power_that_fails_at_any_step(tmp_path: Path, study: Study, pad: Pad, seed: int) -> None:
    at = 0
    while fails(tmp_path / str(at), study, request_with(sample=400, pad=pad), at, 1000 * seed + at):
        at += 1
    assert at > 27


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("state", [ReleaseState.PLANNED, ReleaseState.UPLOADING])
def test_a_step_that_another_follows_is_said_with_it_or_when_it_has_to_wait(
    world: World, state: ReleaseState, *, is_refused: bool
) -> None:
    world.ask(request_with(sample=400))
    while world.state() is not state:
        world.follow()
        before = world.curator.changes.version(ID)
        world.step()
    assert world.curator.changes.version(ID) == before
    if is_refused:
        world.patch.setattr(world.ledger, "reserve", Mock(side_effect=NotReadyError("not now")))
        world.refusal = NotReadyError("not now")
    for _ in range(2):  # what is uploaded is said with the test of the server
        world.step()
    assert world.curator.changes.version(ID) != before


@pytest.mark.parametrize("error", [TransferError("a file was altered", where="disk"), OSError(28, "No space left")])
def test_a_sample_whose_files_are_damaged_is_drawn_again(world: World, error: Exception) -> None:
    """What is damaged before the encryption costs no charged release."""
    encrypt, errors = ColumnEncryption.encrypt, [error]

    def encrypt_once_in_vain(*args: Any) -> None:  # noqa: ANN401 - those of the method
        if errors:
            raise errors.pop()
        encrypt(*args)

    world.patch.setattr(ColumnEncryption, "encrypt", encrypt_once_in_vain)
    carried_to(world, ReleaseState.READY)
    assert not errors
    assert len(world.tosses) == 2


def test_a_release_says_what_is_done_for_it_instead_of_what_it_waited_for(world: World) -> None:
    now = [100.0]
    world.curator.stages = Stages(lambda: now[0])
    carried_to(world, ReleaseState.CHARGED)
    said = list[str]()

    def waiting_for() -> str:
        world.driver._show_work()
        return world.stored.waiting_for

    def encrypt_in_vain(*_: object) -> NoReturn:
        said.append(waiting_for())
        now[0] += 1
        said.append(waiting_for())
        raise UnavailableError("not now")

    world.patch.setattr(ColumnEncryption, "encrypt", encrypt_in_vain)
    world.follow()
    for _ in range(3):
        assert not world.step()
        world.follow()
        said.append(waiting_for())
    bob, encrypting = "curator bob: has not drawn the sample yet", "encrypting columns: 0 %"
    assert said == [bob, bob, encrypting, "not now", "not now", encrypting, "not now"]


def test_the_same_wait_is_recorded_in_each_state(world: World) -> None:
    carried_to(world, ReleaseState.UPLOADING)
    for state in (ReleaseState.UPLOADING, ReleaseState.PERTURBING):
        world.follow()
        world.refusal = UnavailableError("not now")
        assert not world.step()
        assert (world.stored.state, world.stored.waiting_for) == (state, "not now")
        world.refusal, world.bob = None, replace(world.bob, tested=True)
        assert world.step()


def test_a_look_at_a_release_works_out_no_guarantee(world: World, forbid_accounting: Callable[[], None]) -> None:
    carried_to(world, ReleaseState.PLANNED, request_with(sample=400, delta=Decimal("1e-6")))
    world.store.releases.set_planned(release_of(spec_with(sample=400, delta=Decimal("1e-6"))))
    world.bob = replace(world.bob, spec_digest=b"", reserved=False)
    forbid_accounting()
    assert not world.step()
    assert "has not planned the release yet" in world.stored.waiting_for
    world.answers.progress(ID, "bob")
    assert world.store.releases.releases() == world.store.releases.latest(1) == (world.stored,)


def test_nothing_is_charged_before_the_server_knows_the_release(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    world.follow()
    world.refusal = UnavailableError("no connection", where="server cloud")
    assert not world.step()
    assert world.ledger.budget.spent == 0
    world.refusal = InvalidInputError("the release is of another study file than the server's")
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert (world.ledger.budget.spent, world.ledger.budget.remaining) == (Decimal(0), Decimal(1))


def test_without_room_for_its_columns_a_release_is_neither_planned_nor_charged(world: World, disk: PlayedDisk) -> None:
    carried_to(world, ReleaseState.APPROVED)
    disk.free = 2**20
    world.follow()
    assert not world.step()
    stored = world.stored
    assert (stored.state, stored.spec) == (ReleaseState.APPROVED, None)
    assert "curator alice: this party's disk is full but for 1.0 MiB, and this takes" in stored.waiting_for
    disk.free = 2**30
    carried_to(world, ReleaseState.PLANNED)
    disk.free = 2**20  # somebody else has filled it since
    world.follow()
    assert not world.step()
    assert world.announced == []
    assert world.ledger.chain.standing(ID) == (True, False)
    disk.free = 2**30
    carried_to(world, ReleaseState.UPLOADING)


def test_the_room_of_a_release_is_kept_until_its_columns_are_written(world: World, disk: PlayedDisk) -> None:
    carried_to(world, ReleaseState.CHARGED)
    size = 2**20
    disk.free = size + size // RESERVE_PART + LEAST_RESERVE
    with pytest.raises(UnavailableError):
        world.curator.room.keep("another", size)
    carried_to(world, ReleaseState.UPLOADING)
    world.curator.room.keep("another", size)
