"""A mixture of products, fitted to all pairs at once: attributes are independent given a component.

With shares pi_r and theta_ra the distribution of attribute a in component r,

    P(x) = sum_r pi_r prod_a theta_ra(x_a),    P_ab = sum_r pi_r theta_ra theta_rb'

so the tables of all pairs are the blocks of one matrix Theta' diag(pi) Theta, of the size of all categories together.
The fit minimises 1/2 sum over pairs of w_ab ||P_ab - y_ab||^2 over pi and theta, both written as soft maxima of
logits, by Adam. It starts near independence and fits noise at last, so it too is stopped early. Where it starts decides
which noise it fits: STARTS mixtures are fitted from different starts, and their average, a mixture of products too, has
less of it than each. A step takes time in proportion to STARTS R (sum_a K_a)^2, whatever the rows and the graph. What a
table of three attributes or more says beyond its pairs is not used.

Source: Liu, Vietri, Wu, Iterative methods for private synthetic data (NeurIPS 2021), and Aydore et al., Differentially
private query release through adaptive projection (ICML 2021), who fit mixtures of products to noisy marginals; Hansen
and Salamon, Neural network ensembles (1990), who average fits from different starts; Kingma and Ba, Adam (2015).
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations, count
from math import prod, sqrt

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.junction import Shape
from veiltab.researcher.model.measurement import MOST_MARGINAL_CELLS, Axes, Floats, Rounded, Table, pooled
from veiltab.researcher.model.row_drawing import Symbols, Uniforms, draw

COMPONENTS = 100
"""R."""

STARTS = 4
"""Fits whose average is taken (docs/decisions/0033)."""

EVERY = 25
"""Steps from one look at the mixture to the next."""

_RATE = 0.1
_SPREAD = 0.3
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-12
_FARTHEST = 80.0
"""From 0, where a logit is taken to end: float32 has the exponential of 88."""
_START = b"components of a mixture"


class Mixture:
    """A mixture of products.

    Args:
        shares: pi, shape (R,), summing to 1.
        factors: theta of each attribute, shape (R, K_a), rows summing to 1.
    """

    def __init__(self, shares: Floats, factors: Sequence[Floats]) -> None:
        self._shares = shares
        self._factors = list(factors)

    def marginal(self, axes: Axes) -> Floats:
        """Return P of some attributes, one axis each, in the order of `axes`.

        Raises:
            InvalidInputError: more than MOST_MARGINAL_CELLS cells.
        """
        shape = tuple(self._factors[axis].shape[1] for axis in axes)
        if prod(shape) > MOST_MARGINAL_CELLS:
            raise InvalidInputError(
                f"a table of {prod(shape)} cells is above the limit of {MOST_MARGINAL_CELLS}",
                remedy="Ask for fewer attributes.",
            )
        half = len(axes) // 2
        left, right = self._within(axes[:half]) * self._shares[:, None], self._within(axes[half:])
        table: Floats = left.T @ right
        return table.reshape(shape)

    def _within(self, axes: Axes) -> Floats:
        """Return P(cells of some attributes | component), shape (R, cells)."""
        table = np.ones((self._shares.size, 1))
        for axis in axes:
            table = (table[:, :, None] * self._factors[axis][:, None, :]).reshape(self._shares.size, -1)
        return table

    def rows(self, count: int, uniforms: Uniforms) -> Symbols:
        """Return rows: a component for each, then its attributes one by one; shape (count, attributes)."""
        components = draw(self._shares[None, :], np.zeros(count, np.intp), uniforms)
        return np.stack([draw(factor, components, uniforms) for factor in self._factors], axis=1)


def mixture_path(shape: Shape, tables: Sequence[Table], margins: Sequence[Floats]) -> Iterator[Mixture]:
    """Fit mixtures of products, and yield their average at the start and after every EVERY steps, without end.

    Args:
        tables: of any attributes; not clipped.
        margins: where to start: positive shares of each attribute, shape (K_a,).

    Yields:
        The average after 0, EVERY, 2 EVERY, ... steps; a function of the arguments alone.
    """
    loss = _PairLoss(shape, tables)
    start = np.concatenate([np.log(margin) for margin in margins] + [np.zeros(1)])
    noise = Uniforms(_START).normals(STARTS * start.size * COMPONENTS).reshape(STARTS, -1, COMPONENTS)
    # The last attribute has one category, so its row has room for the logits of the shares.
    logits = (start[:, None] + _SPREAD * noise).astype(np.float32)
    logits[:, -1] = 0
    mean, square = np.zeros_like(logits), np.zeros_like(logits)
    for step in count(1):
        if step % EVERY == 1:
            shares, factors = (one.astype(np.float64) for one in loss.parameters(logits.astype(np.float64)))
            side_by_side = factors.swapaxes(1, 2).reshape(STARTS * COMPONENTS, -1)
            yield Mixture(shares.reshape(-1) / STARTS, [side_by_side[:, place] for place in loss.places[:-1]])
        slope = loss.slope(logits)
        mean += (1 - _FIRST) * (slope - mean)
        square += (1 - _SECOND) * (slope**2 - square)
        rate = _RATE * sqrt(1 - _SECOND**step) / (1 - _FIRST**step)
        logits -= rate * mean / (np.sqrt(square) + _TINY)


class _PairLoss:
    """The loss over all pairs, with a last attribute of one category: its pairs are the tables of single attributes.

    Logits of shape (..., sum of K_a + 1, R) are those of several mixtures, each with a loss of its own.
    """

    def __init__(self, shape: Shape, tables: Sequence[Table]) -> None:
        attributes = np.repeat(np.arange(len(shape) + 1), [*shape, 1])
        self.places = [slice(end - size, end) for size, end in zip([*shape, 1], accumulate([*shape, 1]), strict=True)]
        self._alike = (attributes[:, None] == attributes).astype(np.float32)
        self._values = np.zeros(self._alike.shape, np.float32)
        self._weights = np.zeros_like(self._values)
        for table in _pairs(tables, len(shape)):
            one, other = (self.places[axis] for axis in table.axes)
            self._values[one, other], self._weights[one, other] = table.values, table.weight
            self._values[other, one], self._weights[other, one] = table.values.T, table.weight

    def parameters(self, logits: Rounded) -> tuple[Rounded, Rounded]:
        """Return pi, shape (..., R), and theta of all attributes, shape (..., sum of K_a + 1, R)."""
        factors = np.exp(logits.clip(-_FARTHEST, _FARTHEST))
        factors /= self._alike @ factors  # the sum over each attribute's categories, at each of them
        shares = np.exp(logits[..., -1, :] - logits[..., -1, :].max(axis=-1, keepdims=True))
        return shares / shares.sum(axis=-1, keepdims=True), factors

    def slope(self, logits: Rounded) -> Rounded:
        """Return the slope of the loss by the logits."""
        shares, factors = self.parameters(logits)
        by_share = shares[..., None, :]
        error = (factors * by_share) @ factors.swapaxes(-1, -2)
        error -= self._values
        by_factors = np.multiply(error, self._weights, out=error) @ factors
        by_shares = (by_factors * factors).sum(axis=-2) / 2
        by_factors *= by_share
        slope: Rounded = factors * (by_factors - self._alike @ (by_factors * factors))
        slope[..., -1, :] = shares * (by_shares - (shares * by_shares).sum(axis=-1, keepdims=True))
        return slope


def _pairs(tables: Sequence[Table], constant: int) -> list[Table]:
    """Return the pooled table of every pair that some table contains, and of single attributes with a constant one."""
    pairs: dict[Axes, list[Table]] = {}
    for table in tables:
        if len(table.axes) == 1:
            one = Table(axes=(*table.axes, constant), values=table.values[:, None], weight=table.weight)
            pairs.setdefault(one.axes, []).append(one)
        for pair in combinations(table.axes, 2):
            pairs.setdefault(pair, []).append(table.marginal(pair))
    return [pooled(same) for same in pairs.values()]
