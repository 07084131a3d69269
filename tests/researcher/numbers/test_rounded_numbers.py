"""Means, variances, quantiles and linear models of numbers that were rounded at random: unbiased, and covering."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.researcher.analysis.simulated import exact
from tests.researcher.numbers.rounding import Column, Floats, estimates, twins
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.drawing.drawable import is_covered
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.numbers.correlation import correlation
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.numbers.means import means, sums
from veiltab.researcher.numbers.moments import FAINT, UNSURE
from veiltab.researcher.numbers.points import rounding_variance
from veiltab.researcher.numbers.quantiles import quantiles
from veiltab.researcher.numbers.second_moments import variances

RNG = np.random.default_rng(6)
N = 4000
GROUP = (RNG.random(N) < 0.3).astype(np.int64)
WAGE = np.clip(RNG.gamma(4, 6, N) + 8 * GROUP, 0, 100)
AGE = np.clip(20 + 0.5 * WAGE + RNG.normal(0, 8, N), 0, 100)
HEAVY = np.clip(RNG.lognormal(2, 1, N), 0, 1000)

COARSE, FINE = (0.0, 25.0, 50.0, 100.0), (0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 100.0)
LOG = (0.0, 1.0, 2.2, 4.6, 10.0, 22.0, 46.0, 100.0, 220.0, 460.0, 1000.0)
SEX = Column(values=GROUP, categories=("m", "f"))

PEOPLE: Mapping[str, Mapping[str, Column]] = {
    "coarse": {"sex": SEX, "x": Column(values=WAGE, grid=COARSE, number="a/x")},
    "fine": {"sex": SEX, "x": Column(values=WAGE, grid=FINE, number="a/x")},
    "heavy tail": {"sex": SEX, "x": Column(values=HEAVY, grid=LOG, number="a/x")},
}
TRUE = {"coarse": WAGE, "fine": WAGE, "heavy tail": HEAVY}


def by_group(numbers: Floats) -> Floats:
    return np.array([numbers[one == GROUP].mean() for one in (0, 1)])


def check(found: list[Analysis], truth: Floats, *, low: float = 0.93, high: float = 0.97) -> None:
    """Check bias by z and coverage, a standard error of .009 at 600 releases, of those that are said: nearly all."""
    said = [one for one in found if np.isfinite(one.estimate).all()]
    assert len(said) > 0.9 * len(found)
    values = np.array([one.estimate for one in said])
    z = (values.mean(axis=0) - truth) / (values.std(axis=0) / np.sqrt(len(said)))
    assert (np.abs(z) < 3.5).all(), z
    covered = np.mean([(one.low <= truth) & (truth <= one.high) for one in said], axis=0)
    assert (covered > low - 0.018).all(), covered
    assert (covered < high + 0.018).all(), covered


@pytest.mark.long
@pytest.mark.parametrize("design", PEOPLE)
@pytest.mark.parametrize(("sample", "kept"), [(4000, 0.4), (900, 0.8), (4000, 0.1)])
def test_means_and_sums(design: str, sample: int, kept: float) -> None:
    found = list(estimates(PEOPLE[design], sample, kept, 600, seed=1))
    if kept > 0.3:  # Fieller's set of a group may be all numbers under much noise
        check([means(one, "x", ["sex"]) for one in found], by_group(TRUE[design]), high=0.99)
    weights = np.bincount(GROUP)
    check([sums(one, "x", ["sex"]) for one in found], by_group(TRUE[design]) * weights)


@pytest.mark.long
@pytest.mark.parametrize("grid", [COARSE, FINE])
@pytest.mark.parametrize(("sample", "kept"), [(4000, 0.6), (1500, 0.9)])
def test_variances_by_twins(grid: tuple[float, ...], sample: int, kept: float) -> None:
    first, second = twins(WAGE, grid)
    found = list(estimates({"x": first, "again": second}, sample, kept, 600, seed=2))
    check([variances(one, "x") for one in found], np.array([WAGE.var()]))


def slopes() -> Floats:
    """Return the true coefficients of age on wage and sex."""
    columns = np.stack([np.ones(N), WAGE, GROUP == 1], axis=1)
    return np.asarray(np.linalg.lstsq(columns, AGE, rcond=None)[0])


def test_what_divides_by_a_variance_that_may_stand_out_by_luck_is_named() -> None:
    (x, again), (y, other) = twins(WAGE, COARSE), twins(AGE, COARSE)
    named = dict[float, list[bool]]()
    for kept in (0.25, 0.98):
        for one in estimates({"x": x, "again": again, "y": y, "other": other}, N, kept, 12, seed=8):
            for answer in (correlation([one], ["x", "y"]), linear([one], "y ~ x")):
                if np.isfinite(answer.estimate).all():
                    named.setdefault(kept, []).append(FAINT in answer.remarks and not is_covered(answer.remarks))
    assert sum(named[0.25]) > len(named[0.25]) / 2
    assert len(named[0.98]) == 24
    assert not any(named[0.98])


@pytest.mark.long
@pytest.mark.parametrize(("sample", "kept"), [(4000, 0.8), (2500, 0.9)])
def test_a_linear_model_of_one_table(sample: int, kept: float) -> None:
    wage, again = (
        Column(values=WAGE, grid=COARSE, number="a/x"),
        Column(values=WAGE, grid=(0.0, 30.0, 60.0, 100.0), number="a/x"),
    )
    people = {"sex": SEX, "wage": wage, "again": again, "age": Column(values=AGE, grid=COARSE, number="b/age")}
    found = [linear([one], "age ~ wage + sex") for one in estimates(people, sample, kept, 600, seed=3)]
    check(found, slopes())


@pytest.mark.long
@pytest.mark.parametrize(("sample", "kept"), [(4000, 0.8), (2500, 0.9)])
def test_a_correlation_of_one_table(sample: int, kept: float) -> None:
    columns = {"wage": WAGE, "wage_again": WAGE, "age": AGE, "age_again": AGE}
    people = {
        name: Column(values=values, grid=COARSE, number=name.removesuffix("_again")) for name, values in columns.items()
    }
    found = [correlation([one], ["wage", "age"]) for one in estimates(people, sample, kept, 600, seed=6)]
    check(found, np.array([np.corrcoef(WAGE, AGE)[0, 1]]))


@pytest.mark.long
def test_a_linear_model_of_pairs() -> None:
    wage, again = twins(WAGE, COARSE)
    people = {"sex": SEX, "wage": wage, "again": again, "age": Column(values=AGE, grid=COARSE, number="b/age")}
    pairs = [("wage", "again"), ("wage", "sex"), ("wage", "age"), ("sex", "age")]
    runs = [
        list(estimates({name: people[name] for name in pair}, N, 0.85, 600, seed=40 + number))
        for number, pair in enumerate(pairs)
    ]
    check([linear(tables, "age ~ wage + sex") for tables in zip(*runs, strict=True)], slopes())


@pytest.mark.long
@pytest.mark.parametrize("design", PEOPLE)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_ends_of_quantiles_hold(design: str, share: float) -> None:
    truth = np.quantile(TRUE[design], share, method="inverted_cdf")
    found = [quantiles(one, "x", share) for one in estimates(PEOPLE[design], N, 0.5, 200, seed=4)]
    assert np.mean([one.low[0] <= truth <= one.high[0] for one in found]) > 0.93


# The same, quickly: with hardly any noise, one rounding.

QUICK = Domain(
    attributes=(
        Attribute(name="x", categories=("0", "10", "30"), number="a/x"),
        Attribute(name="again", categories=("0", "10", "30"), number="a/x"),
        Attribute(name="y", categories=("0", "5"), number="b/y"),
    )
)


def expected(x: float, y: float, people: int) -> Floats:
    """Return the expected table of some people who all have the same numbers."""

    def law(value: float, grid: tuple[float, ...]) -> Floats:
        return np.array([np.interp(value, grid, row) for row in np.eye(len(grid))])

    each = law(x, (0, 10, 30))
    table: Floats = people * each[:, None, None] * each[:, None] * law(y, (0, 5))
    return table


def table() -> Estimate:
    """Return a table that is its own expectation: y = 1 + x / 10 of four groups of people."""
    parts = [expected(x, 1 + x / 10, people) for x, people in ((2, 100_000), (7.5, 60_000), (14, 50_000), (29, 10_000))]
    counts = np.rint(sum(parts)).astype(np.int64)
    return exact(counts, QUICK)


X = np.repeat([2, 7.5, 14, 29], [100_000, 60_000, 50_000, 10_000])


def test_expectations_give_the_numbers_themselves() -> None:
    whole = table()
    assert means(whole, "x").estimate[0] == pytest.approx(X.mean(), abs=1e-3)
    assert variances(whole, "x").estimate[0] == pytest.approx(X.var(), abs=1e-2)
    found = linear([whole], "y ~ x")
    np.testing.assert_allclose(found.estimate, [1, 0.1], atol=1e-4)
    assert found.names == ("(intercept)", "x")
    # Rounding alone is in the intervals.
    assert 0 < (found.high - found.low)[1] < 0.01


@pytest.mark.parametrize(("at_a_point", "least", "most"), [(0.0, 0.6, 1.0), (0.95, 0.0, 0.4)])
def test_rounding_adds_no_more_than_is_said(at_a_point: float, least: float, most: float) -> None:
    """Of known numbers: the variance that the coins add, beside the bound, and the bound beside that of the middle."""
    rng, people, parts = np.random.default_rng(3), 20_000, list[Floats]()
    for _ in range(50):
        grid = np.cumsum([0.0, *rng.uniform(1, 9, 4)])
        numbers = rng.triangular(0, rng.uniform(0, grid[-1]), grid[-1], people)
        numbers = np.where(rng.random(people) < at_a_point, grid[2], numbers)
        law, sex = np.array([np.interp(numbers, grid, row) for row in np.eye(5)]), rng.integers(0, 2, people)
        counts = np.array([law[:, sex == one].sum(axis=1) for one in (0, 1)])
        x = Attribute(name="x", categories=tuple(f"{point:.9g}" for point in grid), number="a/x")
        domain = Domain(attributes=(Attribute(name="sex", categories=("m", "f")), x))
        contrast = rng.normal(size=(2, 5))
        values = contrast[sex]
        added = float(((values**2 * law.T).sum(axis=1) - (values * law.T).sum(axis=1) ** 2).sum()) / people
        steps = np.abs(np.diff(contrast, axis=1))
        middle = (counts * np.maximum(np.pad(steps, ((0, 0), (1, 0))), np.pad(steps, ((0, 0), (0, 1)))) ** 2).sum() / 4
        bound = people * rounding_variance(exact(np.rint(counts).astype(np.int64), domain), contrast.reshape(1, -1))
        parts.append(np.array([added / bound[0, 0], bound[0, 0] * people / middle]))
    under, beside = np.transpose(parts)
    assert under.max() < 1.001
    assert least < beside.mean() < most
    assert beside.max() < 1.001


def test_pairs_give_what_one_table_does() -> None:
    whole = table()
    pairs = [whole.marginal(names) for names in (("x", "again"), ("x", "y"))]
    np.testing.assert_allclose(linear(pairs, "y ~ x").estimate, linear([whole], "y ~ x").estimate, atol=1e-4)


def test_a_correlation_is_that_of_the_numbers() -> None:
    rng = np.random.default_rng(2)
    symbols = rng.integers(0, 4, 2000)
    others = np.clip(symbols + rng.integers(0, 3, 2000), 0, 5)
    people = {
        "x": Column(values=symbols, categories=("1", "3", "4", "9")),
        "y": Column(values=others, categories=tuple("012345")),
    }
    (whole,) = estimates(people, 2000, 1 - 1e-9, 1, seed=1)
    found = correlation([whole], ["x", "y"])
    assert found.estimate[0] == pytest.approx(np.corrcoef(np.array([1, 3, 4, 9])[symbols], others)[0, 1], abs=1e-6)
    assert found.low[0] <= found.estimate[0] <= found.high[0]
    backwards = correlation([whole], ["y", "x"])
    assert backwards.estimate[0] == pytest.approx(found.estimate[0])


def test_a_median_lies_within_its_points() -> None:
    found = quantiles(table(), "x", 0.5)
    assert found.low[0] <= 7.5 <= found.high[0]
    assert found.low[0] <= found.estimate[0] <= found.high[0]


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda one: variances(one.marginal(["x", "y"]), "x"), "no twin"),
        (lambda one: linear([one.marginal(["x", "y"])], "y ~ x"), "no twin"),
        (lambda one: linear([one.marginal(["x", "again"]), one.marginal(["y"])], "y ~ x"), "no table has y and x"),
        (lambda one: linear([one.marginal(["x", "y"]), one.marginal(["again", "y"])], "y ~ x"), "no table has x and a"),
        (lambda one: linear([one], "y ~ x + x"), "twice"),
        (lambda one: correlation([one.marginal(["x", "y"])], ["x", "y"]), "no twin"),
        (lambda one: correlation([one], ["x", "x"]), "two attributes"),
        (lambda one: correlation([one], ["x"]), "two attributes"),
        (lambda one: linear([one], "y"), "~"),
        (lambda one: linear([one], "z ~ x"), "z"),
        (lambda one: means(one, "x", ["y"]), "not groups"),
        (lambda one: quantiles(one, "x", 0.0), "not above 0"),
        (lambda one: quantiles(one, "x", 1.0), "not above 0"),
        (lambda one: quantiles(one, "x", float("nan")), "not above 0"),
    ],
)
def test_what_cannot_be_told_is_refused(ask: Callable[[Estimate], Analysis], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        ask(table())


def noisy(kept: float, grid: tuple[float, ...] = COARSE) -> list[Estimate]:
    """Return releases whose noise is large beside the spread of the numbers."""
    wage, again = twins(WAGE, grid)
    age, age_again = (Column(values=AGE, grid=grid, number="b/age") for _ in range(2))
    people = {"sex": SEX, "wage": wage, "wage_again": again, "age": age, "age_again": age_again}
    return list(estimates(people, N, kept, 60, seed=11))


@pytest.mark.parametrize("kept", [0.6, 0.3, 0.15])
def test_much_noise_makes_no_absurd_answer(kept: float) -> None:
    """What cannot be told is not said; what is said lies in its interval, and no slope has the wrong sign surely."""
    for one in noisy(kept):
        for found, most in (
            (correlation([one], ["wage", "age"]), 1.0),
            (linear([one], "age ~ wage + sex"), 60.0),
            (means(one, "wage", ["sex"]), 600.0),
            (variances(one, "wage", ["sex"]), 1e5),
            (quantiles(one, "wage", 0.9, ["sex"]), 100.0),
        ):
            said = np.isfinite(found.estimate)
            assert (np.abs(found.estimate[said]) <= most).all(), (found.title, found.estimate)
            assert (found.low[said] <= found.estimate[said]).all(), found.title
            assert (found.estimate[said] <= found.high[said]).all(), found.title
            assert np.isnan(found.low[~said]).all(), found.title
            assert np.isnan(found.high[~said]).all(), found.title
            if found.title.startswith(("linear", "correlation")):
                assert (UNSURE in found.remarks) == (not said.all())
            if found.title.startswith("linear") and said.all():
                assert found.high[1] > 0


def test_the_variance_of_the_mean_is_added_back() -> None:
    # 40 people on six points: to first order alone the variance would be too small by .15, 5.6 standard errors.
    symbols = np.tile([0, 1, 1, 5], 10)
    column = Column(values=symbols, categories=tuple("012345"))
    found = np.array([variances(one, "x").estimate[0] for one in estimates({"x": column}, 40, 0.6, 1000, 8)])
    assert not np.isnan(found).any()
    assert abs(found.mean() - symbols.var()) < 4 * found.std() / np.sqrt(len(found))


def test_a_group_that_may_be_empty_has_no_variance() -> None:
    nobody = Column(values=np.zeros(N, np.int64), categories=("m", "f"))
    first, second = twins(WAGE, COARSE)
    found = [variances(one, "x", ["g"]) for one in estimates({"g": nobody, "x": first, "y": second}, N, 0.3, 60, 5)]
    assert np.mean([np.isfinite(one.estimate[1]) for one in found]) < 0.15
    assert max(one.high[0] for one in found) <= 2500
