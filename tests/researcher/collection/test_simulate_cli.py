"""`veiltab collect simulate`, as one types it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from veiltab.common.errors import VeiltabError
from veiltab.deploy.cli import veiltab

NAMES = {"c", "g", "c_hat", "T", "hajek", "horvitz_thompson"}
SMALL = ("--nodes", "2000", "--distribution", "binomial:9:0.5", "--epsilon", "2", "--rate", "0.25", "--trials", "50")
FILE = "stratum,population,rate,distribution\nyoung,1200,0.05,binomial:9:0.3\nold,800,0.5,\n"


GOOD = "stratum,population,rate\na,10,0.5\n"


def invoke(*words: str) -> Result:
    return CliRunner().invoke(veiltab, ["collect", "simulate", *words])


def run(*words: str) -> dict[str, Any]:
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*words: str) -> str:
    result = invoke(*words)
    assert isinstance(result.exception, VeiltabError) or result.exit_code == 2, result.output
    return str(result.exception) if isinstance(result.exception, VeiltabError) else result.output


def test_the_promised_keys() -> None:
    found = run(*SMALL, "--domain", "12")
    assert set(found["estimators"]) == NAMES
    for one in found["estimators"].values():
        assert set(one) >= {"bias", "variance", "exact_variance", "total_variation"}
        assert isinstance(one["total_variation"], float)
        assert all(len(one[key]) == 12 for key in ("bias", "variance", "exact_variance", "exact_bias"))
    assert (found["nodes"], found["domain"], found["epsilon"], found["trials"]) == (2000, 12, 2.0, 50)
    assert sum(found["truth"]) == 2000
    assert found["truth"][9:] == [0, 0, 0]
    assert found["strata"] == [{"stratum": "all", "population": 2000, "rate": 0.25}]
    assert found["p"] / found["q"] == pytest.approx(np.exp(2))


def test_strata_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "strata.csv"
    file.write_text(FILE)
    found = run("--strata", str(file), "--distribution", "binomial:9:0.7", "--epsilon", "4", "--nodes", "2000")
    assert [one["rate"] for one in found["strata"]] == [0.05, 0.5]
    assert sum(found["truth"]) == found["nodes"] == 2000
    estimators = found["estimators"]
    assert max(map(abs, estimators["g"]["exact_bias"])) > 50
    assert max(map(abs, estimators["horvitz_thompson"]["exact_bias"])) < 1e-6
    assert estimators["hajek"]["exact"] is False
    assert run("--strata", str(file), "--distribution", "uniform:9", "--epsilon", "4")["truth"] != found["truth"]


def test_a_rate_beside_strata_is_said_to_be_unused(tmp_path: Path) -> None:
    file = tmp_path / "strata.csv"
    file.write_text(FILE)
    result = invoke("--strata", str(file), "--distribution", "uniform:9", "--epsilon", "4", "--rate", "0.1")
    assert result.exit_code == 0
    assert "--rate is not used" in result.stderr
    assert "--rate" not in result.stdout


def test_the_text_says_who_is_biased() -> None:
    text = invoke(*SMALL).output
    assert all(name in text for name in NAMES)
    assert "c is biased" in text
    assert "g is biased" not in text
    everyone = invoke("--nodes", "200", "--distribution", "uniform:4", "--epsilon", "2", "--rate", "1").output
    assert "is biased" not in everyone


@pytest.mark.parametrize("name", ["variance.svg", "variance.png"])
def test_the_picture(tmp_path: Path, name: str) -> None:
    picture = tmp_path / name
    assert invoke(*SMALL, "--plot", str(picture)).exit_code == 0
    first = picture.read_bytes()
    assert first.startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")
    assert invoke(*SMALL, "--plot", str(picture), "--force").exit_code == 0
    assert picture.read_bytes() == first


def test_a_picture_that_cannot_be_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "veiltab.researcher.collection.simulation.simulation.simulate", lambda *_, **__: pytest.fail("computed")
    )
    assert "no such folder" in refused(*SMALL, "--plot", "nowhere/x.svg")


def test_a_picture_of_hardly_any_noise(tmp_path: Path) -> None:
    still = ("--nodes", "20", "--distribution", "uniform:2", "--epsilon", "100", "--rate", "1", "--trials", "3")
    result = invoke(*still, "--plot", str(tmp_path / "still.svg"))
    assert result.exit_code == 0, result.exception


ONE = ("--nodes", "200", "--distribution", "uniform:4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*ONE, "--epsilon", "2"), "--rate: this option was not given"),
        ((*ONE, "--epsilon", "2", "--rate", "nan"), "--rate: a rate must be"),
        ((*ONE, "--epsilon", "nan", "--rate", "1"), "--epsilon"),
        (("--nodes", "200", "--epsilon", "2", "--rate", "1"), "--distribution: this option was not given"),
        (("--distribution", "uniform:4", "--epsilon", "2", "--rate", "1"), "--nodes: this option was not given"),
        ((*ONE, "--epsilon", "2", "--rate", "1", "--domain", "3"), "--domain: a domain of 3 values does not cover"),
        ((*ONE, "--epsilon", "2", "--rate", "1", "--trials", "1"), "--trials"),
        ((*ONE, "--epsilon", "2", "--rate", "1", "--plot", "x.pdf"), "one of .svg, .png"),
        (("--strata", "nowhere.csv", "--epsilon", "2"), "nowhere.csv: the strata cannot be read"),
        ((*ONE, "--epsilon", "2", "--rate", "1e-9"), "had a report"),
    ],
)
def test_what_means_nothing_is_refused_by_name(words: tuple[str, ...], message: str) -> None:
    assert message in refused(*words)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("stratum,population,rate\na,10,\n", (), "line 2, column rate: this stratum has no probability"),
        (GOOD, (), "--distribution: stratum a has no distribution"),
        (GOOD, ("--distribution", "uniform:3", "--nodes", "11"), "--nodes: the strata"),
        (GOOD, ("--distribution", "uniform:3", "--domain", "2"), "--domain"),
        ("\xff", (), "not UTF-8"),
    ],
)
def test_strata_that_do_not_fit_are_refused(tmp_path: Path, text: str, more: tuple[str, ...], message: str) -> None:
    file = tmp_path / "strata.csv"
    file.write_text(text, "latin-1")
    assert message in refused("--strata", str(file), "--epsilon", "2", *more)
