"""Survival against slow calculations person by person; intervals over simulated releases; what is refused."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from tests.researcher.numbers.rounding import Column, estimates
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.survival.curves import curve, survival
from veiltab.researcher.survival.follow_up import Ending, FollowUp, follow_up, read_ending, seeming_ending, times_of
from veiltab.researcher.survival.hazards import hazards

Floats = NDArray[np.float64]
N = 3000
EDGES = (0, 2, 5, 9, 14, 20)


def patients(people: int = N, slower: float = 0.5, seed: int = 5) -> dict[str, Column]:
    """Return arms, whole months, the same in bins, and who died; the last months of everybody are censored."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, people)
    death, leaving = rng.exponential(8 * np.exp(-slower * arm)), np.minimum(rng.uniform(0, 30, people), 19.9)
    months = np.minimum(death, leaving).astype(int)
    bins = [f"[{low}, {high})" for low, high in pairwise(EDGES)]
    bins[-1] = bins[-1].replace(")", "]")
    return {
        "arm": Column(values=arm, categories=("old", "new")),
        "months": Column(values=months, categories=tuple(map(str, range(20)))),
        "span": Column(values=np.searchsorted(EDGES, months, "right") - 1, categories=tuple(bins)),
        "died": Column(values=(death <= leaving).astype(int), categories=("no", "yes")),
    }


def some(people: dict[str, Column], *names: str) -> dict[str, Column]:
    return {name: people[name] for name in names}


def without_noise(people: dict[str, Column]) -> Estimate:
    return next(estimates(people, len(people["arm"].values), 1 - 1e-9, 1, seed=1))


def ending_of(text: str, table: Estimate) -> Ending:
    return read_ending(Reader(text, table.domain, where="survival"), table.domain)


def asked(table: Estimate, text: str, given: Sequence[str] = (), until: float | None = None) -> Analysis:
    return survival(table, ending_of(text, table), given, until)


def raw(people: dict[str, Column]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    arm, months, died = (np.asarray(people[name].values, np.int64) for name in ("arm", "months", "died"))
    return arm, months, died


def slow_curve(months: NDArray[np.int64], died: NDArray[np.int64]) -> list[float]:
    """Kaplan and Meier's product, person by person."""
    left, shares = 1.0, []
    for month in range(20):
        at_risk = sum(1 for one in months if one >= month)
        deaths = sum(1 for one, dead in zip(months, died, strict=True) if one == month and dead)
        left *= 1 - deaths / at_risk if at_risk else 1
        shares.append(left)
    return shares


def test_curves_and_restricted_means_are_those_of_the_persons() -> None:
    people = patients()
    table = without_noise(some(people, "arm", "months", "died"))
    arm, months, died = raw(people)
    curves = [slow_curve(months[arm == one], died[arm == one]) for one in (0, 1)]
    found = asked(table, "months:died=yes", ["arm"])
    np.testing.assert_allclose(found.estimate, np.concatenate(curves), atol=1e-6)
    assert found.names[:2] == ("old · 0", "old · 1")
    means = asked(table, "months:died=yes", ["arm"], until=7.5)
    slow = [sum(curve[:7]) + curve[7] / 2 for curve in curves]
    np.testing.assert_allclose(means.estimate, slow, atol=1e-5)


def test_names_say_which_attributes_are_a_time_and_an_event() -> None:
    def seems(time: str, event: str, kinds: Sequence[str] = ("no", "yes"), first: int = 0) -> Ending | None:
        numbers = tuple(map(str, range(first, first + 4)))
        attributes = (Attribute(name=event, categories=tuple(kinds)), Attribute(name=time, categories=numbers))
        return seeming_ending(Domain(attributes=attributes))

    assert seems("months", "died") == Ending(time="months", event="died", categories=("yes",))
    assert seems("jahre2", "status", ("alive", "dead")) == Ending(time="jahre2", event="status", categories=("dead",))
    assert seems("years_followed", "Death", ("Yes", "No"), first=1) is not None
    for no in (("stage", "died"), ("months", "sex"), ("months", "studied"), ("months", "died", ("a", "b"))):
        assert seems(*no) is None
    assert seems("years", "died", first=1990) is None
    assert seems("months", "died", ("no", "yes", "unknown")) is None


def test_a_projected_curve_never_rises_and_is_no_farther_from_the_truth() -> None:
    people, rising = some(patients(), "arm", "months", "died"), 0
    truth = asked(without_noise(people), "months:died=yes").estimate
    for table in estimates(people, len(people["arm"].values), 0.2, 20, seed=5):
        noisy = asked(table, "months:died=yes")
        known = ~np.isnan(noisy.estimate)
        assert noisy.projected is not None
        estimate, projected = noisy.estimate[known], noisy.projected[known]
        rising += bool((np.diff(estimate) > 0).any())
        assert (np.diff(projected) <= 0).all()
        assert np.linalg.norm(projected - truth[known]) <= np.linalg.norm(estimate - truth[known])
    assert rising


def slow_log_rank(arm: NDArray[np.int64], months: NDArray[np.int64], died: NDArray[np.int64]) -> float:
    """Mantel's statistic of two groups, by the hypergeometric law at each time."""
    difference, variance = 0.0, 0.0
    for month in range(20):
        at_risk, own = (months >= month).sum(), ((months >= month) & (arm == 0)).sum()
        deaths = ((months == month) & (died == 1)).sum()
        difference += ((months == month) & (died == 1) & (arm == 0)).sum() - deaths * own / at_risk
        share = own / at_risk
        variance += deaths * share * (1 - share) * (at_risk - deaths) / (at_risk - 1)
    return float(difference**2 / variance)


def slow_cox(arm: NDArray[np.int64], months: NDArray[np.int64], died: NDArray[np.int64]) -> float:
    """The coefficient that maximises Efron's partial likelihood, death by death."""

    def cost(beta: float) -> float:
        grown, total = np.exp(beta * arm), 0.0
        for month in range(20):
            dying = (months == month) & (died == 1)
            whole, part = grown[months >= month].sum(), grown[dying].sum()
            ranks = np.arange(dying.sum())
            total += beta * arm[dying].sum() - np.log(whole - ranks / max(len(ranks), 1) * part).sum()
        return -total

    return float(minimize_scalar(cost, bracket=(0, 1)).x)


def test_log_rank_and_cox_are_those_of_the_persons() -> None:
    people = patients(slower=0.2)
    table = without_noise(some(people, "arm", "months", "died"))
    found = asked(table, "months:died=yes", ["arm"])
    assert found.facts["degrees of freedom"] == 1
    assert found.facts["log-rank statistic"] == pytest.approx(slow_log_rank(*raw(people)), rel=0.01)
    assert "variance of the log-rank statistic" in found.remarks[0]
    ending = ending_of("months:died=yes ~ arm", table)
    coefficient, ratio = hazards(table, ending, as_ratios=False), hazards(table, ending, as_ratios=True)
    assert coefficient.names == ("arm=new",)
    assert coefficient.estimate[0] == pytest.approx(slow_cox(*raw(people)), abs=0.002)
    assert ratio.estimate[0] == pytest.approx(np.exp(coefficient.estimate[0]))


def test_bins_bracket_the_exact_curve() -> None:
    people = patients()
    table = without_noise(people)
    exact, binned = asked(table, "months:died=yes"), asked(table, "span:died=yes")
    at_ends = exact.estimate[[end - 1 for end in EDGES[1:]]]
    assert (binned.low <= at_ends).all()
    assert (at_ends <= binned.high).all()
    assert (np.abs(binned.estimate - at_ends) < 0.02).all()
    assert binned.names == (
        "all respondents · 2",
        "all respondents · 5",
        *(f"all respondents · {e}" for e in (9, 14, 20)),
    )
    mean = asked(table, "span:died=yes", until=14)
    assert mean.low[0] <= asked(table, "months:died=yes", until=14).estimate[0] <= mean.high[0]


@pytest.mark.parametrize("gone_first", [0.0, 0.5, 1.0])
def test_slopes_of_a_curve_are_its_differences(gone_first: float) -> None:
    part = without_noise(some(patients(), "arm", "span", "died"))
    ending, step = ending_of("span:died=yes", part), 1e-7

    def followed(raw: Floats) -> FollowUp:
        return follow_up(ModelledTable(domain=part.domain, raw=raw, population=N), ending, ["arm"])

    slopes = np.zeros((2, len(EDGES) - 1, 2, len(EDGES) - 1))
    found = curve(followed(part.projected), 1, gone_first)
    slopes[:, :, 1] = found.by_event, found.by_censored
    contrasts = followed(part.projected).contrasts(*slopes)
    for cell, shift in enumerate(step * np.eye(part.domain.cells)):
        up, down = (curve(followed(part.projected + side * shift), 1, gone_first).share for side in (1, -1))
        np.testing.assert_allclose(contrasts[:, cell], (up - down) / (2 * step), atol=1e-5)


@pytest.mark.parametrize(
    ("sample", "kept", "times"),
    [
        (4000, 0.5, 8),
        pytest.param(1500, 0.8, 8, marks=pytest.mark.long),
        pytest.param(12000, 0.2, 6, marks=pytest.mark.long),
    ],
)
def test_intervals_cover(sample: int, kept: float, times: int) -> None:
    """Over 150 releases: no bias beyond chance, and .88 to .995 of the intervals hold the curve of all respondents."""
    people = some(patients(people=20000, slower=0.4), "arm", "months", "died")
    truth = [asked(without_noise(people), "months:died=yes", ["arm"]).estimate.reshape(2, -1)[:, :times]]
    truth.append(asked(without_noise(people), "months:died=yes", ["arm"], until=times).estimate)
    ending = ending_of("months:died=yes ~ arm", without_noise(people))
    truth.append(hazards(without_noise(people), ending, as_ratios=False).estimate)
    runs: list[list[Analysis]] = [
        [
            asked(one, "months:died=yes", ["arm"]),
            asked(one, "months:died=yes", ["arm"], until=times),
            hazards(one, ending, as_ratios=False),
        ]
        for one in estimates(people, sample, kept, 150, seed=9)
    ]
    for place, true in enumerate(truth):
        value, low, high = (
            np.array([getattr(run[place], name) for run in runs]) for name in ("estimate", "low", "high")
        )
        if place == 0:
            value, low, high = (part.reshape(len(runs), 2, -1)[:, :, :times] for part in (value, low, high))
        assert np.isfinite(value).all()
        spread = value.std(axis=0) / np.sqrt(len(runs))
        assert (np.abs(value.mean(axis=0) - true) < 4 * spread).all()
        covered = ((low <= true) & (true <= high)).mean(axis=0)
        assert (covered > 0.88).all()
        assert (covered < 0.995).all()


@pytest.mark.parametrize("kept", [0.4, 0.95])
def test_equal_hazards_are_rejected_as_often_as_the_level_says(kept: float) -> None:
    """The respondents are drawn anew each time: noise and chance together."""
    alarms = 0
    for run in range(150):
        people = some(patients(people=4000, slower=0.0, seed=run), "arm", "months", "died")
        (table,) = estimates(people, 3000, kept, 1, seed=run)
        alarms += asked(table, "months:died=yes", ["arm"]).facts["p-value"] < 0.05
    assert 2 <= alarms <= 17


def test_a_curve_ends_where_nobody_is_surely_left() -> None:
    people = some(patients(people=500), "arm", "months", "died")
    (table,) = estimates(people, 400, 0.3, 1, seed=3)
    found = asked(table, "months:died=yes")
    ended = np.isnan(found.estimate)
    assert ended.any()
    assert not ended[0]
    assert (np.diff(ended.astype(int)) >= 0).all()
    (few,) = estimates(some(patients(people=500), "arm", "months", "died"), 5, 0.3, 1, seed=3)
    assert np.isnan(asked(few, "months:died=yes", ["arm"]).estimate).all()
    assert asked(few, "months:died=yes", ["arm"]).facts == {}


def test_everybody_dies_in_the_last_bin() -> None:
    table = without_noise(
        {
            "arm": Column(values=np.repeat([0, 1], 500), categories=("old", "new")),
            "span": Column(values=np.tile([0, 1], 500), categories=("[0, 1)", "[1, 2]")),
            "died": Column(values=np.tile([0, 1], 500), categories=("no", "yes")),
        }
    )
    found = asked(table, "span:died=yes")
    np.testing.assert_allclose(found.estimate, [1, 0], atol=1e-4)
    assert np.isfinite(found.low).all()


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda one: asked(one, "months died=yes"), "expected :"),
        (lambda one: asked(one, "months:died=perhaps"), "category of died"),
        (lambda one: asked(one, "months:arm=old|new"), "every respondent"),
        (lambda one: asked(one, "months:months=0"), "twice"),
        (lambda one: asked(one, "died:months=yes"), "seem to be swapped: months has times, and died has none"),
        (lambda one: asked(one, "died:months=3"), "Write months:died=CATEGORY"),
        (lambda one: asked(one, "months:died=yes ~ months"), "twice"),
        (lambda one: asked(one, "months:died=yes", ["died"]), "is given"),
        (lambda one: asked(one, "arm:died=yes", until=3), "not numbers"),
        (lambda one: asked(one, "months:died=yes", until=99), "not a time"),
        (lambda one: asked(one, "months:died=yes", until=0), "not a time"),
        (lambda one: asked(one, "span:died=yes", until=3), "one of 2, 5"),
    ],
)
def test_what_does_not_fit_is_refused(ask: Callable[[Estimate], Analysis], problem: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        ask(without_noise(patients(people=50)))
    assert problem in str(refused.value)


def test_times_are_numbers_bins_or_in_an_order() -> None:
    def times(*categories: str, number: str = "") -> Floats:
        column = Column(values=np.zeros(1), categories=categories, number=number)
        return times_of(column.attribute("t")).ends

    assert times("1", "2", "missing").tolist() == [1, 2]
    assert times("[0, 1.5)", "[1.5, 4]").tolist() == [1.5, 4]
    assert np.isnan(times("early", "late")).all()
    for wrong in (("2", "1"), ("1", "late", "2"), ("[0, 2)", "[1, 3]")):
        with pytest.raises(InvalidInputError, match="do not increase"):
            times(*wrong)
    with pytest.raises(InvalidInputError, match="rounded at random"):
        times("1", "2", number="alice/t")


def test_the_picture_has_a_step_line_for_each_group() -> None:
    table = without_noise(some(patients(people=500), "arm", "months", "died"))
    svg = asked(table, "months:died=yes", ["arm"]).plot().svg
    assert all(text in svg for text in ("old", "new", "months", "share without died=yes"))
