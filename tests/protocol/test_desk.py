"""A desk counts rows of data alone, repeats the curators' tests, and keeps nothing but counts, over real processes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.protocol.village import FREE
from tests.protocol.world import BOB, ROSA, World
from veiltab.common.errors import FailedReleaseError

N, CANARIES = 1500, 600


NO_LIST = """
from veiltab.curator.release.server_check import ServerCheck
from veiltab.deploy.cli import main

ServerCheck.changes = lambda *_: b"none"
main()
"""
"""`veiltab` whose curator states no list of changed canaries."""


def kept(world: World, release_id: str) -> list[str]:
    """Return the names of what a desk has of a release."""
    folder: Path = world.local.state_folder(*ROSA) / "releases" / release_id
    return sorted(path.name for path in folder.glob("*"))


def test_commands_choose_the_noise_and_show_the_receipts(village: World) -> None:
    rare = [word for one in ("noise-split=0.25", "canaries=300", "max-pair-epsilon=90") for word in ("--advanced", one)]
    options = (*rare, "--label", village.label())
    asked = village.ask(("region", "smoker"), *options, "--wait").data
    assert asked["release"]["state"] == "ready"
    alice, *_, desk = asked["receipts"]
    assert (alice["curator"], alice["tested_by"], alice["canaries"], alice["passed"]) == (
        "alice",
        "curator alice",
        300,
        True,
    )
    assert (desk["curator"], desk["tested_by"]) == ("", "curators and desk")
    assert np.isclose(desk["sd"] ** 2, desk["expected"] * (1 - desk["expected"] / 300), rtol=1e-3)
    words = ("researcher", "status", village.local.study_path, "--identity")
    shown = village.command(
        *words, village.local.identity_folder(*ROSA), "--release", asked["release"]["id"], as_json=False
    )
    assert f"test by curator alice: of 300 canaries {alice['changed']} changed in alice's columns" in shown.text
    assert f"test by curators and desk: of 300 canaries {desk['changed']} changed in all columns together" in shown.text


def test_a_curator_that_states_other_changes_of_canaries_is_named(mortal: World) -> None:
    mortal.restart(BOB, how=(sys.executable, "-c", NO_LIST))
    try:
        with mortal.client() as client:
            asked = client.request(FREE, epsilon="4", canaries=CANARIES, noise_split="0.5", label=mortal.label())
            with pytest.raises(FailedReleaseError, match="curator bob: its list of changed canaries is not one of"):
                asked.wait(40)
        mortal.wait_until(lambda: not kept(mortal, asked.id))
        mortal.wait_for_state("alice", asked.id, "failed")
        mortal.wait_until_keys_are_erased("alice", asked.id)
    finally:
        mortal.restart(BOB)
