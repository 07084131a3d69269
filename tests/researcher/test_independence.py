"""The test of independence keeps its level, has power, and is Pearson's where there is no noise."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import chdtrc
from scipy.stats import binomtest, chi2_contingency, kstest

from tests.researcher.analysis.simulated import releases_of
from tests.worlds.domains import domain_of
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.chi_square import chi_square_tail
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign
from veiltab.researcher.estimates.independence import _null_variances, independence, null_covariance
from veiltab.researcher.estimates.uncertainty import covariance

INDEPENDENT = np.outer([5, 3, 2], [4, 3, 2, 1]) * 200


def simulate(
    table: NDArray[np.int64], m: int, retention: float, rng: np.random.Generator, sizes: tuple[int, ...]
) -> Estimate:
    (estimate,) = releases_of(table, domain_of(*sizes), m, retention, 1, rng)
    return estimate


@pytest.mark.parametrize(("m", "retention"), [(2000, 0.5), (20_000, 0.5), (20_000, 0.97)])
def test_level_is_kept_under_independence(m: int, retention: float) -> None:
    rng = np.random.default_rng(11)
    p_values = [
        independence(simulate(INDEPENDENT, m, retention, rng, (3, 4)), ["a"], ["b"]).p_value for _ in range(500)
    ]
    rejected = sum(p < 0.05 for p in p_values)
    assert binomtest(rejected, 500, 0.05).pvalue > 1e-3
    assert kstest(p_values, "uniform").pvalue > 1e-3


def test_association_estimates_cramers_v() -> None:
    rng = np.random.default_rng(14)
    table = np.array([[6000, 2000], [2000, 6000]])  # V = 1/2
    values = [independence(simulate(table, 8000, 0.75, rng, (2, 2)), ["a"], ["b"]).association for _ in range(400)]
    assert np.mean(values) == pytest.approx(0.5, abs=0.005)
    nothing = [
        independence(simulate(INDEPENDENT, 2000, 0.5, rng, (3, 4)), ["a"], ["b"]).association for _ in range(400)
    ]
    assert np.median(nothing) < 0.05


def test_without_noise_it_is_pearsons_test() -> None:
    counts = np.array([[30, 14, 25], [41, 50, 22]])
    design = ReleaseDesign(population=10**12, sample=int(counts.sum()), mechanism=GammaDiagonal(cells=6, replacement=1))
    estimate = Estimate(domain=domain_of(2, 3), design=design, counts=counts.reshape(-1))
    pearson = chi2_contingency(counts, correction=False)
    ours = independence(estimate, ["a"], ["b"])
    assert ours.statistic == pytest.approx(pearson.statistic, rel=1e-8)
    assert ours.p_value == pytest.approx(pearson.pvalue, rel=1e-8)
    assert ours.degrees == pearson.dof


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (5, 2)])
def test_kronecker_form_is_the_dense_delta_method(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(15)
    p, q = rng.dirichlet(np.ones(shape[0])), rng.dirichlet(np.ones(shape[1]))
    mechanism = GammaDiagonal(cells=p.size * q.size, replacement=2**63)
    design = ReleaseDesign(population=900, sample=400, mechanism=mechanism)
    # d_ab = T_ab - T_a. T_.b differentiated entry by entry
    jacobian = np.zeros((p.size, q.size, p.size, q.size))
    for a, b, c, d in np.ndindex(jacobian.shape):
        jacobian[a, b, c, d] = (a == c) * (b == d) - (a == c) * q[b] - (b == d) * p[a]
    full = jacobian.reshape(p.size * q.size, -1)
    dense = full @ covariance(np.outer(p, q).reshape(-1), design) @ full.T
    kept = np.arange(dense.shape[0]).reshape(shape)[:-1, :-1].reshape(-1)
    np.testing.assert_allclose(null_covariance(p, q, design), dense[np.ix_(kept, kept)], atol=1e-15)
    np.testing.assert_allclose(_null_variances(p, q, design).reshape(-1), np.diagonal(dense), atol=1e-15)


def test_order_of_the_attributes_and_of_the_categories_does_not_matter() -> None:
    estimate = simulate(INDEPENDENT, 5000, 0.5, np.random.default_rng(16), (3, 2, 2))
    assert independence(estimate, ["a"], ["b", "c"]).degrees == 6
    shuffled = estimate.counts.reshape(3, 2, 2)[np.ix_([2, 0, 1], [1, 0], [0, 1])].reshape(-1)
    renamed = independence(replace(estimate, counts=shuffled), ["a"], ["b"])
    one = independence(estimate, ["b"], ["a"])
    other = independence(estimate, ["a"], ["b"])
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
    assert one.association == pytest.approx(other.association, abs=1e-9)
    assert renamed.statistic == pytest.approx(other.statistic, rel=1e-9)


def test_small_samples_are_named_as_such() -> None:
    rng = np.random.default_rng(17)
    few = independence(simulate(INDEPENDENT, 40, 0.75, rng, (3, 4)), ["a"], ["b"])
    assert few.approximate
    assert "Rough" in few.verdict
    many = independence(simulate(INDEPENDENT, 20_000, 0.75, rng, (3, 4)), ["a"], ["b"])
    assert not many.approximate
    assert "Rough" not in many.verdict


def test_verdict_says_what_was_found() -> None:
    rng = np.random.default_rng(18)
    table = np.array([[6000, 2000], [2000, 6000]])
    assert "a against b: dependent" in independence(simulate(table, 8000, 0.75, rng, (2, 2)), ["a"], ["b"]).verdict
    calm = independence(simulate(INDEPENDENT, 9000, 0.75, rng, (3, 4)), ["a"], ["b"], level=1e-6)
    assert "does not prove independence" in calm.verdict


@pytest.mark.parametrize(("v", "shown"), [(0.0, "too small for this noise"), (4e-4, "below 0.0005"), (6e-4, "0.001")])
def test_no_association_is_shown_as_zeros(v: float, shown: str) -> None:
    test = independence(simulate(INDEPENDENT, 9000, 0.75, np.random.default_rng(20), (3, 4)), ["a"], ["b"])
    assert f"weighed alike: {shown}." in str(replace(test, association=v))


def test_impossible_tests_are_refused() -> None:
    rng = np.random.default_rng(19)
    estimate = simulate(INDEPENDENT, 5000, 0.75, rng, (3, 2, 2))
    for left, right in ((["a"], ["a"]), (["a", "b"], ["b"]), (["a"], []), (["a"], ["nobody"])):
        with pytest.raises(InvalidInputError):
            independence(estimate, left, right)
    with pytest.raises(InvalidInputError, match="level"):
        independence(estimate, ["a"], ["b"], level=5.0)
    with pytest.raises(InvalidInputError, match="degrees of freedom"):
        independence(simulate(INDEPENDENT, 5000, 0.75, rng, (12, 1)), ["a"], ["b"])


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_category_that_nobody_has_is_refused_wherever_it_stands(empty: int) -> None:
    counts = np.insert([[40, 60], [50, 50]], empty, 0, axis=1).reshape(-1)
    design = ReleaseDesign(population=10**9, sample=200, mechanism=GammaDiagonal(cells=6, replacement=1))
    estimate = Estimate(domain=domain_of(2, 3), design=design, counts=counts)
    with pytest.raises(InvalidInputError, match="no spread"):
        independence(estimate, ["a"], ["b"])


@pytest.mark.parametrize("degrees", [1, 2, 3, 6, 35, 400, 4095])
@pytest.mark.parametrize("ratio", [0.0, 1e-9, 0.3, 1.0, 1.3, 4.0])
def test_the_tail_of_chi_square_is_that_of_scipy(degrees: int, ratio: float) -> None:
    expected = float(chdtrc(degrees, ratio * degrees))
    assert chi_square_tail(ratio * degrees, degrees) == pytest.approx(expected, rel=1e-10, abs=1e-290)
