"""A distribution that factorises on a junction tree: its marginals of any attributes, and rows drawn from it."""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from math import prod
from string import ascii_letters

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.calibration import Calibration
from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.measurement import MOST_MARGINAL_CELLS, Axes, Floats, Rounded
from veiltab.researcher.model.row_drawing import Symbols, Uniforms, draw

_Factor = tuple[Axes, Rounded]
"""Attributes, and a table with one axis for each."""


class TreeDistribution:
    """P(x) = prod_C P(residual of C | separator of C).

    Args:
        conditionals: of each clique, shape (R, S), float32 or float64: P(residual | separator), but for a factor that
            a column shares.
    """

    def __init__(self, tree: JunctionTree, conditionals: Sequence[Rounded]) -> None:
        self.tree = tree
        self._rounded = list(conditionals)

    @cached_property
    def _conditionals(self) -> list[Floats]:
        exact = [conditional.astype(np.float64) for conditional in self._rounded]
        return [conditional / conditional.sum(axis=0) for conditional in exact]

    @cached_property
    def _marginals(self) -> list[Rounded]:
        return Calibration(self.tree).marginals(self._conditionals)

    def marginal(self, axes: Axes) -> Floats:
        """Return P of some attributes, one axis each, in the order of `axes`.

        Cliques are multiplied from the leaves towards the root, until one of them and what it was handed have all that
        is asked for. What is neither asked for nor in a separator is summed out on the way.

        Raises:
            InvalidInputError: a table on the way has more than MOST_MARGINAL_CELLS cells.
        """
        members, roots = set(axes), list[_Factor]()
        only = self.tree.containing(axes)
        pending: list[list[_Factor]] = [[] for _ in self.tree.cliques]
        for number in reversed(range(len(pending))) if only is None else [only]:
            clique, below = self.tree.cliques[number], pending[number]
            present = members.intersection((*clique.axes, *chain.from_iterable(labels for labels, _ in below)))
            if present == members and not any(pending[:number]) and not roots:
                return self._product([self._factor(self._marginals, number), *below], axes)
            if below or not members.isdisjoint(clique.residual):  # else the conditional sums to 1
                outer = (*clique.separator, *sorted(present.difference(clique.separator)))
                message = (outer, self._product([self._factor(self._conditionals, number), *below], outer))
                (roots if clique.parent is None else pending[clique.parent]).append(message)
        return self._product(roots, axes)

    def _factor(self, arrays: Sequence[Rounded], number: int) -> _Factor:
        """Return the array of a clique with one axis an attribute."""
        axes = self.tree.cliques[number].axes
        return axes, arrays[number].reshape(self.tree.sizes(axes))

    def _product(self, factors: Sequence[_Factor], target: Axes) -> Floats:
        """Return the product of factors, summed down to `target`; an attribute is summed out as soon as it can be."""
        labels: Axes = ()
        table = np.ones(())
        for place, (axes, other) in enumerate(factors, 1):
            later = set(target).union(*(labels for labels, _ in factors[place:]))
            alone = [number for number, axis in enumerate(axes) if axis not in later and axis not in labels]
            summed = [axis for number, axis in enumerate(axes) if number not in alone]
            both = list(dict.fromkeys((*labels, *summed)))
            out = tuple(axis for axis in both if axis in later)
            self._require_cells(out)
            letters = dict(zip(both, ascii_letters, strict=False))
            left, right, result = ("".join(letters[axis] for axis in some) for some in (labels, summed, out))
            table = np.einsum(f"{left},{right}->{result}", table, other.sum(axis=tuple(alone)))
            labels = out
        return np.ascontiguousarray(table.transpose([labels.index(axis) for axis in target]))

    def _require_cells(self, axes: Axes) -> None:
        cells = prod(self.tree.sizes(axes))
        if cells > MOST_MARGINAL_CELLS:
            raise InvalidInputError(
                f"the marginal needs a table of {cells} cells, above the limit of {MOST_MARGINAL_CELLS}",
                remedy="Ask for fewer attributes.",
            )

    def rows(self, count: int, uniforms: Uniforms) -> Symbols:
        """Return rows drawn clique by clique, shape (count, attributes)."""
        columns: list[Symbols] = [np.empty(0, np.intp)] * len(self.tree.shape)
        for clique, conditional in zip(self.tree.cliques, self._conditionals, strict=True):
            groups = np.zeros(count, np.intp)
            for axis in clique.separator:
                groups = groups * self.tree.shape[axis] + columns[axis]
            symbols = np.unravel_index(draw(conditional.T, groups, uniforms), self.tree.sizes(clique.residual))
            for axis, column in zip(clique.residual, symbols, strict=True):
                columns[axis] = column
        return np.stack(columns, axis=1)
