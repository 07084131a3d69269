"""Theorem 3.5's variances, against formulas by hand and simulated rounds."""

from math import exp

import numpy as np
import pytest
from scipy import stats

from veiltab.papers.biswas.variances import claimed, exact, simulated
from veiltab.researcher.frequency.estimators import Estimator

ALPHA = 1e-4
POINTS = [(4, "1", "0.1", "0.25"), (100, "4", "0.1", "0"), (100, "1", "0.5", "0.08"), (3, "2", "0.05", "1")]


@pytest.mark.parametrize("point", POINTS)
def test_the_difference_is_reversed_and_the_paper_s_is_not(point: tuple[int, str, str, str]) -> None:
    values, epsilon, rate, share = point
    q = 1 / (exp(float(epsilon)) + values - 1)
    p, pi, f = q * exp(float(epsilon)), float(rate), float(share)
    g, c_hat = (exact(*point, which) for which in (Estimator.G, Estimator.C_HAT))
    assert g - c_hat == pytest.approx((1 - pi) * q * (q + 2 * f * (p - q)) / (pi * (p - q) ** 2), rel=1e-9)
    # Var(S) q^2/(pi^2 (p-q)^2), Var(S) = n pi (1 - pi).
    assert claimed(*point) - g == pytest.approx((1 - pi) / pi * q**2 / (p - q) ** 2, rel=1e-9)
    assert claimed(*point) > g > c_hat


@pytest.mark.parametrize("share", ["0", "0.25", "1"])
def test_simulated_rounds_side_with_the_exact_variances(share: str) -> None:
    arguments = {"values": 4, "epsilon": "1", "rate": "0.1", "share": share, "runs": 12_000}
    found = simulated(arguments, np.random.default_rng(3))
    # 20 batches: Student's t with 19 degrees of freedom.
    far = stats.t.isf(ALPHA / 2, 19)
    point = (4, "1", "0.1", share)
    for name, which in (("g", Estimator.G), ("c_hat", Estimator.C_HAT)):
        mean, error = found[name]
        assert abs(mean - exact(*point, which)) < far * error
    ratio, error = found["ratio"]
    assert abs(ratio - exact(*point, Estimator.G) / exact(*point, Estimator.C_HAT)) < far * error
    assert ratio - far * error > 1
    assert found["c_hat"][0] + far * found["c_hat"][1] < claimed(*point)
