"""No command writes over a file of another, unless it is asked to, and it says so before it works."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.errors import ConflictError, InvalidInputError


@click.command()
@click.option("--out", type=NEW_FILE)
@force_option
def write(out: Path) -> None:
    out.write_text("new", "utf-8")


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "wages.csv"
    path.write_text("old", "utf-8")
    refused = CliRunner().invoke(write, ["--out", str(path)]).exception
    assert isinstance(refused, ConflictError)
    assert (path.read_text("utf-8"), refused.where) == ("old", str(path))


@pytest.mark.parametrize("words", [["--force", "--out"], ["--out"]], ids=["before", "after"])
def test_force_overwrites_a_file_wherever_it_stands(tmp_path: Path, words: list[str]) -> None:
    path = tmp_path / "wages.csv"
    path.write_text("old", "utf-8")
    line = [*words, str(path), *([] if "--force" in words else ["--force"])]
    assert CliRunner().invoke(write, line).exit_code == 0
    assert path.read_text("utf-8") == "new"


def test_a_link_to_nothing_and_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert isinstance(CliRunner().invoke(write, ["--out", str(tmp_path / "link.csv")]).exception, ConflictError)
    away = tmp_path / "away" / "wages.csv"
    assert isinstance(CliRunner().invoke(write, ["--out", str(away)]).exception, InvalidInputError)
    assert CliRunner().invoke(write, ["--out", str(tmp_path), "--force"]).exit_code == 2
