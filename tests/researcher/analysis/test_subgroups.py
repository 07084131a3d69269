"""Totals of subgroups and their comparisons: right numbers, exact variances, honest intervals."""

import numpy as np
import pytest

from tests.researcher.analysis.simulated import ADULT, ADULT_DOMAIN, exact, simulated
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.result import CANNOT_BE_SAID, NO_INTERVAL
from veiltab.researcher.analysis.subgroups import read_subgroup, total_contrasts, totals
from veiltab.researcher.estimates.uncertainty import covariance

TABLE = ADULT.reshape(3, 2, 2, 2)
GROUPS = (
    {"education": ["low"], "salary": ["less"]},
    {"education": ["mid", "high"], "sex": ["m"]},
    {"salary": ["more"]},
)
SIZES = np.array([TABLE[0, :, :, 0].sum(), TABLE[1:, :, 0].sum(), TABLE[..., 1].sum()])


def read(text: str) -> dict[str, tuple[str, ...]]:
    return read_subgroup(Reader(text, ADULT_DOMAIN, where="subgroup"))


def test_totals_count_the_rows_of_the_subgroups() -> None:
    found = totals(exact(ADULT, ADULT_DOMAIN), GROUPS)
    np.testing.assert_allclose(found.estimate, SIZES, atol=1e-3)
    assert found.labels == {"subgroup": ("education=low & salary=less", "education=mid|high & sex=m", "salary=more")}
    assert f"{SIZES[0]:,}" in found.text()


def test_a_total_has_the_exact_variance_of_its_cells() -> None:
    (estimate,) = simulated(ADULT, ADULT_DOMAIN, "everyone with much noise", runs=1, seed=71)
    found = totals(estimate, GROUPS[1:2])
    part = estimate.marginal(["education", "sex"])
    contrast = np.array([[0.0, 0.0, 1.0, 0.0, 1.0, 0.0]])
    error = estimate.population * np.sqrt(part.contrast_covariance(contrast)[0, 0])
    assert (found.high - found.low)[0] / 2 == pytest.approx(1.959964 * error, rel=2e-3)
    other = total_contrasts(estimate, Contrast.DIFFERENCE, [{"education": ["low"]}, {"education": ["mid", "high"]}])
    margin = estimate.marginal(["education"]).contrast_covariance(np.array([[-1.0, 1.0, 1.0]]))[0, 0]
    assert (other.high - other.low)[0] / 2 == pytest.approx(1.959964 * 45_222 * np.sqrt(margin), rel=2e-3)


def test_the_ends_of_a_difference_are_where_the_score_test_turns() -> None:
    (estimate,) = simulated(ADULT, ADULT_DOMAIN, "everyone with much noise", runs=1, seed=74)
    found = total_contrasts(estimate, Contrast.DIFFERENCE, [{"education": ["low"]}, {"education": ["mid", "high"]}])
    contrast, part = np.array([-1.0, 1.0, 1.0]), estimate.marginal(["education"])
    for end in (found.low[0], found.high[0]):
        d = end / estimate.population
        # The variance of the difference depends on the table through d alone, as both subgroups are everybody.
        table = np.array([(1 - d) / 2, (1 + d) / 4, (1 + d) / 4])
        variance = contrast @ covariance(table, part.design) @ contrast
        assert (contrast @ part.raw - d) ** 2 == pytest.approx(1.959963984540054**2 * variance, rel=1e-9)


def test_comparisons_are_with_the_first_subgroup_and_not_of_it() -> None:
    estimate = exact(ADULT, ADULT_DOMAIN)
    men, women = TABLE[:, :, 0].sum(), TABLE[:, :, 1].sum()
    groups = [read("sex=m"), read("sex=f")]
    assert total_contrasts(estimate, Contrast.DIFFERENCE, groups).estimate[0] == pytest.approx(women - men)
    ratio = total_contrasts(estimate, Contrast.RATIO, groups)
    assert ratio.estimate[0] == pytest.approx(women / men)
    assert ratio.neutral == 1.0
    assert ratio.title == "ratio of totals, against sex=m"


def test_a_ratio_to_nobody_cannot_be_said() -> None:
    nobody = ADULT.copy()
    nobody[2] = 0
    (estimate,) = simulated(nobody, ADULT_DOMAIN, "a sample of 3,300 at epsilon 1", runs=1, seed=73)
    one, other = {"education": ["high"], "salary": ["less"]}, {"education": ["high"], "salary": ["more"]}
    assert total_contrasts(estimate, Contrast.RATIO, [one, other]).notes == (CANNOT_BE_SAID,)
    whole = total_contrasts(estimate, Contrast.RATIO, [{"education": ["high"]}, {"education": ["low"]}])
    assert whole.high[0] == np.inf
    assert whole.low[0] > 10


def test_a_model_s_totals_have_no_interval() -> None:
    model = ModelledTable(domain=ADULT_DOMAIN, raw=ADULT.reshape(-1) / ADULT.sum(), population=45_222)
    found = totals(model, GROUPS)
    np.testing.assert_allclose(found.estimate, SIZES)
    assert set(found.notes) == {NO_INTERVAL}
    groups = [{"sex": ["m"]}, {"sex": ["f"]}]
    for kind in (Contrast.DIFFERENCE, Contrast.RATIO):
        assert total_contrasts(model, kind, groups).notes == (NO_INTERVAL,)


def test_subgroups_are_read() -> None:
    assert read("education=mid|high & sex=m") == {"education": ("mid", "high"), "sex": ("m",)}
    for text, message in (
        ("", "an attribute, but the text ends"),
        ("sex", "expected =, but the text ends"),
        ("sex=x", "expected a category of sex, but 'x'"),
        ("sex=m & sex=f", "named twice"),
        ("age=3", "Attributes here: education, marital, sex, salary"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read(text)


def test_impossible_totals_are_refused() -> None:
    estimate = exact(ADULT, ADULT_DOMAIN)
    for groups, message in (
        ([], "no subgroup"),
        ([{"age": ["3"]}], "no attribute 'age'"),
        ([{"sex": ["x"]}], "a list of its categories.*m, f"),
        ([{"sex": "m"}], "a list of its categories"),
        ([{"sex": []}], "a list of its categories"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            totals(estimate, groups)
    with pytest.raises(InvalidInputError, match="two totals"):
        total_contrasts(estimate, Contrast.RATIO, [{"sex": ["m"]}])
    with pytest.raises(InvalidInputError, match="in both subgroups"):
        total_contrasts(estimate, Contrast.RATIO, [{"sex": ["m"]}, {"education": ["low"]}])
    with pytest.raises(InvalidInputError, match="of totals"):
        total_contrasts(estimate, Contrast.ODDS_RATIO, [{"sex": ["m"]}, {"sex": ["f"]}])
