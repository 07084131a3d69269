"""Single rounds and distances, against formulas by hand and exact moments."""

from math import sqrt

import numpy as np
import pytest
from scipy import integrate, stats

from veiltab.papers.biswas.expected_distance import expected_distance
from veiltab.papers.biswas.populations import NODES, design, randomiser, truth
from veiltab.papers.biswas.rounds import MODE, distances, draw_rounds, one_round
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

ALPHA = 1e-4
"""False-alarm probability of every statistical test here; the seeds are fixed."""

FOUR = {"population": "one", "epsilon": "4", "rate": "0.3"}
EXACT = moments(Estimator.C_HAT, truth("one"), design("4", "0.3"))


def test_a_round_s_estimates_are_the_paper_s_formulas() -> None:
    found = one_round(FOUR, np.random.default_rng(5))
    spec = design("4", "0.3")
    counts, reports = draw_rounds(truth("one"), spec, randomiser("4").mechanism, 1, np.random.default_rng(5))
    seen, received, p, q = counts[0, 0], int(reports[0, 0]), float(spec.p), float(spec.q)
    c = (seen - NODES * q) / (p - q)
    assert found["reports"] == received
    assert found["g"] == pytest.approx(c / 0.3 + NODES * q * 0.7 / ((p - q) * 0.3))
    assert found["c_hat"] == pytest.approx((seen - received * q) / (0.3 * (p - q)))


def test_projection_brings_an_unbiased_estimate_closer_and_means_are_the_exact_ones() -> None:
    found = distances({**FOUR, "runs": 400}, np.random.default_rng(7))
    for which in ("g", "c_hat", "hajek"):
        assert found[which]["projected"][0] < found[which]["raw"][0]
        mean, error = found[which]["mode"]
        assert abs(mean - truth("one")[0, MODE - 1]) < stats.norm.isf(ALPHA / 2) * error
        # 400 runs tell a standard deviation within 4 times 1/sqrt(800).
        assert error * 20 == pytest.approx(sqrt(EXACT.variance[MODE - 1]), rel=0.15)
    assert found["c"]["mode"][0] < 1000
    mean, error = found["reports"]
    assert error == pytest.approx(sqrt(NODES * 0.3 * 0.7 / 400))
    assert abs(mean - NODES * 0.3) < stats.norm.isf(ALPHA / 2) * error


@pytest.mark.parametrize(("bias", "variance"), [(0.0, 4.0), (3.0, 4.0), (-3.0, 1.0), (-50.0, 1.0)])
def test_the_expected_distance_is_an_integral(bias: float, variance: float) -> None:
    law = stats.norm(bias, sqrt(variance))
    by_hand = sum(integrate.quad(lambda x: abs(x) * law.pdf(x), *ends)[0] for ends in ((-70, bias), (bias, 70)))
    found = expected_distance(np.array([bias, bias]), np.array([variance, variance]), 10)
    assert found == pytest.approx(2 * by_hand / 20, rel=1e-4)
