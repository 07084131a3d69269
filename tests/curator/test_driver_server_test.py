"""A driver lets the server be tested before any key leaves."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn

import pytest

from tests.conftest import PlayedDisk, refuses, request_with, reserve, spec_with
from tests.curator.driver_world import AWAY, ID, World, carried_to, drive, driver_fixture, world_fixture  # noqa: F401 - fixtures
from tests.curator.made_records import deny
from veiltab.common.core.canaries import places_key
from veiltab.common.errors import DeniedError, FailedReleaseError, NotFoundError, NotReadyError
from veiltab.common.release.modes import Pad
from veiltab.common.release.receipts.canary_changes import lists_digest
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import Database, transaction
from veiltab.common.storage.disk import LEAST_RESERVE
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.records.server_tests import ServerTests
from veiltab.curator.release.server_check import ServerCheck

NOISY = {"sample": 400, "noise_split": Decimal("0.5"), "canaries": 1000, "epsilon": Decimal("0.9")}


def test_the_server_is_tested_once_it_has_published(world: World) -> None:
    carried_to(world, ReleaseState.PERTURBING, request_with(**NOISY))
    encryption, store = world.curator.encryption(ID), world.store
    world.follow()
    world.is_published = False
    assert not world.step()
    assert store.releases.release(ID).waiting_for == "server cloud: has not published the release yet"
    assert not world.keys
    assert encryption.ciphertext("sex").exists()
    world.is_published = True
    assert not world.step()
    assert store.releases.release(ID).waiting_for == "curator bob: has not tested the server yet"
    with refuses(NotReadyError, where="attribute sex"):
        world.answers.receipt(ID, "rosa")
    world.follow()
    world.bob = replace(world.bob, changes=asyncio.run(world.changes("bob", ID)))
    assert (world.step(), world.state(), world.lists_asked) == (True, ReleaseState.READY, 1), "his list was said"
    assert world.keys == [places_key(store.keys.canary_key(ID))]
    assert not encryption.ciphertext("sex").exists()
    assert [list(columns) for columns in world.uploads] == [["sex"]]
    assert world.stored.bytes_uploaded == len(world.sent["sex"])
    receipt = world.answers.receipt(ID, "rosa")
    assert [(one.tester, one.canaries, one.passed) for one in receipt.receipts] == [
        ("alice", 1000, True),
        ("", 1000, True),
    ]
    assert set(receipt.changes) == {"alice", "bob"}
    assert receipt.receipts[0].changes == hashlib.sha256(receipt.changes["alice"]).hexdigest()
    assert receipt.receipts[1].changes == lists_digest(receipt.changes)
    assert receipt.canary_key == store.keys.canary_key(ID)
    assert set(receipt.digests.columns) == {"sex", "salary"}


def test_a_server_that_says_at_once_what_it_published_is_tested_without_a_word_of_the_others(world: World) -> None:
    carried_to(world, ReleaseState.UPLOADING, request_with(**NOISY))
    world.tells_at_once = True
    assert world.step()
    assert world.state() is ReleaseState.PERTURBING
    assert set(world.store.tests.publication(ID).columns) == {"sex", "salary"}
    assert not world.keys
    assert not world.step()
    assert world.stored.waiting_for == "curator bob: has not tested the server yet"
    assert (len(world.keys), world.publications) == (1, 1)


def test_what_is_not_recorded_as_published_is_asked_for_before_the_test(world: World) -> None:
    carried_to(world, ReleaseState.UPLOADING, request_with(**NOISY))
    world.tells_at_once = True

    @contextmanager
    def full(database: Database) -> Iterator[Database]:
        with transaction(database) as db:
            yield db
            raise OSError(28, "No space left on device")

    with world.patch.context() as patched:
        patched.setattr("veiltab.curator.release.step_executor.transaction", full)
        assert not world.step()
    assert not world.store.tests.publication(ID).columns
    world.tells_at_once = False
    assert world.step()
    world.follow()
    assert not world.step()
    assert set(world.store.tests.publication(ID).columns) == {"sex", "salary"}
    assert (len(world.keys), world.publications) == (1, 2)


def test_one_s_own_decision_waits_for_no_other_curator(world: World) -> None:
    driver = world.driver
    driver.curator.store.releases.add(request_with(sample=400), 1)
    world.is_bob_there = False
    assert not world.step()
    assert world.answers.progress(ID, "bob").decided
    assert world.state() is ReleaseState.REQUESTED, "nothing is approved before all have shown the same request"
    world.is_bob_there = True
    assert world.step()
    assert world.state() is ReleaseState.APPROVED


def test_without_room_for_what_it_sends_the_server_is_not_asked_for_canaries(world: World, disk: PlayedDisk) -> None:
    carried_to(world, ReleaseState.PERTURBING, request_with(**NOISY))
    disk.free = 2**20
    world.follow()
    assert not world.step()
    assert not world.keys
    assert "curator alice: this party's disk is full but for" in world.stored.waiting_for
    disk.free = 2**30
    assert not world.step()
    assert world.answers.progress(ID, "bob").tested
    disk.free = LEAST_RESERVE
    world.curator.room.keep("another", 0)


def check_no_key(world: World) -> None:
    assert (world.store.keys.pad(ID, "sex") or (b"?",))[0] == b""
    with pytest.raises(NotFoundError):
        world.store.keys.canary_key(ID)


@pytest.mark.parametrize("pad", Pad)
def test_a_server_without_noise_ends_the_release_and_gets_no_key_out(world: World, pad: Pad) -> None:
    carried_to(world, ReleaseState.PERTURBING, request_with(**NOISY, pad=pad))
    world.follow()
    world.noise = 0.0
    assert world.step()
    stored = world.stored
    assert stored.state is ReleaseState.FAILED
    assert stored.failure.startswith(
        "server cloud: it did not add the noise of the release: alice's columns fail: amount (all columns): 0 canaries"
    )
    assert stored.failure.endswith("; no key leaves")
    encryption = world.curator.encryption(ID)
    assert not encryption.ciphertext("sex").exists()
    assert not encryption.pad_file("sex").exists()
    check_no_key(world)
    (receipt,) = world.store.tests.receipts(ID)
    assert (receipt.tester, receipt.canaries, receipt.changed, receipt.passed) == ("alice", 1000, 0, False)
    assert not world.lists_asked
    with pytest.raises(NotReadyError):
        world.answers.changes_of_canaries(ID, "bob")


def carried_beyond_own_tests(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    """Let alice test her own columns, and bob his."""
    carried_to(world, ReleaseState.PERTURBING, request)
    world.follow()
    assert not world.step()
    assert [one.tester for one in world.store.tests.receipts(ID)] == ["alice"]
    world.follow()


def check_ended_without_keys(world: World, words: str) -> None:
    assert (world.state(), words in world.stored.failure) == (ReleaseState.FAILED, True), world.stored.failure
    check_no_key(world)
    with pytest.raises(FailedReleaseError):
        world.answers.receipt(ID, "rosa")


@pytest.mark.parametrize("listed", [b"none", b"\xff" * 600, bytes(12)], ids=["bytes", "many", "no change"])
def test_a_curator_whose_list_is_none_ends_the_release_and_is_named(world: World, listed: bytes) -> None:
    carried_beyond_own_tests(world, request_with(**NOISY))

    async def changes(*_: str) -> bytes:
        return listed

    world.patch.setattr(world, "changes", changes)
    assert world.step()
    check_ended_without_keys(world, "curator bob: its list of changed canaries is not one of this release")
    assert [one.tester for one in world.store.tests.receipts(ID)] == ["alice"]


def test_noise_that_is_right_in_each_column_but_not_in_both_ends_the_release(world: World) -> None:
    carried_beyond_own_tests(world, request_with(**NOISY))
    world.patch.setattr(world, "replaced", lambda spec: ~World.replaced(world, spec))
    assert world.step()
    check_ended_without_keys(world, "it did not add the noise of the release: all columns together fail: ")
    assert [(one.tester, one.passed) for one in world.store.tests.receipts(ID)] == [("alice", True), ("", False)]
    assert not world.answers.progress(ID, "bob").tested


@pytest.mark.parametrize("refusal", [AWAY, NotReadyError("has not tested the server yet", where="curator bob")])
def test_a_curator_that_cannot_show_its_list_yet_is_asked_again(world: World, refusal: Exception) -> None:
    carried_beyond_own_tests(world, request_with(**NOISY))
    world.bob_s_refusal = refusal
    assert not world.step()
    assert world.state() is ReleaseState.PERTURBING
    with pytest.raises(NotReadyError):
        world.answers.receipt(ID, "rosa")
    world.bob_s_refusal = None
    assert world.step()
    assert world.state() is ReleaseState.READY


@pytest.mark.parametrize("is_recorded", [False, True])
def test_what_a_crash_leaves_of_the_test_of_all_columns_is_gone_on_with(world: World, *, is_recorded: bool) -> None:
    carried_beyond_own_tests(world, request_with(**NOISY))
    record = ServerTests.set_joint_receipt

    def crash(*given: Any) -> NoReturn:  # noqa: ANN401 - as for a store
        if is_recorded:
            record(*given)
        raise KeyboardInterrupt

    with world.patch.context() as broken:
        broken.setattr(ServerTests, "set_joint_receipt", crash)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert world.state() is ReleaseState.PERTURBING
    world.patch.setattr(world.curator, "server_check", ServerCheck("alice", world.store))
    assert world.step()
    assert [one.tester for one in world.store.tests.receipts(ID)] == ["alice", ""]
    assert world.state() is ReleaseState.READY


def test_the_list_of_changed_canaries_is_for_owners_once_the_server_has_passed(world: World) -> None:
    driver = world.driver
    carried_to(world, ReleaseState.PERTURBING, request_with(**NOISY))
    with refuses(NotReadyError, where="curator alice"):
        world.answers.changes_of_canaries(ID, "bob")
    world.follow()
    assert not world.step()
    assert world.answers.changes_of_canaries(ID, "bob") == driver.curator.store.tests.canary_changes(ID)["alice"]
    with refuses(DeniedError, where="curator carol"):
        world.answers.changes_of_canaries(ID, "carol")
    world.follow()
    world.step()
    assert world.answers.changes_of_canaries(ID, "bob") == driver.curator.store.tests.canary_changes(ID)["alice"]


def crash(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["record_publication", "set_receipt", "forget_ciphertext", "set_state"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_test_that_a_crash_cut_off_is_made_again_with_the_same_result(world: World, step: str, noise: float) -> None:
    carried_to(world, ReleaseState.PERTURBING, request_with(**NOISY))
    world.follow()
    world.bob = replace(world.bob, tested=True)
    world.noise = noise
    owners = {"forget_ciphertext": ColumnEncryption, "set_state": world.store.releases, "end": world.store.releases}
    with world.patch.context() as broken:
        if not noise:
            step = {"forget_ciphertext": "set_receipt", "set_state": "end"}.get(step, step)
        broken.setattr(owners.get(step, world.store.tests), step, crash)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert world.state() is ReleaseState.PERTURBING
    assert world.step()
    assert world.state() is (ReleaseState.READY if noise else ReleaseState.FAILED)
    assert len(set(world.keys)) == 1
    assert not world.curator.encryption(ID).ciphertext("sex").exists()


def drive_to_the_end(world: World) -> None:
    """Let the driver take up a release that is over here, and at bob."""
    world.bob = replace(world.bob, state=ReleaseState.FAILED)
    drive(world)


@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize("state", [ReleaseState.UPLOADING, ReleaseState.PERTURBING])
def test_what_a_crash_left_of_an_ended_release_is_erased_later(world: World, state: ReleaseState, pad: Pad) -> None:
    carried_to(world, state, request_with(**NOISY, pad=pad))
    encryption = world.curator.encryption(ID)
    assert encryption.ciphertext("sex").exists()
    world.store.releases.end(ID, ReleaseState.FAILED, "why")  # and here the process was killed
    assert world.store.releases.unfinished() == (ID,)
    drive_to_the_end(world)
    for path in (encryption.ciphertext("sex"), encryption.pad_file("sex")):
        assert not path.exists()
    check_no_key(world)
    assert world.store.releases.unfinished() == ()


def test_an_end_gives_the_reservation_back_at_once(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    world.store.releases.end(ID, ReleaseState.EXPIRED, "why")
    assert (world.ledger.chain.standing(ID)[0], world.ledger.budget.remaining) == (False, Decimal(1))


def test_what_a_person_denied_while_it_was_being_reserved_is_given_back(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    deny(world.store, ID)
    reserve(world.ledger, spec_with(sample=400))  # the driver was about to
    assert world.store.releases.unfinished() == (ID,)
    drive_to_the_end(world)
    assert world.ledger.budget.remaining == 1
    assert world.store.releases.unfinished() == ()


def test_what_is_reserved_for_another_release_is_waited_for_and_what_is_charged_is_not(world: World) -> None:
    other = spec_with(release_id="f" * 32, epsilon=Decimal("0.95"))
    reserve(world.ledger, other)
    world.ask(request_with(sample=400))
    for _ in range(3):
        world.follow()
        world.step()
    assert world.state() is ReleaseState.PLANNED
    waiting = "curator alice: the rest of the budget is reserved for other releases"
    assert world.stored.waiting_for == waiting
    world.ledger.charge(other.release_id)
    assert world.step()
    assert world.state() is ReleaseState.DENIED
    assert "of the budget of 1 there is 0.05" in world.stored.failure
