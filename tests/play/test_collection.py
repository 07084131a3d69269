"""What the demonstration of a round chooses, and that its answer is as good as it says."""

import json
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from veiltab.common.collection.choosing import choose
from veiltab.common.collection.population import parse_population
from veiltab.common.errors import InvalidInputError
from veiltab.play.demos.collection import CollectionOptions, foreseen_variation, foresight
from veiltab.researcher.collection.simulation.simulation import simulate
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator


def options(**given: object) -> CollectionOptions:
    return CollectionOptions(out=Path("unused"), **given)  # type: ignore[arg-type]


def test_by_default_the_planner_chooses_and_foresees_a_small_error() -> None:
    choice = options().choice()
    assert choice == choose(12, Decimal(2), population=10_000, rate=0.5)
    assert foreseen_variation(choice) <= 0.1


@pytest.mark.parametrize(("domain", "oracle"), [(12, "krr"), (100, "ss")])
def test_the_oracle_follows_the_domain_unless_it_is_named(domain: int, oracle: str) -> None:
    assert options(domain=domain).choice().best.oracle.name == oracle
    assert options(domain=domain, oracle="oue").choice().best.oracle.name == "oue"
    with pytest.raises(InvalidInputError):
        options(domain=domain, oracle="rappor").choice()


def test_an_answer_no_better_than_a_guess_is_foreseen() -> None:
    assert foresight(options().choice()) == "total variation foreseen for raw estimates: 0.0524"
    said = foresight(options(nodes=2000, domain=100, oracle="krr").choice())
    assert said.startswith("total variation foreseen for raw estimates: 2.08")
    assert "hardly better than a guess" in said


@pytest.mark.parametrize(("values", "least"), [("uniform:12", 0.98), ("binomial:12:0.5", 0.95)])
def test_the_foreseen_error_is_that_of_simulated_rounds_or_a_little_more(values: str, least: float) -> None:
    # The mean over 4000 rounds has a standard error of .003 of itself.
    choice = options(distribution=values, oracle="krr").choice()
    truth = parse_population(values).counts(10_000, 12)[None]
    krr = choice.best.oracle
    design = RoundDesign(populations=(10_000,), rates=(Fraction(1, 2),), p=krr.p, q=krr.q)
    simulated = simulate(truth, design, trials=4000, seed=1)[Estimator.C_HAT]
    assert least < simulated.total_variation / foreseen_variation(choice) < 1.02


@pytest.mark.long
def test_the_answer_is_as_good_as_foreseen(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "veiltab", "demo", "collect", "--json", "--out", str(tmp_path / "round")]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=280).stdout)
    # The sum of twelve nearly normal errors has a standard deviation of a fifth of its mean: this is five of them.
    assert answer["oracle"] == "krr"
    assert answer["total_variation_foreseen"] == pytest.approx(0.0524, abs=0.0001)
    assert answer["total_variation"]["hajek"] < 2 * answer["total_variation_foreseen"]
    assert answer["total_variation_projected"]["hajek"] < 2 * answer["total_variation_foreseen"]
