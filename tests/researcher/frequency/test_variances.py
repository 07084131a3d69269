"""Biases and variances are exact: enumeration of every coin and every report, in fractions, says so; so does chance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from tests.researcher.frequency.made_tallies import tally_of
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.papers.biswas.krr_design import krr_design
from veiltab.papers.biswas.rounds import draw_rounds
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, linear_form, point_estimates
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import mean_shortage, moments, node_variances, variance_estimate

LINEAR = [which for which in Estimator if which is not Estimator.HAJEK]
HALF, TENTH = Fraction(1, 2), Fraction(1, 10)


@dataclass(frozen=True)
class Small:
    """A population small enough to enumerate: the values of each stratum's nodes."""

    nodes: tuple[tuple[int, ...], ...]
    values: int
    rates: tuple[Fraction, ...]
    p: Fraction
    q: Fraction

    @property
    def design(self) -> RoundDesign:
        return RoundDesign(populations=tuple(map(len, self.nodes)), rates=self.rates, p=self.p, q=self.q)

    @property
    def truth(self) -> NDArray[np.int64]:
        return np.array([[row.count(i) for i in range(self.values)] for row in self.nodes])

    def outcomes(self, value: int) -> Iterator[tuple[Fraction, tuple[int, ...], tuple[int, ...]]]:
        """Yield the probability, N_s and S_s of every outcome, as far as one value is concerned."""
        everyone = [(s, held) for s, row in enumerate(self.nodes) for held in row]
        for states in product((None, 0, 1), repeat=len(everyone)):
            chance = Fraction(1)
            supports, reports = [0] * len(self.nodes), [0] * len(self.nodes)
            for (s, held), state in zip(everyone, states, strict=True):
                u = self.p if held == value else self.q
                chance *= 1 - self.rates[s] if state is None else self.rates[s] * (u if state else 1 - u)
                supports[s] += state or 0
                reports[s] += state is not None
            yield chance, tuple(supports), tuple(reports)

    def tally(self, supports: Sequence[int], reports: Sequence[int]) -> Tally:
        """Return what is counted in one outcome, for the one value that it is about."""
        return tally_of(self.design, [[held] for held in supports], reports)


def randomised_response(values: int, nodes: Sequence[tuple[int, ...]], *rates: Fraction) -> Small:
    r = Fraction(3, 8)
    return Small(tuple(nodes), values, rates, 1 - r + r / values, r / values)


SMALL = [
    randomised_response(2, [(0, 1)], HALF),
    randomised_response(3, [(0, 0, 1, 2)], Fraction(1, 3)),
    randomised_response(3, [(0, 1, 1, 1)], Fraction(1)),
    randomised_response(3, [(0, 0), (1, 2)], HALF, Fraction(1, 5)),
    randomised_response(2, [(0, 0, 1), (1,)], TENTH, Fraction(1)),
    randomised_response(3, [(0, 1), (0, 2)], HALF, HALF),
    randomised_response(2, [(1,)], Fraction(2, 7)),
    # Another oracle: p = 1/2 whatever the value, as in unary encoding.
    Small(((0, 1, 1), (2,)), 3, (HALF, Fraction(1, 4)), HALF, TENTH),
    Small(((0, 1), (1,)), 2, (HALF, Fraction(3, 4)), Fraction(1), Fraction(0)),
]


def formula(estimator: Estimator, small: Small, supports: Sequence[int], reports: Sequence[int]) -> Fraction:
    """Return the estimate as the literature writes it."""
    p, q, n = small.p, small.q, small.design.population
    chances = [rate for row, rate in zip(small.nodes, small.rates, strict=True) for _ in row]
    total = Fraction(sum(chances))
    pi = total / n
    c = (sum(supports) - n * q) / (p - q)
    thompson, nodes = Fraction(0), Fraction(0)
    for held, heard, rate in zip(supports, reports, small.rates, strict=True):
        thompson += (held * (1 - q) - (heard - held) * q) / (p - q) / rate
        nodes += heard / rate
    found: dict[Estimator, Fraction] = {
        Estimator.C: c,
        Estimator.G: c / pi + n * q * (1 - pi) / ((p - q) * pi),
        Estimator.C_HAT: (sum(supports) - sum(reports) * q) / (pi * (p - q)),
        Estimator.T: n * c / total + n * q * (n - total) / (total * (p - q)),
        Estimator.HAJEK: n * thompson / nodes if nodes else Fraction(0),
        Estimator.HORVITZ_THOMPSON: thompson,
    }
    return found[estimator]


def enumerated(estimator: Estimator, small: Small, value: int) -> tuple[Fraction, Fraction]:
    """Mean and variance over every outcome; for hajek given a report."""
    mass = mean = second = Fraction(0)
    for chance, supports, reports in small.outcomes(value):
        if estimator is Estimator.HAJEK and not sum(reports):
            continue
        found = formula(estimator, small, supports, reports)
        mass, mean, second = mass + chance, mean + chance * found, second + chance * found**2
    mean, second = mean / mass, second / mass
    return mean, second - mean**2


@pytest.mark.parametrize("estimator", list(Estimator))
def test_bias_and_variance_equal_enumeration(estimator: Estimator) -> None:
    for small in SMALL:
        found = moments(estimator, small.truth, small.design)
        assert found.exact is (estimator is not Estimator.HAJEK or small.design.one_rate)
        if not found.exact:
            continue
        held = small.truth.sum(axis=0)
        for value in range(small.values):
            mean, variance = enumerated(estimator, small, value)
            assert found.bias[value] == pytest.approx(float(mean - int(held[value])), rel=1e-12, abs=1e-13)
            assert found.variance[value] == pytest.approx(float(variance), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("estimator", LINEAR)
def test_the_coefficients_of_the_variance_are_exact_fractions(estimator: Estimator) -> None:
    for small in SMALL:
        holding, other = node_variances(linear_form(estimator, small.design), small.design)
        for value in range(small.values):
            variance = sum(
                (row.count(value) * one + (len(row) - row.count(value)) * rest)
                for row, one, rest in zip(small.nodes, holding, other, strict=True)
            )
            assert variance == enumerated(estimator, small, value)[1]


@pytest.mark.parametrize("estimator", list(Estimator))
def test_point_estimates_are_the_formulas(estimator: Estimator) -> None:
    for small in SMALL:
        for _, supports, reports in small.outcomes(0):
            counts, heard = np.array([[held] for held in supports]), np.array(reports)
            found = float(point_estimates(estimator, counts, heard, small.design)[0])
            if estimator is Estimator.HAJEK and not sum(reports):
                assert np.isnan(found)
            else:
                assert found == pytest.approx(float(formula(estimator, small, supports, reports)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("estimator", LINEAR)
def test_estimated_variances_are_unbiased_and_never_negative(estimator: Estimator) -> None:
    for small in SMALL:
        mean = 0.0
        for chance, supports, reports in small.outcomes(0):
            estimated = float(variance_estimate(small.tally(supports, reports), estimator)[0])
            assert estimated >= 0
            mean += float(chance) * estimated
        assert mean == pytest.approx(float(enumerated(estimator, small, 0)[1]), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("small", [small for small in SMALL if small.design.one_rate and small.design.population > 1])
def test_hajeks_estimated_variance_is_unbiased_given_the_number_of_reports(small: Small) -> None:
    groups: dict[int, list[tuple[Fraction, Fraction, float]]] = {}
    for chance, supports, reports in small.outcomes(0):
        if sum(reports) > 1 and chance:
            estimated = float(variance_estimate(small.tally(supports, reports), Estimator.HAJEK)[0])
            assert estimated >= 0
            point = formula(Estimator.HAJEK, small, supports, reports)
            groups.setdefault(sum(reports), []).append((chance, point, estimated))
    assert groups
    for group in groups.values():
        mass = sum((chance for chance, _, _ in group), Fraction(0))
        centre = sum((chance * point for chance, point, _ in group), Fraction(0)) / mass
        variance = sum((chance * (point - centre) ** 2 for chance, point, _ in group), Fraction(0)) / mass
        mean = sum(float(chance / mass) * estimated for chance, _, estimated in group)
        assert mean == pytest.approx(float(variance), rel=1e-11, abs=1e-13)


def test_one_report_does_not_tell_its_error() -> None:
    small = SMALL[1]
    exact = moments(Estimator.HAJEK, small.truth, small.design).variance[0]
    assert variance_estimate(small.tally([1], [1]), Estimator.HAJEK)[0] > exact


def test_hajeks_estimated_variance_under_rates_that_differ() -> None:
    truth, rates = np.array([[400, 50, 5], [20, 300, 60], [0, 0, 200]]), (HALF, TENTH, Fraction(1))
    mechanism = GammaDiagonal(cells=3, replacement=3 * 2**61)
    design = krr_design(truth.sum(axis=1).tolist(), rates, mechanism)
    counts, reports = draw_rounds(truth, design, mechanism, 400, np.random.default_rng(5))
    tallies = [tally_of(design, *drawn) for drawn in zip(counts, reports, strict=True)]
    estimated = [variance_estimate(tally, Estimator.HAJEK) for tally in tallies]
    # Each is right to a fifth, so their mean to a hundredth; the linearisation to a few.
    np.testing.assert_allclose(np.mean(estimated, axis=0), moments(Estimator.HAJEK, truth, design).variance, rtol=0.05)


PROBABILITIES = st.fractions(0, 1, max_denominator=1000)
DESIGNS = st.builds(
    lambda ends, rates, sizes: RoundDesign(
        populations=tuple(sizes[: len(rates)]), rates=tuple(rates), p=max(ends), q=min(ends)
    ),
    st.lists(PROBABILITIES, min_size=2, max_size=2, unique=True),
    st.lists(PROBABILITIES.filter(bool), min_size=1, max_size=3),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=3),
)


@settings(max_examples=40)
@given(DESIGNS, st.fractions(0, 1, max_denominator=100))
def test_c_hat_never_varies_more_than_g(design: RoundDesign, share: Fraction) -> None:
    g, c_hat = (node_variances(linear_form(which, design), design) for which in (Estimator.G, Estimator.C_HAT))
    for larger, smaller in zip(g, c_hat, strict=True):
        assert all(a >= b for a, b in zip(larger, smaller, strict=True))
    if design.one_rate:
        n, pi, p, q = design.population, design.rates[0], design.p, design.q
        gap = n * (share * (g[0][0] - c_hat[0][0]) + (1 - share) * (g[1][0] - c_hat[1][0]))
        assert gap == n * (1 - pi) * q * (q + 2 * share * (p - q)) / (pi * (p - q) ** 2)


@settings(max_examples=40)
@given(DESIGNS, st.integers(0, 2**32 - 1))
def test_what_coincides(design: RoundDesign, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.array([rng.multinomial(n, [0.5, 0.3, 0.2]) for n in design.populations])
    t, g = (moments(which, truth, design) for which in (Estimator.T, Estimator.G))
    np.testing.assert_array_equal(t.variance, g.variance)
    thompson, c_hat = (moments(which, truth, design) for which in (Estimator.HORVITZ_THOMPSON, Estimator.C_HAT))
    np.testing.assert_allclose(thompson.bias, 0, atol=1e-9)
    assert (thompson.variance >= 0).all()
    if design.one_rate:
        np.testing.assert_allclose(thompson.variance, c_hat.variance, rtol=1e-12)


@pytest.mark.parametrize(
    ("population", "rate"), [(1, HALF), (7, HALF), (300, Fraction(1, 50)), (40, Fraction(99, 100)), (9, Fraction(1))]
)
def test_the_mean_of_the_inverse_sample_size(population: int, rate: Fraction) -> None:
    sizes = np.arange(1, population + 1)
    law = binom.pmf(sizes, population, float(rate))
    expected = float(law @ ((population - sizes) / sizes) / law.sum())
    assert mean_shortage(population, rate) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_the_mean_of_the_inverse_sample_size_at_any_size() -> None:
    assert mean_shortage(10**9, Fraction(1, 4)) == pytest.approx(3, rel=1e-7)
    # Hardly anybody reports: given that somebody does, it is one.
    assert mean_shortage(100, Fraction(1, 10**12)) == pytest.approx(99, rel=1e-9)


@pytest.mark.parametrize("truth", [np.array([[3, 3]]), np.array([[-1, 5]]), np.array([2, 2])])
def test_truths_that_are_not_the_population_are_refused(truth: NDArray[np.int64]) -> None:
    with pytest.raises(InvalidInputError, match="add up to its population"):
        moments(Estimator.G, truth, RoundDesign(populations=(4,), rates=(HALF,), p=HALF, q=TENTH))
