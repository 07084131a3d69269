"""Simulated rounds follow the law of real ones, and their summary is what a plain calculation gives."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from tests.common.collection.rounds import reports_from, support_of
from tests.conftest import refuses
from veiltab.common.collection.oracles import ORACLE_NAMES, oracle_for
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.errors import InvalidInputError
from veiltab.papers.biswas.krr_design import krr_design
from veiltab.papers.biswas.rounds import draw_rounds
from veiltab.researcher.collection.simulation import simulation as collection
from veiltab.researcher.collection.simulation.simulation import SIMULATED, draw_counts, simulate
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, point_estimates
from veiltab.researcher.frequency.variances import moments

MECHANISM = GammaDiagonal(cells=3, replacement=3 * 2**61)
TRUTH = np.array([[2, 1, 0], [0, 1, 2]])
RATES = (Fraction(1, 2), Fraction(4, 5))
DESIGN = krr_design([3, 3], RATES, MECHANISM)
ALPHA = 1e-4


def node_by_node(rounds: int, seed: int) -> NDArray[np.int64]:
    """Counts of many rounds, every node's coin tossed and every value through the product's own kernel."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([np.repeat(np.arange(3), row) for row in TRUTH])
    strata = np.repeat(np.arange(2), 3)
    column: Symbols = np.tile(values, rounds).astype(np.uint8)
    perturb([column], [3], MECHANISM, CipherStream(rng.bytes(32)), [column])
    heard = rng.random((rounds, 6)) < np.array([float(RATES[s]) for s in strata])
    counts = np.zeros((rounds, 2, 3), np.int64)
    places, nodes = np.nonzero(heard)
    np.add.at(counts, (places, strata[nodes], column.reshape(rounds, 6)[places, nodes]), 1)
    return counts


def test_the_law_is_that_of_the_kernel() -> None:
    rounds = 30_000
    drawn, reports = draw_rounds(TRUTH, DESIGN, MECHANISM, rounds, np.random.default_rng(1))
    assert drawn.shape == (rounds, 2, 3)
    np.testing.assert_array_equal(drawn.sum(axis=2), reports)
    # Whole outcomes, N_si of all strata and values together, as one number each.
    codes = [counts.reshape(rounds, 6) @ 4 ** np.arange(6) for counts in (drawn, node_by_node(rounds, 2))]
    table = np.array([np.bincount(code, minlength=4**6) for code in codes])
    frequent = table.sum(axis=0) >= 40
    rare = table[:, ~frequent].sum(axis=1, keepdims=True)
    assert frequent.sum() > 100
    assert chi2_contingency(np.hstack([table[:, frequent], rare])).pvalue > ALPHA


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_the_count_of_each_value_has_the_law_of_real_reports(name: str) -> None:
    rounds, oracle, rng = 3000, oracle_for(name, 4, Decimal(1)), np.random.default_rng(4)
    held = np.array([[3, 2, 1, 0]])
    design = RoundDesign(populations=(6,), rates=(Fraction(1, 2),), p=oracle.p, q=oracle.q)
    drawn, reports = draw_counts(held, design, rounds, rng)
    real, heard = np.zeros((rounds, 4), np.int64), rng.random((rounds, 6)) < 0.5
    turns, nodes = np.nonzero(heard)
    for turn, report in zip(turns, reports_from(oracle, np.repeat(np.arange(4), held[0])[nodes]), strict=True):
        real[turn, support_of(oracle, report)] += 1
    for value in range(4):
        codes = [
            counts[:, value] * 7 + number
            for counts, number in ((drawn[:, 0], reports[:, 0]), (real, heard.sum(axis=1)))
        ]
        table = np.array([np.bincount(code, minlength=49) for code in codes])
        frequent = table.sum(axis=0) >= 30
        rare = table[:, ~frequent].sum(axis=1, keepdims=True)
        assert chi2_contingency(np.hstack([table[:, frequent], rare + 1])).pvalue > ALPHA


def test_the_summary_is_a_plain_calculation(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = 500
    counts, reports = draw_counts(TRUTH, DESIGN, trials, np.random.default_rng(9))
    found = simulate(TRUTH, DESIGN, trials=trials, seed=9)
    assert tuple(found) == SIMULATED
    held = TRUTH.sum(axis=0)
    for which, one in found.items():
        estimates = point_estimates(which, counts, reports, DESIGN)
        if which is Estimator.HAJEK:
            estimates = estimates[reports.sum(axis=1) > 0]
        assert one.trials == len(estimates)
        np.testing.assert_allclose(one.bias, estimates.mean(axis=0) - held)
        np.testing.assert_allclose(one.variance, estimates.var(axis=0, ddof=1))
        assert one.total_variation == pytest.approx(np.abs(estimates / 6 - held / 6).sum(axis=1).mean() / 2)
        exact = moments(which, TRUTH, DESIGN)
        np.testing.assert_array_equal(one.exact.variance, exact.variance)
        np.testing.assert_array_equal(one.exact.bias, exact.bias)
    # In several batches nothing changes but what is drawn.
    monkeypatch.setattr(collection, "_AT_ONCE", 600)
    again = simulate(TRUTH, DESIGN, trials=trials, seed=9)
    # Variances of 500 trials each: their ratio is 1 within 0.1 or so.
    for which, one in again.items():
        assert one.trials > 0.9 * trials
        ratio = one.variance / found[which].variance
        assert ((ratio > 0.5) & (ratio < 2)).all()


def test_seeds_decide() -> None:
    one, same, other = (simulate(TRUTH, DESIGN, trials=20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[Estimator.G].bias, same[Estimator.G].bias)
    assert (one[Estimator.G].bias != other[Estimator.G].bias).any()


@pytest.mark.parametrize(("trials", "rate", "where"), [(1, Fraction(1), "--trials"), (5, Fraction(1, 10**9), "--rate")])
def test_too_little_to_judge_is_refused(trials: int, rate: Fraction, where: str) -> None:
    with refuses(InvalidInputError, where=where):
        simulate(TRUTH, krr_design([3, 3], (rate, rate), MECHANISM), trials=trials, seed=1)
