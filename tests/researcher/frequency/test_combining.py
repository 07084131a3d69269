"""Two rounds together, against weights that are tried one by one and every coin of tiny rounds."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.conftest import refuses
from tests.researcher.frequency.made_tallies import tally_of
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.collection.simulation.simulation import draw_counts
from veiltab.researcher.frequency.balancing import balance
from veiltab.researcher.frequency.combining import best_weights, combine, total_variance
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
ONE = RoundDesign(populations=(600, 400), rates=(HALF, Fraction(1, 5)), p=Fraction(3, 4), q=Fraction(1, 8))
TWO = RoundDesign(populations=(1000,), rates=(Fraction(9, 10),), p=HALF, q=Fraction(1, 4))


@pytest.mark.parametrize("design", [ONE, TWO])
@pytest.mark.parametrize("held", [(0.1, 0.2, 0.7), (1.0, 0.0, 0.0)])
def test_the_sum_of_the_variances_does_not_depend_on_the_values(design: RoundDesign, held: tuple[float, ...]) -> None:
    truth = np.array([[round(nodes * share) for share in held] for nodes in design.populations])
    truth[:, 0] += np.array(design.populations) - truth.sum(axis=1)
    exact = moments(Estimator.HORVITZ_THOMPSON, truth, design).variance.sum()
    assert float(total_variance(design, 3)) == pytest.approx(exact, rel=1e-12)


def test_no_other_weights_are_better() -> None:
    weights = best_weights([ONE, TWO], 3)
    assert sum(weights) == 1

    def together(first: Fraction) -> Fraction:
        return first**2 * total_variance(ONE, 3) + (1 - first) ** 2 * total_variance(TWO, 3)

    assert all(together(weights[0]) <= together(Fraction(tried, 1000)) for tried in range(1001))


def test_every_coin_of_two_tiny_rounds() -> None:
    # Two nodes, values 0 and 1 of two; both rounds enumerated: the mean is the truth, the variance the stated one.
    designs = [
        RoundDesign(populations=(2,), rates=(HALF,), p=Fraction(4, 5), q=Fraction(1, 5)),
        RoundDesign(populations=(2,), rates=(THIRD,), p=Fraction(3, 5), q=Fraction(2, 5)),
    ]
    weights = best_weights(designs, 2)
    mean, second = Fraction(0), Fraction(0)
    laws = []
    for design in designs:
        law: list[tuple[Fraction, Fraction]] = []
        for reports in product((0, 1), repeat=2):
            for supports in product((0, 1), repeat=2):
                chance = Fraction(1)
                for node, (reported, supported) in enumerate(zip(reports, supports, strict=True)):
                    rate, right = design.rates[0], design.p if node == 0 else design.q
                    chance *= (rate if reported else 1 - rate) * (right if supported else 1 - right)
                of = sum(
                    ((supported - design.q) / (design.p - design.q) / design.rates[0])
                    for reported, supported in zip(reports, supports, strict=True)
                    if reported
                )
                law.append((chance, Fraction(of)))
        laws.append(law)
    for (chance, first), (other, after) in product(*laws):
        value = weights[0] * first + weights[1] * after
        mean, second = mean + chance * other * value, second + chance * other * value**2
    stated = [moments(Estimator.HORVITZ_THOMPSON, np.array([[1, 1]]), design).variance[0] for design in designs]
    assert mean == 1
    assert float(second - 1) == pytest.approx(sum(float(w) ** 2 * v for w, v in zip(weights, stated, strict=True)))


def test_what_cannot_be_combined_is_refused() -> None:
    counts, reports = draw_counts(np.array([[600, 250, 150]]), TWO, 1, np.random.default_rng(1))
    one = tally_of(TWO, counts[0], reports[0])
    with pytest.raises(InvalidInputError, match="one round alone"):
        combine([one])
    fewer = RoundDesign(populations=(999,), rates=TWO.rates, p=TWO.p, q=TWO.q)
    with pytest.raises(InvalidInputError, match="other values or other numbers"):
        combine([one, tally_of(fewer, counts[0], reports[0])])


def test_a_balanced_sample_holds_what_is_said() -> None:
    # k-RR over three values: every pair of held and reported value, weighed.
    p, q, held = Fraction(3, 5), Fraction(1, 5), np.array([700, 200, 100])
    counts = np.array([[500, 300, 200]])
    everyone = RoundDesign(populations=(1000,), rates=(Fraction(1),), p=p, q=q)
    found = balance(tally_of(everyone, counts, [1000]), held / 1000)
    assert (found.each, found.size, found.kept_shares.tolist()) == (200, 600, [0.4, 200 / 300, 1.0])
    law = held[:, None] * np.where(np.eye(3) == 1, float(p), float(q))
    np.testing.assert_allclose(found.value_shares, (law / law.sum(axis=0)).mean(axis=1))
    assert found.value_shares.sum() == pytest.approx(1)
    assert found.bias[0] > 0 > found.bias[2]
    sets = replace(everyone, p=HALF, q=THIRD)
    with refuses(InvalidInputError, where="oracle"):
        balance(tally_of(sets, counts, [1000]), held / 1000)
