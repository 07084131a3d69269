"""Rows and tables of one distribution that are given the tables of another: raking, or iterative proportional fitting.

For each table in turn, every row of a cell is multiplied by target / current of that cell. Where the tables can be met,
the limit is the least change of the weights, in relative entropy, that meets them.

A file's rows come from the junction tree, raked to the pairs of its average with the mixture of products. The average
is nearer to the true pairs than the tree is; but rows of the mixture say nothing of three attributes beyond their pairs
and so lose what the tree's cliques know. The raked tree has the pairs of the one and the rest of the other. Without a
mixture rows are raked to the tree's own pairs: drawn clique by clique, they would be even only within cliques.

Source: Deming and Stephan, On a least squares adjustment of a sampled frequency table (1940); Csiszar, I-divergence
geometry of probability distributions (1975).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veiltab.researcher.model.measurement import Axes, Floats
from veiltab.researcher.model.row_drawing import Rows, Symbols, Uniforms

SWEEPS = 8
"""Passes over all tables."""

POOL, LEAST_POOL = 4, 2**13
"""Rows of the tree for each that is wanted, and at least, from which a part of a file is taken."""

PARTS = (0, 1 / 2, 3 / 4, 7 / 8, 15 / 16, 1)
"""Where the parts of a file begin and end: each makes up what those before it lack."""

LEAST_PART = 1 / 50
"""Of a cell's fraction, which what is wanted leaves at least."""

_LARGEST_STEP = 5.0
"""A weight is multiplied by this at most at one step, and by 1 / this at least."""


class Distribution(Protocol):
    """A distribution over all attributes, counted from 0."""

    def marginal(self, axes: Axes) -> Floats:
        """Return P of some attributes, one axis each, in the order of `axes`."""

    def rows(self, count: int, uniforms: Uniforms) -> Symbols:
        """Return rows drawn from it, in random order, shape (count, attributes)."""


class Raked:
    """The distribution nearest to a first that has the pairs of (1 - share) first + share second.

    Args:
        second: another over the same attributes.
        share: of the second in the pairs, 0..1.
    """

    def __init__(self, first: Distribution, second: Distribution, share: float, shape: Sequence[int]) -> None:
        self._first, self._second, self._share, self._shape = first, second, share, shape

    def marginal(self, axes: Axes) -> Floats:
        """Return P of some attributes, one axis each, in the order of `axes`: of three or more, raked by themselves."""
        if self._share == 0:
            return self._first.marginal(axes)
        if len(axes) <= 2:
            return (1 - self._share) * self._first.marginal(axes) + self._share * self._second.marginal(axes)
        table = self._first.marginal(axes)
        cells = np.indices(table.shape, np.int32).reshape(len(axes), -1).T
        pairs = combinations(range(len(axes)), 2)
        targets: dict[Axes, Floats] = {(a, b): self.marginal((axes[a], axes[b])).reshape(-1) for a, b in pairs}
        return rake(cells, table.reshape(-1), targets, table.shape).reshape(table.shape)

    @cached_property
    def _targets(self) -> Mapping[Axes, Floats]:
        return {pair: self.marginal(pair).reshape(-1) for pair in combinations(range(len(self._shape)), 2)}

    def rows(self, count: int, uniforms: Uniforms) -> Symbols:
        """Return rows taken evenly from more rows of the first, by their weights; shape (count, attributes).

        Whole rows miss the pairs by a rounding. So they are taken in parts, and each part is raked to the pairs and
        what the parts before it lack: what is missed at last is the rounding of the last and smallest part. With d rows
        due in a cell so far, d/(1 + d) of its lack is made up: where d is small, the lack is only that no row is whole.
        """
        parts: list[Rows] = [np.empty((0, len(self._shape)), np.int32)]
        sums = {pair: np.zeros(target.size) for pair, target in self._targets.items()}
        ends = np.rint(count * np.array(PARTS)).astype(int)
        for start, size in zip(ends, np.diff(ends), strict=False):
            if size == 0:
                continue
            pool = self._first.rows(max(POOL * size, LEAST_POOL), uniforms)
            pool = np.asfortranarray(pool[np.lexsort(pool.T[::-1])], np.int32)
            targets = dict[Axes, Floats]()
            for pair, target in self._targets.items():
                due = start * target
                targets[pair] = positive(target + (due - sums[pair]) * due / (1 + due) / size, target)
            weights = rake(pool, np.full(len(pool), size / len(pool)), targets, self._shape)
            part = np.asfortranarray(drawn_evenly(pool, weights, size, uniforms))
            for pair, target in self._targets.items():
                sums[pair] += np.bincount(cells_of(part, self._shape, pair), minlength=target.size)
            parts.append(part)
        rows: Symbols = np.concatenate(parts)[np.argsort(uniforms.words(count))].astype(np.intp)
        return rows


def positive(target: Floats, fractions: Floats) -> Floats:
    """Return max(target, fractions / 50), made to sum to 1.

    Args:
        target: of a table, shape (K,); may be negative in cells.
        fractions: of the same cells, shape (K,), not negative.
    """
    table: Floats = np.maximum(target, fractions * LEAST_PART)
    table /= table.sum()
    return table


def cells_of(rows: Rows, shape: Sequence[int], axes: Sequence[int]) -> NDArray[np.int64]:
    """Return the cell of each row in the table of some attributes, in C order, shape (rows,).

    Args:
        rows: symbols, shape (rows, attributes).
    """
    cells = np.zeros(len(rows), np.int64)
    for axis in axes:
        cells = cells * shape[axis] + rows[:, axis]
    return cells


def rake(
    rows: Rows, weights: Floats, targets: Mapping[Axes, Floats], shape: Sequence[int], *, sweeps: int = SWEEPS
) -> Floats:
    """Return weights with which the rows have, nearly, the tables that are wanted.

    Args:
        rows: symbols, shape (rows, attributes); fastest in Fortran order.
        weights: to begin with, shape (rows,), not negative.
        targets: attributes -> fractions, shape (K,), in C order, positive. A cell without rows stays empty.

    Returns:
        Shape (rows,), with the sum of `weights`.
    """
    total = weights.sum()
    raked: Floats = weights / total
    for _ in range(sweeps):
        for axes, target in targets.items():
            cells = cells_of(rows, shape, axes)
            current = np.bincount(cells, raked, target.size)
            ratio = np.divide(target, current, out=np.ones(target.size), where=current > 0)
            raked *= ratio.clip(1 / _LARGEST_STEP, _LARGEST_STEP)[cells]
        raked /= raked.sum()
    raked *= total
    return raked


def drawn_evenly(rows: Rows, weights: Floats, count: int, uniforms: Uniforms) -> Rows:
    """Return whole rows, each within one of its share of the count, in random order.

    Args:
        rows: in lexicographic order, shape (rows, attributes): neighbours stand for one another.
        weights: of each, shape (rows,).
        count: rows to draw.
    """
    ends = np.cumsum(weights)
    steps = (np.arange(count) + uniforms.numbers(1)) * (ends[-1] / count)
    places = np.searchsorted(ends, steps, side="right").clip(0, len(ends) - 1)
    sample: Rows = rows[places[np.argsort(uniforms.words(count))]]
    return sample
