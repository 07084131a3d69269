from pathlib import Path

import pytest

from tests.conftest import Ran
from veiltab.deploy.cli import veiltab
from veiltab.papers import command
from veiltab.papers.privacy.privacy_cli import privacy

SIZES = ("--population", "1000", "--sample", "400")
COMMANDS = {
    ("privacy", "amplify"): (*SIZES, "--epsilon", "1"),
    ("privacy", "certify"): (*SIZES, "--cells", "4", "--gamma", "9", "--delta", "1e-6"),
    ("privacy", "compose"): ("releases.json", "--delta", "1e-6"),
    ("privacy", "gain"): ("--statistic", "mean", "--epsilon", "1"),
    ("reproduce",): ("lin", "--out", "."),
}


def test_every_command_of_the_papers_is_among_these(ran: Ran) -> None:
    assert {path[1] for path in COMMANDS if len(path) == 2} == set(privacy.commands)
    shown = ran(veiltab, "lab", "--help")[1].partition("Commands:")[2]
    assert {line.split()[0] for line in shown.splitlines() if line.startswith("  ")} >= {path[0] for path in COMMANDS}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_without_the_extra_one_line_says_what_to_install(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: tuple[str, ...]
) -> None:
    monkeypatch.setattr(command, "is_installed", lambda: False)
    monkeypatch.chdir(tmp_path)
    code, out, error = ran(veiltab, "lab", *path, *COMMANDS[path])
    assert (code, out, error.strip().count("\n")) == (2, "", 0)
    assert error.startswith(f"veiltab: {path[-1]}: ")
    assert "pip install 'veiltab[papers]'" in error
    assert ran(veiltab, "lab", *path, "--help")[0] == 0
