"""An estimate is consistent with itself: marginals, sums, projections, and refusals of what cannot be one."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.worlds.domains import domain_of
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign, _sum_of_squares
from veiltab.researcher.estimates.pooling import pooled
from veiltab.researcher.estimates.uncertainty import covariance, total_variance, variances

DOMAIN = domain_of(2, 3, 4)


def make_estimate(seed: int = 0, n: int = 5000, m: int = 800, replacement: int = 2**62) -> Estimate:
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(m, rng.dirichlet(np.ones(24)))
    mechanism = GammaDiagonal(cells=24, replacement=replacement)
    return Estimate(domain=DOMAIN, design=ReleaseDesign(population=n, sample=m, mechanism=mechanism), counts=counts)


@given(st.integers(0, 2**32 - 1), st.sampled_from([names for k in (1, 2, 3) for names in permutations("abc", k)]))
def test_marginal_is_the_sum_of_the_joint_in_the_order_asked(seed: int, names: tuple[str, ...]) -> None:
    joint = make_estimate(seed)
    expected = np.einsum(f"abc->{''.join(names)}", joint.raw.reshape(2, 3, 4))
    part = joint.marginal(names)
    assert part.domain.names == names
    assert part.design.mechanism.retention == joint.design.mechanism.retention
    np.testing.assert_allclose(part.raw, expected.reshape(-1), atol=1e-12)
    assert part.counts.sum() == joint.counts.sum()


@given(st.integers(0, 2**32 - 1))
def test_variance_of_a_marginal_follows_from_the_joint(seed: int) -> None:
    joint = make_estimate(seed)
    truth = np.random.default_rng(seed).dirichlet(np.ones(24))
    # the same formula at the same table, through the larger and through the smaller mechanism
    summing = np.kron(np.eye(2), np.ones((1, 12)))
    through_joint = np.diagonal(summing @ covariance(truth, joint.design) @ summing.T)
    np.testing.assert_allclose(variances(summing @ truth, joint.design.marginal(2)), through_joint, rtol=1e-9)


def test_a_cell_that_expects_less_than_five_rows_has_few() -> None:
    # Of K = 24 and r = 1/4 an empty cell expects m/96 rows.
    sparse, enough = (make_rows(m, np.arange(24) == 3) for m in (400, 480))
    assert sparse.has_few_rows
    assert not enough.has_few_rows
    assert not sparse.marginal(["a"]).has_few_rows
    assert not pooled([sparse, make_rows(400, np.arange(24) == 3)]).has_few_rows
    # More rows than cells, all in use, and yet less than five in each.
    assert make_rows(119, np.ones(24)).has_few_rows
    assert not make_rows(144, np.ones(24)).has_few_rows


def make_rows(m: int, weights: NDArray[Any]) -> Estimate:
    """Return the estimate of m rows that the noise left where they were, and the rest spread evenly."""
    expected = m * (0.75 * weights / weights.sum() + 0.25 / 24)
    counts = np.floor(expected).astype(np.int64)
    counts[np.argsort(counts - expected, kind="stable")[: m - counts.sum()]] += 1
    mechanism = GammaDiagonal(cells=24, replacement=2**62)
    return Estimate(domain=DOMAIN, design=ReleaseDesign(population=5000, sample=m, mechanism=mechanism), counts=counts)


def test_fractions_sum_to_one() -> None:
    estimate = make_estimate()
    assert estimate.raw.sum() == pytest.approx(1)
    assert estimate.projected.sum() == pytest.approx(1)
    assert (estimate.projected >= 0).all()


def test_errors_belong_together() -> None:
    estimate = make_estimate()
    np.testing.assert_allclose(np.sqrt(np.diagonal(estimate.covariance())), estimate.se)
    np.testing.assert_allclose(estimate.contrast_covariance(np.eye(24)), estimate.covariance(), atol=1e-18)
    assert (estimate.low <= np.clip(estimate.raw, 0, 1)).all()
    assert (np.clip(estimate.raw, 0, 1) <= estimate.high).all()
    wider = replace(estimate, confidence=0.99)
    assert ((wider.low < estimate.low) | (wider.low == 0)).all()
    assert ((wider.high > estimate.high) | (wider.high == 0)).all()


def test_expected_error_uses_an_unbiased_sum_of_squares() -> None:
    # 4,000 tables from one truth: the mean of the plug-in, before it is kept in range, is the truth (z at alpha 1e-3)
    truth_rows = np.arange(24) * 20
    n, m = int(truth_rows.sum()), 2000
    mechanism = GammaDiagonal(cells=24, replacement=2**62)
    design = ReleaseDesign(population=n, sample=m, mechanism=mechanism)
    rng = np.random.default_rng(3)
    sampled = rng.multivariate_hypergeometric(truth_rows, m, size=4000, method="marginals")
    kept = rng.binomial(sampled, 0.75)
    counts = kept + rng.multinomial(m - kept.sum(axis=1), np.full(24, 1 / 24))
    raws = [Estimate(domain=DOMAIN, design=design, counts=row).raw for row in counts]
    values = np.array([_sum_of_squares(raw, design) for raw in raws])
    truth = float(((truth_rows / n) ** 2).sum())
    assert abs(values.mean() - truth) / (values.std() / sqrt(4000)) < 3.29
    made = make_estimate()
    assert made.root_mse == pytest.approx(sqrt(total_variance(_sum_of_squares(made.raw, made.design), made.design)))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 1), (800, 800)])
def test_extreme_designs_work(n: int, m: int) -> None:
    estimate = make_estimate(n=n, m=m)
    for values in (estimate.raw, estimate.projected, estimate.se, estimate.low, estimate.high):
        assert np.isfinite(values).all()
    assert estimate.root_mse > 0


def test_one_sampled_row_gives_the_largest_error() -> None:
    estimate = make_estimate(n=1000, m=1)
    assert estimate.root_mse == sqrt(total_variance(1 / 24, estimate.design))


def test_counts_are_copied_and_cannot_be_changed() -> None:
    counts = np.full(24, 10)
    design = ReleaseDesign(population=240, sample=240, mechanism=GammaDiagonal(cells=24, replacement=2**62))
    estimate = Estimate(domain=DOMAIN, design=design, counts=counts)
    counts[0] = 99
    assert estimate.counts[0] == 10
    with pytest.raises(ValueError, match="read-only"):
        estimate.counts[0] = 1


@pytest.mark.parametrize(
    ("counts", "error"),
    [
        (np.full(24, 11), IntegrityError),
        (np.array([250, -10] + [0] * 22), IntegrityError),
        (np.full(12, 20), InvalidInputError),
        (np.full((2, 12), 10), InvalidInputError),
        (np.full(24, 10.0), InvalidInputError),
    ],
)
def test_counts_that_are_not_the_release_are_refused(counts: NDArray[np.int64], error: type[Exception]) -> None:
    design = ReleaseDesign(population=240, sample=240, mechanism=GammaDiagonal(cells=24, replacement=2**62))
    with pytest.raises(error):
        Estimate(domain=DOMAIN, design=design, counts=counts)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda one: replace(one, design=one.design.marginal(12)), "does not have the 24 cells"),
        (lambda one: one.marginal([]), "no attribute"),
        (lambda one: one.marginal(["a", "a"]), "an attribute is listed twice"),
        (lambda one: one.marginal(["z"]), "no attribute 'z'"),
        (lambda one: replace(one, confidence=0.0), "confidence"),
        (lambda one: replace(one, confidence=1.0), "confidence"),
        (lambda one: replace(one, confidence=float("nan")), "confidence"),
    ],
)
def test_what_cannot_be_is_refused(use: Callable[[Estimate], object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        use(make_estimate())
