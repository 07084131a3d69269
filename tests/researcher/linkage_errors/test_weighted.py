"""Weighted tables: values, errors and marginals by slow calculations, pools, coverage, and rates that do not fit."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.researcher.linkage_errors.made_links import (
    SHARES,
    Floats,
    people,
    rates_by_age,
    released,
    relinked,
    undone,
    weighed,
)
from tests.researcher.linkage_errors.test_corrected import QUESTIONS as EVERY
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.match_rates import MatchRates
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.linkage_errors.weighted import WeightedEstimate, pooled_categories, weighted
from veiltab.researcher.questions.question import Question, answer

CHANCES = np.array([0.95, 0.9, 0.8, 0.55])
"""How likely a person of each age is linked: old people less often."""

AGE_SEX = ("sex", "age")

EVERYONE = people(20_000, SHARES)
LINKED = np.rint(EVERYONE * CHANCES[:, None]).astype(np.int64)
RATES = rates_by_age(LINKED.sum(axis=1), EVERYONE.sum(axis=1), "0.1")


@pytest.fixture(scope="module")
def observed() -> Estimate:
    return released(LINKED, 200, np.random.default_rng(1))


def slowly(table: Floats, every: Floats) -> Floats:
    """Return the weighted table, cell by cell: the age of everyone, the wages of the linked of that age."""
    by_age = table.reshape(4, 3)
    found = [every[age] / every.sum() * by_age[age] / by_age[age].sum() for age in range(4)]
    return np.array(found).reshape(-1)


def numbers(rates: MatchRates) -> Floats:
    return np.add(rates.linked, rates.unlinked).astype(np.float64)


def test_a_table_is_weighted_to_that_of_everyone(observed: Estimate) -> None:
    found = weighed(observed, RATES)
    assert found.raw == pytest.approx(slowly(observed.raw, numbers(RATES)), abs=1e-15)
    assert found.raw.sum() == pytest.approx(1)
    ages = found.raw.reshape(4, 3).sum(axis=1)
    assert np.abs(ages - SHARES.sum(axis=1)).max() < 0.02
    assert np.abs(observed.raw.reshape(4, 3).sum(axis=1) - SHARES.sum(axis=1)).max() > 0.05


def slow_covariance(observed: Estimate, rates: MatchRates) -> Floats:
    """Return the covariance by numeric slopes, and what the draw of links adds person by person."""
    every, step, table = numbers(rates), 1e-7, observed.raw
    by_cell = np.array(
        [(slowly(table + step * one, every) - slowly(table - step * one, every)) / (2 * step) for one in np.eye(12)]
    ).T
    step = 1e-3
    by_count = np.array(
        [(slowly(table, every + step * one) - slowly(table, every - step * one)) / (2 * step) for one in np.eye(4)]
    )
    found: Floats = by_cell @ observed.covariance() @ by_cell.T + 2 * rates.sd**2 * by_count.T @ by_count
    likely = slowly(observed.projected, every).reshape(4, 3)
    linked = observed.population * table.reshape(4, 3).sum(axis=1)
    for age in range(4):
        # The mean over m of N people has 1/m - 1/N times the covariance of one of them.
        one = likely[age] / likely[age].sum()
        part = slice(3 * age, 3 * age + 3)
        share = likely[age].sum() ** 2
        found[part, part] += share * (1 / linked[age] - 1 / every[age]) * (np.diag(one) - np.outer(one, one))
    return found


@pytest.mark.parametrize("epsilon", ["0.1", "2"])
def test_the_covariance_is_that_of_a_slow_calculation(observed: Estimate, epsilon: str) -> None:
    rates = replace(RATES, epsilon=Decimal(epsilon))
    found, expected = weighed(observed, rates), slow_covariance(observed, rates)
    assert np.abs(found.covariance() - expected).max() < 1e-6 * np.abs(expected).max()
    assert found.se == pytest.approx(np.sqrt(np.diagonal(expected)), rel=1e-5)
    some = np.random.default_rng(2).normal(size=(3, 12))
    assert found.contrast_covariance(some) == pytest.approx(some @ expected @ some.T, rel=1e-5)
    assert (found.high - found.low) / (2 * 1.959964 * found.se) == pytest.approx(np.ones(12), abs=0.03)


def test_marginals_are_those_of_the_weighted_table(observed: Estimate) -> None:
    found = weighed(observed, RATES)
    turned = found.marginal(["wage", "age"])
    assert turned.raw.reshape(3, 4).T.reshape(-1) == pytest.approx(found.raw, abs=1e-15)
    assert turned.se.reshape(3, 4).T.reshape(-1) == pytest.approx(found.se, rel=1e-9)
    wages = found.marginal(["wage"])
    adding = np.tile(np.eye(3), 4)
    assert wages.raw == pytest.approx(adding @ found.raw, abs=1e-15)
    assert wages.covariance() == pytest.approx(adding @ found.covariance() @ adding.T, rel=1e-9)
    assert wages.projected.sum() == pytest.approx(1)
    assert wages.released_counts is None
    with pytest.raises(InvalidInputError):
        wages.marginal(["age"])


def test_it_is_said(observed: Estimate) -> None:
    (said,) = weighed(observed, RATES).remarks
    assert said == (
        "Weighted by age with the match rates of curator registry, weights 1.04 to 1.81: this is the table of its"
        " 20,000 rows, scaled to the linked ones."
    )
    found = answer(Question(mean="wage"), weighed(observed, RATES))
    assert said in found.remarks
    assert (found.low < found.estimate).all()


@pytest.mark.parametrize("question", EVERY, ids=str)
def test_every_question_is_answered_as_of_a_table_of_everyone(question: Question) -> None:
    """Of little noise the answer is near that to the table of all 20,000 people."""
    rng = np.random.default_rng(5)
    found = answer(question, weighed(released(LINKED, 10**7, rng), RATES))
    # Totals are scaled to the linked people.
    scale = LINKED.sum() / EVERYONE.sum() if question.totals or question.sum else 1.0
    truth = scale * answer(question, released(EVERYONE, 10**7, rng)).estimate
    assert found.estimate == pytest.approx(truth, rel=0.1, abs=0.02)
    assert (found.low <= truth).all()
    assert (truth <= found.high).all()
    assert any(one.startswith("Weighted by age") for one in found.remarks)


def test_equal_rates_change_nothing_but_the_noise_of_the_ages(observed: Estimate) -> None:
    linked = LINKED.sum(axis=1)
    found = weighed(observed, rates_by_age(linked, 2 * linked, "1"))
    assert found.raw == pytest.approx(observed.raw, abs=4 * observed.se.max())
    assert found.marginal(["age"]).raw == pytest.approx(linked / linked.sum())


def test_categories_that_may_be_empty_are_pooled_and_not_covered() -> None:
    def groups(*linked: int, gamma: int = 200) -> tuple[int, ...]:
        counts = np.outer(linked, [0.2, 0.3, 0.5]).astype(np.int64)
        return pooled_categories(released(counts, gamma, np.random.default_rng(3)), RATES)

    assert groups(900, 800, 700, 600) == (0, 1, 2, 3)
    assert groups(900, 800, 700, 40) == (0, 1, 2, 3)  # however large the noise of the rates
    assert groups(900, 800, 700, 0) == (1, 2, 0, 0)
    with pytest.raises(InvalidInputError, match="does not tell the categories of age from empty ones"):
        groups(40, 30, 20, 10, gamma=2)
    linked = np.outer([3000, 3000, 2900, 0], [0.2, 0.3, 0.5]).astype(np.int64)
    table = weighed(released(linked, 200, np.random.default_rng(3)), RATES)
    said = table.remarks
    for shown in (table, conditional_shares(table, ["age"])):
        assert "Intervals NOT COVERED at 95%" in str(shown)
        assert "Intervals NOT COVERED at 95%" in shown._repr_html_()
        assert "NOT COVERED at 95%" in shown.plot().svg
    assert "3, 4 are pooled, as the release does not tell some from empty ones" in said[0]
    assert said[1] == "Pooled categories have one weight: what that hides is NOT COVERED by these intervals."


def test_wrong_links_are_undone_before(observed: Estimate) -> None:
    found = weighed(undone(observed, 0.05, least=0.0), RATES)
    whole, least = found.ends
    assert np.array_equal(whole.raw, weighed(undone(observed, 0.05), RATES).raw)
    assert np.array_equal(least.raw, weighed(undone(observed, 0.0, 1e-12), RATES).raw)
    assert np.array_equal(found.low, np.minimum(whole.low, least.low))
    assert found.raw == pytest.approx(slowly(undone(observed, 0.05).raw, numbers(RATES)), abs=1e-15)
    assert isinstance(found.plain, WeightedEstimate)
    assert found.plain.raw == pytest.approx(weighed(observed, RATES).raw)
    by_end = [answer(Question(mean="wage"), end) for end in found.ends]
    hull = answer(Question(mean="wage"), found)
    assert hull.low[0] == min(one.low[0] for one in by_end)
    assert hull.high[0] == max(one.high[0] for one in by_end)
    assert [one.split(" ")[0] for one in hull.remarks[:3]] == ["Corrected", "Of", "Wrong"]


@pytest.fixture(name="study")
def study_fixture(study_bytes: bytes) -> Study:
    """The study "survey": Alice has age, young, middle or old, and sex."""
    return study_from_bytes(study_bytes, "study.toml")


def test_rates_that_do_not_fit_are_refused(study: Study) -> None:
    table = released(
        np.array([[500, 400, 300], [200, 300, 400]]).T, 200, np.random.default_rng(4), study.domain(AGE_SEX)
    )
    rates = MatchRates(
        study="survey",
        curator="alice",
        attribute="age",
        categories=("young", "middle", "old"),
        linked=(700, 700, 700),
        unlinked=(100, 300, 900),
        epsilon=Decimal(1),
    )
    raw = weighted(table, rates, study).raw.reshape(2, 3)
    by_age = table.raw.reshape(2, 3) / table.raw.reshape(2, 3).sum(axis=0)
    assert raw == pytest.approx(by_age * np.array([8, 10, 16]) / 34)
    for other, said in (
        (replace(rates, study="census"), "those of age of curator alice in study census"),
        (replace(rates, curator="bob"), "those of age of curator bob in study survey"),
        (replace(rates, attribute="wage"), "those of wage of curator alice in study survey"),
        (replace(rates, categories=("young", "old", "middle")), "which this study has not, or with other categories"),
        (replace(rates, linked=(700, 700, 740)), "they count 2,140 linked rows with noise, and the release has 2,100"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            weighted(table, other, study)
    with pytest.raises(InvalidInputError, match="the table has no attribute age"):
        weighted(table.marginal(["sex"]), rates, study)


QUESTIONS = {
    "mean": Question(mean="wage"),
    "shares": Question(given=("wage",)),
    "slope": Question(linear="wage ~ age"),
    "log odds": Question(model="wage=2 ~ age"),
}
AGES, WAGES = np.arange(1, 5), np.arange(3)


def truths() -> dict[str, Floats]:
    """Return what the table of everyone gives."""
    table = EVERYONE / EVERYONE.sum()
    ages, wages = table.sum(axis=1), table.sum(axis=0)
    slope = (AGES @ table @ WAGES - (ages @ AGES) * (wages @ WAGES)) / (ages @ AGES**2 - (ages @ AGES) ** 2)
    odds = np.log(table[:, 2] / (ages - table[:, 2]))
    return {
        "cells": table.reshape(-1),
        "wages": wages,
        "mean": np.array([wages @ WAGES]),
        "shares": (table / wages).T.reshape(-1),
        "slope": np.array([wages @ WAGES - slope * (ages @ AGES), slope]),
        "log odds": np.array([odds[0], *(odds[1:] - odds[0])]),
    }


def held(table: TableEstimate, what: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which intervals hold the truth."""
    truth = truths()[what]
    if what in {"cells", "wages"}:
        found = table if what == "cells" else table.marginal(["wage"])
        return (found.low <= truth) & (truth <= found.high)
    said = answer(QUESTIONS[what], table)
    return (said.low <= truth) & (truth <= said.high)


def coverage(  # noqa: PLR0913 - one argument a choice
    what: str, *, epsilon: str, draws: int, wrong: float = 0.0, weigh: bool = True, chances: Floats = CHANCES
) -> Floats:
    """Return how often each interval holds the truth.

    Args:
        what: is asked.
        epsilon: of the match rates.
        draws: of links, noise and rates.
        wrong: share of wrong links, which is known to .01.
        weigh: whether the table is weighted.
        chances: that somebody of each age is linked.
    """
    rng, found = np.random.default_rng(7), []
    for _ in range(draws):
        linked = rng.binomial(EVERYONE, chances[:, None])
        rates = rates_by_age(linked.sum(axis=1), EVERYONE.sum(axis=1), epsilon, rng)
        table: TableEstimate = released(relinked(linked, wrong, rng), 2000, rng)
        if wrong:
            table = undone(table, wrong + 0.01 * rng.standard_normal(), 0.01)
        found.append(held(weighed(table, rates) if weigh else table, what))
    often: Floats = np.mean(found, axis=0)
    return often


@pytest.mark.parametrize("what", ["cells", "wages", "mean"])
def test_weighted_intervals_hold_the_truth_and_others_do_not(what: str) -> None:
    found = coverage(what, epsilon="0.1", draws=300)
    assert 0.93 <= found.mean() <= 0.975
    assert found.min() > 0.9
    assert coverage(what, epsilon="0.1", draws=60, weigh=False).mean() < 0.35


@pytest.mark.parametrize("what", ["cells", "slope"])
@pytest.mark.parametrize(("epsilon", "oldest"), [("0.1", 0.02), ("0.005", 0.55)])
def test_noise_of_the_rates_pools_nothing(what: str, epsilon: str, oldest: float) -> None:
    """Few linked people of one age, or much noise: the weights of ages that were pooled held in .47 to .82."""
    found = coverage(what, epsilon=epsilon, draws=150, chances=np.array([0.95, 0.9, 0.8, oldest]))
    assert 0.92 <= found.mean() <= 0.98


@pytest.mark.long
@pytest.mark.parametrize("wrong", [0.0, 0.05])
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("what", ["cells", "wages", *QUESTIONS])
def test_intervals_of_every_question_hold_the_truth(what: str, epsilon: str, wrong: float) -> None:
    found = coverage(what, epsilon=epsilon, draws=600, wrong=wrong)
    assert 0.93 <= found.mean() <= 0.97
