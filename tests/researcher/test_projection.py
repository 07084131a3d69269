"""The projection is the one point that satisfies the optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.projection import project_to_simplex

VECTORS = arrays(np.float64, st.integers(1, 40), elements=st.floats(-3, 3, width=32))


@given(VECTORS)
def test_result_is_a_distribution_that_meets_the_optimality_conditions(values: NDArray[np.float64]) -> None:
    p = project_to_simplex(values)
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1, abs=1e-9)
    # Karush-Kuhn-Tucker: values - p is one constant where p > 0, and at most it where p = 0.
    gap = values - p
    tau = gap[p > 0].mean()
    np.testing.assert_allclose(gap[p > 0], tau, atol=1e-9)
    assert (gap[p == 0] <= tau + 1e-9).all()


def test_large_common_offset_loses_no_digits() -> None:
    values = np.array([0.5, 0.3, -0.1, 0.2])
    np.testing.assert_allclose(project_to_simplex(values + 2.0**40), project_to_simplex(values), atol=1e-3)
    assert project_to_simplex(values + 2.0**40).sum() == pytest.approx(1, abs=1e-12)


def test_million_cells_are_no_matter() -> None:
    values = np.random.default_rng(1).normal(0, 1e-3, size=1_000_000)
    assert project_to_simplex(values).sum() == pytest.approx(1)


@pytest.mark.parametrize("values", [np.array([]), np.array([[0.5, 0.5]]), np.array([np.nan, 1.0]), np.array([np.inf])])
def test_what_has_no_projection_is_refused(values: NDArray[np.float64]) -> None:
    with pytest.raises(InvalidInputError):
        project_to_simplex(values)
