"""The commands of docs/tutorial.md, typed in an empty folder one after another."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tutorial.reading import commands, sections
from tests.tutorial.terminals import Reader
from veiltab.deploy.local.processes import free_ports

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs/tutorial.md"
PORTS = ("7400", "7401", "7402", "7410")

OTHER_TABLES: dict[str, dict[str, str]] = {"insurance": {}}
"""What a reader types instead of the page's words, for each folder of tables."""


@pytest.fixture(params=OTHER_TABLES)
def instead(request: pytest.FixtureRequest) -> Mapping[str, str]:
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    return {"insurance": request.param} | OTHER_TABLES[request.param] | ports


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    return tmp_path


@pytest.mark.long
def test_a_reader_gets_a_table_with_few_commands(clone: Path, instead: Mapping[str, str]) -> None:
    parts = sections(TUTORIAL)
    with Reader(folder=clone, instead=instead) as reader:
        for title, text in parts.items():
            printed = [reader.type(command) for command in commands(text)]
            if title == "The result":
                assert len(re.findall(r"\d%", printed[-1])) >= 3 * 4
                assert reader.typed < 15
        assert "https://" not in (reader.folder / "cover.html").read_text()
