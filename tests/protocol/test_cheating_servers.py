"""Servers that cheat, as processes among honest parties: the curators find it, and no key leaves."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.village import made_people, write_table
from veiltab.play.demos.cheating_server import Cheat

pytestmark = pytest.mark.long


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, ...]:
    people = made_people(3000, seed=1)
    return tuple(
        write_table(tmp_path / f"{name}.csv", [people], columns, seed)
        for seed, (name, columns) in enumerate({"alice": ["region", "smoker"], "bob": ["income"]}.items())
    )


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
