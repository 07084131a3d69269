"""The loss of a distribution on a junction tree by noisy tables, and its slope.

L(P) = 1/2 sum_t w_t ||M_t P - y_t||^2, where M_t sums the marginal of a clique down to the attributes of table t. The
tables of one clique share their sums: what several of them leave out is summed out once, the largest attributes first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.measurement import Floats, Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Target:
    """A table as an array of its clique: one axis an attribute of the clique, of size 1 where the table has it not."""

    places: frozenset[int]
    values: Floats
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sum:
    """A marginal of a clique, the tables that are compared with it, and the smaller marginals that are made from it."""

    targets: Sequence[_Target]
    smaller: Sequence[tuple[int, "_Sum"]]

    def look(self, marginal: Floats) -> tuple[float, Floats]:
        """Return the loss of the tables here and below, and its slope by the cells of this marginal."""
        loss, slope = 0.0, np.zeros(marginal.shape)
        for target in self.targets:
            error = marginal - target.values
            loss += target.weight * float(np.vdot(error, error)) / 2
            slope += target.weight * error
        for place, below in self.smaller:
            more, slopes = below.look(marginal.sum(axis=place, keepdims=True))
            loss += more
            slope += slopes
        return loss, slope


def _sum(sizes: tuple[int, ...], kept: frozenset[int], targets: Collection[_Target]) -> _Sum:
    """Plan the sums from a marginal over the axes `kept` down to the targets, all of which lie within it."""
    smaller = []
    rest = [target for target in targets if target.places != kept]
    for place in sorted(kept, key=lambda place: -sizes[place]):
        without = [target for target in rest if place not in target.places]
        if without:
            smaller.append((place, _sum(sizes, kept - {place}, without)))
            rest = [target for target in rest if place in target.places]
    return _Sum(targets=[target for target in targets if target.places == kept], smaller=smaller)


class Loss:
    """L and its slope by the marginals of the cliques.

    Args:
        tables: each within a clique of it.

    Raises:
        ValueError: a table that is not.
    """

    def __init__(self, tree: JunctionTree, tables: Sequence[Table]) -> None:
        targets: list[list[_Target]] = [[] for _ in tree.cliques]
        for table in tables:
            number = tree.containing(table.axes)
            if number is None:
                raise ValueError("a table fits in no clique")
            axes = tree.cliques[number].axes
            inside = [axis for axis in axes if axis in table.axes]
            values = table.values.transpose([table.axes.index(axis) for axis in inside])
            targets[number].append(
                _Target(
                    places=frozenset(map(axes.index, inside)),
                    values=values.reshape([tree.shape[axis] if axis in table.axes else 1 for axis in axes]),
                    weight=table.weight,
                )
            )
        self._shapes = [tree.sizes(clique.axes) for clique in tree.cliques]
        self._sums = [
            _sum(shape, frozenset(range(len(shape))), some) for shape, some in zip(self._shapes, targets, strict=True)
        ]

    def __call__(self, marginals: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return L and its slope by each clique's marginal, in that marginal's shape."""
        loss, slopes = 0.0, []
        for marginal, shape, sums in zip(marginals, self._shapes, self._sums, strict=True):
            more, slope = sums.look(marginal.reshape(shape))
            loss += more
            slopes.append(slope.reshape(marginal.shape))
        return loss, slopes
