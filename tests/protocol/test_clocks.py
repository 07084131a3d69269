"""Processes whose clocks are days off, or jump: a release that they share is ready, and charged once."""

import importlib.util
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.protocol.chance import agreement
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, RELAY, ROSA, THROUGH_RELAY, Who, World, launcher, made_world
from veiltab.common.release.state import ReleaseState
from veiltab.deploy.pki.certificates import init_pki

PARTIES = (*((RELAY,) if THROUGH_RELAY else ()), ALICE, BOB, CLOUD, ROSA)
NAMES = ("region", "income")
SURE = 1e-6  # level at which an answer is wrong
WEEK = 7 * 86_400
"""Seconds until a release's deadline, which is farther off than any clock here."""


def library() -> Path | None:
    """Return where libfaketime is: of Debian's package, or of the one on PyPI."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    package = importlib.util.find_spec("libfaketime")
    if package is not None and package.origin is not None:
        found += Path(package.origin).parent.glob("vendor/libfaketime/src/libfaketime.so.1")
    return found[0] if found else None


LIBRARY = library()
pytestmark = [pytest.mark.long, pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed")]


def by_clock(file: Path) -> tuple[str, ...]:
    """Return how to start a party whose clock is as far off as a file says, which may change."""
    settings = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return ("env", *(f"{name}={value}" for name, value in settings.items()), *launcher(PACE))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A study whose certificates are old enough for a clock that is behind."""
    world = made_world(tmp_path_factory.mktemp("clocks") / "study")
    shutil.rmtree(world.local.folder / "pki")
    init_pki(world.local.study, world.local.folder / "pki", clock=lambda: datetime.now(UTC) - timedelta(days=5))
    world.local.launcher = launcher(PACE)
    with world.local:
        yield world


def ready(world: World, label: str) -> None:
    with world.client() as client:
        release = client.request(NAMES, epsilon="4", label=label, lifetime_seconds=WEEK)
        assert release.wait(60).state is ReleaseState.READY
        assert agreement(release.estimate(), world.people.counts(NAMES)) > SURE
    assert [world.charges(curator).count(release.id) for curator in ("alice", "bob")] == [1, 1]


@pytest.mark.parametrize("skew", ["+2d", "-2d"])
@pytest.mark.parametrize("who", PARTIES, ids=lambda who: who[1])
def test_a_party_whose_clock_is_two_days_off(world: World, tmp_path: Path, who: Who, skew: str) -> None:
    clock = tmp_path / "clock"
    clock.write_text(skew, "utf-8")
    world.ensure(*PARTIES)
    world.restart(who, how=by_clock(clock))
    ready(world, world.label())
    world.restart(who)
    ready(world, world.label())


@pytest.mark.parametrize("who", PARTIES, ids=lambda who: who[1])
def test_a_clock_that_jumps_in_the_middle_of_a_release(world: World, tmp_path: Path, who: Who) -> None:
    clock = tmp_path / "clock"
    world.ensure(*PARTIES)
    for before, after in (("+2d", "-2d"), ("-2d", "+2d")):
        clock.write_text(before, "utf-8")
        world.restart(who, how=by_clock(clock))
        other = BOB if who == ALICE else ALICE
        world.local.kill(*other, number=signal.SIGTERM)
        label = world.label()
        with world.client() as client:
            client.request(NAMES, epsilon="4", label=label, lifetime_seconds=WEEK)
        # The release waits for the other curator meanwhile.
        clock.write_text(after, "utf-8")
        world.start(other)
        ready(world, label)
    world.restart(who)


def test_the_library_changes_the_clock_of_a_process(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+2d", "utf-8")
    settings = by_clock(clock)[:5]
    shown = subprocess.run(
        [*settings, sys.executable, "-c", "import time; print(time.time())"], capture_output=True, text=True, check=True
    )
    assert float(shown.stdout) - time.time() > 86_400
