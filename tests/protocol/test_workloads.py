"""Releases of several tables between real curators and a real server, over TLS; a raw client is the desk."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.protocol.village import Rules
from tests.protocol.wire import Published, connection, fetch_key
from tests.protocol.workloads import PAIRS, RawDesk, owner_of, several
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, RITA, ROSA, Who, World, launcher, made_world
from tests.worlds.loops import blocking
from veiltab.common.errors import ConflictError, DeniedError, InvalidInputError, NotFoundError, VeiltabError
from veiltab.common.release.state import ReleaseState

BUDGET = Rules(budget="40\ndelta = 1e-6")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two curators and the server; they may be killed."""
    made = made_world(tmp_path_factory.mktemp("tables") / "study", people=400, rules=BUDGET)
    made.local.launcher = launcher(PACE)
    with made.local:
        yield made


@pytest.fixture
def desk(world: World) -> RawDesk:
    """What asks the curators, all of which run."""
    world.ensure(ALICE, BOB, CLOUD)
    return RawDesk(world=world)


@blocking
async def published(desk: RawDesk, release_id: str, attribute: str) -> bytes:
    """Fetch a perturbed column as its researcher."""
    async with connection(desk.world, ROSA, CLOUD) as channel:
        return await Published.on(channel).column(release_id, attribute)


@blocking
async def key(desk: RawDesk, release_id: str, attribute: str, column: bytes | None) -> bytes:
    """Fetch a key from the curator that has it."""
    async with connection(desk.world, desk.who, owner_of(attribute)) as channel:
        return await fetch_key(channel, release_id, attribute, column)


def refusal(desk: RawDesk, release_id: str, numbers: list[int]) -> VeiltabError:
    """Choose tables at alice; return why she refuses."""
    with pytest.raises(VeiltabError) as refused:
        desk.choose(ALICE, release_id, numbers)
    return refused.value


@pytest.mark.long
def test_tables_run_under_one_charge_and_one_of_them_again(desk: RawDesk) -> None:
    asked = several(repeats=1)
    desk.propose(asked)
    desk.wait(asked.release_id, lambda states: set(states) == {ReleaseState.UPLOADING})
    workload = desk.workload(asked.release_id)
    assert [workload.attributes(number) for number in range(3)] == list(PAIRS)
    for number in range(3):
        desk.wait_for(workload.table_id(number), ReleaseState.READY)

    assert isinstance(refusal(desk, asked.release_id, [0, 1]), InvalidInputError)  # too many
    assert isinstance(refusal(desk, asked.release_id, [3]), InvalidInputError)  # no table
    for curator in desk.curators:
        desk.choose(curator, asked.release_id, [1])
        desk.choose(curator, asked.release_id, [1])
    assert isinstance(refusal(desk, asked.release_id, [2]), ConflictError)
    assert isinstance(refusal(desk, asked.release_id, []), ConflictError)
    desk.wait_for(asked.release_id, ReleaseState.READY)
    again = workload.table_id(workload.again(1))
    desk.wait_for(again, ReleaseState.READY)
    for number in (3, 5):  # what was not chosen is no release
        with pytest.raises(NotFoundError):
            desk.proposal(ALICE, workload.table_id(number))

    for name in ("alice", "bob"):
        assert desk.world.charges(name).count(asked.release_id) == 1
        assert not {workload.table_id(number) for number in range(6)} & set(desk.world.charges(name))
    sizes = {"region": 1, "smoker": 1}
    for release_id in (workload.table_id(1), again):
        columns = {name: published(desk, release_id, name) for name in sizes}
        assert {len(column) for column in columns.values()} == {420}  # with 20 canaries
        assert {len(key(desk, release_id, name, column)) for name, column in columns.items()} == {32}
    assert published(desk, again, "region") != published(desk, workload.table_id(1), "region")
    with pytest.raises(DeniedError):
        key(replace(desk, who=RITA), again, "region", None)
    proposal = desk.proposal(ALICE, asked.release_id)
    assert proposal.bytes_uploaded == 420 * (1 + 2 + 2)
    options = (desk.world.local.study_path, "--state", desk.world.local.state_folder(*ALICE))
    ledger = desk.world.command("curator", "ledger", *options, as_json=False).text
    assert "4 tables of region, income, smoker, employed  epsilon 4" in ledger


KILLS = [
    ("veiltab.curator.budget.ledger:Ledger.charge:1:after", ALICE),
    ("veiltab.curator.records.release_tables:ReleaseTables.choose_tables:1:after", BOB),
    ("veiltab.curator.records.releases:Releases.set_planned:1", BOB),
    ("veiltab.curator.records.release_tables:ReleaseTables.open_tables:1", ALICE),
    ("veiltab.curator.records.release_tables:ReleaseTables.open_tables:1:after", BOB),
    ("veiltab.curator.records.keys:Keys.spend_key:3:after", ALICE),
    ("veiltab.curator.records.server_tests:ServerTests.set_receipt:2:after", BOB),
    ("veiltab.curator.records.release_tables:ReleaseTables.choose_tables:1", ALICE),
    ("veiltab.server.records.store:ServerStore.publish:2:after", CLOUD),
]


@pytest.mark.long
@pytest.mark.parametrize(("point", "who"), KILLS)
def test_a_party_that_is_killed_goes_on_with_the_tables(desk: RawDesk, point: str, who: Who) -> None:
    world = desk.world
    world.restart(who, how=launcher(PACE, point))
    asked = several(repeats=1, deadline=int(time.time()) + 120)
    desk.propose(asked)
    if "choose" in point:
        desk.wait(asked.release_id, lambda states: set(states) == {ReleaseState.UPLOADING})
        with pytest.raises(VeiltabError):
            desk.choose(who, asked.release_id, [2])
    world.wait_for_kill(who)
    world.start(who)
    desk.wait(asked.release_id, lambda states: set(states) == {ReleaseState.UPLOADING}, 60)
    for curator in desk.curators:
        desk.choose(curator, asked.release_id, [2])
    desk.wait_for(asked.release_id, ReleaseState.READY, 60)
    workload = desk.workload(asked.release_id)
    for number in (0, 1, 2, 5):
        desk.wait_for(workload.table_id(number), ReleaseState.READY)
    for name in ("alice", "bob"):
        assert world.charges(name).count(asked.release_id) == 1
