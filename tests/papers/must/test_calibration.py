import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.privacy.amplification import base_epsilon
from veiltab.common.privacy.profiles import Gaussian
from veiltab.common.schemes import SCHEMES
from veiltab.papers.must.bootstrap import BOUND, widths
from veiltab.papers.must.calibration import analytic_ratio, corrected_ratio, paper_ratio, target_delta
from veiltab.papers.must.designs import BOOTSTRAP, REGRESSION
from veiltab.papers.privacy.amplification import amplify

EDGE = 1 + 1e-5


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0])
def test_the_corrected_noise_is_the_least_that_keeps_the_target(name: str, epsilon: float) -> None:
    scheme = REGRESSION.scheme(name)
    ratio, base = corrected_ratio(scheme, epsilon), base_epsilon(scheme, epsilon)
    found = amplify(scheme, Gaussian(ratio=ratio), base)
    assert found.delta <= target_delta(scheme)
    assert found.epsilon <= epsilon * (1 + 1e-12)
    assert amplify(scheme, Gaussian(ratio=ratio * EDGE), base).delta > target_delta(scheme)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_analytic_noise_is_the_least_that_keeps_the_base(name: str) -> None:
    scheme = BOOTSTRAP.scheme(name)
    ratio, base = analytic_ratio(scheme, 0.1), base_epsilon(scheme, 0.1)
    assert Gaussian(ratio=ratio).delta(base, 1) <= 1 / 300 < Gaussian(ratio=ratio * EDGE).delta(base, 1)
    assert ratio >= paper_ratio(scheme, 0.1)


@given(st.lists(st.floats(-BOUND, BOUND), min_size=29, max_size=29), st.floats(-BOUND, BOUND), st.floats(-BOUND, BOUND))
def test_no_row_moves_mean_or_variance_further_than_its_width(rest: list[float], old: float, new: float) -> None:
    scheme = BOOTSTRAP.scheme("wor")
    one, other = np.array([*rest, old]), np.array([*rest, new])
    assert 30 * abs(one.mean() - other.mean()) <= widths(scheme)["mean"] + 1e-9
    assert 30 * abs(one.var(ddof=1) - other.var(ddof=1)) <= widths(scheme)["variance"] + 1e-9


@given(st.lists(st.floats(-BOUND, BOUND), min_size=1, max_size=60), st.floats(-BOUND, BOUND))
def test_no_row_that_is_added_moves_the_poisson_statistics_further(rest: list[float], new: float) -> None:
    needed = widths(BOOTSTRAP.scheme("poisson"))
    without, with_it = np.array(rest), np.array([*rest, new])
    assert abs(with_it.sum() - without.sum()) <= needed["mean"] + 1e-9
    squares = [float(((x - x.mean()) ** 2).sum()) / 29 for x in (without, with_it)]
    assert 30 * abs(squares[1] - squares[0]) <= needed["variance"] + 1e-9
