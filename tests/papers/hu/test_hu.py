import json
from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
import pytest

from veiltab.papers.experiment import Findings, Settings, Task
from veiltab.papers.hu import EXPERIMENT
from veiltab.papers.hu.formulas import FIGURE_5_RATES, largest_rounded_up, noise_bound, ratio_as_written, rounding_limit
from veiltab.papers.hu.medians import sampling_error
from veiltab.papers.hu.populations import SIZE, population
from veiltab.papers.hu.simulation import medians
from veiltab.papers.privacy.gain import sample_epsilon
from veiltab.papers.tables import series_of

QUICK = Settings(trials=20, quick=True, seed=3)


def compute(task: Task) -> Mapping[str, Any]:
    arguments = json.loads(json.dumps(task.arguments))
    generator = np.random.default_rng(list(task.key.encode()))
    found: Mapping[str, Any] = json.loads(json.dumps(task.function(arguments, generator)))
    return found


@pytest.fixture(scope="module")
def results() -> dict[str, Mapping[str, Any]]:
    return {task.key: compute(task) for task in EXPERIMENT.tasks(QUICK)}


@pytest.fixture(scope="module")
def findings(results: dict[str, Mapping[str, Any]]) -> Findings:
    return EXPERIMENT.findings(QUICK, results)


def test_every_figure_is_there(findings: Findings) -> None:
    assert [figure.name for figure in findings.figures] == [f"hu-figure-{number}" for number in range(1, 14)]
    series = series_of(findings.figures)
    assert all(
        np.isfinite([number for number in one["x"] + one["y"] if number is not None]).all() for one in series.values()
    )
    assert not any(None in one["y"] for one in series.values())


def test_the_printed_numbers_that_agree(findings: Findings) -> None:
    wrong = {one.what for one in findings.comparisons if not one.agrees}
    assert wrong == {
        "delta = 1/(2N), as the caption has it",
        "epsilon_n below which a 0.01% sample's mean gains (0: there is none)",
        "sampling rate below which accuracy falls, epsilon = 0.5, lognormal",
        "largest epsilon of the grid at which the median gains, lognormal",
    }
    assert len(findings.comparisons) == 33


def test_the_medians_are_in_order(results: dict[str, Mapping[str, Any]]) -> None:
    of = medians("lognormal", results)
    assert np.all(np.diff(of.whole) < 0)
    assert of.ratios(1.0, 101).mean() > of.ratios(1.0, 1001).mean() > 2
    epsilon_n = sample_epsilon(0.1, population=SIZE, sample=1001)
    squares = (of.ratios(0.1, 1001) * of.whole[1]) ** 2
    assert of.sample_noise(0.1, 1001) == pytest.approx(8 * squares.mean() / epsilon_n**2)
    assert of.sample_variance(0.1, 1001) == pytest.approx(
        of.sample_noise(0.1, 1001) + sampling_error(population("lognormal"), 1001)
    )
    assert of.whole_variance(0.1) == pytest.approx(8 * of.whole[1] ** 2 / 0.01)


@pytest.mark.parametrize("rate", FIGURE_5_RATES)
def test_figure_5_is_rounding(rate: float) -> None:
    epsilon = largest_rounded_up(rate)
    assert ratio_as_written(epsilon, rate) >= 1
    assert 0.5 * rounding_limit(rate) < epsilon < 1.02 * rounding_limit(rate)
    with mpmath.workdps(60):
        x = 1 / mpmath.mpf(rate)
        true = (mpmath.log(1 + x * mpmath.expm1(epsilon)) / (x * epsilon)) ** 2
        assert true < 1
        assert float(1 - true) == pytest.approx(float(x - 1) * epsilon, rel=1e-3)


def test_the_bound_is_that_of_the_paper() -> None:
    # q = .6 at 16.77% for epsilon 3 and at 61.4% for .1.
    assert noise_bound(3.0, population=10**6, sample=167_700) == pytest.approx(0.6, abs=5e-4)
    assert noise_bound(0.1, population=10**6, sample=614_000) == pytest.approx(0.6, abs=5e-4)
