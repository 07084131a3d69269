"""What ends a release, and what is erased with it."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import pytest

from tests.conftest import refuses, request_with, spec_with
from tests.curator.driver_world import (  # noqa: F401 - fixtures
    ID,
    World,
    as_bytes,
    carried_to,
    checked_indices,
    driver_fixture,
    world_fixture,
)
from veiltab.common.errors import DeniedError, IntegrityError, NotFoundError, UnavailableError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.peers.calls import Peers
from veiltab.curator.progress.release_record import KEYS_LAST


def test_after_its_deadline_a_release_expires_and_gives_back_what_it_kept(world: World) -> None:
    carried_to(world, ReleaseState.PLANNED)
    assert world.ledger.budget.remaining == Decimal("0.9")
    with world.patch.context() as later:
        later.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_000)
        assert not world.step()
        later.setattr("veiltab.curator.release.driver.time.time", lambda: 2_000_000_001)
        assert world.step()
    assert world.state() is ReleaseState.EXPIRED
    assert world.ledger.budget.remaining == 1


@pytest.mark.parametrize("pad", Pad)
def test_what_ends_a_release_takes_its_keys_and_ciphertexts(world: World, pad: Pad) -> None:
    carried_to(world, ReleaseState.UPLOADING, request_with(sample=400, pad=pad))
    encryption = world.curator.encryption(ID)
    assert encryption.ciphertext("sex").exists()
    assert encryption.pad_file("sex").exists() is (pad is Pad.OTP)
    world.bob = replace(world.bob, state=ReleaseState.FAILED, failure="why")
    assert world.step()
    assert (world.state(), world.stored.failure) == (ReleaseState.FAILED, "curator bob: why")
    assert not encryption.ciphertext("sex").exists()
    assert not encryption.pad_file("sex").exists()
    found = world.store.keys.pad(ID, "sex")
    assert found is not None
    assert found[0] == b""


@pytest.mark.parametrize(
    ("refusal", "waiting"),
    [
        (UnavailableError("no connection", where="server cloud"), "server cloud: no connection"),
        (OSError(28, "No space left on device"), "disk: OSError (No space left on device)"),
        (IntegrityError("bad"), ""),
        (DeniedError("no"), "no"),
    ],
)
def test_what_may_heal_is_waited_for_and_the_rest_ends_the_release(
    world: World, refusal: Exception, waiting: str
) -> None:
    carried_to(world, ReleaseState.UPLOADING)
    world.refusal = refusal
    assert world.step() is (not waiting)
    assert world.state() is (ReleaseState.UPLOADING if waiting else ReleaseState.FAILED)
    assert waiting in world.stored.waiting_for
    if waiting:
        world.refusal = None
        assert world.step()
        assert world.state() is ReleaseState.PERTURBING


def drawn_before_a_crash(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    """Let alice draw, and forget the rows as a new process has."""
    carried_to(world, ReleaseState.CHARGED, request)
    world.follow()
    assert not world.step()
    world.curator.runs.clear()


@pytest.mark.parametrize("sampling", Sampling)
def test_a_sample_that_an_earlier_process_drew_is_drawn_again(world: World, sampling: Sampling) -> None:
    drawn_before_a_crash(world, request_with(sample=400, sampling=sampling))
    check = world.stored.sample_check
    world.follow()
    assert world.step()
    assert (world.state(), world.stored.sample_check) == (ReleaseState.UPLOADING, check)
    assert world.tosses == [f"release/{ID}"] * 2


def test_another_sample_than_before_the_crash_is_not_encrypted(world: World) -> None:
    drawn_before_a_crash(world, request_with(sample=400))
    world.store.releases.set_sample_check(ID, b"another", has_columns=True)
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.FAILED
    assert "drew another sample than before" in world.stored.failure
    assert not world.curator.encryption(ID).ciphertext("sex").exists()


@pytest.mark.parametrize("pad", Pad)
def test_a_look_at_a_release_that_is_over_takes_nothing_from_it(world: World, pad: Pad) -> None:
    carried_to(world, ReleaseState.READY, request_with(sample=400, pad=pad))
    before = world.store.keys.pad(ID, "sex")
    world.bob = replace(world.bob, state=ReleaseState.FAILED, failure="why")
    assert world.step()
    assert (world.state(), world.store.keys.pad(ID, "sex")) == (ReleaseState.READY, before)
    assert world.curator.encryption(ID).pad_file("sex").exists() is (pad is Pad.OTP)


@pytest.mark.parametrize("pad", Pad)
def test_keys_are_erased_once_nobody_may_have_them(world: World, pad: Pad) -> None:
    carried_to(world, ReleaseState.READY, request_with(sample=400, pad=pad))
    ends = world.stored.since + KEYS_LAST
    world.driver.forget_old_keys(ends - 1)
    world.store.connection.execute("UPDATE decision SET expires = ?", [ends + 1])
    world.driver.forget_old_keys(ends)
    key, digest = world.store.keys.pad(ID, "sex") or (b"", b"")
    assert key
    assert world.curator.encryption(ID).pad_file("sex").exists() is (pad is Pad.OTP)
    world.store.connection.execute("UPDATE decision SET expires = 1")
    asyncio.run(world.driver._erase_keys())
    assert world.store.keys.pad(ID, "sex") == (b"", digest)
    assert not world.curator.encryption(ID).pad_file("sex").exists()
    with pytest.raises(NotFoundError):
        world.store.keys.canary_key(ID)
    assert world.store.keys.of_results() == ()


def test_explicit_indices_are_drawn_once_by_the_first_owner(world: World) -> None:
    carried_to(world, ReleaseState.CHARGED, request_with(sample=400, sampling=Sampling.INDICES))
    world.follow()
    world.step()
    drawn = world.curator.sampler.indices_file(ID).read_bytes()
    spec = spec_with(sample=400, sampling=Sampling.INDICES)
    rows = checked_indices(world.curator.sampler._folder, drawn, spec)
    assert own_indices(world, spec) == rows.tolist()
    assert world.curator.sampler.indices_file(ID).read_bytes() == drawn


def own_indices(world: World, spec: TableSpec) -> list[int]:
    pieces = asyncio.run(world.curator.sampler._indices(spec, cast("Peers", world)))
    return [row for piece in pieces for row in piece.tolist()]


def test_explicit_indices_of_another_are_checked(world: World) -> None:
    spec = spec_with(sampling=Sampling.INDICES, sample=2, population=1000)
    spec = replace(spec, columns=spec.columns[::-1])
    world.drawn = as_bytes([1, 1])
    with refuses(IntegrityError, where="shared indices"):
        own_indices(world, spec)
    world.curator.sampler.indices_file(ID).unlink()
    world.drawn = as_bytes([1, 7])
    assert own_indices(world, spec) == [1, 7]


def test_the_seed_is_forgotten_when_nobody_needs_it(world: World) -> None:
    carried_to(world, ReleaseState.READY, request_with(sample=400, sampling=Sampling.INDICES))
    coin = f"release/{ID}"
    world.curator.coins.share(coin)
    world.store.coins.set_coin_value(coin, bytes(32))
    world.bob = replace(world.bob, state=ReleaseState.UPLOADING)
    assert world.curator.sampler.indices_file(ID).exists()
    asyncio.run(world.driver._tidy(ID, 2**31))
    assert world.store.coins.own_share(coin, b"") == b""
    assert world.store.coins.coin_value(coin) is None
    assert not world.curator.sampler.indices_file(ID).exists()


def test_the_seed_is_kept_while_another_may_still_need_it(world: World) -> None:
    carried_to(world, ReleaseState.READY)
    share = world.curator.coins.share(f"release/{ID}")
    world.bob = replace(world.bob, state=ReleaseState.CHARGED)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(world.driver._tidy(ID, 2**31), 0.1))
    assert world.store.coins.own_share(f"release/{ID}", b"") == share
