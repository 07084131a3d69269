"""`veiltab plan scale`: what it prints, and what it refuses."""

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.deploy.scale.page import PAGE, commands, renewed
from veiltab.common.command.cli import run
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.cli import veiltab
from veiltab.deploy.plan.plan_cli import plan
from veiltab.deploy.plan.scale.costs import TABLE_COSTS


def said(words: str) -> str:
    return CliRunner().invoke(plan, ["scale", *words.split()], catch_exceptions=False).stdout


def test_fifty_registers_of_a_billion_people() -> None:
    text = said("--curators 50 --rows 1e9")
    assert "50 curators, 1,000,000,000 respondents, 1 attribute of each" in text
    # 49 others with 16 GB of tokens each, and a column of 1 GB.
    assert re.search(r"^each curator .* 788 GB +787 GB  link, ", text, re.MULTILINE)
    assert "bits of a cell's number, if attributes have two categories: 50 of 22. Release pairs of attributes" in text


def test_a_hundred_million_phones_as_one_object() -> None:
    found = json.loads(said("--nodes 1e8 --json"))
    server, researcher = found["parties"]
    assert (server["party"], researcher["party"]) == ("server", "researcher")
    assert server["seconds"] == pytest.approx(found["seconds"], rel=0.01)
    assert "PostgreSQL" in server["remedy"]
    assert found["stages"].keys() == {"enrol", "reports"}
    assert [need["share"] for need in found["needs"]] == sorted(
        (need["share"] for need in found["needs"]), reverse=True
    )
    assert found["unit_costs"]["costs"]["report"]["unit"] == "us of CPU a report"


def test_the_last_line_says_where_the_costs_come_from() -> None:
    assert said("--rows 10").endswith(f"Unit costs: {TABLE_COSTS.source}; --json lists them.\n")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1000000", 10**6), ("1e6", 10**6), ("2.5e8", 250_000_000), ("10^9", 10**9), ("1.50e1", 15), ("3.0", 3)],
)
def test_numbers_are_written_in_several_ways(text: str, number: int) -> None:
    assert f"{number:,} respondents" in said(f"--rows {text}")


@pytest.mark.parametrize(
    "words",
    ["--rows 0", "--rows 1e13", "--nodes 0", "--nodes 1 --reports-per-node 0"]
    + [f"--rows 9 --{name} 0" for name in ("attributes", "sample")]
    + ["--rows 9 --curators 1"],
)
def test_a_number_that_cannot_be_is_refused(words: str) -> None:
    ran = CliRunner().invoke(plan, ["scale", *words.split()])
    assert (ran.exit_code, "to 1,000,000,000,000." in ran.output) == (2, True)


@pytest.mark.parametrize("text", ["1.5", "1e-3", "many", "", "-5", "1e", "2^10", "1.55e1"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    ran = CliRunner().invoke(plan, ["scale", "--rows", text])
    assert (ran.exit_code, "is no whole number" in ran.output) == (2, True)


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("", "--rows, --nodes"),
        ("--rows 10 --nodes 10", "--rows, --nodes"),
        ("--rows 10 --over grpc", "--over"),
        ("--rows 10 --reports-per-node 2", "--reports-per-node"),
        ("--nodes 10 --pairs", "--pairs"),
        ("--nodes 10 --sample 3", "--sample"),
        ("--nodes 10 --canaries 3", "--canaries"),
        ("--rows 10 --link 0", "--link"),
        ("--rows 10 --sample 11", "--sample"),
        ("--rows 10 --picture scale.txt", "scale.txt"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(words: str, where: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        said(words)
    assert refused.value.where == where
    assert refused.value.remedy


def test_options_of_scale_name_their_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["veiltab", "plan", "--nodes", "100"])
    assert run(veiltab) == 2
    assert "is an option of another plan: veiltab plan scale --nodes" in capsys.readouterr().err


def test_the_picture_says_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "scale.svg"
    said(f"--curators 3 --rows 1e8 --picture {path}")
    text = path.read_text()
    for word in ("3 curators, 100,000,000 respondents", "exchange: each curator", "perturb: server", "seconds"):
        assert word in text


def test_the_page_shows_what_the_commands_print() -> None:
    text = PAGE.read_text("utf-8")
    assert {"scale --curators 50 --rows 1e9", "scale --nodes 1e8"} <= set(commands(text))
    assert renewed(text) == text, "python -m tests.deploy.scale.page writes it anew"


def test_a_page_that_shows_something_else_is_noticed() -> None:
    text = PAGE.read_text("utf-8")
    for printed in ("50 curators", "Unit costs: ", "Nothing breaks."):
        assert renewed(text.replace(printed, "Elsewhere")) == text
