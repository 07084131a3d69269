"""Central guarantees of rounds, against the certificates they come from."""

from decimal import Decimal
from math import exp, log1p, sqrt

import numpy as np
import pytest

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.papers.biswas.populations import NODES, randomiser, truth
from veiltab.papers.biswas.shuffled import CENTRAL, DELTA, guarantee, planned
from veiltab.papers.experiment import Plain


def of(epsilon: str, rate: str) -> Plain:
    return guarantee({"epsilon": epsilon, "rate": rate}, np.random.default_rng())


@pytest.mark.parametrize("epsilon", ["2", "4"])
def test_a_guarantee_is_the_order_certificate_s(epsilon: str) -> None:
    found = of(epsilon, "0.1")
    oracle = randomiser(epsilon)
    for name, population in (("shuffled", NODES), ("known", 5000)):
        certificate = OrderCertificate(population=population, sample=5000, cells=100, gamma=oracle.gamma)
        assert certificate.delta(found[name]) <= float(DELTA)
        assert certificate.delta(found[name] * 0.99) > float(DELTA)
    assert found["local"] <= float(epsilon)
    assert found["coins"] == pytest.approx(log1p(0.1 * (exp(float(epsilon)) - 1)), rel=1e-9)
    assert found["shuffled"] < found["known"] < found["local"]
    assert found["shuffled"] < found["coins"]


def test_the_errors_are_those_of_c_hat_and_of_a_centre_with_the_same_guarantee() -> None:
    found = of("4", "0.1")
    q = 1 / (exp(4) + 99)
    p, f = q * exp(4), truth("one")[0] / NODES
    variance = NODES * ((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (0.1 * (p - q) ** 2) + f * 0.9 / 0.1)
    assert found["collected"] == pytest.approx(sqrt(variance.mean()), rel=1e-9)
    assert 1 < found["collected"] / found["gaussian"] < 1.3


def test_a_planned_round_keeps_its_central_epsilon_and_uses_it_up() -> None:
    found = planned({"epsilon": "0.5", "rate": "0.2"}, np.random.default_rng())
    for local, kept in ((found["local"] * 0.9999, True), (found["local"] * 1.01, False)):
        gamma = GammaDiagonal.from_gamma(100, exp_below(Decimal(local))).gamma
        certificate = OrderCertificate(population=NODES, sample=10_000, cells=100, gamma=gamma)
        assert (certificate.delta(0.5) <= float(DELTA)) is kept


def test_a_planned_round_is_best_with_everybody_and_never_beats_the_centre() -> None:
    for epsilon in CENTRAL:
        tenth, everybody = (
            planned({"epsilon": epsilon, "rate": rate}, np.random.default_rng()) for rate in ("0.1", "1")
        )
        assert tenth["collected"] > everybody["collected"] > everybody["gaussian"] == tenth["gaussian"]
        assert tenth["local"] > everybody["local"]
