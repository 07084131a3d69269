"""The claims of an estimate, over many releases of the Adult table: no bias, exact error, honest intervals."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from veiltab.common.core.domain import Attribute, Domain, Symbols
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.researcher.estimation import Estimate, ReleaseDesign
from veiltab.researcher.uncertainty import covariance, total_variance

ADULT = np.array(
    [
        [6222, 2233, 802, 245, 5448, 185, 5218, 91],
        [3897, 4626, 600, 615, 4598, 510, 5770, 319],
        [438, 1715, 48, 198, 385, 270, 588, 201],
    ]
).reshape(-1)
SIZES = (3, 2, 2, 2)
N, M, CELLS = 45222, 3300, 24
TRUTH = ADULT / N
DOMAIN = Domain(
    attributes=tuple(
        Attribute(name=name, categories=tuple(map(str, range(size))))
        for name, size in zip(("education", "marital", "sex", "salary"), SIZES, strict=True)
    )
)
# epsilon = 1 at m close to the exact optimum: gamma = 1 + (e - 1) n/m
MECHANISM = GammaDiagonal.from_gamma(CELLS, 1 + Fraction(exp(1.0) - 1.0) * Fraction(N, M))
DESIGN = ReleaseDesign(population=N, sample=M, mechanism=MECHANISM)
EXACT_MSE = total_variance(float(TRUTH @ TRUTH), DESIGN)


def simulated_counts(runs: int, seed: int) -> NDArray[np.int64]:
    """Histograms of `runs` releases, drawn from the sufficient statistics."""
    rng = np.random.default_rng(seed)
    sampled = rng.multivariate_hypergeometric(ADULT, M, size=runs, method="marginals")
    kept = rng.binomial(sampled, float(DESIGN.mechanism.retention))
    noise = rng.multinomial(M - kept.sum(axis=1), np.full(CELLS, 1 / CELLS))
    counts: NDArray[np.int64] = kept + noise
    return counts


def full_counts(runs: int, seed: int) -> NDArray[np.int64]:
    """Histograms of `runs` releases: rows sampled one by one, every symbol through the product's own kernel."""
    rng = np.random.default_rng(seed)
    table = np.repeat(np.arange(CELLS), ADULT)
    histograms = []
    for _ in range(runs):
        rows = rng.choice(table, M, replace=False)
        columns: list[Symbols] = [column.astype(np.uint8) for column in np.unravel_index(rows, SIZES)]
        perturb(columns, SIZES, MECHANISM, CipherStream(rng.bytes(32)), columns)
        histograms.append(np.bincount(np.ravel_multi_index(tuple(columns), SIZES), minlength=CELLS))
    return np.array(histograms, dtype=np.int64)


def check_claims(counts: NDArray[np.int64], *, mse_tolerance: float) -> None:
    """Unbiasedness (chi-square, alpha 1e-3), mean squared error, and the coverage of the 95% intervals."""
    estimates = [Estimate(domain=DOMAIN, design=DESIGN, counts=row) for row in counts]
    raw = np.array([estimate.raw for estimate in estimates])
    bias = (raw.mean(axis=0) - TRUTH)[:-1]
    spread = covariance(TRUTH, DESIGN)[:-1, :-1] / len(raw)
    assert chi2.sf(float(bias @ np.linalg.solve(spread, bias)), CELLS - 1) > 1e-3
    raw_errors = ((raw - TRUTH) ** 2).sum(axis=1)
    assert raw_errors.mean() == pytest.approx(EXACT_MSE, rel=mse_tolerance)
    projected_errors = np.array([((estimate.projected - TRUTH) ** 2).sum() for estimate in estimates])
    assert (projected_errors <= raw_errors + 1e-15).all()
    for part in (("marital", "salary"), DOMAIN.names):
        covered = [covers(estimate.marginal(part), part) for estimate in estimates]
        assert 0.93 < np.mean(covered) < 0.97


def covers(estimate: Estimate, names: tuple[str, ...]) -> NDArray[np.bool_]:
    others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in names)
    truth = TRUTH.reshape(SIZES).sum(axis=others).reshape(-1)
    inside: NDArray[np.bool_] = (estimate.low <= truth) & (truth <= estimate.high)
    return inside


def test_four_thousand_releases_from_sufficient_statistics() -> None:
    # The relative standard error of the mean squared error is 0.3/sqrt(4000) = 0.5%.
    counts = simulated_counts(4000, 2024)
    check_claims(counts, mse_tolerance=0.02)
    covered = np.array([covers(Estimate(domain=DOMAIN, design=DESIGN, counts=row), DOMAIN.names) for row in counts])
    # each cell on its own: the standard error of a cell's coverage is 0.34%
    assert covered.mean(axis=0).min() > 0.93
    assert covered.mean(axis=0).max() < 0.97


def test_expected_error_that_a_release_reports_is_the_exact_one() -> None:
    reported = [Estimate(domain=DOMAIN, design=DESIGN, counts=row).root_mse ** 2 for row in simulated_counts(500, 7)]
    assert np.mean(reported) == pytest.approx(EXACT_MSE, rel=0.01)


def test_four_hundred_full_releases_through_the_real_kernel() -> None:
    # The relative standard error of the mean squared error is 0.3/sqrt(400) = 1.5%.
    check_claims(full_counts(400, 2025), mse_tolerance=0.05)
