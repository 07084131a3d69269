""""""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import refuses, request_with, reserve, spec_with
from tests.curator.driver_world import (  # noqa: F401 - fixtures
    AWAY,
    ID,
    World,
    as_bytes,
    carried_to,
    checked_indices,
    driver_fixture,
    world_fixture,
)
from tests.curator.made_records import decide
from veiltab.common.errors import ConflictError, IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import Progress
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import RpcAnswers


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
def test_indices_that_are_no_such_sample_are_refused(tmp_path: Path, data: bytes) -> None:
    with refuses(IntegrityError, where="shared indices"):
        checked_indices(tmp_path, data, spec_with(population=10, sample=4))


def test_a_request_is_taken_once_even_after_its_deadline(driver: CuratorDriver) -> None:
    request = request_with(deadline=int(time.time()) + 2)
    stored = RpcAnswers(driver.curator).propose(request, driver.curator.study.digest)
    late = request_with(release_id="f" * 32, deadline=int(time.time()) - 1)
    with pytest.raises(InvalidInputError, match="must lie ahead"):
        RpcAnswers(driver.curator).propose(late, driver.curator.study.digest)
    driver.curator.store.releases.add(late, 1)
    assert RpcAnswers(driver.curator).propose(late, driver.curator.study.digest).request == late
    assert RpcAnswers(driver.curator).propose(request, driver.curator.study.digest) == stored
    with pytest.raises(ConflictError):
        RpcAnswers(driver.curator).propose(replace(request, purpose="another"), driver.curator.study.digest)


def test_progress_tells_own_decisions_only(driver: CuratorDriver) -> None:
    driver.curator.store.releases.add(request_with(attributes=("sex", "age", "salary")), 1)
    assert driver.curator.decisions.own_attributes == {"sex", "age"}

    def own(release_id: str = ID) -> Progress:
        return RpcAnswers(driver.curator).progress(release_id, "bob")

    before = own()
    assert (before.curator, before.decided, before.granted, before.denied) == ("alice", False, frozenset(), frozenset())
    steps = [("sex", HELD, False), ("sex", APPROVED, False), ("age", DENIED, True)]
    for attribute, verdict, decided in steps:
        decide(driver.curator.store, verdict, attribute)
        assert own().decided is decided
    driver.curator.store.releases.set_sample_check(ID, b"check", has_columns=True)
    driver.curator.store.releases.set_planned(release_of(spec_with()))
    reserve(driver.curator.ledger, spec_with())
    now = own()
    assert (now.granted, now.denied, now.sample_check) == (frozenset({"sex"}), frozenset({"age"}), b"check")
    assert (now.spec_digest, now.reserved, now.charged) == (spec_with().digest(), True, False)
    driver.curator.ledger.charge(ID)
    assert (own().reserved, own().charged) == (False, True)
    driver.curator.store.releases.add(request_with(release_id="f" * 32, attributes=("salary",)), 1)
    assert own("f" * 32).decided, "who has no attributes in a request has nothing to decide"


def test_a_seed_costs_its_epsilon_first(driver: CuratorDriver) -> None:
    with refuses(NotReadyError, where="curator alice"):
        driver.curator.coins.share(f"release/{ID}")
    reserve(driver.curator.ledger, spec_with())
    with pytest.raises(NotReadyError):
        driver.curator.coins.share(f"release/{ID}")
    driver.curator.ledger.charge(ID)
    share = driver.curator.coins.share(f"release/{ID}")
    assert len(share) == 32
    assert driver.curator.coins.share(f"release/{ID}") == share
    driver.curator.store.coins.forget_coin(f"release/{ID}")
    with refuses(ConflictError, where="coin toss"):
        driver.curator.coins.share(f"release/{ID}")


@pytest.mark.parametrize("attributes", [("sex",), ("sex", "salary")])
def test_a_curator_without_columns_that_is_away_is_waited_for_until_the_sample_is_drawn(
    world: World, attributes: tuple[str, ...]
) -> None:
    world.bob = replace(world.bob, granted=frozenset(attributes[1:]))
    carried_to(world, ReleaseState.CHARGED, request_with(sample=400, attributes=attributes))
    world.is_bob_there = False
    assert not world.step()
    assert not world.tosses
    assert world.stored.waiting_for == str(AWAY)
    world.is_bob_there = True
    world.follow()
    world.step()
    assert world.tosses
    world.is_bob_there = False
    for _ in range(5):
        world.step()
    left = world.stored
    if len(attributes) == 1:
        assert left.state is ReleaseState.READY
    else:
        assert (left.state, left.waiting_for) == (ReleaseState.CHARGED, str(AWAY))
