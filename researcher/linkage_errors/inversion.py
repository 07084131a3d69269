"""What wrong links make of a table, and how it is undone.

A wrong link of leg j gives a row of the hub the attributes A_j of a random person. With a share l_j of wrong links the
table T, a distribution over all attributes, is expected to become

    K_j T = (1 - l_j) T + l_j (margin of A_j) x (T without A_j).

K_j keeps both margins, so it is undone by (T - l_j (margin of A_j) x (T without A_j)) / (1 - l_j). The legs of a star
fail independently; their operators commute, and are undone one after the other. A leg whose attributes are all of the
table, or none of it, changes nothing.

Source: Neter, Maynes, Ramanathan, The effect of mismatching on the measurement of response errors (1965); Chambers,
Regression analysis of probability-linked data (2009): wrong links that are exchangeable.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shape = tuple[int, ...]
Mixing = tuple[tuple[int, ...], float]
"""The axes of a leg's attributes, and its share of wrong links, at least 0 and below 1."""


def _margins(table: Floats, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the margin of some axes and the table without them, each with axes of size 1 for the others."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    return table.sum(axis=others, keepdims=True), table.sum(axis=axes, keepdims=True)


def mixed(table: Floats, shape: Shape, legs: Sequence[Mixing]) -> Floats:
    """Return what wrong links are expected to make of a table, shape (K,) as it (probabilities that sum to 1)."""
    found = table.reshape(shape)
    for axes, share in legs:
        own, rest = _margins(found, axes)
        found = (1 - share) * found + share * own * rest
    return found.reshape(-1)


class Correction:
    """A table with its wrong links undone, P, and how errors of the observed table and of the shares pass on to it.

    Args:
        observed: O, shape (K,), float64: unbiased but for the links, summing to 1, perhaps negative (probabilities).
        shape: sizes of its attributes, of product K.
        legs: which axes are linked with how many wrong links; none twice.
    """

    def __init__(self, observed: Floats, shape: Shape, legs: Sequence[Mixing]) -> None:
        self._shape, self._legs = shape, tuple(legs)
        self._margins: list[tuple[Floats, Floats]] = []
        found = observed.reshape(shape)
        for axes, share in self._legs:
            own, rest = _margins(found, axes)
            self._margins.append((own, rest))
            found = (found - share * own * rest) / (1 - share)
        self.table: Floats = found.reshape(-1)
        self.slopes: Floats = self._slopes()
        """dP/dl_j of each leg, shape (legs, K): (P - (margin of A_j) x (P without A_j)) / (1 - l_j)."""

    def transported(self, contrasts: Floats) -> Floats:
        """Return the contrasts of O that have, to first order, the errors of contrasts of P: L dP/dO.

        Args:
            contrasts: L, shape (c, K).

        Returns:
            Shape (c, K); but for a constant each, as errors of a table sum to 0.
        """
        found = contrasts.reshape(-1, *self._shape)
        every = tuple(range(1, found.ndim))
        for (axes, share), (own, rest) in zip(reversed(self._legs), reversed(self._margins), strict=True):
            ours = tuple(axis + 1 for axis in axes)
            by_own = (found * rest).sum(axis=tuple(axis for axis in every if axis not in ours), keepdims=True)
            by_rest = (found * own).sum(axis=ours, keepdims=True)
            found = (found - share * (by_own + by_rest)) / (1 - share)
        return found.reshape(len(contrasts), -1)

    def _slopes(self) -> Floats:
        table = self.table.reshape(self._shape)
        found = np.zeros((len(self._legs), table.size))
        for slope, (axes, share) in zip(found, self._legs, strict=True):
            own, rest = _margins(table, axes)
            slope[:] = ((table - own * rest) / (1 - share)).reshape(-1)
        return found


def relinking_covariance(
    contrasts: Floats, table: Floats, shape: Shape, legs: Sequence[Mixing], population: int
) -> Floats:
    """Return how much the draw of who is wrongly linked, and to whom, adds to the covariance of contrasts of O.

    With u(x) the mean of a contrast c over what the links make of a person x, it is (O(c c') - T(u u')) / n: each of n
    people by itself.

    Args:
        contrasts: shape (c, K).
        table: T of the people, shape (K,), not negative, summing to 1 (probabilities).
        legs: as of a Correction; the attributes of each are those that a wrong link replaces.
        population: n people.

    Returns:
        Shape (c, c), float64 (squared probabilities where contrasts have none): no eigenvalue below 0.
    """
    means, tensor = contrasts.reshape(-1, *shape), table.reshape(shape)
    for axes, share in legs:
        own, _ = _margins(tensor, axes)
        ours = tuple(axis + 1 for axis in axes)
        means = (1 - share) * means + share * (means * own).sum(axis=ours, keepdims=True)
    means = means.reshape(len(contrasts), -1)
    found: Floats = (contrasts * mixed(table, shape, legs)) @ contrasts.T - (means * table) @ means.T
    return found / population
