"""`veiltab study`: from nothing, or from tables that nobody prepared, to a study file that loads."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.command.cli import run
from veiltab.common.study.file import load_study
from veiltab.deploy.study_cli import study

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run_with(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["veiltab study", *args])
        code = run(study)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_with


def as_json(cli: Run, *args: str, code: int = 0) -> Any:  # noqa: ANN401 - as JSON has it
    found, out, _ = cli(*args, "--json")
    assert (found, out.count("\n")) == (code, 1)
    return json.loads(out)


def test_what_init_writes_passes_the_check(cli: Run) -> None:
    code, out, err = cli("init", "--study", "pay")
    assert (code, err) == (0, "")
    assert "veiltab study check study.toml" in out
    found = as_json(cli, "check", "study.toml")
    assert (found["ok"], found["study"], found["problems"]) == (True, "pay", [])
    assert found["digest"] == load_study(Path("study.toml")).digest
    assert cli("check", "study.toml")[1].startswith("study.toml: ready\n")


def test_init_takes_no_id_that_a_study_cannot_have_and_replaces_no_file(cli: Run) -> None:
    code, _, err = cli("init", "--study", "My study")
    assert (code, Path("study.toml").exists()) == (2, False)
    assert "is not a name" in err
    Path("study.toml").write_text("mine")
    code, _, err = cli("init")
    assert (code, Path("study.toml").read_text()) == (5, "mine")
    assert "this file is there already. Name another one with --out" in err


def test_a_file_that_cannot_be_written_is_named(cli: Run) -> None:
    Path("file").write_text("")
    code, _, err = cli("init", "--out", "file/study.toml")
    assert code == 2
    assert "file/study.toml: the file cannot be written" in err


def test_check_says_all_that_is_wrong(cli: Run) -> None:
    cli("init")
    text = Path("study.toml").read_text().replace("owner =", "onwer =").replace("[budget]", "[budjet]")
    Path("study.toml").write_text(text)
    found = as_json(cli, "check", "study.toml", code=2)
    assert not found["ok"]
    assert [problem["problem"] for problem in found["problems"]] == [
        "unknown table 'budjet'",
        "unknown key 'onwer'",
        "unknown key 'onwer'",
    ]
    lines = text.splitlines()
    assert all(problem["problem"].split("'")[1] in lines[problem["line"] - 1] for problem in found["problems"])
    code, out, _ = cli("check", "study.toml")
    assert code == 2
    assert out.startswith("study.toml: 3 problems\n  line ")
    assert "Did you mean 'owner' (the curator whose column it is)?" in out


def test_a_study_file_that_is_not_there_is_named(cli: Run) -> None:
    code, _, err = cli("check", "study.toml")
    assert code == 2
    assert "the study file cannot be read (No such file or directory)" in err
