"""Marginals of a log-linear model on a junction tree, by messages in log space.

With potentials theta_C, P(x) is proportional to exp(sum_C theta_C(x_C)). From the leaves to the root each clique sums
its residual out and hands the logarithm to its parent; what is left is a table of conditionals, and from the root back
each is multiplied by the marginal of its separator:

    b_C = theta_C + sum over children D of m_D,   m_C(s) = log sum_r exp b_C(r, s),   P(r | s) = exp(b_C(r, s) - m_C(s))
    P(r, s) = P(r | s) P(s), and P(s) is the parent's marginal summed down to the separator

Every array of a clique has shape (R, S): cells of the residual, cells of the separator, each in C order. Sums over
the last axis would be slow where R is small.

Source: Lauritzen and Spiegelhalter (1988); Shafer and Shenoy (1990).
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.measurement import Rounded


def array_shapes(tree: JunctionTree) -> list[tuple[int, int]]:
    """Return (R, S) of each clique."""
    return [(prod(tree.sizes(clique.residual)), prod(tree.sizes(clique.separator))) for clique in tree.cliques]


class Calibration:
    """Passes messages on one tree, as often as asked."""

    def __init__(self, tree: JunctionTree) -> None:
        self.tree = tree
        self._views = [self._view(number) for number in range(len(tree.cliques))]

    def _view(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the parent's shape, its axes to sum out for the separator, and the separator's shape within it."""
        clique = self.tree.cliques[number]
        parent = self.tree.cliques[clique.parent].axes if clique.parent is not None else ()
        dropped = tuple(place for place, axis in enumerate(parent) if axis not in clique.separator)
        within = tuple(self.tree.shape[axis] if axis in clique.separator else 1 for axis in parent)
        return self.tree.sizes(parent), dropped, within

    def conditionals(self, potentials: Sequence[Rounded]) -> Sequence[Rounded]:
        """Return P(residual | separator) of each clique, shape (R, S); every column sums to 1.

        Args:
            potentials: theta_C of each clique, finite, shape (R, S), C order (nats); the conditionals replace them.
        """
        for number in reversed(range(len(potentials))):
            belief, parent = potentials[number], self.tree.cliques[number].parent
            largest = belief.max(axis=0)
            belief -= largest
            np.exp(belief, out=belief)
            total = belief.sum(axis=0)
            belief /= total
            if parent is not None:
                shape, _, within = self._views[number]
                above = potentials[parent].reshape(shape)
                above += (largest + np.log(total)).reshape(within)
        return potentials

    def marginals(self, conditionals: Sequence[Rounded]) -> list[Rounded]:
        """Return P(residual, separator) of each clique, shape (R, S), from all the conditionals."""
        marginals: list[Rounded] = []
        for number, (clique, conditional) in enumerate(zip(self.tree.cliques, conditionals, strict=True)):
            if clique.parent is None:
                marginals.append(conditional)
            else:
                shape, dropped, _ = self._views[number]
                separator = marginals[clique.parent].reshape(shape).sum(axis=dropped)
                marginals.append(conditional * separator.reshape(-1))
        return marginals
