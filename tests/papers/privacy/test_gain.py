from functools import partial
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.papers.privacy.gain import mean_gain, mean_noise_ratio, sample_epsilon
from veiltab.papers.privacy.median_gain import MedianMechanism, best_sample, exponential_median_error, median_gain
from veiltab.papers.privacy.sensitivity import median_smooth_sensitivity, smooth_decay


@given(st.floats(1e-6, 20), st.integers(2, 10**6), st.data())
def test_the_mean_never_gains_and_figure_5_has_no_curve(epsilon: float, population: int, data: st.DataObject) -> None:
    sample = data.draw(st.integers(1, population - 1))
    # Bernoulli: strictly below one. In floating point a hair above is rounding.
    assert mean_noise_ratio(epsilon, population=population, sample=sample) < 1 + 1e-12
    found = mean_gain(population=population, sample=sample, epsilon=epsilon, value_range=1.0, variance=0.1)
    assert not found.gains


def test_the_mean_s_variances() -> None:
    found = mean_gain(population=100, sample=20, epsilon=0.5, value_range=2.0, variance=0.3)
    assert found.population.total == pytest.approx(2 * (2 / (0.5 * 100)) ** 2)
    epsilon_n = log(1 + 5 * (exp(0.5) - 1))
    assert found.sample.sampling == pytest.approx(0.8 * 0.3 / 20)
    assert found.sample.noise == pytest.approx(2 * (2 / (epsilon_n * 20)) ** 2)


def slow_smooth_sensitivity(values: list[float], low: float, high: float, beta: float) -> float:
    """The definition: the largest gap around the median after k changes, discounted, over all k."""
    y = [low, *sorted(values), high]
    middle = len(y) // 2
    best = 0.0
    for i in range(middle + 1):
        for j in range(max(middle, i + 1), len(y)):
            best = max(best, (y[j] - y[i]) * exp(-beta * (j - i - 1)))
    return best


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15).filter(lambda v: len(v) % 2 == 1), st.floats(0.001, 3))
def test_smooth_sensitivity_is_its_definition(values: list[float], beta: float) -> None:
    found = median_smooth_sensitivity(np.array(values), low=0.0, high=1.0, beta=beta)
    assert found == pytest.approx(slow_smooth_sensitivity(values, 0.0, 1.0, beta), rel=1e-12)


def test_the_exponential_mechanism_beats_smooth_sensitivity_and_sampling_does_not_pay() -> None:
    values = np.random.default_rng(1).lognormal(5, 0.5, 1001).clip(0, 2000)
    asked = partial(median_gain, values, epsilon=0.5, low=0.0, high=2000.0, trials=40, seed=1)
    exponential = partial(asked, mechanism=MedianMechanism.EXPONENTIAL, delta=0.0)
    assert not any(exponential(sample=sample).gains for sample in (11, 101, 501))
    laplace = asked(mechanism=MedianMechanism.LAPLACE, sample=1001, delta=1 / 2002)
    assert laplace.population.total > 50 * exponential(sample=1001).population.total
    assert best_sample(1001, lambda sample: exponential(sample=sample)) == 1001


def test_bad_arguments_are_refused() -> None:
    with refuses(InvalidInputError, where="values"):
        exponential_median_error(np.array([2.0]), epsilon=1.0, low=0.0, high=1.0, about=0.5)
    with pytest.raises(InvalidInputError, match="odd"):
        median_smooth_sensitivity(np.array([0.1, 0.2]), low=0.0, high=1.0, beta=0.1)
    with pytest.raises(InvalidInputError, match="within"):
        median_smooth_sensitivity(np.array([1.5]), low=0.0, high=1.0, beta=0.1)
    with refuses(InvalidInputError, where="sample"):
        sample_epsilon(1.0, population=10, sample=11)
    with refuses(InvalidInputError, where="epsilon"):
        sample_epsilon(0.0, population=10, sample=5)
    with refuses(InvalidInputError, where="mean"):
        mean_gain(population=10, sample=5, epsilon=1, value_range=0, variance=1)
    assert smooth_decay(1.0, 1e-4) == pytest.approx(1 / (2 * log(2e4)))
