"""Conditional shares and comparisons say what they claim: the right way round, with the right sign, or not at all."""

from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from tests.researcher.analysis.simulated import (
    ADULT,
    ADULT_DOMAIN,
    DOMAIN,
    EDUCATION_BY_SALARY,
    REGIMES,
    design_for,
    exact,
    simulated,
)
from tests.worlds.domains import domain_of
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.researcher.analysis.comparisons import compare, conditional_shares, contrasts
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.result import CANNOT_BE_SAID, NO_INTERVAL, NO_UPPER_LIMIT
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import Estimate

SHARES = EDUCATION_BY_SALARY / EDUCATION_BY_SALARY.sum()
MUCH_NOISE = "everyone with much noise"


def test_shares_of_the_salary_given_the_education_are_not_those_of_the_education_given_the_salary() -> None:
    found = conditional_shares(exact(EDUCATION_BY_SALARY, DOMAIN), ["education"])
    by_row = SHARES / SHARES.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.estimate, by_row.reshape(-1), atol=1e-9)
    assert found.title == "share of salary given education"
    assert dict(found.labels) == {
        "education": ("low", "low", "mid", "mid", "high", "high"),
        "salary": ("less", "more") * 3,
    }
    other = conditional_shares(exact(EDUCATION_BY_SALARY, DOMAIN), ["salary"])
    by_column = SHARES / SHARES.sum(axis=0, keepdims=True)
    np.testing.assert_allclose(other.estimate, by_column.T.reshape(-1), atol=1e-9)
    assert list(other.labels) == ["salary", "education"]


def test_shares_given_nothing_are_the_estimates_with_their_intervals() -> None:
    (estimate,) = simulated(EDUCATION_BY_SALARY, DOMAIN, MUCH_NOISE, runs=1, seed=1)
    found = conditional_shares(estimate)
    np.testing.assert_allclose(found.estimate, estimate.raw, rtol=1e-12)
    np.testing.assert_allclose(found.low, estimate.low, rtol=1e-9)
    np.testing.assert_allclose(found.high, estimate.high, rtol=1e-9)


def test_attributes_that_are_not_asked_about_are_summed_over() -> None:
    whole, part = exact(ADULT, ADULT_DOMAIN), exact(EDUCATION_BY_SALARY, DOMAIN)
    found = conditional_shares(whole.marginal(["salary", "education"]), ["education"])
    np.testing.assert_allclose(found.estimate, conditional_shares(part, ["education"]).estimate, atol=1e-9)
    groups = conditional_shares(whole, ["education", "sex"])
    table = ADULT.reshape(3, 2, 2, 2).transpose(0, 2, 1, 3)
    by_group = table / table.sum(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(groups.estimate, by_group.reshape(-1), atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Contrast.DIFFERENCE, lambda p, q: p - q),
        (Contrast.RATIO, lambda p, q: p / q),
        (Contrast.ODDS_RATIO, lambda p, q: (p / (1 - p)) / (q / (1 - q))),
    ],
)
def test_groups_are_compared_with_the_reference_and_not_the_reference_with_them(
    kind: Contrast, expected: Callable[[Floats, Floats], Floats]
) -> None:
    estimate, by_row = exact(EDUCATION_BY_SALARY, DOMAIN), SHARES / SHARES.sum(axis=1, keepdims=True)
    found = contrasts(estimate, kind, ["education"])
    np.testing.assert_allclose(found.estimate, expected(by_row[1:], by_row[:1]).reshape(-1), rtol=1e-6)
    assert found.labels["education"] == ("mid", "mid", "high", "high")
    assert found.neutral == (0.0 if kind is Contrast.DIFFERENCE else 1.0)
    assert (found.low <= found.estimate).all()
    assert (found.estimate <= found.high).all()
    other = contrasts(estimate, kind, ["education"], {"education": "mid"})
    np.testing.assert_allclose(other.estimate, expected(by_row[[0, 2]], by_row[1:2]).reshape(-1), rtol=1e-6)
    assert other.title.endswith("given education, against mid")


def test_a_difference_between_groups_has_the_variance_of_the_delta_method_with_all_covariances() -> None:
    # So many respondents that the delta method is exact enough, and so much noise that the groups are correlated.
    table = 10**10 * np.array([[9, 1], [8, 2]])
    domain = domain_of(group="ab", salary=("less", "more"))
    design = design_for(table, int(table.sum()), 0.05)
    expected = np.rint(design.sample * (0.05 * table.reshape(-1) / table.sum() + 0.95 / 4)).astype(np.int64)
    estimate = Estimate(domain=domain, design=design, counts=expected)
    found = contrasts(estimate, Contrast.DIFFERENCE, ["group"])
    # P(more | b) - P(more | a), differentiated by the four cells.
    gradient = np.array([[1, -9, -2, 8]]) * np.array([[0.1, 0.1, 0.1, 0.1]]) / 0.5
    error = np.sqrt(estimate.contrast_covariance(gradient)[0, 0])
    alone = np.sqrt(sum(estimate.contrast_covariance(gradient * part)[0, 0] for part in ([1, 1, 0, 0], [0, 0, 1, 1])))
    assert abs(error / alone - 1) > 0.02
    assert (found.high - found.low)[1] / 2 == pytest.approx(1.959964 * error, rel=1e-3)


def test_a_share_in_a_group_that_may_be_empty_cannot_be_said() -> None:
    table = np.array([[4000, 6000], [3, 2], [5000, 4000]])
    (estimate,) = simulated(table, DOMAIN, "a sample of 3,300 at epsilon 1", runs=1, seed=5)
    found = conditional_shares(estimate, ["education"])
    assert found.notes == ("", "", CANNOT_BE_SAID, CANNOT_BE_SAID, "", "")
    assert np.isnan(found.estimate[2:4]).all()
    assert np.isfinite(found.estimate[[0, 1, 4, 5]]).all()
    against = contrasts(estimate, Contrast.RATIO, ["education"], {"education": "mid"})
    assert set(against.notes) == {CANNOT_BE_SAID}
    assert against.records()[0]["estimate"] is None
    assert CANNOT_BE_SAID in against.text()


def test_a_ratio_to_a_share_that_may_be_zero_has_no_upper_limit() -> None:
    table = np.array([[9995, 5], [5000, 5000], [5000, 4000]])
    (estimate,) = simulated(table, DOMAIN, "a sample of 3,300 at epsilon 1", runs=1, seed=6)
    found = contrasts(estimate, Contrast.RATIO, ["education"])
    assert found.labels["salary"] == ("less", "more", "less", "more")
    assert found.notes[1] == NO_UPPER_LIMIT
    assert found.high[1] == np.inf
    assert found.low[1] > 1.0
    assert "no limit" in found.text()
    assert np.isfinite(found.high[0])


def test_a_comparison_is_the_first_release_minus_the_second() -> None:
    after = EDUCATION_BY_SALARY.copy()
    after[0] += [-1000, 1000]
    one, other = exact(after, DOMAIN), exact(EDUCATION_BY_SALARY, DOMAIN)
    found = compare(one, other)
    expected = np.array([-1000, 1000, 0, 0, 0, 0]) / EDUCATION_BY_SALARY.sum()
    np.testing.assert_allclose(found.estimate, expected, atol=1e-9)
    turned = compare(one, other.marginal(["salary", "education"]))
    np.testing.assert_array_equal(turned.estimate, found.estimate)
    given = compare(one, other, Contrast.RATIO, ["salary"])
    shares = [table / table.sum(axis=0) for table in (after, EDUCATION_BY_SALARY)]
    np.testing.assert_allclose(given.estimate, (shares[0] / shares[1]).T.reshape(-1), rtol=1e-6)


def test_a_difference_of_releases_has_the_sum_of_their_variances() -> None:
    one, other = (simulated(EDUCATION_BY_SALARY, DOMAIN, regime, runs=1, seed=7)[0] for regime in list(REGIMES)[:2])
    found = compare(one, other)
    z = NormalDist().inv_cdf(0.975)
    half = z * np.sqrt(one.se**2 + other.se**2)
    np.testing.assert_allclose((found.high - found.low) / 2, half, rtol=0.02)
    assert (found.high - found.low > one.high - one.low).all()


def test_values_of_a_model_have_no_interval_and_say_so() -> None:
    model = ModelledTable(domain=DOMAIN, raw=SHARES.reshape(-1), population=45_222)
    measured = exact(EDUCATION_BY_SALARY, DOMAIN)
    for found in (
        conditional_shares(model, ["education"]),
        contrasts(model, Contrast.ODDS_RATIO, ["education"]),
        compare(model, measured),
        compare(measured, model),
    ):
        assert not found.is_measured
        assert set(found.notes) == {NO_INTERVAL}
        assert np.isfinite(found.estimate).all()
        assert np.isnan(found.low).all()
        assert "not of a measurement" in found.text()
    np.testing.assert_allclose(
        conditional_shares(model.marginal(["salary", "education"]), ["education"]).estimate,
        conditional_shares(measured, ["education"]).estimate,
        atol=1e-9,
    )
    with pytest.raises(InvalidInputError, match="sum to 1"):
        replace(model, raw=np.full(6, 0.5))
    with pytest.raises(InvalidInputError, match="6 finite fractions, one a cell"):
        replace(model, raw=np.full(5, 0.2))


def test_cells_that_expect_few_rows_are_warned_of() -> None:
    few = simulated(ADULT, ADULT_DOMAIN, "a sample of 3,300 at epsilon 1", runs=1, seed=1)[0]
    assert conditional_shares(few, ["sex"]).remarks == ()
    counts = 20 * np.eye(24, dtype=np.int64)[3]
    sparse = Estimate(domain=few.domain, design=replace(few.design, sample=20), counts=counts)
    assert conditional_shares(sparse, ["sex"]).remarks == (FEW_ROWS,)
    assert FEW_ROWS in compare(few, sparse).remarks


ONE, OTHER = simulated(EDUCATION_BY_SALARY, DOMAIN, MUCH_NOISE, runs=2, seed=1)
RENAMED = domain_of(education=("low", "mid", "high"), salary=("more", "less"))


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: conditional_shares(ONE, ["education", "salary"]), "nothing is left to ask about"),
        (lambda: conditional_shares(ONE, ["nobody"]), "no attribute 'nobody'"),
        (lambda: conditional_shares(ONE, ["education", "education"]), "twice"),
        (lambda: conditional_shares(ONE, "education"), "a list of names"),
        (lambda: contrasts(ONE, Contrast.RATIO, []), "no groups"),
        (lambda: contrasts(ONE, Contrast.RATIO, ["education"], {"education": "none"}), "no category 'none'.*low, mid"),
        (lambda: contrasts(ONE, Contrast.RATIO, ["education"], {"salary": "more"}), "not among the given"),
        (lambda: compare(ONE, ONE), "with itself"),
        (lambda: compare(ONE, replace(OTHER, study_digest="ab" * 32)), "different study files"),
        (lambda: compare(ONE, replace(OTHER, confidence=0.9)), "confidences"),
        (lambda: compare(ONE, OTHER.marginal(["salary"])), "one release has education, salary, the other salary"),
        (lambda: compare(ONE, replace(OTHER, domain=RENAMED)), "different categories"),
    ],
)
def test_impossible_questions_are_refused(ask: Callable[[], object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        ask()
