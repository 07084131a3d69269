"""From the noisy tables of a release to a model of all its attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.calibration import array_shapes
from veiltab.researcher.model.choosing import MOST_CELLS, graph_of, scores_of
from veiltab.researcher.model.descent import descend
from veiltab.researcher.model.drawing import Uniforms
from veiltab.researcher.model.junction import JunctionTree, junction_tree
from veiltab.researcher.model.measurement import Axes, Floats, Measurement, Table, one_way, pooled, tables_of
from veiltab.researcher.model.tree_distribution import TreeDistribution

MOST_ROWS = 10_000_000
"""Most rows drawn at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A distribution over all attributes, fitted to noisy tables.

    Args:
        domain: the attributes.
        kind: what it is, in words.
        graph: pairs of attributes that it lets depend on each other directly, the strongest first.
        distribution: the distribution.
    """

    domain: Domain
    kind: str
    graph: tuple[tuple[str, str], ...]
    distribution: TreeDistribution

    def marginal(self, names: Sequence[str]) -> Floats:
        """Return the model's table of some attributes.

        Args:
            names: attributes, each once.

        Returns:
            Shape (K,), float64, in C order over the sizes of `names`: not negative, summing to 1 (probabilities).

        Raises:
            InvalidInputError: an unknown or repeated attribute, none, or so many that their table is too large.
        """
        domain = self.domain.subset(names)
        return self.distribution.marginal(tuple(self.domain.names.index(name) for name in domain.names)).reshape(-1)

    def sample(self, rows: int, seed: bytes, *, independent: bool = False) -> NDArray[np.int32]:
        """Draw rows, in random order.

        Args:
            rows: how many, 0..MOST_ROWS.
            seed: any bytes; the same seed gives the same rows.
            independent: whether rows are a simple random sample of the model; else they are spread evenly, and closer
                to it.

        Returns:
            Symbols, shape (rows, attributes), int32.

        Raises:
            InvalidInputError: a number of rows out of range.
        """
        if not 0 <= rows <= MOST_ROWS:
            raise InvalidInputError(f"0 to {MOST_ROWS} rows can be drawn at once, not {rows}")
        return self.distribution.rows(rows, Uniforms(seed, independent=independent)).astype(np.int32)


def fit(domain: Domain, measurements: Sequence[Measurement], *, rows: int) -> Model:
    """Fit a model.

    Args:
        domain: all attributes.
        measurements: noisy tables that contain every attribute.
        rows: n, rows that the tables describe.

    Returns:
        The model.

    Raises:
        InvalidInputError: an attribute in no table, or tables that do not fit the domain.
    """
    tables = tables_of(domain, measurements)
    scores = scores_of(domain.shape, tables, rows=rows)
    chosen = graph_of(domain.shape, scores, most_cells=MOST_CELLS)
    tree = junction_tree(domain.shape, [edge for axes in chosen for edge in combinations(axes, 2)])
    margins = one_way(tables, len(domain.shape))
    conditionals = descend(tree, fitting(tree, list(tables.values())), _independence(tree, margins, rows))
    edges = dict.fromkeys(edge for axes in chosen for edge in combinations(axes, 2))
    return Model(
        domain=domain,
        kind="junction tree",
        graph=tuple((domain.names[one], domain.names[other]) for one, other in edges),
        distribution=TreeDistribution(tree, conditionals),
    )


def fitting(tree: JunctionTree, tables: Sequence[Table]) -> list[Table]:
    """Return the tables as the cliques of a tree can fit them.

    A table inside a clique is fitted as it is. Of any other, each largest part inside a clique is; the errors of parts
    that overlap count as independent, which for a pair's two single attributes they are, but for one cell in each sum.
    """
    parts: dict[Axes, list[Table]] = {}
    for table in tables:
        inside = {tuple(axis for axis in table.axes if axis in clique.axes) for clique in tree.cliques}
        for axes in inside:
            if axes and not any(set(axes) < set(other) for other in inside):
                parts.setdefault(axes, []).append(table.marginal(axes))
    return [pooled(same) for same in parts.values()]


def _independence(tree: JunctionTree, margins: Sequence[Table], rows: int) -> list[Floats]:
    """Return potentials of independent attributes; a share that is estimated below one row counts as one row."""
    logarithms = [np.log(np.maximum(table.values, 1 / rows)) for table in margins]
    potentials = []
    for clique, (separators, _) in zip(tree.cliques, array_shapes(tree), strict=True):
        residual = np.zeros(1)
        for axis in clique.residual:
            residual = np.add.outer(residual, logarithms[axis]).reshape(-1)
        potentials.append(np.tile(residual, (separators, 1)))
    return potentials
