"""The loss of a distribution on a junction tree by noisy tables, and its slope.

L(P) = 1/2 sum_t w_t ||M_t P - y_t||^2, where M_t sums the marginal of a clique down to the attributes of table t. The
tables of one clique share their sums. With at most k attributes each, every table lacks all of one of any k + 1 groups
of attributes, so k + 1 passes over the clique sum a group out each, and all tables are summed from what is left. There
what several of them leave out is summed out once, the largest attributes first.
"""

from collections.abc import Collection, Sequence
from math import prod, sqrt

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.researcher.model.calibration import array_shapes
from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.measurement import Floats, Rounded, Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Target:
    """A table as an array of its clique: one axis an attribute of the clique, of size 1 where the table has it not.

    Args:
        cells: where its own are among those of all tables.
    """

    places: frozenset[int]
    shape: tuple[int, ...]
    cells: slice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sum:
    """A marginal of a clique, the tables that are compared with it, and the smaller marginals that are made from it."""

    shape: tuple[int, ...]
    targets: Sequence[_Target]
    smaller: Sequence[tuple[tuple[int, ...], "_Sum"]]

    def collect(self, marginal: Rounded, cells: Floats) -> None:
        """Write the marginals of the tables here and below by their cells."""
        for target in self.targets:
            cells[target.cells] = marginal.reshape(-1)
        for places, below in self.smaller:
            below.collect(np.add.reduce(marginal, axis=places, keepdims=True), cells)

    def spread(self, cells: Rounded, over: Rounded) -> None:
        """Add the tables here and below to each cell of this marginal."""
        for target in self.targets:
            over += cells[target.cells].reshape(target.shape)
        for _, below in self.smaller:
            part = np.zeros(below.shape, over.dtype)
            below.spread(cells, part)
            over += part


def _sum(sizes: tuple[int, ...], axes: frozenset[int], targets: Collection[_Target]) -> _Sum:
    """Plan the sums from a marginal over `axes` down to the targets, all of which lie within it."""
    smaller = []
    rest = [target for target in targets if target.places != axes]
    groups = _groups(sizes, axes, 1 + max((len(target.places) for target in rest), default=0))
    # A table that lacks all of no group still lacks an attribute.
    for places in [*groups, *((place,) for place in axes)]:
        without = [target for target in rest if target.places.isdisjoint(places)]
        if without:
            smaller.append((places, _sum(sizes, axes.difference(places), without)))
            rest = [target for target in rest if not target.places.isdisjoint(places)]
    return _Sum(
        shape=tuple(size if place in axes else 1 for place, size in enumerate(sizes)),
        targets=[target for target in targets if target.places == axes],
        smaller=smaller,
    )


def _groups(sizes: tuple[int, ...], axes: frozenset[int], count: int) -> list[tuple[int, ...]]:
    """Divide attributes into at most so many runs of about as many cells each: sums over neighbours are fast."""
    groups = list[tuple[int, ...]]()
    even = prod(sizes[place] for place in axes) ** (1 / count)
    for place in sorted(axes):
        is_full = bool(groups) and prod(sizes[one] for one in groups[-1]) * sqrt(sizes[place]) > even
        if not groups or (is_full and len(groups) < count):
            groups.append(())
        groups[-1] = (*groups[-1], place)
    return sorted(groups, key=lambda group: -prod(sizes[one] for one in group))


class Loss:
    """L and its slope by the cells of the tables.

    Args:
        tables: each within a clique of it.

    Raises:
        ValueError: a table that is not.
    """

    def __init__(self, tree: JunctionTree, tables: Sequence[Table]) -> None:
        targets: list[list[_Target]] = [[] for _ in tree.cliques]
        values, weights, self.cells = list[Floats](), list[Floats](), 0
        for table in tables:
            number = tree.containing(table.axes)
            if number is None:
                raise ValueError("a table fits in no clique")
            axes = tree.cliques[number].axes
            inside = [axis for axis in axes if axis in table.axes]
            values.append(table.values.transpose([table.axes.index(axis) for axis in inside]).reshape(-1))
            weights.append(np.full(table.values.size, table.weight))
            targets[number].append(
                _Target(
                    places=frozenset(map(axes.index, inside)),
                    shape=tuple(tree.shape[axis] if axis in table.axes else 1 for axis in axes),
                    cells=slice(self.cells, self.cells + table.values.size),
                )
            )
            self.cells += table.values.size
        self._values, self._weights = np.concatenate(values), np.concatenate(weights)
        self._tree = tree
        shapes = [tree.sizes(clique.axes) for clique in tree.cliques]
        self._sums = [
            _sum(shape, frozenset(range(len(shape))), some) for shape, some in zip(shapes, targets, strict=True)
        ]

    def __call__(self, marginals: Sequence[Rounded]) -> tuple[float, Floats]:
        """Return L and its slope by the cells of all tables side by side, shape (cells,)."""
        errors = np.empty(self.cells)
        for marginal, sums in zip(marginals, self._sums, strict=True):
            sums.collect(marginal.reshape(sums.shape), errors)
        errors -= self._values
        slopes = self._weights * errors
        return float(slopes @ errors) / 2, slopes

    def spread(self, start: Sequence[Rounded], cells: Rounded) -> list[Rounded]:
        """Return an array for each clique, shape (R, S): at each of its cells its start and the sum of its tables.

        Args:
            start: of each clique, one axis an attribute, of size 1 where it is the same for all categories.
            cells: of all tables side by side, shape (cells,).
        """
        potentials = []
        for one, sums, shape in zip(start, self._sums, array_shapes(self._tree), strict=True):
            potential = np.empty(sums.shape, cells.dtype)
            potential[...] = one
            sums.spread(cells, potential)
            potentials.append(potential.reshape(shape))
        return potentials
