"""The second round's rates: as good as a grid finds them, Neyman's where he has an answer, within the budget."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

from tests.conftest import refuses
from tests.researcher.frequency.made_tallies import tally_of
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.researcher.collection.allocation import (
    LEAST_RATE,
    Allocation,
    Objective,
    allocate,
    minimax_rates,
    neyman_rates,
    node_costs,
    stratum_shares,
)
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import moments

STEP = Fraction(1, 10**6)
Floats = NDArray[np.float64]


def randomised_response(epsilon: float, values: int) -> tuple[Fraction, Fraction]:
    gamma = Fraction(exp(epsilon))
    return gamma / (gamma + values - 1), 1 / (gamma + values - 1)


def first_round(truth: list[list[int]], epsilon: float = 3.0) -> Tally:
    """A first round that everybody answered, and in which chance did what it does on average."""
    p, q = randomised_response(epsilon, len(truth[0]))
    rows = np.array(truth)
    counts = np.round(rows * float(p) + (rows.sum(axis=1)[:, None] - rows) * float(q)).astype(np.int64)
    populations = rows.sum(axis=1).tolist()
    design = RoundDesign(populations=tuple(populations), rates=(Fraction(1),) * len(rows), p=p, q=q)
    return tally_of(design, counts, populations)


TWO = first_round([[8000, 1000, 1000], [200, 2000, 1800]])
THREE = first_round([[8000, 1000, 1000], [200, 2000, 1800], [50, 50, 900]], epsilon=6.0)


def test_costs_are_the_exact_variance() -> None:
    truth = np.array([[80, 15, 5], [2, 20, 18]])
    p, q = randomised_response(2.0, 3)
    design = RoundDesign(populations=(100, 40), rates=(Fraction(1, 5), Fraction(1, 2)), p=p, q=q)
    costs = node_costs(truth / truth.sum(axis=1)[:, None], design)
    expected = moments(Estimator.HORVITZ_THOMPSON, truth, design).variance
    np.testing.assert_allclose(costs[0] / 0.2 + costs[1] / 0.5 - truth.sum(axis=0), expected, rtol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_neyman_meets_the_conditions_of_an_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    strata = int(rng.integers(1, 7))
    nodes, costs = rng.uniform(10, 1e6, strata), rng.lognormal(0, 2, strata)
    budget = nodes.sum() * rng.uniform(0.002, 1)
    rates = neyman_rates(costs, nodes, budget, 0.001)
    assert nodes @ rates == pytest.approx(budget)
    assert ((rates >= 0.001) & (rates <= 1)).all()
    # What a report buys is the same in every stratum that could have more or fewer, and is less worth where rates end.
    worth = costs / rates**2 / nodes
    free = (rates > 0.001) & (rates < 1)
    price = worth[free].mean() if free.any() else np.median(worth)
    np.testing.assert_allclose(worth[free], price, rtol=1e-6)
    if free.any():
        assert (worth[rates == 0.001] <= price * (1 + 1e-6)).all()
        assert (worth[rates == 1] >= price * (1 - 1e-6)).all()


def by_sequential_programming(costs: Floats, held: Floats, nodes: Floats, budget: float, start: Floats) -> float:
    """The epigraph form in the rates themselves, solved another way."""
    scale, typical = float(((1 / start) @ costs - held).max()), budget / nodes.sum()

    def bound(x: Floats) -> float:
        return float(x[-1])

    constraints: list[LinearConstraint | NonlinearConstraint] = [
        LinearConstraint(np.append(nodes / nodes.sum(), 0.0)[None, :], 1.0, 1.0),
        NonlinearConstraint(lambda x: x[-1] - ((1 / (x[:-1] * typical)) @ costs - held) / scale, 0.0, np.inf),
    ]
    solved = minimize(
        bound,
        np.append(start / typical, 1.0),
        method="SLSQP",
        bounds=[(0.001 / typical, 1 / typical)] * len(nodes) + [(0.0, 10.0)],
        constraints=constraints,
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert solved.success
    return float(((1 / np.clip(solved.x[:-1] * typical, 0.001, 1)) @ costs - held).max())


@pytest.mark.parametrize("seed", range(8))
def test_the_dual_solves_the_epigraph_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    strata, values = int(rng.integers(2, 7)), int(rng.integers(2, 30))
    p, q = randomised_response(float(rng.choice([1, 4, 8])), values)
    nodes = rng.integers(50, 100_000, strata)
    design = RoundDesign(populations=tuple(nodes.tolist()), rates=(Fraction(1),) * strata, p=p, q=q)
    shares = rng.dirichlet(np.full(values, 0.2), strata)
    costs, held, budget = node_costs(shares, design), nodes @ shares, nodes.sum() * rng.uniform(0.05, 0.9)
    rates = minimax_rates(costs, held, nodes.astype(np.float64), budget, 0.001)
    found = float(((1 / rates) @ costs - held).max())
    other = by_sequential_programming(costs, held, nodes.astype(np.float64), budget, rates)
    assert found == pytest.approx(other, rel=1e-6)
    equal = float((costs.sum(axis=0) * nodes.sum() / budget - held).max())
    assert found <= equal * (1 + 1e-9)


def test_the_sum_over_all_values_is_least_at_equal_rates() -> None:
    found = allocate(THREE, budget=2000, objective=Objective.SUM)
    assert max(found.rates) - min(found.rates) <= STEP
    assert found.variances.sum() == pytest.approx(found.equal_rate_variances.sum(), rel=1e-5)


def test_the_largest_variance_falls() -> None:
    found = allocate(THREE, budget=2000)
    assert found.variances.max() < 0.95 * found.equal_rate_variances.max()


def check_rates(found: Allocation, tally: Tally, budget: Fraction) -> None:
    assert all(LEAST_RATE <= rate <= 1 and rate % STEP == 0 for rate in found.rates)
    reports = sum(n * rate for n, rate in zip(tally.populations, found.rates, strict=True))
    assert found.expected_reports == reports <= budget
    assert budget - reports <= 2 * STEP * sum(tally.populations)


@given(st.fractions(0, 1, max_denominator=10**9))
def test_rates_are_six_digits_and_keep_the_budget(share: Fraction) -> None:
    budget = TWO.design.population * (LEAST_RATE + share * (1 - LEAST_RATE))
    check_rates(allocate(TWO, budget=budget), TWO, budget)


def test_a_rate_just_below_a_whole_step_does_not_break_the_budget() -> None:
    one = first_round([[700, 200, 100]])
    assert allocate(one, budget=300 - Fraction(4, 10**7)).rates == (Fraction(299_999, 10**6),)


def test_the_ends_of_the_budget() -> None:
    assert allocate(TWO, budget=14_000).rates == (Fraction(1), Fraction(1))
    assert allocate(TWO, budget=14).rates == (Fraction(1, 1000),) * 2
    one = first_round([[700, 200, 100]])
    assert allocate(one, budget=300).rates == (Fraction(3, 10),)


def test_a_stratum_without_reports_is_taken_to_be_like_the_others() -> None:
    p, q = randomised_response(2.0, 2)
    design = RoundDesign(populations=(40, 50), rates=(Fraction(1), Fraction(1, 100)), p=p, q=q)
    shares = stratum_shares(tally_of(design, [[30, 10], [0, 0]], [40, 0]))
    np.testing.assert_allclose(shares[0], shares[1])
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_without_noise_too() -> None:
    design = RoundDesign(populations=(100, 300), rates=(Fraction(1), Fraction(1)), p=Fraction(1), q=Fraction(0))
    found = allocate(tally_of(design, [[100, 0], [0, 300]], [100, 300]), budget=200)
    # n_s (1/pi_s - 1) is the same in both strata.
    assert found.variances[0] == pytest.approx(found.variances[1], rel=1e-4)


@pytest.mark.parametrize(("budget", "message"), [(14_001, "14000 nodes"), (13, "is not between 14")])
def test_what_cannot_be_allocated_is_refused(budget: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        allocate(TWO, budget=budget)


def test_a_round_without_reports_says_nothing() -> None:
    with refuses(NotReadyError, where="allocation"):
        allocate(tally_of(TWO.design, TWO.counts * 0, TWO.reports * 0), budget=1000)
