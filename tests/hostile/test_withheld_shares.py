"""A curator that aborts tosses, and one that loses its alignment: real processes, and what the others make of it."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, World, launcher, made_world
from veiltab.common.release.state import ReleaseState
from veiltab.curator.planning.checks import MOST_ABORTED

WITHHOLDS = (sys.executable, str(Path(__file__).with_name("withholding_launcher.py")))
FREE = ("region", "income")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made_world(tmp_path / "study")


@pytest.mark.long
def test_a_curator_that_aborts_tosses_is_counted_and_paid_for_no_more_until_a_person_clears_it(world: World) -> None:
    with world.local:
        world.start(BOB, how=WITHHOLDS)
        world.start(ALICE, CLOUD, ROSA)
        asked = [
            world.ask(FREE, "--label", f"aborted-{number}", "--lifetime-hours", "0.015", epsilon="0.5")
            for number in range(MOST_ABORTED)
        ]
        ids = [str(answer.data["release"]["id"]) for answer in asked]
        world.wait_until(lambda: set(ids) <= set(world.charges("alice")), seconds=50)
        for release_id in ids:
            with world.store("alice") as store:
                world.wait_until(lambda: store.releases.release(release_id).state is ReleaseState.EXPIRED, seconds=90)  # noqa: B023 - called here
        for curator, aborted in (("alice", {"bob": MOST_ABORTED}), ("bob", {})):
            with world.store(curator) as store:
                assert store.coins.aborted() == aborted
        assert world.log(ALICE).count("a charged release ended by a curator") == MOST_ABORTED
        world.restart(BOB)
        refused = world.ask(FREE, "--label", "refused", "--wait", epsilon="0.5")
        assert "curator bob: 3 releases that were charged ended without a result" in refused.errors
        assert len(world.charges("alice")) == MOST_ABORTED
        assert world.curator_command("clear-tosses", "alice", "--peer", "bob").data["cleared"] == MOST_ABORTED
        assert world.ask(FREE, "--label", "granted", "--wait", epsilon="0.5").code == 0


@pytest.mark.long
def test_a_curator_that_lost_its_alignment_makes_it_again_and_goes_on_with_what_is_charged(world: World) -> None:
    with world.local:
        world.start(ALICE, how=launcher(PACE, "veiltab.curator.budget.ledger:Ledger.charge:1:after"))
        world.start(BOB, CLOUD, ROSA)
        release_id = str(world.ask(FREE, "--label", "lost").data["release"]["id"])
        world.wait_for_kill(ALICE)
        shutil.rmtree(world.local.state_folder(*ALICE) / "alignments")
        world.start(ALICE)
        with world.client() as client:
            assert client.release(release_id).wait(timeout=60).state is ReleaseState.READY
        for curator in ("alice", "bob"):
            assert world.charges(curator) == [release_id]
