"""What `veiltab plan` says of a release of several tables, before anybody is asked."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.conftest import STUDY
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.pricing.price import price_budget
from veiltab.deploy.cli import veiltab

N = 20_000


@pytest.fixture
def study_path(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_bytes(STUDY.replace(b"epsilon = 1\n", b"epsilon = 2\ndelta = 1e-6\n"))
    return path


def planned(study: Path, *words: str) -> dict[str, Any]:
    """Return what the command says, as JSON."""
    common = ("--study", str(study), "--population", str(N), "--delta", "1e-6", "--json")
    ran = CliRunner().invoke(veiltab, ["plan", *common, *words], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_it_says_what_the_tables_cost_and_how_good_they_are(study_path: Path) -> None:
    found = planned(study_path, "--workload", "linked", "--epsilon", "1")
    assert [tuple(one["attributes"]) for one in found["each"]] == [("sex", "age"), ("sex", "salary"), ("age", "salary")]
    assert [one["cells"] for one in found["each"]] == [6, 4, 6]
    assert (found["tables"], found["repeats"], found["phases"], found["feasible"]) == (3, 3, 2, True)
    budget = price_budget(Decimal(1), Decimal("1e-6"))
    assert found["mu"] == float(budget.mu)
    # All of the price is used, but for what a mechanism of round numbers leaves, and no more.
    whole = float(budget.mu / price_budget(Decimal(2), Decimal("1e-6")).mu) ** 2
    assert 0.95 * whole < found["share_of_budget"] <= 1.02 * whole
    for one in found["each"]:
        assert 0 < one["repeated_error"] < one["error"]
    assert found["pair_error"] == sorted(one["error"] for one in found["each"])[1]
    links = found["bytes"]
    assert set(links) == {
        f"{sender} -> {receiver}"
        for sender, receiver in (
            ("curator alice", "server cloud"),
            ("curator bob", "server cloud"),
            ("server cloud", "researcher rosa"),
            ("curator alice", "researcher rosa"),
            ("curator bob", "researcher rosa"),
        )
    }
    # Each of three pairs twice: alice has a column of two and both of one, bob one of two. Canaries come on top.
    assert 8 * N < links["curator alice -> server cloud"] < 8 * 2.5 * N
    assert 4 * N < links["curator bob -> server cloud"] < 4 * 2.5 * N
    sent = links["curator alice -> server cloud"] + links["curator bob -> server cloud"]
    assert links["server cloud -> researcher rosa"] == sent
    assert (links["curator alice -> researcher rosa"], links["curator bob -> researcher rosa"]) == (8 * 32, 4 * 32)


def test_the_epsilon_that_a_pair_error_needs(study_path: Path) -> None:
    words = ("--workload", "pairs", "--attributes", "salary,age,sex")
    found = planned(study_path, *words, "--pair-error", "0.05")
    assert found["feasible"]
    assert 0.96 * 0.05 < found["pair_error"] <= 0.05
    assert planned(study_path, *words, "--epsilon", str(found["epsilon"]))["pair_error"] == found["pair_error"]


def test_no_price_is_printed_below_itself(study_path: Path) -> None:
    words = ["plan", "--study", str(study_path), "--workload", "pairs", "--population", str(N), "--delta", "1e-6"]
    for epsilon in ("0.3", "0.7", "1"):
        text = CliRunner().invoke(veiltab, [*words, "--epsilon", epsilon]).stdout
        found = planned(study_path, "--workload", "pairs", "--epsilon", epsilon)
        printed = re.search(r"Price: mu = ([\d.]+), which is ([\d.]+)% of the budget", text)
        assert printed
        for number, exact in ((printed[1], found["mu"]), (Decimal(printed[2]) / 100, found["share_of_budget"])):
            assert Decimal(str(exact)) <= Decimal(number) < Decimal(str(exact)) + Decimal("1e-4")


def test_a_pair_error_that_no_epsilon_reaches_is_said(study_path: Path) -> None:
    words = ["--study", str(study_path), "--population", "300", "--delta", "1e-6"]
    ran = CliRunner().invoke(veiltab, ["plan", *words, "--workload", "pairs", "--pair-error", "1e-9"])
    assert "A pair error of 1e-09 cannot be reached with an epsilon up to 20." in ran.stdout
    assert "more than the whole budget of the study" in ran.stdout


def test_tables_may_be_listed(study_path: Path) -> None:
    found = planned(study_path, "--tables", "age,sex", "salary", "--epsilon", "1")
    assert found == planned(study_path, "--tables", "age,sex", "--tables", "salary", "--epsilon", "1")
    assert [one["attributes"] for one in found["each"]] == [["sex", "age"], ["salary"]]
    assert (found["repeats"], found["repeated_pair_error"]) == (0, None)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--epsilon 1 --workload linked --population 500 --delta 1e-6", "without the study file"),
        ("--study S --workload linked --epsilon 1 --delta 1e-6", "the number of respondents"),
        ("--study S --workload linked --epsilon 1 --population 500", "no delta"),
        ("--study S --workload linked --delta 1e-6 --population 500", "an epsilon, or a pair error"),
        ("--study S --workload linked --delta 1e-6 --population 500 --epsilon 1 --pair-error .1", "an epsilon, or a"),
        ("--study S --workload linked --population 500 --pair-error .1", "leave away what is asked for"),
        ("--study S --workload linked --delta 1e-6 --population 500 --epsilon 1 --least-delta", "of one table"),
        ("--study S --workload linked --delta 1e-6 --population 500 --pair-error 0", "between 0 and 1"),
        ("--study S --delta 1e-6 --population 500 --epsilon 1", "name one table of the study"),
        ("--study S --workload linked --delta 1e-6 --population 500 --epsilon .001", "too small for 3 tables"),
        ("--study S --workload linked --delta 1e-6 --population 500 --epsilon 1 --cells 4", "of one table"),
        ("--study S --attributes sex,age --population 500 --epsilon 1 --cells 4", "the study says how many they are"),
        ("--study S --attributes sex,x --population 500 --epsilon 1", "no attribute"),
        ("--attributes sex,age --population 500 --epsilon 1", "without the study file"),
        ("--study S.gone --workload linked --delta 1e-6 --population 500 --epsilon 1", "cannot be read"),
    ],
)
def test_bad_input_is_refused_in_words(study_path: Path, words: str, problem: str) -> None:
    arguments = [word.replace("S", str(study_path)) if word.startswith("S") else word for word in words.split()]
    ran = CliRunner().invoke(veiltab, ["plan", *arguments])
    assert isinstance(ran.exception, InvalidInputError)
    assert problem in str(ran.exception)


def test_of_one_table_any_parameter_comes_from_the_others() -> None:
    for words, asked, value in (
        ("--population 45222 --epsilon 1 --error 0.02", "cells", 9),
        ("--population 45222 --epsilon 1 --cells 24 --error 0.001 --least-delta", "delta", 5.5e-7),
    ):
        found = json.loads(CliRunner().invoke(veiltab, ["plan", *words.split(), "--json"]).stdout)
        assert (found["feasible"], found[asked]) == (True, value)


def test_the_cells_of_one_table_come_from_the_study(study_path: Path) -> None:
    found = planned(study_path, "--attributes", "age,sex", "--epsilon", "1")
    words = ["--population", str(N), "--delta", "1e-6", "--epsilon", "1", "--cells", "6", "--json"]
    alone = json.loads(CliRunner().invoke(veiltab, ["plan", *words], catch_exceptions=False).stdout)
    assert found == alone | {"budget": found["budget"], "charges": found["charges"]}
    study_path.write_text(study_path.read_text().replace("[study]\n", "[study]\nmaximum_cells = 5\n"))
    words = ["--study", str(study_path), "--attributes", "age,sex", "--population", "500", "--epsilon", "1"]
    refused = CliRunner().invoke(veiltab, ["plan", *words]).exception
    assert isinstance(refused, InvalidInputError)
    assert "has 6 cells; the study allows 5" in str(refused)
