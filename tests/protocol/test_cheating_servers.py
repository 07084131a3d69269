"""Servers that cheat, as processes among honest parties: the curators find it, and no key leaves."""

import json
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.protocol.village import FREE, made_people, write_table
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, made_world
from veiltab.common.release.receipts.canary_plan import HowTested, server_test
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.release_record import CuratorRelease
from veiltab.play.demos.cheating_server import Cheat

pytestmark = pytest.mark.long


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, ...]:
    people = made_people(3000, seed=1)
    return tuple(
        write_table(tmp_path / f"{name}.csv", [people], columns, seed)
        for seed, (name, columns) in enumerate({"alice": ["region", "smoker"], "bob": ["income"]}.items())
    )


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("cheat", Cheat)
def test_of_twenty_random_plans_no_cheat_passes_that_is_tested_enough(tmp_path: Path, cheat: Cheat) -> None:
    world, chance = made_world(tmp_path / "study"), np.random.default_rng(20)
    passed: list[tuple[list[str], str]] = []
    with world.local:
        world.start(ALICE, BOB, ROSA)
        world.start(CLOUD, how=cheat.launcher)
        for _ in range(20):
            names = chance.permutation(FREE)[: chance.integers(2, 5)].tolist()
            epsilon = f"{10 ** chance.uniform(-1, 0.5):.3f}"
            answer = world.ask(names, "--delta", "1e-5", "--label", world.label(), epsilon=epsilon)
            assert answer.code == 0, answer.errors
            release = answer.data["release"]["id"]
            world.wait_until(partial(has_ended, world, release), 120)
            found = {one.state for one in ends(world, release)}
            test = server_test(ends(world, release)[0].planned_spec)
            passed += [(names, epsilon)] if test.tested is HowTested.ENOUGH and found != {ReleaseState.FAILED} else []
            for curator, party in product(("alice", "bob"), ("cloud", "alice", "bob")):
                if curator != party:
                    assert world.curator_command("repair", curator, "tosses", party).code == 0
    assert passed == []


def has_ended(world: World, release: str) -> bool:
    return [one.state.finished for one in ends(world, release)] == [True, True]


def ends(world: World, release: str) -> list[CuratorRelease]:
    found = []
    for curator in ("alice", "bob"):
        with world.store(curator) as store:
            found += [store.releases.release(release)] if store.releases.knows(release) else []
    return found


SHOWN = {Cheat.COLUMN.value: ("column", "region"), Cheat.SHIFT.value: ("seen before", "offsets of all columns")}
"""The test of alice's columns, of region and smoker, that names what the server does."""


@pytest.mark.parametrize("cheat", [cheat.value for cheat in Cheat])
@pytest.mark.parametrize("sampling", ["seed", "server"])
def test_the_demonstration_catches_every_cheat(
    tmp_path: Path, tables: tuple[Path, ...], cheat: str, sampling: str
) -> None:
    out = tmp_path / "demo"
    command = (
        "demo",
        "table",
        "--server",
        cheat,
        "--advanced",
        f"sampling={sampling}",
        "--epsilon",
        "3",
        "--json",
        "--out",
        str(out),
    )
    ended = subprocess.run(
        [sys.executable, "-m", "veiltab", *command, "--table", *map(str, tables)],
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    assert (answer["server"], answer["caught"]) == (cheat, True)
    assert {one["state"] for one in answer["curators"]} == {"failed"}
    failed = [
        (one, receipt, test)
        for one in answer["curators"]
        for receipt in one["receipts"]
        for test in receipt["tests"]
        if not test["passed"]
    ]
    assert failed
    for one, receipt, test in failed:
        assert not receipt["passed"]
        assert f"{test['test']} ({test['of']})" in one["failure"]
    assert SHOWN.get(cheat, ("amount", "all columns")) in {
        (test["test"], test["of"]) for one, _, test in failed if one["curator"] == "alice"
    }
    # The desk has no key and no counts: at most columns that it fetched, still encrypted.
    left = [path.name for path in (out / "researcher-rosa" / "releases").rglob("*") if path.is_file()]
    assert not [name for name in left if not name.endswith(".noisy")]
