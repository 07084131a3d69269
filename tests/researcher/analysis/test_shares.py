"""Score bounds of shares and profile intervals of their contrasts: against slow calculations, and in many releases."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.researcher.analysis.simulated import EDUCATION_BY_SALARY, REGIMES, design_for, releases_of, simulated_counts
from tests.worlds.domains import domain_of
from veiltab.common.core.mechanism import invert
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.contrasts import Contrast, contrast_interval, contrast_values
from veiltab.researcher.analysis.shares import Shares
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.estimates.uncertainty import ReleaseDesign, covariance

Z = 1.959963984540054
GROUPS, EACH = EDUCATION_BY_SALARY.shape


def shares_of_runs(raw: NDArray[np.float64], design: ReleaseDesign) -> Shares:
    """Return the shares of every cell in its group, run by run."""
    wholes = raw.reshape(len(raw), GROUPS, EACH).sum(axis=2)
    return Shares(
        part=raw.reshape(-1),
        whole=np.repeat(wholes, EACH, axis=1).reshape(-1),
        part_cells=np.ones(raw.size),
        whole_cells=np.full(raw.size, float(EACH)),
        terms=design.terms,
    )


def runs_of(regime: str, runs: int, seed: int) -> Shares:
    sample, retention = REGIMES[regime]
    design = design_for(EDUCATION_BY_SALARY, sample, retention)
    counts = simulated_counts(EDUCATION_BY_SALARY, design, runs, np.random.default_rng(seed))
    return shares_of_runs(np.array([invert(row, design.mechanism) for row in counts]), design)


def some_shares(seed: int = 3) -> Shares:
    return runs_of("everyone with much noise", 4, seed)


SPARSE = np.array([[400, 60, 20, 10, 5, 3, 2, 0], [300, 100, 60, 20, 10, 5, 5, 0], [500, 200, 150, 100, 30, 15, 5, 0]])
"""A table of 2,000 people in 24 cells, most of them small."""


def sparse_estimates(runs: int) -> list[Estimate]:
    domain = domain_of(group="abc", part="ijklmnop")
    return releases_of(SPARSE, domain, 2000, 0.35, runs, np.random.default_rng(4))


def sparse_shares(runs: int) -> Shares:
    estimates = sparse_estimates(runs)
    raw = np.array([estimate.raw for estimate in estimates])
    return Shares(
        part=raw.reshape(-1),
        whole=np.repeat(raw.reshape(runs, 3, 8).sum(axis=2), 8, axis=1).reshape(-1),
        part_cells=np.ones(raw.size),
        whole_cells=np.full(raw.size, 8.0),
        terms=estimates[0].design.terms,
    )


def test_projected_shares_are_distributions_and_nearer() -> None:
    truth = (SPARSE / SPARSE.sum(axis=1, keepdims=True)).reshape(-1)
    errors = []
    for estimate in sparse_estimates(200):
        found = conditional_shares(estimate, ["group"])
        projected = found.projected
        assert projected is not None
        np.testing.assert_allclose(projected.reshape(3, 8).sum(axis=1), 1.0)
        assert projected.min() >= 0
        leaves = np.repeat(found.estimate.reshape(3, 8).min(axis=1) < 0, 8)
        np.testing.assert_array_equal(projected != found.estimate, leaves & (projected != found.estimate))
        assert found.leaves_range == leaves.any()
        errors.append([np.mean((values - truth) ** 2) for values in (found.estimate, projected)])
    raw, nearer = np.sqrt(np.mean(errors, axis=0))
    assert nearer < 0.9 * raw


def test_the_cut_leaves_the_coverage_and_shortens_the_interval() -> None:
    # Few people in many cells: a quarter of the raw shares leave 0 to 1, some intervals altogether.
    shares = sparse_shares(400)
    truth = np.tile(SPARSE.reshape(-1) / np.repeat(SPARSE.sum(axis=1), SPARSE.shape[1]), 400)
    low, high = shares.interval(Z)
    raw_low, raw_high = (shares.bounds(np.full((truth.size, 1), z))[:, 0] for z in (-Z, Z))
    covered, before = (low <= truth) & (truth <= high), (raw_low <= truth) & (truth <= raw_high)
    np.testing.assert_array_equal(covered[truth > 0], before[truth > 0])
    assert (covered >= before).all()
    assert ((raw_high < 0) & (low == 0) & (high == 0)).any()
    assert 0.93 < covered.mean() < 0.97
    assert np.mean(high - low) < 0.8 * np.mean(raw_high - raw_low)
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()


@pytest.mark.parametrize("cells", [(1, 2), (2, 3)])
def test_variance_of_a_contrast_is_that_of_the_dense_covariance(cells: tuple[int, int]) -> None:
    part, whole = cells
    design = design_for(EDUCATION_BY_SALARY, 3300, 0.55)
    truth = (EDUCATION_BY_SALARY / EDUCATION_BY_SALARY.sum()).reshape(-1)
    share = Shares(
        part=truth[None, :part].sum(axis=1),
        whole=truth[None, :whole].sum(axis=1),
        part_cells=np.array([float(part)]),
        whole_cells=np.array([float(whole)]),
        terms=design.terms,
    )
    contrast = np.zeros(6)
    contrast[:part] = 1.0
    contrast[:whole] -= share.estimate
    dense = contrast @ covariance(truth, design) @ contrast
    assert share.spread[0] ** 2 == pytest.approx(dense, rel=1e-9)


def test_correlation_of_two_contrasts_is_that_of_the_dense_covariance() -> None:
    design = design_for(EDUCATION_BY_SALARY, 3300, 0.55)
    truth = (EDUCATION_BY_SALARY / EDUCATION_BY_SALARY.sum()).reshape(-1)
    shares = shares_of_runs(truth[None, :], design)
    first, second = shares.take(np.array([3])), shares.take(np.array([1]))
    contrasts = np.zeros((2, 6))
    contrasts[0, 3], contrasts[1, 1] = 1.0, 1.0
    contrasts[0, 2:4] -= first.estimate
    contrasts[1, :2] -= second.estimate
    dense = contrasts @ covariance(truth, design) @ contrasts.T
    expected = dense[0, 1] / np.sqrt(dense[0, 0] * dense[1, 1])
    assert abs(expected) > 1e-3
    assert first.correlation(second)[0] == pytest.approx(expected, rel=1e-6)


def test_bounds_are_the_ends_of_what_the_score_test_accepts() -> None:
    shares = some_shares()
    constant, slope, curvature = shares._variance
    candidates = np.linspace(-1.0, 2.0, 600_001)
    for row in range(shares.part.size):
        variance = constant[row] + candidates * (slope[row] + candidates * curvature[row])
        accepted = candidates[(shares.part[row] - candidates * shares.whole[row]) ** 2 <= Z**2 * variance]
        low, high = (shares.bounds(np.full((shares.part.size, 1), z))[row, 0] for z in (-Z, Z))
        assert low == pytest.approx(accepted[0], abs=1e-5)
        assert high == pytest.approx(accepted[-1], abs=1e-5)


@pytest.mark.parametrize("kind", Contrast)
@pytest.mark.parametrize("correlation", [0.0, 0.4, -0.4])
def test_interval_of_a_contrast_is_its_range_over_the_accepted_pairs(kind: Contrast, correlation: float) -> None:
    shares = some_shares()
    first, second = shares.take(np.array([3])), shares.take(np.array([1]))
    crossed = np.array([correlation])
    low, high = contrast_interval(kind, first, second, Z, crossed)
    # Every pair on a fine grid: its two standardised errors, the quadratic form, the value of the contrast.
    ends = [share.bounds(np.array([[-3.0, 3.0]]))[0] for share in (first, second)]
    p, q = np.meshgrid(*(np.linspace(float(end[0]), float(end[1]), 1201) for end in ends), indexing="ij")
    scores = []
    for share, theta in ((first, p), (second, q)):
        constant, slope, curvature = (coefficient[0] for coefficient in share._variance)
        spread = np.sqrt(constant + theta * (slope + theta * curvature))
        scores.append((share.part[0] - theta * share.whole[0]) / spread)
    form = (scores[0] ** 2 - 2 * correlation * scores[0] * scores[1] + scores[1] ** 2) / (1 - correlation**2)
    values = contrast_values(kind, p, q, upper=True)[form <= Z**2]
    assert low[0] == pytest.approx(values.min(), rel=0.01)
    assert high[0] == pytest.approx(values.max(), rel=0.01)


def test_a_whole_that_may_be_empty_says_nothing() -> None:
    design = design_for(EDUCATION_BY_SALARY, 3300, 0.55)
    noise = np.sqrt(float(design.terms.constant) * 2 - float(design.terms.background) * 4)
    for whole, said in ((1.9 * noise, False), (2.1 * noise, True), (-2.1 * noise, False), (0.0, False)):
        share = Shares(
            part=np.array([whole / 2]),
            whole=np.array([whole]),
            part_cells=np.ones(1),
            whole_cells=np.full(1, 2.0),
            terms=design.terms,
        )
        assert share.is_said(Z)[0] == said


def test_contrasts_of_impossible_shares_have_the_limits_that_they_may_have() -> None:
    p, q = np.array([0.2, 0.0, 1.0, -0.1]), np.array([0.0, 0.0, 0.5, 0.4])
    np.testing.assert_array_equal(contrast_values(Contrast.RATIO, p, q, upper=True), [np.inf, np.inf, 2.0, 0.0])
    np.testing.assert_array_equal(contrast_values(Contrast.RATIO, p, q, upper=False), [np.inf, 0.0, 2.0, 0.0])
    np.testing.assert_array_equal(contrast_values(Contrast.ODDS_RATIO, p, q, upper=True), [np.inf, np.inf, np.inf, 0.0])
    np.testing.assert_allclose(contrast_values(Contrast.DIFFERENCE, p, q, upper=True), [0.2, 0.0, 0.5, -0.5])
    assert contrast_values(Contrast.ODDS_RATIO, np.array([0.5]), np.array([0.2]), upper=True)[0] == pytest.approx(4.0)
