"""Servers that cheat, as processes among honest parties: the curators find it, and no key leaves."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.protocol.village import FREE
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, made_world
from veiltab.common.release.receipts.canary_plan import HowTested, server_test
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.release_record import CuratorRelease
from veiltab.play.demos.cheating_server import Cheat

DAILY, ALL = (60, 3, (Cheat.COLUMN,)), ((60, 6, Cheat), (1_500, 7, Cheat), (20_000, 7, Cheat))
"""People, plans and lies: what every run tries, and twenty plans with every lie."""
TOGETHER = 3
"""Releases under way at once: after so many that a party ended, a person must clear it."""


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("people", "plans", "cheats"), [DAILY, *(pytest.param(*case, marks=pytest.mark.long) for case in ALL)]
)
def test_no_cheat_passes_where_the_plan_says_enough(
    tmp_path: Path, people: int, plans: int, cheats: Iterable[Cheat], record_property: Callable[[str, object], None]
) -> None:
    world, chance = made_world(tmp_path / "study", people=people), np.random.default_rng(people)
    asked = [
        (chance.permutation(FREE)[:count].tolist(), f"{10 ** chance.uniform(-1, 0.9):.3f}")
        for count in sorted(chance.integers(2, 5, plans))
    ]
    enough, passed = 0, list[tuple[Cheat, list[str], str]]()
    with world.local:
        world.start(ALICE, BOB, ROSA)
        for cheat in cheats:
            world.start(CLOUD, how=cheat.launcher)
            ended = [one for first in range(0, plans, TOGETHER) for one in ends_of(world, asked[first:][:TOGETHER])]
            world.local.kill(*CLOUD)
            for (names, epsilon), at in zip(asked, ended, strict=True):
                is_enough = server_test(at[0].planned_spec).tested is HowTested.ENOUGH
                enough += is_enough
                if is_enough and {one.state for one in at} != {ReleaseState.FAILED}:
                    passed.append((cheat, names, epsilon))
    record_property("figure", f"over processes {enough} lies to plans that test the server enough, {len(passed)} pass")
    assert enough
    assert passed == []


def ends_of(world: World, asked: Sequence[tuple[list[str], str]]) -> list[list[CuratorRelease]]:
    """Ask for releases at once, wait until they ended at both curators, and let both go on with all parties."""
    releases = []
    for names, epsilon in asked:
        answer = world.ask(names, "--delta", "1e-5", "--label", world.label(), epsilon=epsilon)
        assert answer.code == 0, answer.errors
        releases.append(str(answer.data["release"]["id"]))
    for release in releases:
        world.wait_until(partial(has_ended, world, release), 120)
    for curator, party in (("alice", "bob"), ("bob", "alice"), ("alice", "cloud"), ("bob", "cloud")):
        assert world.curator_command("repair", curator, "tosses", party).code == 0
    return [at_curators(world, release) for release in releases]


def has_ended(world: World, release: str) -> bool:
    return [at.state.finished for at in at_curators(world, release)] == [True, True]


def at_curators(world: World, release: str) -> list[CuratorRelease]:
    """Return a release as those curators have it that know it."""
    found = []
    for curator in ("alice", "bob"):
        with world.store(curator) as store:
            found += [store.releases.release(release)] if store.releases.knows(release) else []
    return found
