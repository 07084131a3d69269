"""The combining rules hold where the truth is known, and refuse what they cannot combine."""

import numpy as np
import pytest
from scipy import stats

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.microdata.combining import combine, student_quantile


@pytest.mark.parametrize("degrees", [1, 1.3, 2, 4.5, 19, 120, 300, 301, 5000])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.95, 0.975, 0.999])
def test_quantiles_of_student(probability: float, degrees: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-4, abs=1e-9
    )


def test_the_formulas() -> None:
    found = combine([1.0, 2.0, 3.0, 6.0], [0.5, 0.5, 1.0, 1.0])
    between = 1.25 * (4 + 1 + 0 + 9) / 3
    assert found.estimate == 3
    assert not found.is_adjusted
    assert found.variance == pytest.approx(between - 0.75)
    assert found.degrees == pytest.approx(3 * (1 - 0.75 / between) ** 2)
    half = stats.t.ppf(0.975, found.degrees) * np.sqrt(found.variance)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), rel=1e-6)


def test_a_variance_that_is_not_positive_is_replaced() -> None:
    found = combine([1.0, 2.0], [2.0, 2.0])
    assert found.is_adjusted
    assert found.variance == pytest.approx(1.5 * 0.5)
    assert found.degrees == 1


@pytest.mark.parametrize(("copies", "rows", "most"), [(5, 20_000, 0.97), (20, 2000, 0.97), (5, 200, 1.0)])
def test_intervals_hold_a_mean_that_is_known(copies: int, rows: int, most: float) -> None:
    # The release says y = mu + noise; each copy draws mu anew around y, then its rows around that.
    rng = np.random.default_rng(7)
    mean, noise, spread, trials = 3.0, 0.1, 1.0, 1000
    held = 0
    for released in rng.normal(mean, noise, trials):
        centres = rng.normal(released, noise, copies)
        estimates = rng.normal(centres, spread / np.sqrt(rows))
        variances = spread**2 * rng.chisquare(rows - 1, copies) / (rows - 1) / rows
        found = combine(estimates.tolist(), variances.tolist())
        held += found.low <= mean <= found.high
    assert 0.93 <= held / trials <= most


@pytest.mark.parametrize(
    ("estimates", "variances", "confidence"),
    [
        ([1.0], [1.0], 0.95),
        ([1.0, 2.0], [1.0], 0.95),
        ([1.0, float("nan")], [1.0, 1.0], 0.95),
        ([1.0, 2.0], [1.0, float("inf")], 0.95),
        ([1.0, 2.0], [1.0, -1.0], 0.95),
        ([1.0, 2.0], [1.0, 1.0], 1.0),
        ([1.0, 2.0], [1.0, 1.0], float("nan")),
    ],
)
def test_what_cannot_be_combined_is_refused(estimates: list[float], variances: list[float], confidence: float) -> None:
    with pytest.raises(InvalidInputError):
        combine(estimates, variances, confidence=confidence)
