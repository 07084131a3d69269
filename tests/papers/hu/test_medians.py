from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.papers.hu.medians import median_law, sampling_error, smooth_sensitivities
from veiltab.papers.hu.populations import DELTA, Population
from veiltab.papers.hu.simulation import draw_sensitivities, noise_variance
from veiltab.papers.privacy.gain import sample_epsilon
from veiltab.papers.privacy.sensitivity import median_smooth_sensitivity, smooth_decay


@pytest.mark.parametrize(("whole", "size"), [(7, 3), (9, 1), (9, 9), (11, 5)])
def test_the_law_of_the_median_is_that_of_all_samples(whole: int, size: int) -> None:
    counts = np.zeros(whole)
    for chosen in combinations(range(whole), size):
        counts[chosen[size // 2]] += 1
    assert median_law(whole, size) == pytest.approx(counts / counts.sum(), abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=41).filter(lambda values: len(values) % 2 == 1),
    st.lists(st.floats(0.001, 3), min_size=1, max_size=4),
)
def test_smooth_sensitivities_are_the_product_s(values: list[float], decays: list[float]) -> None:
    ordered = np.sort(np.array(values))
    found = smooth_sensitivities(ordered, low=0.0, high=1.0, decays=decays)
    expected = [median_smooth_sensitivity(ordered, low=0.0, high=1.0, beta=decay) for decay in decays]
    assert found == pytest.approx(expected, rel=1e-13)


def test_the_error_is_that_of_whole_runs() -> None:
    # Sample, median, sensitivity and Laplace noise, 4,000 times, as the paper does it; 5 standard errors of its mean.
    of = Population(values=np.sort(np.random.default_rng(8).lognormal(5, 0.5, 501)), low=0.0, high=2000.0)
    generator, epsilon, size, runs = np.random.default_rng(9), 0.5, 101, 4000
    epsilon_n = sample_epsilon(epsilon, population=501, sample=size)
    errors = []
    for _ in range(runs):
        drawn = np.sort(generator.choice(of.values, size, replace=False))
        decay = smooth_decay(epsilon_n, DELTA * 501 / size)
        scale = 2 * smooth_sensitivities(drawn, low=0.0, high=2000.0, decays=[decay])[0] / epsilon_n
        errors.append((drawn[size // 2] + generator.laplace(0, scale) - of.median) ** 2)
    squares = draw_sensitivities(of, size, (epsilon,), 1000, generator) ** 2
    ours = sampling_error(of, size) + noise_variance(float(squares.mean()), epsilon_n)
    assert abs(ours - np.mean(errors)) < 5 * np.std(errors) / np.sqrt(runs)
