"""Several releases of one table, pooled: no bias, the exact covariance, honest intervals, less error than each."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.researcher.analysis.simulated import ADULT, ADULT_DOMAIN, DOMAIN, EDUCATION_BY_SALARY, design_for, simulated
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.estimates.pooling import PooledDesign, PooledEstimate, pooled
from veiltab.researcher.estimates.uncertainty import covariance

SAMPLE, NOISE = "a sample of 3,300 at epsilon 1", "everyone with much noise"
TRUTH = (EDUCATION_BY_SALARY / EDUCATION_BY_SALARY.sum()).reshape(-1)


def test_covariance_of_a_weighted_sum_is_the_weighted_sum_of_covariances() -> None:
    parts = (design_for(EDUCATION_BY_SALARY, 3300, 0.55), design_for(EDUCATION_BY_SALARY, 45_222, 0.1))
    design = PooledDesign(parts=parts, weights=(Fraction(3, 4), Fraction(1, 4)))
    expected = 0.75**2 * covariance(TRUTH, parts[0]) + 0.25**2 * covariance(TRUTH, parts[1])
    np.testing.assert_allclose(covariance(TRUTH, design), expected, rtol=1e-10)
    np.testing.assert_allclose(covariance(np.full(2, 0.5), design.marginal(2)).sum(axis=0), 0.0, atol=1e-15)
    assert (design.population, design.cells, design.sample) == (45_222, 6, 48_522)


def test_tables_that_contradict_one_another_come_with_a_warning() -> None:
    runs = 300
    pairs = list(
        zip(
            simulated(EDUCATION_BY_SALARY, DOMAIN, SAMPLE, runs=runs, seed=3),
            simulated(EDUCATION_BY_SALARY, DOMAIN, NOISE, runs=runs, seed=4),
            strict=True,
        )
    )
    found = [pooled(pair) for pair in pairs]
    assert max(one.contradiction for one in found) < 6
    # The largest of twelve standard normal deviates is 1.6 in the middle; two parts differ as one contrast each.
    assert 0.8 < np.median([one.contradiction for one in found]) < 3
    assert not any("differ" in remark for remark in conditional_shares(found[0]).remarks)
    (other,) = simulated(EDUCATION_BY_SALARY[::-1], DOMAIN, SAMPLE, runs=1, seed=5)
    wrong = pooled([pairs[0][1], other])
    assert wrong.contradiction > 7
    assert "Do not rely on it." in conditional_shares(wrong).remarks[-1]
    assert pairs[0][0].contradiction == 0


def test_marginals_and_pooling_commute() -> None:
    large = simulated(ADULT, ADULT_DOMAIN, SAMPLE, runs=2, seed=53)
    together = pooled(large)
    assert isinstance(together, PooledEstimate)
    summed = together.raw.reshape(3, 2, 2, 2).sum(axis=(1, 2)).T.reshape(-1)
    turned = together.marginal(["salary", "education"])
    np.testing.assert_allclose(turned.raw, summed, atol=1e-12)
    # Two releases of one design have equal weights.
    np.testing.assert_allclose(pooled(large, ["salary", "education"]).raw, summed, atol=1e-12)
    contrast = np.ones((1, 24))
    assert together.contrast_covariance(contrast)[0, 0] == pytest.approx(0.0, abs=1e-15)


def test_a_better_release_weighs_more_whatever_was_drawn() -> None:
    ones, others = (simulated(EDUCATION_BY_SALARY, DOMAIN, regime, runs=2, seed=54) for regime in (SAMPLE, NOISE))
    found = [pooled(pair) for pair in zip(ones, others, strict=True)]
    weights = {one.design.weights for one in found if isinstance(one, PooledEstimate)}
    assert len(weights) == 1
    (first, second) = next(iter(weights))
    errors = [part.design for part in (ones[0], others[0])]
    traces = [np.trace(covariance(np.full(6, 1 / 6), design)) for design in errors]
    assert float(first / second) == pytest.approx(traces[1] / traces[0], rel=1e-9)


def test_one_release_alone_is_its_own_marginal() -> None:
    (large,) = simulated(ADULT, ADULT_DOMAIN, SAMPLE, runs=1, seed=55)
    np.testing.assert_array_equal(pooled([large], ["sex"]).raw, large.marginal(["sex"]).raw)


ONE, OTHER = simulated(EDUCATION_BY_SALARY, DOMAIN, NOISE, runs=2, seed=56)
(FEWER,) = simulated(EDUCATION_BY_SALARY // 2, DOMAIN, SAMPLE, runs=1, seed=56)


@pytest.mark.parametrize(
    ("pool", "problem"),
    [
        (lambda: pooled([]), "no release"),
        (lambda: pooled([ONE, ONE]), "with itself"),
        (lambda: pooled([ONE, FEWER]), "respondents"),
        (lambda: pooled([ONE, replace(OTHER, study_digest="ab" * 32)]), "study files"),
        (lambda: pooled([ONE, replace(OTHER, confidence=0.9)]), "confidences"),
        (lambda: pooled([ONE, OTHER], "salary"), "a list of names"),
        (lambda: pooled([ONE, OTHER], ["sex"]), "no attribute 'sex'"),
        (lambda: PooledDesign(parts=(ONE.design, OTHER.design), weights=(Fraction(1, 2), Fraction(1, 3))), "sum to 1"),
        (lambda: PooledDesign(parts=(ONE.design, FEWER.design), weights=(Fraction(1, 2),) * 2), "same respondents"),
    ],
)
def test_what_does_not_belong_together_is_not_pooled(pool: Callable[[], object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        pool()
