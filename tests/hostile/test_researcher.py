"""A researcher that asks for what takes for ever, or asks without end, over the wire: the others are served."""

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.hostile.clients import call, code_of, connection, number_of, proposal
from tests.protocol.village import Rules
from tests.protocol.world import ALICE, BOB, CLOUD, RITA, ROSA, World, made_world
from tests.worlds.loops import blocking
from tests.worlds.studies import APPROVE_ALL
from veiltab.common.errors import DeniedError
from veiltab.curator.planning import plan_questions as planning

PROPOSE = "CuratorService/ProposeRelease"
INVALID, DENIED, OK = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.OK)
PEOPLE = 1500
NAMES = ("region", "income")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A study whose parties all run; bob holds requests for health."""
    world = made_world(tmp_path_factory.mktemp("world") / "study", people=PEOPLE)
    with world.local:
        world.start(ALICE, BOB, CLOUD, ROSA, RITA)
        yield world


@pytest.fixture
def world(running: World) -> World:
    """All parties running, whatever a test did to them."""
    running.ensure(ALICE, BOB, CLOUD, ROSA, RITA)
    return running


@blocking
async def proposed(world: World, *proposals: Any) -> list[grpc.StatusCode]:  # noqa: ANN401 - messages
    """Propose in rita's name to both curators; return how bob answered."""

    codes = []
    for curator in (ALICE, BOB):
        async with connection(world.local, RITA, curator) as channel:
            codes = [await code_of(call(channel, PROPOSE)(one, timeout=20)) for one in proposals]
    return codes


def served(world: World) -> None:
    """See that rosa has a release."""
    with world.client("rosa") as client:
        release = client.request(NAMES, epsilon="4", label=world.label())
        release.wait(60)


def scheme(name: str) -> int:
    return number_of("Scheme", f"SCHEME_{name}")


@pytest.mark.parametrize(
    "changes",
    [
        {"scheme": scheme("WR"), "sample": 2**63 - 1},
        {"scheme": scheme("WR"), "sample": 2**64 - 1},
        {"scheme": scheme("MUST_WW"), "sample": 10, "stage": 2**64 - 1},
        {"scheme": scheme("MUST_OW"), "sample": 2**33, "stage": 10},
        {"epsilon": "0." + "1" * 900_000},
        {"epsilon": "1e-400"},
        {"delta": "0." + "1" * 5000},
        {"delta": "1e-100"},
        {"max_local_epsilon": "1" * 101},
        {"deadline": 2**62},
    ],
    ids=",".join,
)
def test_what_nobody_can_compute_is_refused_before_it_is_taken(world: World, changes: dict[str, Any]) -> None:
    assert proposed(world, proposal(world.local, 1, **changes)) == [INVALID]


def test_what_cannot_be_planned_ends_uncharged_and_the_others_are_served(world: World) -> None:
    hostile: list[dict[str, Any]] = [
        {"scheme": scheme("WR"), "sample": 2**32},
        {"scheme": scheme("WR"), "sample": PEOPLE, "epsilon": "1e-10"},
        {"scheme": scheme("MUST_WW"), "sample": PEOPLE, "stage": PEOPLE, "epsilon": "1e-10"},
        {"scheme": scheme("MUST_OW"), "sample": PEOPLE, "stage": PEOPLE, "epsilon": "1e-10"},
    ]
    # Bob holds requests for health.
    asked = [
        proposal(world.local, 100 + n, attributes=attributes, **one)
        for n, (attributes, one) in enumerate(
            [(["health"], hostile[1]), *((["region", "income"], one) for one in hostile)]
        )
    ]
    assert proposed(world, *asked) == [OK] * len(asked)
    served(world)

    def all_ended() -> bool:
        with world.store("bob") as store:
            ids = [f"{100 + number:032x}" for number in range(len(asked))]
            return all(store.releases.release(release_id).state.unsuccessful for release_id in ids)

    # Each may take as long as a plan may.
    world.wait_until(all_ended, 30 + len(asked) * planning.SECONDS)
    assert not {f"{100 + n:032x}" for n in range(len(asked))} & {*world.charges("alice"), *world.charges("bob")}


def test_one_researcher_opens_so_many_requests_and_the_others_are_served(world: World) -> None:
    codes = proposed(world, *(proposal(world.local, 1000 + number) for number in range(400)))
    opened = codes.index(DENIED)
    assert 20 <= opened <= 32
    assert set(codes[opened:]) == {DENIED}
    with world.client("rita") as client, pytest.raises(DeniedError, match="requests of researcher rita are open"):
        client.request(("region", "income"), epsilon="1", label=world.label()).wait(30)
    served(world)
    listed = world.curator_command("requests", "bob")
    assert listed.code == 0
    for number in range(opened):
        denied = world.curator_command("deny", "bob", "--release", f"{1000 + number:032x}", "--reason", "not agreed")
        assert denied.code == 0
        if number == 2:
            break
    world.wait_for_state("alice", f"{1000:032x}", "denied")
    assert proposed(world, proposal(world.local, 3000)) == [OK]


def test_a_party_ends_while_it_plans(world: World) -> None:
    asked = [proposal(world.local, 5000 + number, attributes=["region", "income"], delta="1e-9") for number in range(3)]
    proposed(world, *asked)
    for curator in (ALICE, BOB):
        process = world.local._running[curator]
        process.send_signal(signal.SIGTERM)
        assert world.ended(curator, 30)
    world.start(ALICE, BOB)
    served(world)


@pytest.mark.parametrize(
    "change", [{"purpose": "another study"}, {"epsilon": "0.5"}, {"attributes": ["region", "income"]}]
)
async def test_what_each_curator_was_asked_for_is_compared_before_anything_is_approved(
    world: World, change: dict[str, Any]
) -> None:
    """Each curator's officer reads a purpose of its own, and would approve it. Rita has no request left by now."""
    release_id = f"{secrets.randbits(128):032x}"
    asked: dict[str, Any] = {"attributes": ["region", "health"], "purpose": "a study", "release_id": release_id}
    for curator, one in ((ALICE, asked), (BOB, asked | change)):
        async with connection(world.local, ROSA, curator) as channel:
            await call(channel, PROPOSE)(proposal(world.local, 1, **one), timeout=20)
    for name in ("alice", "bob"):
        world.wait_for_state(name, release_id, "failed")
        with world.store(name) as store:
            assert "researcher rosa: asked curators alice and bob for different things" in (
                store.releases.release(release_id).failure
            )
    assert release_id not in {*world.charges("alice"), *world.charges("bob")}


@pytest.mark.long
def test_releases_of_alice_s_columns_alone_spend_half_of_bob_s_budget(tmp_path: Path) -> None:
    """Neither a rule nor a person of bob's decides about them; his policy says how much they may take."""
    world = made_world(tmp_path / "study", rules=Rules(budget="4"), policies={"alice": APPROVE_ALL, "bob": APPROVE_ALL})
    with world.local:
        world.start(ALICE, BOB, CLOUD, ROSA)
        for label in ("first", "second"):
            assert world.ask(["region"], "--label", label, "--wait", epsilon="1").code == 0
        refused = world.ask(["region"], "--label", "third", "--wait", epsilon="1")
        assert "curator bob: releases without this curator's attributes may take 50.00% of its budget" in refused.errors
        assert world.ask(NAMES, "--label", "joint", "--wait", epsilon="1").code == 0
        assert len(world.charges("alice")) == len(world.charges("bob")) == 3
