"""Means and sums: exact on the table itself, covering under noise, and refused where categories are not numbers."""

import numpy as np
import pytest

from tests.researcher.analysis.simulated import exact, releases_of
from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.numbers.means import mean_contrasts, means, means_by_each, sums

HOURS = (10.0, 20.0, 40.0, 60.0)
DOMAIN = domain_of(sex="mf", hours=("10", "20", "40", "60"))
TABLE = np.array([[300, 700, 3000, 1000], [900, 1600, 2200, 300]])
TRUE_MEANS = TABLE @ HOURS / TABLE.sum(axis=1)


def releases(sample: int, kept: float, runs: int) -> list[Estimate]:
    return releases_of(TABLE, DOMAIN, sample, kept, runs, np.random.default_rng(8))


def test_of_the_table_itself() -> None:
    whole = exact(TABLE, DOMAIN)
    found = means(whole, "hours", ["sex"])
    assert (found.title, found.names) == ("mean of hours given sex", ("m", "f"))
    np.testing.assert_allclose(found.estimate, TRUE_MEANS)
    np.testing.assert_allclose(found.high - found.low, 0, atol=1e-3)
    everybody = means(whole, "hours")
    assert (everybody.title, everybody.names) == ("mean of hours", ("all respondents",))
    np.testing.assert_allclose(everybody.estimate, TABLE.sum(axis=0) @ HOURS / 10_000)
    np.testing.assert_allclose(sums(whole, "hours", ["sex"]).estimate, TABLE @ HOURS)


def test_differences_and_ratios_of_the_table_itself() -> None:
    whole = exact(TABLE, DOMAIN)
    apart = mean_contrasts(whole, Contrast.DIFFERENCE, "hours", ["sex"])
    assert (apart.title, apart.names) == ("difference of the mean of hours given sex, against m", ("f",))
    np.testing.assert_allclose(apart.estimate, TRUE_MEANS[1] - TRUE_MEANS[0])
    over = mean_contrasts(whole, Contrast.RATIO, "hours", ["sex"], {"sex": "f"})
    assert (over.names, over.neutral) == (("m",), 1.0)
    np.testing.assert_allclose([over.estimate, over.low, over.high], TRUE_MEANS[0] / TRUE_MEANS[1], rtol=1e-6)


def test_a_model_with_one_attribute_is_the_difference_of_its_means() -> None:
    domain = domain_of(sex="mfd", hours=("10", "20", "40", "60"))
    table = np.concatenate([TABLE, [[200, 300, 100, 50]]])
    (one,) = releases_of(table, domain, 5000, 0.5, 1, np.random.default_rng(5))
    model, apart = linear([one], "hours ~ sex"), mean_contrasts(one, Contrast.DIFFERENCE, "hours", ["sex"])
    for of_model, of_means in zip(*((a.estimate, a.low, a.high) for a in (model, apart)), strict=True):
        np.testing.assert_allclose(of_model[1:], of_means, rtol=1e-5)


def test_means_by_each_other_attribute() -> None:
    rounded = Attribute(name="pay", categories=("1", "2"), number="tax pay")
    domain = Domain(attributes=(*DOMAIN.attributes, rounded))
    table = exact(np.stack([TABLE, 2 * TABLE], axis=2), domain)
    found = means_by_each(table, "hours")
    assert found.names == ("all respondents", "sex m", "sex f")
    np.testing.assert_allclose(found.estimate, [TABLE.sum(axis=0) @ HOURS / 10_000, *TRUE_MEANS])
    for part, rows in ((means(table, "hours"), slice(1)), (means(table, "hours", ["sex"]), slice(1, 3))):
        np.testing.assert_array_equal(found.low[rows], part.low)
        np.testing.assert_array_equal(found.high[rows], part.high)
    assert len(means_by_each(table, "pay").names) == 1 + 2 + 4


@pytest.mark.long
@pytest.mark.parametrize(("sample", "kept"), [(10_000, 0.3), (3000, 0.7), (10_000, 0.05)])
def test_intervals_cover_and_means_are_unbiased(sample: int, kept: float) -> None:
    runs = 1500
    of_means = [means(one, "hours", ["sex"]) for one in releases(sample, kept, runs)]
    of_sums = [sums(one, "hours", ["sex"]) for one in releases(sample, kept, runs)]
    for found, truth in ((of_means, TRUE_MEANS), (of_sums, TABLE @ HOURS)):
        covered = np.mean([(one.low <= truth) & (truth <= one.high) for one in found], axis=0)
        # 1,500 releases: a standard error of .0056.
        assert (covered > 0.93).all()
        assert (covered < 0.97).all()
    values = np.array([one.estimate for one in of_sums])
    assert (np.abs(values.mean(axis=0) - TABLE @ HOURS) < 4 * values.std(axis=0) / np.sqrt(runs)).all()


@pytest.mark.long
@pytest.mark.parametrize(("sample", "kept"), [(10_000, 0.3), (3000, 0.7), (10_000, 0.1)])
@pytest.mark.parametrize("kind", [Contrast.DIFFERENCE, Contrast.RATIO])
def test_intervals_of_comparisons_cover(sample: int, kept: float, kind: Contrast) -> None:
    truth = TRUE_MEANS[1] - TRUE_MEANS[0] if kind is Contrast.DIFFERENCE else TRUE_MEANS[1] / TRUE_MEANS[0]
    found = [mean_contrasts(one, kind, "hours", ["sex"]) for one in releases(sample, kept, 1500)]
    covered = np.mean([one.low[0] <= truth <= one.high[0] for one in found])
    assert 0.93 < covered < 0.97


def test_a_group_that_may_be_empty_has_no_mean() -> None:
    table = np.array([[0, 1, 0, 0], [900, 1600, 2200, 300]])
    estimates = releases_of(table, DOMAIN, int(table.sum()), 0.05, 20, np.random.default_rng(3))
    found = [means(one, "hours", ["sex"]) for one in estimates]
    assert np.mean([np.isnan(one.estimate[0]) for one in found]) > 0.8
    apart = mean_contrasts(estimates[0], Contrast.RATIO, "hours", ["sex"])
    assert np.isnan([apart.estimate, apart.low, apart.high]).all()
    assert not any(np.isnan(one.estimate[1]) for one in found)


def test_a_model_gives_no_interval() -> None:
    table = ModelledTable(domain=DOMAIN, raw=TABLE.reshape(-1) / 10_000, population=10_000)
    compared = (mean_contrasts(table, kind, "hours", ["sex"]) for kind in (Contrast.DIFFERENCE, Contrast.RATIO))
    for found in (means(table, "hours", ["sex"]), sums(table, "hours"), *compared):
        assert not found.is_measured
        assert np.isnan(found.low).all()
    np.testing.assert_allclose(means(table, "hours", ["sex"]).estimate, TRUE_MEANS)


def test_what_has_no_mean_is_refused() -> None:
    whole = exact(TABLE, DOMAIN)
    with pytest.raises(InvalidInputError, match="'m' of sex is not a number"):
        means(whole, "sex")
    with pytest.raises(InvalidInputError, match="is given"):
        means(whole, "hours", ["hours"])
    with pytest.raises(InvalidInputError, match="odds are of shares"):
        mean_contrasts(whole, Contrast.ODDS_RATIO, "hours", ["sex"])
    with pytest.raises(InvalidInputError, match="without groups"):
        mean_contrasts(whole, Contrast.DIFFERENCE, "hours", [])
    with pytest.raises(InvalidInputError, match="no category 'x'"):
        mean_contrasts(whole, Contrast.DIFFERENCE, "hours", ["sex"], {"sex": "x"})
    with pytest.raises(InvalidInputError, match="income"):
        means(whole, "income")
