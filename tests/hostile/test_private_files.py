"""What a party leaves for others on its machine: no file that they may read, and no copy of its memory."""

import ctypes
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.protocol.world import CLOUD, World, made_world


@dataclass(frozen=True, kw_only=True)
class Used:
    """A study that has run, and what the system allowed each of its processes."""

    world: World
    limits: list[str]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Used:
    """A study after one release; its parties have found state folders that everybody could enter."""
    world = made_world(tmp_path_factory.mktemp("world") / "study")
    for party in world.local.parties:
        folder = world.local.state_folder(*party)
        folder.mkdir()
        folder.chmod(0o755)
    # As any shell has it: new files are for everybody to read.
    world.local.launcher = ("sh", "-c", 'umask 022; exec "$0" "$@"', *world.local.launcher)
    with world.local:
        pids = world.local.start_all()
        limits = [Path(f"/proc/{pid}/limits").read_text("utf-8") for pid in pids.values()]
        answer = world.ask(["region", "income"], "--wait", "--timeout", "60")
        assert answer.code == 0, answer.errors
    return Used(world=world, limits=limits)


def test_no_file_of_a_state_folder_is_open_to_others(used: Used) -> None:
    world, found = used.world, []
    for party in world.local.parties:
        folder = world.local.state_folder(*party)
        paths = [folder, *folder.rglob("*")]
        assert len(paths) > 3
        found += [f"{oct(path.stat().st_mode)} {path}" for path in paths if path.stat().st_mode & 0o077]
    assert not found
    published = next(world.local.state_folder(*CLOUD).rglob("published"))
    assert {path.stat().st_mode & 0o777 for path in published.iterdir()} == {0o600}


def test_no_party_writes_its_memory_to_disk_when_it_crashes(used: Used) -> None:
    assert len(used.limits) == len(used.world.local.parties)
    for limits in used.limits:
        (line,) = (line for line in limits.splitlines() if line.startswith("Max core file size"))
        assert line.split()[4:6] == ["0", "0"]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "prctl"), reason="this system has no prctl")
def test_no_other_process_reads_the_memory_of_a_party() -> None:
    script = """
import ctypes
import click
from veiltab.common.command.cli import run
run(click.Command("nothing", callback=lambda: None))
print(ctypes.CDLL(None).prctl(3))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["0"]


def test_a_state_without_one_of_its_tables_is_refused_in_words(used: Used) -> None:
    world = used.world
    state = world.local.state_folder(*CLOUD)
    with closing(sqlite3.connect(state / "server.sqlite")) as database:
        database.execute("DROP TABLE complete_column")
    answer = world.command(
        *("server", "serve", world.local.study_path, "--name", "cloud", "--state", state),
        *("--identity", world.local.identity_folder(*CLOUD)),
        as_json=False,
    )
    assert answer.code == 5
    assert "not a sound veiltab database" in answer.errors
    assert "Traceback" not in answer.errors
