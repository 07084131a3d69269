"""The covariance is exact: enumeration of every sample and every outcome of the mechanism, in fractions, says so."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import mean_squared_error
from veiltab.researcher.estimates.uncertainty import (
    ReleaseDesign,
    contrast_covariance,
    covariance,
    score_interval,
    total_variance,
    variances,
)

EIGHTH = 2**61


def make_design(n: int, m: int, cells: int, replacement: int = 3 * EIGHTH) -> ReleaseDesign:
    return ReleaseDesign(population=n, sample=m, mechanism=GammaDiagonal(cells=cells, replacement=replacement))


def enumerated_moments(
    table: tuple[int, ...], m: int, cells: int, r: Fraction
) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Mean and covariance of T_hat over every sample of the rows and every output of every sampled row."""
    mean = [Fraction(0)] * cells
    second = [[Fraction(0)] * cells for _ in range(cells)]
    samples = list(combinations(table, m))
    for sample in samples:
        for outputs in product(range(cells), repeat=m):
            chance = Fraction(1, len(samples))
            for value, output in zip(sample, outputs, strict=True):
                chance *= (1 - r if value == output else 0) + r / cells
            counts = Counter(outputs)
            estimate = [(Fraction(counts[x], m) - r / cells) / (1 - r) for x in range(cells)]
            for x in range(cells):
                mean[x] += chance * estimate[x]
                for y in range(cells):
                    second[x][y] += chance * estimate[x] * estimate[y]
    return mean, [[second[x][y] - mean[x] * mean[y] for y in range(cells)] for x in range(cells)]


@pytest.mark.parametrize(
    ("table", "m", "cells"),
    [
        ((0,), 1, 3),
        ((0, 1), 1, 2),
        ((0, 0, 1), 2, 2),
        ((0, 1, 1, 2), 3, 3),
        ((0, 0, 1, 2, 2), 2, 4),
        ((1, 1, 0), 3, 3),
        ((0, 0), 2, 1),
    ],
)
def test_coefficients_equal_enumeration_exactly(table: tuple[int, ...], m: int, cells: int) -> None:
    n, r = len(table), Fraction(3, 8)
    truth = [Fraction(table.count(x), n) for x in range(cells)]
    mean, expected = enumerated_moments(table, m, cells, r)
    assert mean == truth
    terms = make_design(n, m, cells).terms
    for x, y in product(range(cells), repeat=2):
        got = terms.constant + terms.linear * truth[x] if x == y else Fraction(0)
        got -= terms.cross * (truth[x] + truth[y]) + terms.background + terms.sampling * truth[x] * truth[y]
        assert got == expected[x][y]
    design, fractions = make_design(n, m, cells), np.array([float(t) for t in truth])
    exact = np.array([[float(entry) for entry in row] for row in expected])
    np.testing.assert_allclose(covariance(fractions, design), exact, atol=1e-15)
    np.testing.assert_allclose(variances(fractions, design), np.diagonal(exact), atol=1e-15)


DESIGNS = st.builds(
    lambda n, share, cells, replacement: make_design(n, 1 + round(share * (n - 1)), cells, replacement),
    st.integers(1, 100_000),
    st.floats(0, 1),
    st.integers(2, 12),
    st.integers(1, 2**64 - 2**50),
)


@given(DESIGNS, st.integers(0, 2**32 - 1))
def test_all_forms_of_the_covariance_agree(design: ReleaseDesign, seed: int) -> None:
    cells = design.mechanism.cells
    rng = np.random.default_rng(seed)
    fractions = rng.dirichlet(np.ones(cells))
    matrix = covariance(fractions, design)
    scale = float(np.abs(matrix).max())
    np.testing.assert_allclose(np.diagonal(matrix), variances(fractions, design), atol=1e-9 * scale)
    contrasts = rng.normal(size=(3, cells))
    np.testing.assert_allclose(
        contrast_covariance(contrasts, fractions, design), contrasts @ matrix @ contrasts.T, atol=1e-7 * scale
    )
    assert np.linalg.eigvalsh(matrix).min() >= -1e-9 * scale
    np.testing.assert_allclose(matrix.sum(axis=1), 0, atol=1e-7 * scale)
    assert np.trace(matrix) == pytest.approx(total_variance(float(fractions @ fractions), design), rel=1e-6)


@given(DESIGNS, st.floats(0, 1))
def test_the_trace_is_the_closed_form_of_the_planner(design: ReleaseDesign, concentration: float) -> None:
    cells, gamma = design.mechanism.cells, float(design.mechanism.gamma)
    squares = 1 / cells + concentration * (1 - 1 / cells)
    expected = mean_squared_error(
        population=design.population, sample=design.sample, cells=cells, gamma=gamma, sum_of_squares=squares
    )
    assert total_variance(squares, design) == pytest.approx(expected, rel=1e-6, abs=1e-25)


@given(DESIGNS, st.floats(0.01, 0.999), st.integers(0, 2**32 - 1))
def test_interval_ends_are_where_the_test_turns(design: ReleaseDesign, confidence: float, seed: int) -> None:
    m, cells = design.sample, design.mechanism.cells
    rho = float(design.mechanism.retention)
    counts = np.random.default_rng(seed).multinomial(m, np.full(cells, 1 / cells))
    raw = (counts / m - (1 - rho) / cells) / rho
    low, high = score_interval(raw, design, confidence)
    assert ((low >= 0) & (low <= np.clip(raw, 0, 1))).all()
    assert ((high <= 1) & (high >= np.clip(raw, 0, 1))).all()
    z = norm.ppf((1 + confidence) / 2)
    terms = design.terms
    for ends in (low, high):
        within = (ends > 0) & (ends < 1)
        end, at = ends[within], raw[within]
        variance = float(terms.constant - terms.background) + end * (
            float(terms.linear - 2 * terms.cross) - float(terms.sampling) * end
        )
        scale = float(np.abs(end - at).max(initial=0)) ** 2 + 1e-12
        np.testing.assert_allclose((end - at) ** 2, z**2 * variance, atol=1e-6 * scale)


def test_an_interval_beyond_every_share_is_the_nearer_end() -> None:
    design = make_design(10**12, 10**6, 2, replacement=2**63)
    low, high = score_interval(np.array([-0.25, 1.25]), design, 0.95)
    assert (low.tolist(), high.tolist()) == ([0.0, 1.0], [0.0, 1.0])


def test_variances_of_a_million_cells_need_no_matrix() -> None:
    design = make_design(45222, 45222, 1_000_000)
    fractions = np.full(1_000_000, 1e-6)
    assert variances(fractions, design).sum() == pytest.approx(total_variance(1e-6, design))
    with pytest.raises(InvalidInputError, match="above the limit"):
        covariance(fractions, design)


@pytest.mark.parametrize(("n", "m"), [(10, 0), (10, 11), (0, 0), (0, 1)])
def test_impossible_samples_are_refused(n: int, m: int) -> None:
    with pytest.raises(InvalidInputError, match="rows were asked for, not 1 to n ="):
        make_design(n, m, 4)


def test_mechanism_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="nothing can be estimated"):
        make_design(10, 5, 4, replacement=2**64)


@pytest.mark.parametrize("fractions", [np.full(3, 0.25), np.full((2, 2), 0.25)])
def test_wrong_shapes_are_refused(fractions: NDArray[np.float64]) -> None:
    design = make_design(10, 5, 4)
    for call in (variances, covariance):
        with pytest.raises(InvalidInputError, match="not one for each of 4 cells"):
            call(fractions, design)
    with pytest.raises(InvalidInputError, match="not one for each of 4 cells"):
        contrast_covariance(np.ones((2, fractions.size)), fractions, design)
    with pytest.raises(InvalidInputError, match="not one for each of 4 cells"):
        score_interval(fractions, design, 0.95)
    with pytest.raises(InvalidInputError, match="the contrasts do not have"):
        contrast_covariance(np.ones((2, 3)), np.full(4, 0.25), design)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, float("nan")])
def test_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match="confidence"):
        score_interval(np.full(4, 0.25), make_design(10, 5, 4), confidence)
