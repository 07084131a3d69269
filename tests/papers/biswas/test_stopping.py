"""Where to stop: expected distances against bytes."""

from decimal import Decimal
from math import exp, pi, sqrt

import pytest

from veiltab.common.collection.choosing import choose
from veiltab.papers.biswas.distance_figures import exact_distance
from veiltab.papers.biswas.populations import EPSILONS, NODES
from veiltab.papers.biswas.stopping import (
    TARGET,
    best_oracle,
    distance,
    relative_error,
    stopping_rate,
)
from veiltab.researcher.frequency.estimators import Estimator


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rate", ["0.1", "1"])
def test_direct_encoding_is_at_the_distance_of_figure_3(epsilon: str, rate: str) -> None:
    expected = exact_distance("one", epsilon, rate, Estimator.C_HAT)
    assert distance("krr", epsilon, float(rate)) == pytest.approx(expected, rel=1e-9)


def test_unary_encoding_is_at_the_distance_of_its_known_variance() -> None:
    # Nearly nobody holds most values: n q (1-q)/(pi (p-q)^2) each, which is 4 e^epsilon/(e^epsilon - 1)^2 per node.
    variance = NODES * 4 * exp(1) / (exp(1) - 1) ** 2
    assert distance("oue", "1", 1.0) == pytest.approx(100 * sqrt(2 * variance / pi) / (2 * NODES), rel=0.01)


def test_one_stops_where_the_distance_is_the_target() -> None:
    rate = stopping_rate("krr", "4")
    assert rate is not None
    assert distance("krr", "4", rate) == pytest.approx(TARGET, rel=1e-6)
    assert rate == pytest.approx(0.059, abs=0.001)
    assert stopping_rate("krr", "1") is None
    assert stopping_rate("krr", "1", 2.0) is not None


def test_the_best_oracle_is_the_chooser_s_where_lengths_hardly_count() -> None:
    for epsilon in EPSILONS:
        best = best_oracle(epsilon, 100)
        ranked = choose(100, Decimal(epsilon), population=NODES).candidates
        variances = {candidate.oracle.name: candidate.variance for candidate in ranked}
        assert variances[best] <= 1.1 * min(variances.values())
        assert relative_error("krr", epsilon, 100) == 1
        assert relative_error(best, epsilon, 100) < 1
