"""Private alignment between real processes: the same respondents as by tokens, and no secret that stays."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.protocol.chance import agreement
from tests.protocol.village import FREE, TWO, Rules
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, Who, World, launcher, made_world
from veiltab.common.rpc.parties.identity import Role
from veiltab.curator.peers.coins import alignment_coin
from veiltab.deploy.cli import veiltab

CAROL = (Role.CURATOR, "carol")
SURE = 1e-6  # level at which an answer is wrong


def private_world(folder: Path, owners: Mapping[str, str] = TWO) -> World:
    return made_world(folder / "study", owners=owners, rules=Rules(alignment="psi"))


def check_respondents(world: World) -> None:
    """Every curator has as many rows as there are common people, in one order."""
    aligned = set()
    for name in world.local.tables:
        (folder,) = (world.local.state_folder(Role.CURATOR, name) / "alignments").iterdir()
        aligned.add((folder / "tokens.bin").read_bytes())
    (common,) = aligned
    assert len(common) == 16 * len(world.people.ids)


def is_tidy(world: World, name: str) -> bool:
    """Whether a curator has neither a scalar nor a masked id nor the coin any more."""
    (folder,) = (world.local.state_folder(Role.CURATOR, name) / "alignments").iterdir()
    with world.store(name) as store:
        session, is_erased = store.private.session(folder.name), store.coins.is_forgotten(alignment_coin(folder.name))
    return bool(session and session.finished) and is_erased and not [path for path in folder.iterdir() if path.is_dir()]


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


KILLS = {
    "masking its own ids": (ALICE, "veiltab.curator.alignment.private.masking:_write_all:2:after"),
    "in the check of its own ids": (ALICE, "veiltab.curator.alignment.private.masking:_write_all:6"),
    "in the check of what came back": (ALICE, "veiltab.curator.alignment.private.masking:_write_all:10:after"),
    "between two batches of another's": (BOB, "veiltab.curator.alignment.private.masking:_write_all:6"),
    "having entered the session": (BOB, "veiltab.curator.records.private_sessions:PrivateSessions.enter:1:after"),
    "before it names the respondents": (
        ALICE,
        "veiltab.curator.alignment.private.private_work:Work._write_respondents:1",
    ),
    "before it erases its scalar": (BOB, "veiltab.curator.records.private_sessions:PrivateSessions.finish:1"),
    "having erased it": (ALICE, "veiltab.curator.records.private_sessions:PrivateSessions.finish:1:after"),
}
QUICK = "between two batches of another's"


def check_kill(world: World, who: Who, point: str) -> None:
    """A curator kills itself at a point of the first alignment; started again, it goes on, and the release comes."""
    paces = (PACE, "batch=400")
    world.local.launcher = launcher(*paces)
    with world.local:
        world.local.start(*who, launcher=launcher(*paces, point))
        world.start(*({ALICE, BOB} - {who}), CLOUD, ROSA)
        world.wait_for_kill(who)
        parts = {path.name: path.stat().st_mtime_ns for path in batches(world, who)}
        world.start(who)
        check_release(world)
        assert world.mentions(world.logs()) == []
    if "_write_all" in point:
        assert parts


def batches(world: World, who: Who) -> list[Path]:
    """Return the batches of masked ids that a curator has by now."""
    return [path for path in world.local.state_folder(*who).glob("alignments/*/*/*") if path.suffix[1:].isdecimal()]


@pytest.mark.long
def test_a_curator_killed_while_it_masks_goes_on(tmp_path: Path) -> None:
    check_kill(private_world(tmp_path), *KILLS[QUICK])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in KILLS if name != QUICK])
def test_a_curator_killed_anywhere_in_a_private_alignment_goes_on(tmp_path: Path, name: str) -> None:
    check_kill(private_world(tmp_path), *KILLS[name])


@pytest.mark.long
def test_a_curator_that_masks_says_how_far_it_is_and_ends_in_order(tmp_path: Path) -> None:
    """While all cores mask, it answers; told to end, it ends by itself, not by the alarm that waits for no work."""
    world = made_world(tmp_path / "study", people=40_000, rules=Rules(alignment="psi"))
    world.local.launcher = launcher("batch=2000")
    asked = [str(world.local.study_path), "--identity", str(world.local.identity_folder(*ALICE)), "--json"]

    def said() -> str:
        # In this process: one of its own takes longer to begin than the curators may take to mask.
        data = json.loads(CliRunner().invoke(veiltab, ["status", *asked]).stdout)
        (work,) = [work for work in data["work"] if work["kind"] == "alignment"]
        return str(work["about"])

    with world.local:
        world.start(ALICE, BOB)
        world.wait_until(lambda: "masking one's own ids: " in said() and " %" in said(), 60)
        masking = world.local._running[ALICE]
        world.local.kill(*ALICE, signal.SIGTERM)
        assert masking.returncode == 0
