"""The average of two distributions, by a share: each row comes from one of them."""

from typing import Protocol

import numpy as np

from veiltab.researcher.model.measurement import Axes, Floats
from veiltab.researcher.model.row_drawing import Symbols, Uniforms, draw


class Distribution(Protocol):
    """A distribution over all attributes, counted from 0."""

    def marginal(self, axes: Axes) -> Floats:
        """Return P of some attributes, one axis each, in the order of `axes`."""

    def rows(self, count: int, uniforms: Uniforms) -> Symbols:
        """Return rows drawn from it, in random order, shape (count, attributes)."""


class Average:
    """(1 - share) first + share second.

    Args:
        first: a distribution.
        second: another over the same attributes.
        share: of the second, 0..1.
    """

    def __init__(self, first: Distribution, second: Distribution, share: float) -> None:
        self._first, self._second, self._share = first, second, share

    def marginal(self, axes: Axes) -> Floats:
        """Return P of some attributes, one axis each, in the order of `axes`."""
        return (1 - self._share) * self._first.marginal(axes) + self._share * self._second.marginal(axes)

    def rows(self, count: int, uniforms: Uniforms) -> Symbols:
        """Return rows, each from one of the two, shape (count, attributes)."""
        shares = np.array([[1 - self._share, self._share]])
        which = draw(shares, np.zeros(count, np.intp), uniforms)
        parts = [
            one.rows(int((which == number).sum()), uniforms) for number, one in enumerate((self._first, self._second))
        ]
        return np.concatenate(parts)[np.argsort(np.argsort(which, kind="stable"), kind="stable")]
