"""Closed forms of structured matrices, against every output of tiny ones."""

from itertools import product
from math import prod, sqrt

import numpy as np
import pytest

from veiltab.common.privacy.pricing.price import central_limit_gamma
from veiltab.common.schemes import scheme_of
from veiltab.papers.lin.structured import (
    MU,
    budget_of_circulant,
    budget_of_product,
    circulant,
    error_of_part,
    error_of_product,
    error_of_sum,
    least_a,
    product_at,
)


def matrix(a: float, size: int) -> np.ndarray:
    return (np.ones((size, size)) + a * np.eye(size)) / (a + size)


def joined(a: list[float], sizes: list[int]) -> np.ndarray:
    whole = np.ones((1, 1))
    for one, size in zip(a, sizes, strict=True):
        whole = np.kron(whole, matrix(one, size))
    return whole


def slow_budget(law: np.ndarray, rows: int) -> float:
    blanket = law.min(axis=0)
    apart = max((((law[x] - law[z]) ** 2) / blanket).sum() for x, z in product(range(len(law)), repeat=2))
    return float(apart) / rows


def slow_error(law: np.ndarray, weights: np.ndarray, rows: int) -> float:
    inverse = np.linalg.solve(law, weights)
    return sqrt(float((law @ inverse**2 - weights**2).mean()) / rows)


@pytest.mark.parametrize(("a", "sizes"), [([1.5, 0.7], [2, 3]), ([4.0, 4.0, 4.0], [2, 2, 3]), ([9.0], [5])])
def test_products_by_enumeration(a: list[float], sizes: list[int]) -> None:
    law = joined(a, sizes)
    assert budget_of_product(a, sizes, 100) == pytest.approx(slow_budget(law, 100), rel=1e-12)
    cell = np.zeros(prod(sizes))
    cell[0] = 1.0
    assert error_of_product(a, sizes, 100) == pytest.approx(slow_error(law, cell, 100), rel=1e-12)
    # The first attribute alone: its rows went through its own factor.
    marginal = np.repeat([1.0] + [0.0] * (sizes[0] - 1), prod(sizes[1:]))
    assert error_of_product(a[:1], sizes[:1], 100) == pytest.approx(slow_error(law, marginal, 100), rel=1e-9)


def test_a_marginal_of_a_joint_table() -> None:
    law, marginal = matrix(7.0, 6), np.repeat([1.0, 0.0], 3)
    assert error_of_part(7.0, 6, 2, 50) == pytest.approx(slow_error(law, marginal, 50), rel=1e-12)


def test_circulants_by_enumeration() -> None:
    law = circulant(0.4, 0.04, 6, 500)
    whole = np.array([np.roll(law, x) for x in range(6)])
    assert law.sum() == pytest.approx(1)
    assert slow_budget(whole, 500) == pytest.approx(0.04, rel=1e-9)
    assert budget_of_circulant(law, 500) == pytest.approx(0.04, rel=1e-9)
    weights = np.arange(6.0)
    assert error_of_sum(law, weights, 500) == pytest.approx(slow_error(whole, weights, 500), rel=1e-9)


def test_the_budget_is_the_product_s_own() -> None:
    a = least_a(MU * MU, 24, 45_222)
    assert budget_of_product([a], [24], 45_222) == pytest.approx(MU * MU, rel=1e-12)
    scheme = scheme_of("wor", population=45_222, sample=45_222, stage=None)
    assert 1 + a == pytest.approx(central_limit_gamma(scheme, 24, MU), rel=1e-12)
    assert budget_of_product(product_at(MU * MU, (3, 2, 2), 900), (3, 2, 2), 900) == pytest.approx(MU * MU)
    # Without decay a circulant is the gamma-diagonal.
    assert circulant(0.0, MU * MU, 24, 45_222)[0] == pytest.approx((a + 1) / (a + 24), rel=1e-9)
