from math import e, log, log1p

import numpy as np
import pytest

from veiltab.papers.experiment import Findings, Settings
from veiltab.papers.smith import EXPERIMENT, exact, simulated


def findings(trials: int) -> Findings:
    settings = Settings(trials=trials)
    generator = np.random.default_rng(3)
    results = {task.key: task.function(task.arguments, generator) for task in EXPERIMENT.tasks(settings)}
    return EXPERIMENT.findings(settings, results)


def test_the_simulation_is_about_it() -> None:
    # 4 standard errors and 10 rates: a false alarm of 6e-4, and the seed is fixed.
    for rate in np.arange(1, 10) / 10:
        arguments = {"rate": float(rate), "epsilon": 1.0, "runs": 400_000}
        one = simulated(arguments, np.random.default_rng(7))
        assert one["low"] < exact(rate, 1.0) < one["high"]
        assert one["high"] - one["low"] < 0.04


def test_the_lemma_holds_and_its_constant_is_enough_up_to_ln_3() -> None:
    rates = np.arange(1, 100) / 100
    assert all(exact(rate, 1.0) < 2 * rate for rate in rates)
    assert all(exact(rate, log(3)) < 2 * rate for rate in rates)
    assert exact(0.01, 1.2) > 0.02


def test_the_statements_of_the_post() -> None:
    found = {one.what: one for one in findings(200_000).comparisons}
    assert [one.agrees for one in found.values()] == [True, True, False, False]
    assert all(one.note for one in found.values() if not one.agrees)
    ours = [one.ours for one in found.values()]
    assert ours[2] == pytest.approx(log1p(0.1 * (e - 1)))
    assert ours[3] == pytest.approx(0.0612, abs=5e-5)
