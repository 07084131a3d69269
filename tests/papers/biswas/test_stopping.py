"""Where to stop: expected distances against bytes."""

from decimal import Decimal

import pytest

from veiltab.common.collection.choosing import choose
from veiltab.papers.biswas.distance_figures import exact_distance
from veiltab.papers.biswas.populations import EPSILONS, NODES
from veiltab.papers.biswas.stopping import best_oracle, distance, relative_error
from veiltab.researcher.frequency.estimators import Estimator


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rate", ["0.1", "1"])
def test_direct_encoding_is_at_the_distance_of_figure_3(epsilon: str, rate: str) -> None:
    expected = exact_distance("one", epsilon, rate, Estimator.C_HAT)
    assert distance("krr", epsilon, float(rate)) == pytest.approx(expected, rel=1e-9)


def test_the_best_oracle_is_the_chooser_s_where_lengths_hardly_count() -> None:
    for epsilon in EPSILONS:
        best = best_oracle(epsilon, 100)
        ranked = choose(100, Decimal(epsilon), population=NODES).candidates
        variances = {candidate.oracle.name: candidate.variance for candidate in ranked}
        assert variances[best] <= 1.1 * min(variances.values())
        assert relative_error("krr", epsilon, 100) == 1
        assert relative_error(best, epsilon, 100) < 1
