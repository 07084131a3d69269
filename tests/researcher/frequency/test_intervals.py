"""Intervals end where the score test turns, agree with those of a release, and cover as often as they say."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from tests.researcher.frequency.made_tallies import tally_of
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.papers.biswas.krr_design import krr_design
from veiltab.papers.biswas.rounds import draw_rounds
from veiltab.researcher.estimates.uncertainty import ReleaseDesign
from veiltab.researcher.estimates.uncertainty import score_interval as release_interval
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, point_estimates
from veiltab.researcher.frequency.intervals import score_interval
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import moments

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
MECHANISM = GammaDiagonal(cells=4, replacement=3 * 2**61)


def drawn(truth: NDArray[np.int64], design: RoundDesign, seed: int) -> Tally:
    counts, reports = draw_rounds(truth, design, MECHANISM, 1, np.random.default_rng(seed))
    return tally_of(design, counts[0], reports[0])


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 0.999))
def test_hajeks_interval_is_that_of_a_release_without_replacement(seed: int, confidence: float) -> None:
    design = krr_design([400, 600], [TENTH, TENTH], MECHANISM)
    tally = drawn(np.array([[200, 100, 90, 10], [600, 0, 0, 0]]), design, seed)
    received = int(tally.reports.sum())
    release = ReleaseDesign(population=1000, sample=received, mechanism=MECHANISM)
    raw = point_estimates(Estimator.HAJEK, tally.counts, tally.reports, design) / 1000
    expected = release_interval(raw, release, confidence)
    for end, other in zip(score_interval(tally, Estimator.HAJEK, confidence), expected, strict=True):
        np.testing.assert_allclose(end, 1000 * other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("which", [which for which in Estimator if which is not Estimator.HAJEK])
def test_ends_are_where_the_test_turns(which: Estimator) -> None:
    # At whole counts the exact variance is that of a population, so the interval can be checked against it: z is chosen
    # so that the lower or the upper end is a whole count.
    design = krr_design([1000], [HALF], MECHANISM)
    counts = np.array([[260, 120, 60, 60]])
    tally = tally_of(design, counts, [500])
    raw = point_estimates(which, counts, np.array([500]), design)
    for held in (640, 730):
        truth = np.array([[held, 1000 - held, 0, 0]])
        exact = moments(which, truth, design)
        z = abs(raw[0] - held - exact.bias[0]) / np.sqrt(exact.variance[0])
        confidence = float(1 - 2 * norm.sf(z))
        low, high = score_interval(tally, which, confidence)
        assert (low if held == 640 else high)[0] == pytest.approx(held, rel=1e-6)


def test_strata_end_where_the_test_turns() -> None:
    # Below the estimate the nodes are spread as they were found, above it those to come as all nodes are.
    design = krr_design([1000, 500], [HALF, TENTH], MECHANISM)
    counts, reports = np.array([[60, 200, 120, 120], [20, 10, 10, 10]]), np.array([500, 50])
    tally = tally_of(design, counts, reports)
    p, q = design.p, design.q
    found = (counts - float(q) * reports[:, None]) / float(p - q) / np.array([[0.5], [0.1]])
    found = np.clip(found, 0, np.array([[1000], [500]]))
    for which in (Estimator.HORVITZ_THOMPSON, Estimator.HAJEK):
        raw = point_estimates(which, counts, reports, design)
        low, high = score_interval(tally, which, 0.9)
        for value in range(4):
            for end in (low, high):
                total = found[:, value].sum()
                if end is low:
                    spread = found[:, value] * end[value] / total if total else np.array([2, 1]) * end[value] / 3
                else:
                    spread = found[:, value] + (end[value] - total) * np.array([2, 1]) / 3
                variance = stratified_variance(which, spread, end[value] / 1500, design)
                expected = norm.isf(0.05) ** 2 * variance
                assert (raw[value] - end[value]) ** 2 == pytest.approx(expected, rel=1e-9)


def stratified_variance(which: Estimator, held: NDArray[np.float64], share: float, design: RoundDesign) -> float:
    """Var(sum of (z - share 1)/pi), or of z/pi, over the reports, node by node."""
    p, q = float(design.p), float(design.q)
    total = 0.0
    for holders, nodes, rate in zip(held, design.populations, map(float, design.rates), strict=True):
        for count, u, value in ((holders, p, 1.0), (nodes - holders, q, 0.0)):
            centre = value - (share if which is Estimator.HAJEK else 0.0)
            total += count * (u * (1 - u) / (p - q) ** 2 / rate + (1 - rate) / rate * centre**2)
    return total


def test_intervals_hold_their_estimate_and_grow_with_the_confidence() -> None:
    for rates in ((HALF, HALF), (HALF, TENTH)):
        design = krr_design([300, 700], rates, MECHANISM)
        tally = drawn(np.array([[200, 100, 0, 0], [0, 0, 350, 350]]), design, 3)
        for which in Estimator:
            raw = point_estimates(which, tally.counts, tally.reports, design)
            narrow, wide = (score_interval(tally, which, confidence) for confidence in (0.8, 0.99))
            assert (wide[0] < narrow[0]).all()
            assert (narrow[1] < wide[1]).all()
            if which is not Estimator.C:
                assert ((narrow[0] <= raw) & (raw <= narrow[1])).all()


def test_the_interval_of_c_is_that_of_g_because_its_bias_is_known() -> None:
    design = krr_design([1000], [TENTH], MECHANISM)
    tally = drawn(np.array([[900, 100, 0, 0]]), design, 5)
    for one, other in zip(*(score_interval(tally, which, 0.95) for which in (Estimator.C, Estimator.G)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert (
        point_estimates(Estimator.C, tally.counts, tally.reports, design)[0]
        < score_interval(tally, Estimator.C, 0.95)[0][0]
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, float("nan")])
def test_impossible_confidence_is_refused(confidence: float) -> None:
    design = krr_design([10], [HALF], MECHANISM)
    with pytest.raises(InvalidInputError, match="confidence"):
        score_interval(tally_of(design, [[1, 0, 0, 1]], [2]), Estimator.HAJEK, confidence)


def test_a_single_report_gives_a_very_wide_interval() -> None:
    for rates in ((TENTH, TENTH), (TENTH, HALF)):
        design = krr_design([10, 10], rates, MECHANISM)
        tally = tally_of(design, [[1, 0, 0, 0], [0, 0, 0, 0]], [1, 0])
        for which in Estimator:
            low, high = score_interval(tally, which, 0.95)
            assert np.isfinite([low, high]).all()
            assert (high - low > 10).all()


# 2,000 rounds; coverage may miss 95% by a point (counts are whole numbers), and by what chance does at ALPHA.
ROUNDS, SLACK, ALPHA = 2000, 0.01, 1e-4


@pytest.mark.long
def test_rare_values_of_a_stratum_that_hardly_reports_are_covered() -> None:
    # Five nodes of a stratum that reports at 5% and hardly any noise: mostly none of them is seen, and the textbook
    # interval around the estimate covers a quarter of the time.
    truth = np.array([[500, 300, 20, 5], [100, 50, 300, 5]])
    quiet = GammaDiagonal.from_gamma(4, Fraction(2981))
    design = krr_design(truth.sum(axis=1).tolist(), [Fraction(1), Fraction(1, 20)], quiet)
    counts, reports = draw_rounds(truth, design, quiet, ROUNDS, np.random.default_rng(12))
    for which in (Estimator.HAJEK, Estimator.HORVITZ_THOMPSON):
        ends = [
            score_interval(tally_of(design, one, heard), which, 0.95)
            for one, heard in zip(counts, reports, strict=True)
        ]
        covered = np.mean([(low <= truth.sum(axis=0)) & (truth.sum(axis=0) <= high) for low, high in ends], axis=0)
        assert (covered > 0.9).all(), which
