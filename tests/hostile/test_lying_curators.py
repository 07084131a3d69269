"""A curator by which charged releases end, in processes and over TLS: the honest one counts it, at whichever step."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, made_world
from veiltab.common.release.state import ReleaseState

LAUNCHER = str(Path(__file__).with_name("lying_launcher.py"))
ENDED = {ReleaseState.EXPIRED, ReleaseState.FAILED}


@pytest.mark.long
@pytest.mark.parametrize("lie", ["nosample", "badsymbol", "wrongkey", "announces"])
def test_a_curator_that_deviates_after_the_charge_is_counted_and_nobody_else(tmp_path: Path, lie: str) -> None:
    """But where the server alone says what the curator did, and both are counted."""
    world = made_world(tmp_path / "study")
    with world.local:
        world.start(BOB, how=(sys.executable, LAUNCHER, lie))
        world.start(ALICE, CLOUD, ROSA)
        tables = ("--tables", "region,income", "--tables", "smoker,income", "--delta", "1e-6")
        given: Any = ((), *tables) if lie == "announces" else (("region", "income"),)
        asked = world.ask(*given, "--label", lie, "--advanced", "lifetime-hours=0.01", epsilon="0.5")
        release_id = str(asked.data["release"]["id"])
        with world.store("alice") as store:
            world.wait_until(lambda: store.releases.knows(release_id), seconds=30)
            world.wait_until(lambda: store.releases.release(release_id).state in ENDED, seconds=90)
            assert store.coins.aborted() == {"curator bob": 1} | ({"server cloud": 1} if lie == "announces" else {})
            assert not store.coins.aborted(claims=True)
        assert world.charges("alice") == [release_id]
