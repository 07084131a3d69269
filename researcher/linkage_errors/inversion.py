"""What wrong links make of a table, and how it is undone.

A wrong link of leg j gives a row of the hub the attributes A_j of a random person. With a share l_j of wrong links the
table T, a distribution over all attributes, is expected to become

    O = K_j T = (1 - l_j) T + l_j (margin of A_j) x (T without A_j),

in which l_j may be another one in each category of an attribute of the hub. K_j keeps the table without A_j, and as the
margin of A_j in T is that of O / (1 - l_j), scaled to 1, T = (O - l_j (margin of A_j) x (O without A_j)) / (1 - l_j).
The legs of a star fail independently; their operators commute, and are undone one after the other. A leg whose
attributes are all of the table, or none of it, changes nothing.

Source: Neter, Maynes, Ramanathan, The effect of mismatching on the measurement of response errors (1965); Chambers,
Regression analysis of probability-linked data (2009): wrong links that are exchangeable.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shape = tuple[int, ...]
Mixing = tuple[tuple[int, ...], float | Floats]
"""The axes of a leg's attributes, and its share of wrong links, at least 0 and below 1; or an array of such shares that
broadcasts to the table and has size 1 along these axes."""

_STEP = 1e-30
"""Of a slope: it is imaginary, so that nothing cancels."""


def _margins(table: Floats, axes: tuple[int, ...], weights: float | Floats = 1.0) -> tuple[Floats, Floats]:
    """Return the margin of some axes and the table without them, each with axes of size 1 for the others.

    Args:
        weights: of the margin, which is scaled to the sum 1.
    """
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    own = (table * weights).sum(axis=others, keepdims=True)
    return own / own.sum(), table.sum(axis=axes, keepdims=True)


def mixed(table: Floats, shape: Shape, legs: Sequence[Mixing]) -> Floats:
    """Return what wrong links are expected to make of a table, shape (K,) as it (probabilities that sum to 1)."""
    result = table.reshape(shape)
    for axes, share in legs:
        own, rest = _margins(result, axes)
        result = (1 - share) * result + share * own * rest
    return result.reshape(-1)


class Correction:
    """A table with its wrong links undone, P, and how errors of the observed table and of the shares pass on to it.

    Args:
        observed: O, shape (K,), float64: unbiased but for the links, summing to 1, perhaps negative (probabilities).
        shape: sizes of its attributes, of product K.
        legs: which axes are linked with how many wrong links; none twice.
    """

    def __init__(self, observed: Floats, shape: Shape, legs: Sequence[Mixing]) -> None:
        self._legs, self._linked = tuple(legs), observed.reshape(shape)
        self._tables, true = self._undone(self._legs)
        self.table: Floats = true.reshape(-1)
        self.slopes: Floats = self._slopes()
        """dP/dl of each share, one leg after the other, shape (shares, K)."""

    def transported(self, contrasts: Floats) -> Floats:
        """Return the contrasts of O that have, to first order, the errors of contrasts of P: L dP/dO.

        Args:
            contrasts: L, shape (c, K).

        Returns:
            Shape (c, K); but for a constant each, as errors of a table sum to 0.
        """
        result = contrasts.reshape(-1, *self._linked.shape)
        every = tuple(range(1, result.ndim))
        for (axes, share), table in zip(reversed(self._legs), reversed(self._tables), strict=True):
            ours, right = tuple(axis + 1 for axis in axes), 1 / (1 - share)
            own, rest = _margins(table, axes, right)
            result = result * right
            by_own = (result * share * rest).sum(axis=tuple(axis for axis in every if axis not in ours), keepdims=True)
            by_rest = (result * share * own).sum(axis=ours, keepdims=True)
            by_own = by_own - (by_own * own).sum(axis=every, keepdims=True)
            result = result - by_rest - by_own * right / (table * right).sum()
        return result.reshape(len(contrasts), -1)

    def _undone(self, legs: Sequence[Mixing]) -> tuple[list[Floats], Floats]:
        """Return the table before each leg is undone, and after all."""
        before, table = list[Floats](), self._linked
        for axes, share in legs:
            before.append(table)
            own, rest = _margins(table, axes, 1 / (1 - share))
            table = (table - share * own * rest) / (1 - share)
        return before, table

    def _slopes(self) -> Floats:
        slopes = list[Floats]()
        for place, (axes, share) in enumerate(self._legs):
            for step in np.eye(np.size(share)) * _STEP * 1j:
                moved = [*self._legs]
                moved[place] = (axes, share + step.reshape(np.shape(share)))
                slopes.append(self._undone(moved)[1].imag.reshape(-1) / _STEP)
        return np.array(slopes).reshape(-1, self._linked.size)


def relinking_covariance(
    contrasts: Floats, table: Floats, shape: Shape, legs: Sequence[Mixing], people: float
) -> Floats:
    """Return how much the draw of who is wrongly linked, and to whom, adds to the covariance of contrasts of O.

    With u(x) the mean of a contrast c over what the links make of a person x, it is (O(c c') - T(u u')) / n: each of n
    people by itself.

    Args:
        contrasts: shape (c, K).
        table: T of the people, shape (K,), not negative, summing to 1 (probabilities).
        legs: as of a Correction; the attributes of each are those that a wrong link replaces.
        people: whom the table is of.

    Returns:
        Shape (c, c), float64 (squared probabilities where contrasts have none): no eigenvalue below 0.
    """
    means, tensor = contrasts.reshape(-1, *shape), table.reshape(shape)
    for axes, share in legs:
        own, _ = _margins(tensor, axes)
        ours = tuple(axis + 1 for axis in axes)
        means = (1 - share) * means + share * (means * own).sum(axis=ours, keepdims=True)
    means = means.reshape(len(contrasts), -1)
    covariance: Floats = (contrasts * mixed(table, shape, legs)) @ contrasts.T - (means * table) @ means.T
    return covariance / people
