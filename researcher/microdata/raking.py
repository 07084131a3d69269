"""Weights of rows that give them the tables that are wanted: raking, or iterative proportional fitting.

For each table in turn, every row of a cell is multiplied by target / current of that cell. Where the tables can be met,
the limit is the least change of the weights, in relative entropy, that meets them.

Source: Deming and Stephan, On a least squares adjustment of a sampled frequency table (1940); Csiszar, I-divergence
geometry of probability distributions (1975).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from veiltab.researcher.microdata.comparison import cells_of
from veiltab.researcher.microdata.files import Rows
from veiltab.researcher.model.measurement import Axes, Floats

SWEEPS = 8
"""Passes over all tables."""

_LARGEST_STEP = 5.0
"""A weight is multiplied by this at most at one step, and by 1 / this at least."""


def rake(
    rows: Rows, weights: Floats, targets: Mapping[Axes, Floats], shape: Sequence[int], *, sweeps: int = SWEEPS
) -> Floats:
    """Return weights with which the rows have, nearly, the tables that are wanted.

    Args:
        rows: symbols, shape (rows, attributes); fastest in Fortran order.
        weights: to begin with, shape (rows,), not negative.
        targets: attributes -> fractions, shape (K,), in C order, positive. A cell without rows stays empty.
        shape: sizes of all attributes.
        sweeps: passes over all tables.

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
