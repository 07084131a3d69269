from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.papers.hu.medians import median_law, smooth_sensitivities
from veiltab.papers.privacy.sensitivity import median_smooth_sensitivity


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
