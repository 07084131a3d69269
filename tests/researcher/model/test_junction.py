from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.researcher.model.calibration import Calibration, array_shapes
from veiltab.researcher.model.junction import JunctionTree, junction_tree

Shape = tuple[int, ...]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Shape, list[tuple[int, int]]]:
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=6)))
    pairs = list(combinations(range(len(shape)), 2))
    return shape, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@given(graphs())
def test_a_junction_tree_covers_the_graph_and_has_the_running_intersection_property(
    graph: tuple[Shape, list[tuple[int, int]]],
) -> None:
    shape, edges = graph
    tree = junction_tree(shape, edges)
    assert sorted(axis for clique in tree.cliques for axis in clique.residual) == list(range(len(shape)))
    assert all(tree.containing(edge) is not None for edge in edges)
    for number, clique in enumerate(tree.cliques):
        if clique.parent is None:
            assert not clique.separator
        else:
            assert clique.parent < number
            assert set(clique.separator) <= set(tree.cliques[clique.parent].axes)
            order = tree.cliques[clique.parent].axes.index
            assert list(clique.separator) == sorted(clique.separator, key=order)
    for one, other in combinations(tree.cliques, 2):
        assert not set(one.axes) <= set(other.axes)
        assert not set(other.axes) <= set(one.axes)


def test_a_cycle_of_four_gets_the_cheaper_chord() -> None:
    tree = junction_tree((10, 2, 10, 3), [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert sorted(sorted(clique.axes) for clique in tree.cliques) == [[0, 1, 3], [1, 2, 3]]
    assert tree.cells == 120


def brute(tree: JunctionTree, potentials: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]) -> object:
    joint = np.zeros(tree.shape)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        table = potential.reshape(tree.sizes(clique.axes)).transpose(np.argsort(clique.axes))
        joint = joint + table.reshape([size if axis in clique.axes else 1 for axis, size in enumerate(tree.shape)])
    joint = np.exp(joint)
    return joint / joint.sum()


@settings(max_examples=50)
@given(graphs(), st.integers(0, 1000))
def test_messages_give_the_marginals_of_the_joint_table(graph: tuple[Shape, list[tuple[int, int]]], seed: int) -> None:
    tree = junction_tree(*graph)
    generator = np.random.default_rng(seed)
    potentials = [3 * generator.normal(size=shape) for shape in array_shapes(tree)]
    joint = np.asarray(brute(tree, potentials))
    calibration = Calibration(tree)
    for clique, marginal in zip(tree.cliques, calibration.marginals(calibration.conditionals(potentials)), strict=True):
        summed = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in clique.axes))
        expected = summed.transpose(np.argsort(np.argsort(clique.axes))).reshape(marginal.shape)
        assert np.allclose(marginal, expected, rtol=1e-9, atol=1e-15)


def test_potentials_of_any_size_neither_overflow_nor_underflow() -> None:
    tree = junction_tree((2, 2, 2), [(0, 1), (1, 2)])
    potentials = [np.array([[0.0], [800.0], [-800.0], [1.0]]), np.array([[900.0, 5.0], [-900.0, 5.0]])]
    conditionals = Calibration(tree).conditionals(potentials)
    assert all(np.isfinite(table).all() and np.allclose(table.sum(axis=0), 1) for table in conditionals)
