"""Linear models of linked releases, of published data sets: as narrow as means of groups, unbiased, and covering."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.researcher.numbers.linked_releases import People, insurance, releases, serum, true_slopes
from veiltab.researcher.numbers.correlation import correlation
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.numbers.means import means

PEOPLE: Mapping[str, tuple[Callable[[], People], str, tuple[str, ...]]] = {
    "serum": (serum, "2", ("age ~ flc", "age ~ flc + sex")),
    "insurance": (insurance, "1", ("hours ~ insured", "hours ~ education + region", "hours ~ experience + insured")),
}
"""Whose table, epsilon, and the models that are asked for."""


@pytest.mark.parametrize(("people", "formula"), [("serum", "age ~ flc"), ("insurance", "hours ~ insured")])
def test_a_slope_is_no_wider_than_the_difference_of_its_means(people: str, formula: str) -> None:
    made, epsilon, _ = PEOPLE[people]
    response, term = formula.split(" ~ ")
    for tables in releases(made(), epsilon, 2, seed=1):
        (pair,) = (one for one in tables if set(one.domain.names) == {response, term})
        groups, found = means(pair, response, [term]), linear(tables, formula)
        half = (groups.high - groups.low) / 2
        assert (found.high - found.low)[1:] / 2 == pytest.approx(np.hypot(half[0], half[1:]), rel=0.5)
        assert ((found.high - found.low)[1:] / 2 < 1.1 * np.hypot(half[0], half[1:])).all()
        assert any("moments of" in remark for remark in found.remarks)


def test_numbers_may_begin_anywhere() -> None:
    """A release of ages says as much of them as one of years of birth."""
    people = insurance()
    later = {**people, "hours": people["hours"].moved(1000.0)}
    (one,), (two,) = (list(releases(some, "1", 1, seed=4)) for some in (people, later))
    first, second = linear(one, "hours ~ experience + insured"), linear(two, "hours ~ experience + insured")
    np.testing.assert_allclose(second.estimate - first.estimate, [1000, 0, 0], atol=1e-6)
    np.testing.assert_allclose(second.high - second.low, first.high - first.low, rtol=1e-6)


def test_a_correlation_takes_all_tables() -> None:
    people = insurance()
    names = ("hours", "experience")
    more = {name: people[name] for name in (*names, "experience1", "insured")} | {"hours1": people["hours"]}
    (tables,) = releases(more, "2", 1, seed=2)
    found = correlation(tables, names)
    truth = np.corrcoef(np.array([people[name].values.astype(float) for name in names]))[0, 1]
    assert found.low[0] <= truth <= found.high[0]
    fewest = [one for one in tables if "insured" not in one.domain.names]
    assert (found.high - found.low)[0] < (correlation(fewest, names).high - correlation(fewest, names).low)[0]


@pytest.mark.long
@pytest.mark.parametrize("name", PEOPLE)
def test_slopes_are_unbiased_and_intervals_hold(name: str) -> None:
    made, epsilon, formulas = PEOPLE[name]
    people, found = made(), dict[str, list[np.ndarray]]()
    for tables in releases(people, epsilon, 400, seed=3):
        for formula in formulas:
            one = linear(tables, formula)
            found.setdefault(formula, []).append(np.array([one.estimate, one.low, one.high]))
    for formula, each in found.items():
        response, terms = formula.split(" ~ ")
        truth, (estimate, low, high) = true_slopes(people, response, terms.split(" + ")), np.stack(each, axis=1)
        z = (estimate.mean(axis=0) - truth) / (estimate.std(axis=0) / np.sqrt(len(estimate)))
        assert (np.abs(z) < 3.3).all(), (formula, z)
        covered = ((low <= truth) & (truth <= high)).mean(axis=0)
        # 400 releases: a standard error of .011 each; the bound of what rounding adds makes some intervals wide.
        assert ((covered > 0.93) & (covered < 0.985)).all(), (formula, covered)
        assert covered.mean() < 0.98, (formula, covered)
