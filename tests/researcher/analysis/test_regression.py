"""Regressions on tables: against slow calculations on single rows, and their intervals in many releases."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from tests.conftest import refuses
from tests.researcher.analysis.simulated import ADULT, ADULT_DOMAIN, exact, simulated
from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Domain
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.formula import Formula, design_matrix, parse_formula
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.regression import regress
from veiltab.researcher.analysis.result import CANNOT_BE_SAID, NO_INTERVAL
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign

LOGISTIC, LOG_LINEAR = "salary ~ education + marital + sex", "~ education * salary + sex"
CODES = np.array(np.unravel_index(np.arange(24), ADULT_DOMAIN.shape)).T


def rows_of_adult() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the regressors and the outcome of every one of the rows, coded by hand."""
    rows = np.repeat(CODES, ADULT.reshape(-1), axis=0)
    education, marital, sex, salary = rows.T
    columns = [np.ones(len(rows)), education == 1, education == 2, marital == 1, sex == 1]
    return np.array(columns, dtype=np.float64).T, salary.astype(np.float64)


def test_logistic_regression_is_that_of_the_single_rows() -> None:
    x, y = rows_of_adult()

    def loss(beta: NDArray[np.float64]) -> float:
        return float(np.mean(np.logaddexp(0.0, x @ beta) - y * (x @ beta)))

    slow = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    found = regress(exact(ADULT, ADULT_DOMAIN), LOGISTIC)
    np.testing.assert_allclose(found.estimate, slow, atol=1e-4)
    assert found.labels["coefficient"] == ("(intercept)", "education=mid", "education=high", "marital=single", "sex=f")
    assert found.title == "logistic regression of salary=more"
    # More education, more salary; single, less.
    assert found.estimate[2] > found.estimate[1] > 0 > found.estimate[3]
    ratios = regress(exact(ADULT, ADULT_DOMAIN), LOGISTIC, as_ratios=True)
    np.testing.assert_allclose(np.log(ratios.estimate), found.estimate, rtol=1e-9)
    assert (ratios.neutral, found.neutral) == (1.0, 0.0)
    turned = regress(exact(ADULT, ADULT_DOMAIN), "salary=less ~ education + marital + sex")
    np.testing.assert_allclose(turned.estimate, -found.estimate, rtol=1e-6)


def test_without_noise_the_interval_is_that_of_the_sandwich_of_single_rows() -> None:
    x, y = rows_of_adult()
    design = ReleaseDesign(population=10**12, sample=len(y), mechanism=GammaDiagonal(cells=24, replacement=1))
    found = regress(Estimate(domain=ADULT_DOMAIN, design=design, counts=ADULT.reshape(-1)), LOGISTIC)
    share = 1 / (1 + np.exp(-x @ found.estimate))
    bread = np.linalg.inv((x * (share * (1 - share))[:, None]).T @ x)
    meat = (x * ((y - share) ** 2)[:, None]).T @ x
    error = np.sqrt(np.diagonal(bread @ meat @ bread))
    np.testing.assert_allclose((found.high - found.low) / 2, 1.959964 * error, rtol=2e-3)


def test_a_saturated_log_linear_model_is_the_table() -> None:
    table = np.array([[400, 100], [200, 300]])
    domain = domain_of(first=("first0", "first1"), second=("second0", "second1"))
    estimate = exact(table, domain)
    found = regress(estimate, "~ first * second")
    log = np.log(table / 1000)
    expected = [log[0, 0], log[1, 0] - log[0, 0], log[0, 1] - log[0, 0], np.log(400 * 300 / (100 * 200))]
    np.testing.assert_allclose(found.estimate, expected, atol=1e-8)
    times = " \N{MULTIPLICATION SIGN} "
    names = ("(intercept)", "first=first1", "second=second1", times.join(["first=first1", "second=second1"]))
    assert found.labels["coefficient"] == names
    # The interaction is the log of the odds ratio, whichever model it is of.
    logistic = regress(estimate, "second ~ first", as_ratios=True)
    assert logistic.estimate[1] == pytest.approx(6.0)
    independent = regress(estimate, "~ first + second")
    base, first, second = independent.estimate
    fitted = np.exp([[base, base + second], [base + first, base + first + second]])
    np.testing.assert_allclose(fitted, np.outer(table.sum(axis=1), table.sum(axis=0)) / 1e6, rtol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("formula", [LOGISTIC, LOG_LINEAR])
@pytest.mark.parametrize("regime", ["a sample of 3,300 at epsilon 1", "a sample of 2,000 with hardly any noise"])
def test_intervals_of_coefficients_hold_in_many_releases(formula: str, regime: str) -> None:
    # The standard error of one coefficient's coverage is 0.7%.
    truth = regress(exact(ADULT, ADULT_DOMAIN), formula).estimate
    found = [regress(one, formula) for one in simulated(ADULT, ADULT_DOMAIN, regime, runs=1000, seed=61)]
    low, high = np.array([one.low for one in found]), np.array([one.high for one in found])
    unsaid = np.isnan(low) | np.isnan(high)
    covered = (((low <= truth) & (truth <= high)) | unsaid).mean(axis=0)
    assert unsaid.mean() < 0.01
    assert 0.93 < covered.min() <= covered.max() < 0.97


def test_what_the_table_does_not_say_cannot_be_said() -> None:
    table = np.array([[4000, 6000], [0, 0], [5000, 4000]])
    domain = Domain(attributes=(ADULT_DOMAIN.attributes[0], ADULT_DOMAIN.attributes[3]))
    found = regress(exact(table, domain), "salary ~ education")
    assert set(found.notes) == {CANNOT_BE_SAID}
    separated = regress(exact(np.array([[4000, 6000], [9000, 0], [5000, 4000]]), domain), "salary ~ education")
    assert separated.notes[1] != ""


def test_a_model_s_table_gives_coefficients_without_intervals() -> None:
    table = ModelledTable(domain=ADULT_DOMAIN, raw=ADULT.reshape(-1) / ADULT.sum(), population=45_222)
    for formula in (LOGISTIC, LOG_LINEAR):
        found = regress(table, formula)
        np.testing.assert_allclose(found.estimate, regress(exact(ADULT, ADULT_DOMAIN), formula).estimate, atol=1e-6)
        assert set(found.notes) == {NO_INTERVAL}


ODD = domain_of(**{"a": ("<=50K", ">50K", "<=5"), "a + b": ("x|y", "x", "y ~ z"), "wage": ("low", "high")})


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("wage ~ a", Formula(response="wage", event=("high",), terms=((), ("a",)))),
        ("wage=low~a+b", None),
        ("wage=low~a + b", Formula(response="wage", event=("low",), terms=((), ("a + b",)))),
        (" a=<=50K|>50K ~ wage", Formula(response="a", event=("<=50K", ">50K"), terms=((), ("wage",)))),
        ("a + b=x|y|y ~ z ~ wage+a", Formula(response="a + b", event=("x|y", "y ~ z"), terms=((), ("wage",), ("a",)))),
        ("~ wage*a", Formula(response="", event=(), terms=((), ("wage",), ("a",), ("a", "wage")))),
        ("~ a + a*a + wage", Formula(response="", event=(), terms=((), ("a",), ("wage",)))),
    ],
)
def test_formulas_are_read_whatever_the_names(text: str, formula: Formula | None) -> None:
    if formula is None:
        with pytest.raises(InvalidInputError, match=r"expected .*'b' comes next"):
            parse_formula(text, ODD)
    else:
        assert parse_formula(text, ODD) == formula


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an attribute, but the text ends"),
        ("wage", "expected ~, but the text ends"),
        ("wage ~", "expected an attribute, but the text ends"),
        ("wage ~ height", "expected an attribute, but 'height' comes next.*Attributes here: a, a \\+ b, wage"),
        ("wage ~ a +", "expected an attribute, but the text ends"),
        ("wage ~ a - wage", r"expected \+ or \*, but '- wage' comes next"),
        ("wage ~ a + wage", "wage stands on both sides"),
        ("wage ~ a * wage", "wage stands on both sides"),
        ("wage=huge ~ a", "expected a category of wage, but 'huge' comes next"),
        ("wage=huge|low ~ a", "but 'huge' comes next"),
        ("wage=huge+big + a ~ a", r"but 'huge\+big' comes next"),
        ("wage=~ a", "but '~ a' comes next"),
        ("wage=low|low ~ a", "named twice"),
        ("wage=low|high ~ a", "every respondent"),
        ("a ~ wage", 'a has 3 categories.*"a=<=5 ~'),
    ],
)
def test_formulas_that_do_not_parse_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_formula(text, ODD)


def test_a_model_that_fills_the_memory_is_refused() -> None:
    large = domain_of(60, 60, 60)
    with refuses(InvalidInputError, where="model"):
        design_matrix(parse_formula("~ a * b * c", large), large)
