import json
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import exp, isclose, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.collection.choosing import TIE, choose, expected_variance
from veiltab.common.collection.oracles import ORACLE_NAMES, oracle_for
from veiltab.common.errors import InvalidInputError


def variance(name: str, size: int, epsilon: str, frequency: float = 0, rate: float = 1) -> float:
    """Per node."""
    oracle = oracle_for(name, size, Decimal(epsilon))
    return expected_variance(oracle, population=1, rate=rate, frequency=frequency)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_published_variances_of_a_rare_value(epsilon: str) -> None:
    # Wang, Blocki, Li, Jha 2017.
    e = exp(float(epsilon))
    assert variance("oue", 500, epsilon) == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-12)
    for size in (2, 10, 1000):
        assert variance("krr", size, epsilon) == pytest.approx((size - 2 + e) / (e - 1) ** 2, rel=1e-12)
    # Theirs is at g = e^epsilon + 1, which is no whole number: the whole one costs little.
    ideal = 4 * e / (e - 1) ** 2
    assert ideal * (1 - 1e-12) <= variance("olh", 65536, epsilon) < 1.02 * ideal


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_subset_selection_of_one_value_is_krr(epsilon: str) -> None:
    assert oracle_for("ss", 3, Decimal(epsilon)).parameters["w"] == 1
    assert variance("ss", 3, epsilon, 0.3) == pytest.approx(variance("krr", 3, epsilon, 0.3), rel=1e-12)


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize(("rate", "count"), [("1", 2), ("1/3", 1), ("1/2", 0), ("1/2", 3)])
def test_variance_against_its_definition(name: str, rate: str, count: int) -> None:
    # All outcomes of three nodes, `count` of them with the value: silent, reporting it, or not.
    oracle, pi, nodes = oracle_for(name, 5, Decimal(1)), Fraction(rate), 3
    p, q = oracle.p, oracle.q
    mean = square = Fraction(0)
    for outcome in product((None, 1, 0), repeat=nodes):
        chance = Fraction(1)
        for node, one in enumerate(outcome):
            hit = p if node < count else q
            chance *= 1 - pi if one is None else pi * (hit if one else 1 - hit)
        reports = [one for one in outcome if one is not None]
        estimate = (sum(reports) - len(reports) * q) / (pi * (p - q))
        mean, square = mean + chance * estimate, square + chance * estimate**2
    assert mean == count
    found = expected_variance(oracle, population=nodes, rate=float(pi), frequency=count / nodes)
    assert found == pytest.approx(float(square - mean**2), rel=1e-12)


@given(st.sampled_from(ORACLE_NAMES), st.integers(2, 50), st.floats(0.1, 1), st.data())
def test_the_mean_over_the_values_does_not_depend_on_their_distribution(
    name: str, size: int, rate: float, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(0, 100), min_size=size, max_size=size).filter(any))
    mean = sum(variance(name, size, "1", weight / sum(weights), rate) for weight in weights) / size
    choice = choose(size, Decimal(1), population=1000, rate=rate, among=[name])
    assert choice.best.variance == pytest.approx(1000 * mean, rel=1e-9)


@given(st.integers(2, 2000), st.decimals("0.1", 6, places=2), st.floats(0.05, 1))
def test_ranking(size: int, epsilon: Decimal, rate: float) -> None:
    choice = choose(size, epsilon, population=5000, rate=rate)
    assert sorted(candidate.oracle.name for candidate in choice.candidates) == sorted(ORACLE_NAMES)
    least = min(candidate.variance for candidate in choice.candidates)
    assert choice.best.variance <= TIE * least
    assert all(
        candidate.report_bytes >= choice.best.report_bytes
        for candidate in choice.candidates
        if candidate.variance <= TIE * least
    )
    for candidate in choice.candidates:
        assert candidate.oracle.size == size
        assert candidate.oracle.epsilon <= epsilon
        assert candidate.standard_error == sqrt(candidate.variance) / 5000
    # Subset selection is never beaten by more than its rounding.
    ss = next(candidate for candidate in choice.candidates if candidate.oracle.name == "ss")
    assert isclose(ss.variance, least, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("size", "among", "reason"),
    [
        (3, ORACLE_NAMES, "krr is the simplest that sends least, 1 byte a report, among krr, ss, {tied}."),
        (65536, ORACLE_NAMES, "olh sends least, 9 bytes a report, among olh, oue, ss, {tied}."),
        (10, ORACLE_NAMES, "ss has the least variance, 0.77 of that of the next best, oue."),
        (10, ("oue",), "oue is the only oracle considered."),
    ],
)
def test_reasons(size: int, among: tuple[str, ...], reason: str) -> None:
    choice = choose(size, Decimal(1), population=1000, among=among)
    assert choice.reason == reason.format(tied="all within 1 % of the least variance")
    assert choice.best.oracle.name == reason.split(maxsplit=1)[0]


def test_the_order_in_which_oracles_are_named_does_not_matter() -> None:
    one, other = (choose(3, Decimal(1), population=10, among=among) for among in (("ss", "krr"), ("krr", "ss")))
    assert one == other


def test_figures_as_json_holds_them() -> None:
    facts = json.loads(json.dumps(choose(100, Decimal("0.5"), population=1000, rate=0.25).as_dict()))
    assert [facts[key] for key in ("size", "epsilon", "population", "rate")] == [100, "0.5", 1000, 0.25]
    assert facts["reason"].startswith(facts["candidates"][0]["oracle"])
    krr = next(one for one in facts["candidates"] if one["oracle"] == "krr")
    assert krr["parameters"] == oracle_for("krr", 100, Decimal("0.5")).parameters
    assert krr["epsilon"] == "0.500000000000"
    assert krr["report_bytes"] == 1
    assert krr["standard_error"] == pytest.approx(sqrt(krr["variance"]) / 1000)


@pytest.mark.parametrize(
    ("population", "rate", "frequency"),
    [
        (0, 1, 0),
        (-1, 1, 0),
        (1, 0, 0),
        (1, 1.1, 0),
        (1, float("nan"), 0),
        (1, 1, -0.1),
        (1, 1, 1.1),
        (1, 1, float("nan")),
    ],
)
def test_arguments_out_of_range_are_refused(population: int, rate: float, frequency: float) -> None:
    oracle = oracle_for("krr", 4, Decimal(1))
    with pytest.raises(InvalidInputError):
        expected_variance(oracle, population=population, rate=rate, frequency=frequency)


@pytest.mark.parametrize("among", [(), ("krr", "krr"), ("krr", "none")])
def test_names_that_name_no_oracles_are_refused(among: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError):
        choose(4, Decimal(1), population=10, among=among)
