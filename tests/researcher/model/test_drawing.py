from itertools import combinations, pairwise
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.researcher.model.made_tables import Floats, log_linear, margin, measured, total_variation
from tests.worlds.domains import domain_of
from veiltab.researcher.model import raking
from veiltab.researcher.model.fitting import fit
from veiltab.researcher.model.mixture import Mixture
from veiltab.researcher.model.raking import Raked
from veiltab.researcher.model.row_drawing import Uniforms, draw, spread

Symbols = NDArray[np.int32]

SHAPE = (3, 4, 5, 2)
DOMAIN = domain_of(*SHAPE)


def chi_square(left: Symbols, right: Symbols, sizes: tuple[int, int]) -> float:
    """Return Pearson's statistic less its expectation under independence, in standard deviations of it."""
    counts = np.zeros(sizes)
    np.add.at(counts, (left, right), 1)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    degrees = (sizes[0] - 1) * (sizes[1] - 1)
    return (float(((counts - expected) ** 2 / expected).sum()) - degrees) / sqrt(2 * degrees)


def test_numbers_are_uniform_and_repeat() -> None:
    numbers = Uniforms(b"a").numbers(400_000)
    assert np.array_equal(numbers, Uniforms(b"a").numbers(400_000))
    assert 0 <= numbers.min() < numbers.max() < 1
    # One in 10^6: 4.9 standard deviations of a count of 40,000 in each tenth.
    assert np.abs(np.bincount((numbers * 10).astype(int)) - 40_000).max() < 4.9 * sqrt(36_000)
    assert not np.array_equal(numbers, Uniforms(b"b").numbers(400_000))


def test_normal_numbers_have_their_moments() -> None:
    normals = Uniforms(b"a").normals(100_000)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float((normals**power).mean()) - moment) < 5 * sqrt(variance / 100_000)


def test_every_group_gets_one_number_in_each_of_its_stretches() -> None:
    groups = np.array([0, 2, 2, 0, 2, 2, 0, 4])
    numbers = spread(groups, Uniforms(b""))
    for group, size in ((0, 3), (2, 4), (4, 1)):
        assert sorted((numbers[groups == group] * size).astype(int)) == list(range(size))


def test_symbols_come_as_often_as_expected() -> None:
    conditional = np.array([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0]])
    symbols = draw(conditional, np.repeat([0, 1], [1000, 10]), Uniforms(b""))
    assert np.bincount(symbols[:1000]).tolist() == [200, 0, 800]
    assert set(symbols[1000:].tolist()) == {1}


def test_small_numbers_of_rows_are_right_on_average() -> None:
    conditional = np.array([[0.05, 0.25, 0.7]])
    counts = [
        np.bincount(draw(conditional, np.zeros(3, int), Uniforms(bytes([i, j]))), minlength=3)
        for i in range(32)
        for j in range(64)
    ]
    means = np.mean(counts, axis=0) / 3
    assert np.abs(means - conditional[0]).max() < 5 * sqrt(0.25 / (3 * 2048))


@pytest.mark.parametrize("rows", [500, 10_000])
def test_rows_of_independent_attributes_show_no_dependence(rows: int) -> None:
    truth = log_linear(SHAPE, [(0,), (1,), (2,), (3,)], seed=5)
    model = fit(DOMAIN, [measured(DOMAIN, truth, name) for name in "abcd"], rows=rows)
    assert model.graph == ()
    scores = []
    for seed in range(10):
        drawn = model.sample(rows, bytes([seed]))
        pairs = combinations(range(4), 2)
        scores += [chi_square(drawn[:, one], drawn[:, other], (SHAPE[one], SHAPE[other])) for one, other in pairs]
    # 60 statistics: their mean is not 4.9 standard errors too large; it is too small, as the rows are even in pairs.
    assert np.mean(scores) < 4.9 / sqrt(60)


def test_rows_of_a_chain_are_independent_given_what_stands_between() -> None:
    truth = log_linear(SHAPE, [(0, 1), (1, 2), (2, 3)], seed=6)
    model = fit(DOMAIN, [measured(DOMAIN, truth, names) for names in ("ab", "bc", "cd")], rows=10**5)
    drawn = model.sample(30_000, b"chain")
    scores = [
        chi_square(drawn[between, 0], drawn[between, 2], (SHAPE[0], SHAPE[2]))
        for between in (drawn[:, 1] == symbol for symbol in range(SHAPE[1]))
    ]
    assert max(map(abs, scores)) < 4.9


def test_rows_miss_the_model_by_less_than_independent_rows_would() -> None:
    truth = log_linear(SHAPE, [(0, 1), (1, 2), (2, 3)], seed=6)
    model = fit(DOMAIN, [measured(DOMAIN, truth, names) for names in ("ab", "bc", "cd")], rows=10**5)
    rows = 5_000
    drawn = model.sample(rows, b"rows")
    for axes in combinations(range(4), 2):
        expected = margin(truth, axes).reshape(-1)
        found = np.bincount(
            np.ravel_multi_index((drawn[:, axes[0]], drawn[:, axes[1]]), [SHAPE[a] for a in axes]),
            minlength=expected.size,
        )
        independent = float(np.sqrt(2 / np.pi * expected * (1 - expected) / rows).sum()) / 2
        assert total_variation(found / rows, expected) < 1.3 * independent


def test_the_mean_of_small_samples_is_the_model() -> None:
    truth = log_linear(SHAPE, [(0, 1), (1, 2), (2, 3)], seed=6)
    model = fit(DOMAIN, [measured(DOMAIN, truth, names) for names in ("ab", "bc", "cd")], rows=10**5)
    drawn = np.concatenate([model.sample(40, seed.to_bytes(2, "big")) for seed in range(30)])
    assert model.sample(0, b"").shape == (0, 4)
    for axes in ((0, 1), (0, 3), (1, 3)):
        expected = margin(truth, axes)
        counts = np.zeros(expected.shape)
        np.add.at(counts, tuple(drawn[:, axis] for axis in axes), 1)
        assert (np.abs(counts / 1_200 - expected) <= 5 * np.sqrt(expected / 1_200)).all(), "rare cells are not favoured"


def test_rows_in_parts_miss_the_pairs_by_less_than_rows_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = domain_of(*[4] * 7)
    truth = log_linear(domain.shape, [(axis, axis + 1) for axis in range(6)], seed=6)
    model = fit(domain, [measured(domain, truth, one + other) for one, other in pairwise("abcdefg")], rows=10**5)

    def missed() -> float:
        rows, missed = model.sample(2_000, b"rows"), 0.0
        for axes in combinations(range(7), 2):
            expected = model.distribution.marginal(axes)
            counts = np.zeros(expected.shape)
            np.add.at(counts, tuple(rows[:, axis] for axis in axes), 1)
            missed += total_variation(counts / 2_000, expected)
        return missed

    in_parts = missed()
    monkeypatch.setattr(raking, "PARTS", (0, 1))
    assert in_parts < 0.7 * missed()


def third_order(table: Floats) -> Floats:
    """Return what three attributes share beyond their pairs, in logarithms."""
    logs = np.log(table)
    for axis in range(3):
        logs = logs - logs.mean(axis=axis, keepdims=True)
    return logs


def test_a_raked_distribution_has_the_pairs_of_the_average_and_keeps_what_three_attributes_share() -> None:
    joint = log_linear((3, 3, 4), [(0, 1, 2)], seed=3)
    tree = fit(domain_of(3, 3, 4), [measured(domain_of(3, 3, 4), joint, "abc")], rows=10**6).distribution
    generator = np.random.default_rng(1)
    mixture = Mixture(np.array([0.5, 0.5]), [generator.dirichlet(np.ones(size), 2) for size in (3, 3, 4)])
    raked = Raked(tree, mixture, 0.4, (3, 3, 4))
    every = raked.marginal((0, 1, 2))
    rows = raked.rows(20_000, Uniforms(b""))
    drawn = np.bincount(np.ravel_multi_index(tuple(rows.T), (3, 3, 4)), minlength=36).reshape(3, 3, 4) / 20_000
    for axes in combinations(range(3), 2):
        average = 0.6 * tree.marginal(axes) + 0.4 * mixture.marginal(axes)
        assert np.allclose(raked.marginal(axes), average)
        assert np.allclose(margin(every, axes), average, atol=1e-4)
        assert total_variation(margin(drawn, axes), average) < 2e-3
    assert np.allclose(third_order(every), third_order(tree.marginal((0, 1, 2))))
    assert total_variation(drawn, every) < 2e-3
    halves = [np.bincount(half[:, 0], minlength=3) for half in np.split(rows, 2)]
    assert np.abs(halves[0] - halves[1]).max() < 4.9 * sqrt(20_000 / 4), "in random order"


@pytest.mark.long
def test_a_million_rows() -> None:
    truth = log_linear(SHAPE, [(0, 1), (1, 2), (2, 3)], seed=6)
    drawn = fit(DOMAIN, [measured(DOMAIN, truth, names) for names in ("ab", "bc", "cd")], rows=10**6).sample(10**6, b"")
    counts = np.bincount(np.ravel_multi_index(tuple(drawn.T), SHAPE), minlength=DOMAIN.cells)
    assert total_variation(counts / 10**6, truth) < 0.005
