"""A curator that returns the querier's masked ids in another order: real processes, and what the others make of it."""

import sys
from pathlib import Path

import pytest

from tests.protocol.village import THREE, TWO, Rules
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, made_world
from veiltab.common.rpc.parties.identity import Role
from veiltab.curator.records.private_sessions import PrivateSession

TURNS = (sys.executable, str(Path(__file__).with_name("turning_launcher.py")))
CAROL = (Role.CURATOR, "carol")
CHANGED = "did not come back under one scalar"


def session(world: World, name: str) -> PrivateSession | None:
    (folder,) = (world.local.state_folder(Role.CURATOR, name) / "alignments").iterdir()
    with world.store(name) as store:
        return store.private.session(folder.name)


def status_of(world: World) -> str:
    identity = world.local.identity_folder(*ALICE)
    return str(world.command("status", world.local.study_path, "--identity", identity).data)


def check_nobody_is_named(world: World, names: tuple[str, ...], liar: str) -> None:
    for name in names:
        state = world.local.state_folder(Role.CURATOR, name)
        assert not list(state.rglob("*respondents*"))
        with world.store(name) as store:
            assert store.alignments.latest_alignment() is None
            assert store.private.suspects() == (liar,)


@pytest.mark.long
def test_a_curator_that_turns_masked_ids_is_named_nobody_until_a_person_allows_it(tmp_path: Path) -> None:
    world = made_world(tmp_path / "study", owners=TWO, rules=Rules(alignment="psi"))
    with world.local:
        world.start(BOB, how=TURNS)
        world.start(ALICE, CLOUD, ROSA)
        world.wait_until(lambda: CHANGED in status_of(world), 30)
        world.wait_until(lambda: (own := session(world, "bob")) is not None and own.suspects != (), 30)
        check_nobody_is_named(world, ("alice", "bob"), "bob")
        failed = session(world, "alice")

        # Honest again, it says that it lost what it had: that begins nothing.
        (folder,) = (world.local.state_folder(*BOB) / "alignments").iterdir()
        with world.store("bob") as store:
            store.private.renew(folder.name, bytes(16))
        world.restart(BOB)
        world.wait_until(lambda: (own := session(world, "bob")) is not None and own.part == bytes(16), 30)
        assert session(world, "alice") == failed

        allowed = world.curator_command("allow-alignment", "alice", "--peer", "bob", "--person", "Ana Diaz")
        assert allowed.data == {"peer": "bob", "began": 1}
        with world.store("alice") as store:
            world.wait_until(
                lambda: (found := store.alignments.latest_alignment()) is not None and found[0] == 1500, 30
            )
    assert world.mentions(world.logs()) == []


@pytest.mark.long
@pytest.mark.parametrize("liar", [BOB, CAROL])
def test_of_three_curators_the_one_that_turns_masked_ids_is_named(tmp_path: Path, liar: tuple[Role, str]) -> None:
    world = made_world(tmp_path / "study", owners=THREE, rules=Rules(alignment="psi"))
    with world.local:
        world.start(liar, how=TURNS)
        world.start(*({ALICE, BOB, CAROL} - {liar}))
        names = ("alice", "bob", "carol")

        def all_know() -> bool:
            for name in names:
                with world.store(name) as store:
                    if store.private.suspects() != (liar[1],):
                        return False
            return True

        world.wait_until(all_know, 60)
        check_nobody_is_named(world, names, liar[1])
