from collections.abc import Mapping
from itertools import combinations, islice

import numpy as np
import pytest

from tests.researcher.model.made_tables import Floats, log_linear, margin, measured, total_variation
from tests.worlds.domains import domain_of
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.descent import EVERY, tree_path
from veiltab.researcher.model.junction import JunctionTree, junction_tree
from veiltab.researcher.model.loss import Loss
from veiltab.researcher.model.measurement import Measurement, Table, tables_of
from veiltab.researcher.model.tree_distribution import TreeDistribution

SHAPE = (2, 2, 2, 2)
DOMAIN = domain_of(*SHAPE)
CYCLE_WITH_CHORD = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]


def descended(tree: JunctionTree, tables: list[Table], *, steps: int) -> TreeDistribution:
    """Return the tree's fit after so many steps from uniform attributes."""
    uniform = [np.full(size, 1 / size) for size in tree.shape]
    return next(islice(tree_path(tree, tables, uniform), steps // EVERY, None))


def tables(measurements: list[Measurement]) -> list[Table]:
    return list(tables_of(DOMAIN, measurements).values())


def proportional_fitting(pairs: Mapping[tuple[int, int], Floats]) -> Floats:
    """Return the joint table of largest entropy with these margins, by iterative proportional fitting."""
    joint = np.full(SHAPE, 1 / 16)
    for _ in range(500):
        for axes, target in pairs.items():
            within = [size if axis in axes else 1 for axis, size in enumerate(SHAPE)]
            joint *= (target / margin(joint, axes)).reshape(within)
    return joint


@pytest.mark.parametrize("shape", [(2, 9, 2, 2, 3), (20, 1, 1, 2, 2)])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_the_loss_and_its_slope_are_sums_over_all_tables(most: int, shape: tuple[int, ...]) -> None:
    """Tables of several sizes lie in a clique of five attributes: none of them is left out."""
    rng = np.random.default_rng(most)
    tree = junction_tree(shape, list(combinations(range(5), 2)))
    (clique,) = tree.cliques
    some = [
        Table(axes=axes, values=rng.random([shape[axis] for axis in axes]), weight=float(rng.integers(1, 9)))
        for size in range(1, most + 1)
        for axes in combinations(range(5), size)
    ]
    joint = rng.random([shape[axis] for axis in clique.axes])
    compared, loss, slope = Loss(tree, some), 0.0, np.zeros(joint.shape)
    for table in some:
        others = tuple(place for place, axis in enumerate(clique.axes) if axis not in table.axes)
        order = np.argsort(np.argsort([axis for axis in clique.axes if axis in table.axes]))
        error = joint.sum(axis=others, keepdims=True)
        error = error - table.values.transpose(order).reshape(error.shape)
        loss += table.weight * float((error**2).sum()) / 2
        slope += table.weight * error
    found, slopes = compared([joint.reshape(-1, 1)])
    (along,) = compared.spread([np.zeros([1] * joint.ndim)], slopes)
    assert found == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(along.reshape(joint.shape), slope, rtol=1e-12)


def test_consistent_tables_on_a_chordal_graph_give_the_joint_table_of_largest_entropy() -> None:
    # The truth has an effect of three attributes that no pair shows.
    truth = log_linear(SHAPE, [(0, 1, 2), (2, 3), (0, 3)], seed=3)
    pairs = {axes: margin(truth, axes) for axes in CYCLE_WITH_CHORD}
    measurements = [measured(DOMAIN, truth, DOMAIN.names[one] + DOMAIN.names[other]) for one, other in CYCLE_WITH_CHORD]
    model = descended(junction_tree(SHAPE, CYCLE_WITH_CHORD), tables(measurements), steps=1000)
    expected = proportional_fitting(pairs)
    assert total_variation(model.marginal((0, 1, 2, 3)), expected) < 1e-5
    assert total_variation(expected, truth) > 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_inconsistent_tables_are_fitted_as_well_as_any_joint_table_fits_them(seed: int) -> None:
    truth, generator = log_linear(SHAPE, [(0, 1), (1, 2), (2, 3)], seed=seed), np.random.default_rng(seed)
    names = [DOMAIN.names[one] + DOMAIN.names[other] for one, other in CYCLE_WITH_CHORD]
    noisy = tables([measured(DOMAIN, truth, pair, weight=100.0, generator=generator) for pair in names])
    assert min(float(table.values.min()) for table in noisy) < 0  # nothing is clipped
    joint = descended(junction_tree(SHAPE, CYCLE_WITH_CHORD), noisy, steps=1000).marginal((0, 1, 2, 3))
    loss, slope = 0.0, np.zeros(SHAPE)
    for table in noisy:
        error = margin(joint, table.axes) - table.values
        loss += table.weight * float((error**2).sum()) / 2
        slope += table.weight * error.reshape([2 if axis in table.axes else 1 for axis in range(4)])
    # The loss is convex in the 16 cells, so no joint table has a loss smaller by more than this (Frank, Wolfe 1956).
    gap = float((slope * joint).sum() - slope.min())
    assert gap < 5e-3 * loss


def test_tables_count_by_their_weights() -> None:
    # Both say something about a: the pair .3 with variance 2/w in each sum, the single .6 with variance 1/v.
    domain = domain_of(2, 2)
    pair = Measurement(names=("a", "b"), values=np.array([0.15, 0.15, 0.35, 0.35]), weight=200.0)
    single = Measurement(names=("a",), values=np.array([0.6, 0.4]), weight=300.0)
    known = list(tables_of(domain, [pair, single]).values())
    model = descended(junction_tree((2, 2), [(0, 1)]), known, steps=500)
    assert model.marginal((0,))[0] == pytest.approx((100 * 0.3 + 300 * 0.6) / 400, abs=1e-6)


def test_marginals_of_any_attributes_are_those_of_the_joint_table() -> None:
    shape = (2, 3, 1, 2, 3)
    edges = [(0, 1), (1, 2), (1, 3)]  # the last attribute stands alone
    domain = domain_of(*shape)
    joint = log_linear(shape, [*edges, (4,)], seed=7)
    measurements = [measured(domain, joint, names) for names in ("ab", "bc", "bd", "e")]
    known = list(tables_of(domain, measurements).values())
    model = descended(junction_tree(shape, edges), known, steps=800)
    for size in range(1, 6):
        for axes in combinations((3, 0, 4, 2, 1), size):
            assert model.marginal(axes).shape == tuple(shape[axis] for axis in axes)
            assert np.allclose(model.marginal(axes), margin(joint, axes), atol=1e-6)


def test_a_marginal_that_needs_too_large_a_table_is_refused() -> None:
    shape = (4000, 1, 4000)
    tree = junction_tree(shape, [])
    model = TreeDistribution(tree, [np.full((tree.shape[clique.residual[0]], 1), 0.5) for clique in tree.cliques])
    with pytest.raises(InvalidInputError, match="a table of 16000000 cells"):
        model.marginal((0, 2))
