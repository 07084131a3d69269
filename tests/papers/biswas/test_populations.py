from decimal import Decimal
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.papers.biswas.populations import EPSILONS, NODES, design, randomiser, truth


def test_the_laws_are_the_paper_s() -> None:
    def binomial(n: int, p: float, i: int) -> float:
        return comb(n, i) * p**i * (1 - p) ** (n - i)

    both = [[binomial(50, p, i) for i in range(51)] for p in (0.6, 0.4)]
    laws = {
        "one": [binomial(100, 0.5, i) for i in range(101)],
        "sum": list(np.convolve(both[0], both[1])),
        "mixture": [(a + b) / 2 for a, b in zip(*both, strict=True)] + [0.0] * 50,
    }
    for name, law in laws.items():
        assert np.abs(truth(name)[0] - NODES * np.array(law[1:])).max() < 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_nodes_run_direct_encoding_within_epsilon(epsilon: str) -> None:
    oracle, spec = randomiser(epsilon), design(epsilon, "0.1")
    assert oracle.epsilon <= Decimal(epsilon)
    assert oracle.mechanism == GammaDiagonal.from_gamma(100, exp_below(Decimal(epsilon)))
    assert float(spec.q) == pytest.approx(1 / (exp(float(epsilon)) + 99), rel=1e-11)
    assert float(spec.p / spec.q) == pytest.approx(exp(float(epsilon)), rel=1e-11)
    assert (spec.populations, spec.rates) == ((NODES,), (Fraction(1, 10),))
