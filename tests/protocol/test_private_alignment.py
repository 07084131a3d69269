"""Private alignment between real processes: the same respondents as by tokens, and no secret that stays."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tests.protocol.chance import agreement
from tests.protocol.village import FREE, THREE, TWO, Rules
from tests.protocol.world import World, made_world
from veiltab.common.core.derivation import derive
from veiltab.common.rpc.identity import Role
from veiltab.curator.coins import alignment_coin
from veiltab.curator.tokens import tokens

CAROL = (Role.CURATOR, "carol")
SURE = 1e-6  # level at which an answer is wrong


def private_world(folder: Path, owners: Mapping[str, str] = TWO) -> World:
    return made_world(folder / "study", owners=owners, rules=Rules(alignment="psi"))


def check_respondents(world: World) -> None:
    """Every curator has the rows of the common people and no others, in one order."""
    aligned = set()
    for name in world.local.tables:
        (folder,) = (world.local.state_folder(Role.CURATOR, name) / "alignments").iterdir()
        aligned.add((folder / "tokens.bin").read_bytes())
        with world.store(name) as store:
            coin = store.coin_value(alignment_coin(folder.name))
    assert coin is not None
    (common,) = aligned
    wanted = tokens(pa.array(world.people.ids, pa.large_string()), derive(coin, "tokens"))
    assert sorted(map(bytes, wanted)) == [common[start : start + 16] for start in range(0, len(common), 16)]


def is_tidy(world: World, name: str) -> bool:
    """Whether a curator has neither a scalar nor a masked id any more."""
    (folder,) = (world.local.state_folder(Role.CURATOR, name) / "alignments").iterdir()
    with world.store(name) as store:
        session = store.private_session(folder.name)
    return bool(session and session.finished) and not [path for path in folder.iterdir() if path.is_dir()]


def check_release(world: World) -> None:
    with world.client() as client:
        asked = client.request(FREE, epsilon="4", label=world.label())
        asked.wait(60)
        assert agreement(asked.estimate(), world.people.counts(FREE)) > SURE
    check_respondents(world)
    world.wait_until(lambda: all(is_tidy(world, name) for name in world.local.tables), 30)


def test_two_curators_release_what_they_share(tmp_path: Path) -> None:
    world = private_world(tmp_path)
    with world.local:
        world.local.start_all()
        check_release(world)
    assert world.mentions(world.logs()) == []


@pytest.mark.long
def test_three_curators_release_what_they_share(tmp_path: Path) -> None:
    world = private_world(tmp_path, THREE)
    with world.local:
        world.local.start_all()
        check_release(world)
