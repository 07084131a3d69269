""""""

import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import reserve
from tests.curator.driver_world import (  # noqa: F401 - fixtures
    AWAY,
    ID,
    Make,
    World,
    as_bytes,
    carried_to,
    checked_indices,
    driver_fixture,
    world_fixture,
)
from veiltab.common.errors import ConflictError, IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import Answers


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


def test_a_request_is_taken_once_even_after_its_deadline(driver: CuratorDriver, make_request: Make) -> None:
    request = make_request(deadline=int(time.time()) + 2)
    stored = Answers(driver.parts).propose(request, driver.parts.study.digest)
    late = make_request(release_id="f" * 32, deadline=int(time.time()) - 1)
    with pytest.raises(InvalidInputError, match="must lie ahead"):
        Answers(driver.parts).propose(late, driver.parts.study.digest)
    driver.parts.store.releases.add(late, 1)
    assert Answers(driver.parts).propose(late, driver.parts.study.digest).request == late
    assert Answers(driver.parts).propose(request, driver.parts.study.digest) == stored
    with pytest.raises(ConflictError):
        Answers(driver.parts).propose(replace(request, purpose="another"), driver.parts.study.digest)


def test_progress_tells_own_decisions_only(driver: CuratorDriver, make_request: Make, make_spec: Make) -> None:
    driver.parts.store.releases.add(make_request(attributes=("sex", "age", "salary")), 1)
    assert driver.parts.decisions.own_attributes == {"sex", "age"}
    before = Answers(driver.parts).progress(ID)
    assert (before.curator, before.decided, before.granted, before.denied) == ("alice", False, frozenset(), frozenset())
    steps = [("sex", HELD, False), ("sex", APPROVED, False), ("age", DENIED, True)]
    for attribute, verdict, decided in steps:
        driver.parts.store.decisions.decide(
            ID, (GrantDecision(attribute=attribute, verdict=verdict, expires=None, decided_by="person"),)
        )
        assert Answers(driver.parts).progress(ID).decided is decided
    driver.parts.store.releases.set_sample_check(ID, b"check", has_columns=True)
    driver.parts.store.releases.set_planned(release_of(make_spec()))
    reserve(driver.parts.ledger, make_spec())
    now = Answers(driver.parts).progress(ID)
    assert (now.granted, now.denied, now.sample_check) == (frozenset({"sex"}), frozenset({"age"}), b"check")
    assert (now.spec_digest, now.reserved, now.charged) == (make_spec().digest(), True, False)
    driver.parts.ledger.charge(ID)
    assert (Answers(driver.parts).progress(ID).reserved, Answers(driver.parts).progress(ID).charged) == (False, True)


def test_a_curator_without_attributes_in_a_request_has_decided(driver: CuratorDriver, make_request: Make) -> None:
    driver.parts.store.releases.add(make_request(attributes=("salary",)), 1)
    assert Answers(driver.parts).progress(ID).decided


def test_a_seed_costs_its_epsilon_first(driver: CuratorDriver, make_spec: Make) -> None:
    with pytest.raises(NotReadyError, match="has not charged the release yet"):
        driver.parts.coins.share(f"release/{ID}")
    reserve(driver.parts.ledger, make_spec())
    with pytest.raises(NotReadyError):
        driver.parts.coins.share(f"release/{ID}")
    driver.parts.ledger.charge(ID)
    share = driver.parts.coins.share(f"release/{ID}")
    assert len(share) == 32
    assert driver.parts.coins.share(f"release/{ID}") == share
    driver.parts.store.coins.forget_coin(f"release/{ID}")
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        driver.parts.coins.share(f"release/{ID}")


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
        driver.parts.coins.share(coin)
    assert len(driver.parts.coins.share("alignment/" + "a" * 32)) == 32


def test_a_release_takes_its_steps_one_by_one(world: World, make_request: Make) -> None:
    driver = world.driver
    driver.parts.store.releases.add(make_request(sample=400), 1)
    world.bob = replace(world.bob, decided=False)
    assert world.step()
    assert world.state() is ReleaseState.APPROVED
    assert not world.step()
    assert "has not decided about the request yet" in driver.parts.store.releases.release(ID).waiting_for
    world.bob = replace(world.bob, decided=True)
    assert world.step()
    assert world.state() is ReleaseState.PLANNED
    assert not driver.parts.ledger.chain.is_reserved(ID)
    assert not world.step()
    assert (driver.parts.ledger.chain.is_reserved(ID), driver.parts.ledger.chain.is_charged(ID)) == (True, False)
    assert not world.step()
    assert driver.parts.ledger.budget.spent == 0
    world.follow()
    assert world.step()
    assert world.state() is ReleaseState.CHARGED
    assert driver.parts.ledger.budget.spent == Decimal("0.1")
    assert not world.step()
    assert not world.tosses  # bob has not charged
    world.follow()
    assert not world.step()
    assert not driver.parts.encryption(ID).ciphertext("sex").exists()  # bob has not drawn
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
    assert not driver.parts.encryption(ID).ciphertext("sex").exists()
    assert driver.parts.store.releases.release(ID).bytes_uploaded == sum(len(column) for column in world.sent.values())


@pytest.mark.parametrize("attributes", [("sex",), ("sex", "salary")])
def test_a_curator_without_columns_that_is_away_is_waited_for_until_the_sample_is_drawn(
    world: World, make_request: Make, attributes: tuple[str, ...]
) -> None:
    world.bob = replace(world.bob, granted=frozenset(attributes[1:]))
    carried_to(world, ReleaseState.CHARGED, make_request(sample=400, attributes=attributes))
    world.is_bob_there = False
    assert not world.step()
    assert not world.tosses
    assert world.parts.store.releases.release(ID).waiting_for == str(AWAY)
    world.is_bob_there = True
    world.follow()
    world.step()
    assert world.tosses
    world.is_bob_there = False
    for _ in range(5):
        world.step()
    left = world.parts.store.releases.release(ID)
    if len(attributes) == 1:
        assert left.state is ReleaseState.READY
    else:
        assert (left.state, left.waiting_for) == (ReleaseState.CHARGED, str(AWAY))
