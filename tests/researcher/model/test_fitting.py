from itertools import combinations

import numpy as np
import pytest

from tests.researcher.model.made_tables import Floats, log_linear, margin, measured, total_variation
from tests.worlds.domains import domain_of
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.choosing import chosen_tables, graph_of, scores_of
from veiltab.researcher.model.fitting import fit
from veiltab.researcher.model.junction import junction_tree
from veiltab.researcher.model.measurement import Measurement, tables_of
from veiltab.researcher.model.raking import Distribution, Raked

DOMAIN = domain_of(2, 3, 4, 3)
DENSE = log_linear((2, 3, 4, 3), list(combinations(range(4), 2)), seed=2)
TREE = log_linear((2, 3, 4, 3), [(0, 1), (1, 2), (1, 3)], seed=4)


def test_exact_tables_of_a_tree_give_the_joint_table_back() -> None:
    model = fit(DOMAIN, [measured(DOMAIN, TREE, names) for names in ("ab", "cb", "bd")], rows=10**6)
    assert total_variation(model.marginal(("a", "b", "c", "d")), TREE) < 2e-4


def test_a_marginal_has_the_order_that_was_asked_for() -> None:
    model = fit(DOMAIN, [measured(DOMAIN, TREE, names) for names in ("ab", "bc", "bd")], rows=10**6)
    for names in (("d", "a"), ("c",), ("c", "a", "d")):
        expected = margin(TREE, [DOMAIN.names.index(name) for name in names])
        assert total_variation(model.marginal(names), expected) < 5e-4


def test_the_strongest_pairs_are_chosen_and_a_tree_first() -> None:
    measurements = [measured(DOMAIN, TREE, one + other) for one, other in combinations("abcd", 2)]
    chosen = chosen_tables(DOMAIN, measurements, rows=10**6, count=3)
    assert set(chosen) == {("a", "b"), ("b", "c"), ("b", "d")}
    assert len(chosen_tables(DOMAIN, measurements, rows=10**6, count=5)) == 5
    assert chosen_tables(DOMAIN, measurements, rows=10**6, count=0) == ()


@pytest.mark.parametrize(("most_cells", "cells"), [(36, 36), (71, 60), (72, 72)])
def test_the_graph_stays_below_the_cells_allowed(most_cells: int, cells: int) -> None:
    tables = tables_of(DOMAIN, [measured(DOMAIN, DENSE, one + other) for one, other in combinations("abcd", 2)])
    graph = graph_of(DOMAIN.shape, scores_of(DOMAIN.shape, tables, rows=10**6), most_cells=most_cells)
    assert junction_tree(DOMAIN.shape, [(axes[0], axes[1]) for axes in graph]).cells == cells


def test_a_spanning_tree_is_never_too_large() -> None:
    tables = tables_of(DOMAIN, [measured(DOMAIN, TREE, one + other) for one, other in combinations("abcd", 2)])
    graph = graph_of(DOMAIN.shape, scores_of(DOMAIN.shape, tables, rows=10**6), most_cells=1)
    assert set(graph) == {(0, 1), (1, 2), (1, 3)}


def test_tables_of_three_attributes_are_chosen_too() -> None:
    joint = log_linear((2, 3, 4, 3), [(0, 1, 2), (3,)], seed=1)
    measurements = [measured(DOMAIN, joint, names) for names in ("abc", "abd", "bcd")]
    assert chosen_tables(DOMAIN, measurements, rows=10**6, count=1) == (("a", "b", "c"),)


def test_an_attribute_in_no_table_is_named() -> None:
    with pytest.raises(InvalidInputError, match="no table measures d"):
        fit(DOMAIN, [measured(DOMAIN, TREE, "abc")], rows=100)


def test_samples_repeat_by_their_seed_and_follow_the_model() -> None:
    model = fit(DOMAIN, [measured(DOMAIN, TREE, names) for names in ("ab", "bc", "bd")], rows=10**6)
    rows = model.sample(20_000, b"one")
    assert rows.shape == (20_000, 4)
    assert np.array_equal(rows, model.sample(20_000, b"one"))
    assert not np.array_equal(rows, model.sample(20_000, b"other"))
    counts = np.bincount(np.ravel_multi_index(tuple(rows.T), DOMAIN.shape), minlength=DOMAIN.cells)
    assert total_variation(counts / len(rows), TREE) < 0.02
    assert model.sample(0, b"").shape == (0, 4)
    for refused in (-1, 10**9):
        with pytest.raises(InvalidInputError, match="rows can be drawn"):
            model.sample(refused, b"")


def test_spread_rows_vary_less_than_a_simple_random_sample() -> None:
    model = fit(DOMAIN, [measured(DOMAIN, TREE, names) for names in ("ab", "bc", "bd")], rows=10**6)
    share = model.marginal(("a",))[0]
    variance = np.var([np.mean(model.sample(200, bytes([i]))[:, 0] == 0) for i in range(25)])
    assert variance * 200 / (share * (1 - share)) < 0.1


MANY = domain_of(4, 4, 4, 4, 4)


def noisy_pairs(joint: Floats, weight: float, seed: int) -> list[Measurement]:
    generator = np.random.default_rng(seed)
    pairs = combinations("abcde", 2)
    return [measured(MANY, joint, one + other, weight=weight, generator=generator) for one, other in pairs]


def pair_error(distribution: Distribution, joint: Floats) -> float:
    pairs = list(combinations(range(5), 2))
    return sum(total_variation(distribution.marginal(pair), margin(joint, pair)) for pair in pairs) / len(pairs)


@pytest.mark.parametrize(("most_cells", "least", "largest"), [(64, 0.6, 0.75), (1024, 0.0, 0.0)])
def test_the_mixture_gets_the_share_that_the_tables_support(most_cells: int, least: float, largest: float) -> None:
    # A tree of 64 cells misses 6 of the 10 pairs; one of 1,024 has them all.
    dense = log_linear(MANY.shape, list(combinations(range(5), 2)), seed=8, strength=0.6)
    model = fit(MANY, noisy_pairs(dense, 1e5, 0), rows=10**5, most_cells=most_cells)
    assert least <= model.mixture_share <= largest


def test_a_raked_tree_is_nearer_in_pairs_than_the_tree_and_in_triples_than_the_average() -> None:
    # Dependences of three attributes inside a clique, and pairs that have no room in the tree.
    joint = log_linear(MANY.shape, [(0, 1, 2), *combinations(range(5), 2)], seed=8, strength=0.6)
    triple = measured(MANY, joint, "abc", weight=1e5, generator=np.random.default_rng(9))
    model = fit(MANY, [*noisy_pairs(joint, 1e5, 0), triple], rows=10**5, most_cells=64)
    assert model.mixture_share > 0
    raked = model.distribution
    assert isinstance(raked, Raked)
    tree, mixture, share = raked._first, raked._second, raked._share
    assert pair_error(raked, joint) < 0.95 * pair_error(tree, joint)
    rows, n = model.sample(10**5, b"rows"), 10**5
    wrong = np.zeros(3)
    for axes in combinations(range(5), 3):
        cells = np.ravel_multi_index(tuple(rows[:, axis] for axis in axes), [4] * 3)
        drawn = np.bincount(cells, minlength=64) / n
        average = (1 - share) * tree.marginal(axes) + share * mixture.marginal(axes)
        wrong += [total_variation(one, margin(joint, axes)) for one in (drawn, average, tree.marginal(axes))]
    assert wrong[0] < min(wrong[1:])


def test_the_tree_stands_alone_where_the_tables_need_no_more() -> None:
    # The three attributes depend on one another together, which no pair and so no mixture of the pairs can know.
    joint = log_linear((4, 4, 4), [(0, 1, 2)], seed=3)
    generator = np.random.default_rng(0)
    model = fit(
        domain_of(4, 4, 4), [measured(domain_of(4, 4, 4), joint, "abc", weight=1e6, generator=generator)], rows=10**5
    )
    assert model.mixture_share == 0
    assert model.kind == "junction tree"
    assert total_variation(model.marginal(("a", "b", "c")), joint) < 0.025


def test_noise_alone_is_not_taken_for_dependence() -> None:
    independent = log_linear(MANY.shape, [(axis,) for axis in range(5)], seed=1)
    measurements = noisy_pairs(independent, 3e3, 1)
    raw = sum(
        total_variation(one.values, margin(independent, [MANY.names.index(name) for name in one.names]))
        for one in measurements
    ) / len(measurements)
    model = fit(MANY, measurements, rows=10**4)
    assert pair_error(model.distribution, independent) < 0.5 * raw


def test_noise_adds_nothing_to_a_score_on_average() -> None:
    domain = domain_of(4, 16)
    independent, generator = log_linear((4, 16), [(0,), (1,)], seed=1), np.random.default_rng(0)
    scores = []
    for _ in range(50):
        tables = tables_of(domain, [measured(domain, independent, "ab", weight=1e4, generator=generator)])
        scores.append(scores_of(domain.shape, tables, rows=10**9)[0, 1])
    # 64 cells of standard error .01: .51 of noise, of which the estimated margins take some with them.
    assert abs(np.mean(scores)) < 0.1


def test_a_weak_dependence_in_few_cells_goes_before_noise_in_many() -> None:
    domain, generator = domain_of(2, 2, 16, 16), np.random.default_rng(0)
    joint = log_linear((2, 2, 16, 16), [(0, 1), (2,), (3,)], seed=5)
    pairs = [one + other for one, other in combinations("abcd", 2)]
    measurements = [measured(domain, joint, names, weight=1e5, generator=generator) for names in pairs]
    assert chosen_tables(domain, measurements, rows=10**6, count=1) == (("a", "b"),)
