"""From the noisy tables of a release to a model of all its attributes.

Two models are fitted: a junction tree of the strongest pairs, which knows what cliques say beyond their pairs, but of
other pairs only what follows; and a mixture of products, which knows every pair and little more. They err in different
ways, so their average is better than either. The tables themselves say when each fit is to stop and what the share of
the mixture is. First both models are fitted to tables with more noise, y + c z, where z follows the law of the noise,
and judged by y - z/c, whose noise is independent of that (the noise is nearly normal). A fit stops where its error by
the judge is, within a standard error of the difference, least: at the earliest such look, since what comes later is
weaker and more of it noise. With A and B the marginals of tree and mixture there,

    s = sum_t w_t <B_t - A_t, y_t - z_t/c - A_t> / l,    l = sum_t w_t ||B_t - A_t||^2,    se(s)^2 = (1 + 1/c^2)/l

is the share of B with which (1 - s) A + s B has the least squared error over all measured tables. The share used is
(3/4) (s - 3 se(s)), in hundredths, or 0. The tables must need the mixture, since the tree has the larger entropy; and
s is judged by measured pairs, whose noise the mixture fits too. Then both are fitted to y, as far, and the tree is
raked to the pairs of (1 - share) A + share B (raking.py, docs/decisions/0033).

Source: Wolpert, Stacked generalization (1992); Breiman et al., Classification and regression trees (1984), section
3.4.3 (one standard error); Leiner, Duan, Wasserman, Ramdas, Data fission (2023); Neufeld et al., Data thinning (2024).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, islice
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.choosing import graph_of, scores_of
from veiltab.researcher.model.descent import tree_path
from veiltab.researcher.model.junction import Edge, JunctionTree, Shape, junction_tree
from veiltab.researcher.model.measurement import Axes, Floats, Measurement, Table, one_way, pooled, tables_of
from veiltab.researcher.model.mixture import mixture_path
from veiltab.researcher.model.raking import Distribution, Raked
from veiltab.researcher.model.row_drawing import Uniforms

MOST_ROWS = 10_000_000
"""Most rows drawn at once."""

MOST_CELLS = 400_000
"""Cells of a junction tree unless said: a fit takes 3 to 9 s of a processor."""

THINNING = 0.5
"""c: how much noise the tables get to which the two models are fitted for comparison, as a share of their own."""

MOST_TREE_LOOKS, MOST_MIXTURE_LOOKS = 20, 40
"""Looks after which a fit ends at the latest, 25 steps each; a step of the mixture is the cheaper one."""

PATIENCE = 4
"""Looks without a better one after which a fit ends."""

_JUDGE_VARIANCE = 1 + 1 / THINNING**2
_NOISE = b"noise between two halves of a measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class FitLengths:
    """How far the two fits go, in looks at them.

    Args:
        mixture: of the mixture of products.
    """

    tree: int
    mixture: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A distribution over all attributes, fitted to noisy tables.

    Args:
        tables: it was fitted to, pooled.
        rows: n, rows that the tables describe.
        graph: pairs of attributes that the junction tree lets depend on each other directly, in the order of choice.
        mixture_share: of the mixture of products in the pairs; the rest is the junction tree's.
        looks: at which the fits stopped.
        best: looks with the least judged error, at or after those.
    """

    domain: Domain
    tables: Mapping[Axes, Table]
    rows: int
    junctions: JunctionTree
    graph: tuple[tuple[str, str], ...]
    mixture_share: float
    looks: FitLengths
    best: FitLengths
    distribution: Distribution

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if self.mixture_share == 0:
            return "junction tree"
        return f"junction tree, its pairs raked to {self.mixture_share:.0%} of a mixture of products"

    @cached_property
    def wider(self) -> JunctionTree:
        """The tree of the graph that also joins what shows no dependence in the tables, as far as there is room."""
        scores = scores_of(self.domain.shape, self.tables, rows=self.rows)
        return _junctions(self.domain.shape, graph_of(self.domain.shape, scores, most_cells=MOST_CELLS, least=-inf))

    def again(self, tables: Mapping[Axes, Table], looks: FitLengths, junctions: JunctionTree) -> "Model":
        """Return a model with the share of the mixture of this one, fitted so far to other tables.

        Args:
            tables: pooled, of the attributes of its own tables.
            looks: at which the fits stop.
            junctions: its own or the wider ones.
        """
        distribution = _average(junctions, tables, rows=self.rows, looks=looks, share=self.mixture_share)
        return replace(self, tables=tables, looks=looks, junctions=junctions, distribution=distribution)

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

    def sample(self, rows: int, seed: bytes) -> NDArray[np.int32]:
        """Draw rows, spread evenly over the model, in random order.

        Args:
            rows: how many, 0..MOST_ROWS.
            seed: any bytes; the same seed gives the same rows.

        Returns:
            Symbols, shape (rows, attributes), int32.

        Raises:
            InvalidInputError: a number of rows out of range.
        """
        if not 0 <= rows <= MOST_ROWS:
            raise InvalidInputError(f"0 to {MOST_ROWS} rows can be drawn at once, not {rows}")
        return self.distribution.rows(rows, Uniforms(seed)).astype(np.int32)


def fit(domain: Domain, measurements: Sequence[Measurement], *, rows: int, most_cells: int = MOST_CELLS) -> Model:
    """Fit a model.

    Args:
        measurements: noisy tables that contain every attribute.
        rows: n, rows that the tables describe.
        most_cells: of the junction tree; time and memory are proportional to its cells.

    Returns:
        The model; a function of the arguments alone.

    Raises:
        InvalidInputError: an attribute in no table, or tables that do not fit the domain.
    """
    tables = tables_of(domain, measurements)
    graph = graph_of(domain.shape, scores_of(domain.shape, tables, rows=rows), most_cells=most_cells)
    junctions = _junctions(domain.shape, graph)
    noisier, judge = _thinned(tables)
    clique_judge = parts_in(junctions, judge)
    tree_look, best_tree, tree = _stop(_tree_path(junctions, noisier, rows), clique_judge, MOST_TREE_LOOKS)
    mixture_look, best_mixture, mixture = _stop(_mixture_path(domain.shape, noisier, rows), judge, MOST_MIXTURE_LOOKS)
    share = _share(tree, mixture, judge)
    looks = FitLengths(tree=tree_look, mixture=mixture_look)
    return Model(
        domain=domain,
        tables=tables,
        rows=rows,
        junctions=junctions,
        graph=tuple((domain.names[one], domain.names[other]) for one, other in _edges(graph)),
        mixture_share=share,
        looks=looks,
        best=FitLengths(tree=best_tree, mixture=best_mixture),
        distribution=_average(junctions, tables, rows=rows, looks=looks, share=share),
    )


def _edges(graph: Sequence[Axes]) -> list[Edge]:
    return list(dict.fromkeys(edge for axes in graph for edge in combinations(axes, 2)))


def _junctions(shape: Shape, graph: Sequence[Axes]) -> JunctionTree:
    return junction_tree(shape, _edges(graph))


def _average(
    junctions: JunctionTree, tables: Mapping[Axes, Table], *, rows: int, looks: FitLengths, share: float
) -> Distribution:
    """Return the two fits together, each at its look; the mixture is not fitted if it has no share."""
    tree = next(islice(_tree_path(junctions, tables, rows), looks.tree, None))
    mixture = next(islice(_mixture_path(junctions.shape, tables, rows), looks.mixture, None)) if share else tree
    return Raked(tree, mixture, share, junctions.shape)


def _tree_path(tree: JunctionTree, tables: Mapping[Axes, Table], rows: int) -> Iterator[Distribution]:
    return tree_path(tree, parts_in(tree, list(tables.values())), _start(tree.shape, tables, rows))


def _mixture_path(shape: Shape, tables: Mapping[Axes, Table], rows: int) -> Iterator[Distribution]:
    return mixture_path(shape, list(tables.values()), _start(shape, tables, rows))


def _start(shape: Shape, tables: Mapping[Axes, Table], rows: int) -> list[Floats]:
    """Return a positive share of each category: what is estimated below one row counts as one row."""
    return [np.maximum(table.values, 1 / rows) for table in one_way(tables, len(shape))]


def _thinned(tables: Mapping[Axes, Table]) -> tuple[dict[Axes, Table], list[Table]]:
    """Return y + c z, to fit, and y - z/c, to judge."""
    uniforms = Uniforms(_NOISE)
    noisier, judge = {}, []
    for axes, table in tables.items():
        noise = uniforms.normals(table.values.size).reshape(table.values.shape) / sqrt(table.weight)
        noise -= noise.mean()
        noisier[axes] = replace(table, values=table.values + THINNING * noise)
        judge.append(replace(table, values=table.values - noise / THINNING))
    return noisier, judge


def _side_by_side(marginals: Iterable[Floats], judge: Sequence[Table]) -> Floats:
    """Return tables side by side, each cell in standard deviations of the measured one."""
    return np.concatenate([sqrt(t.weight) * values.reshape(-1) for t, values in zip(judge, marginals, strict=True)])


def _stop(path: Iterator[Distribution], judge: Sequence[Table], most: int) -> tuple[int, int, Distribution]:
    """Return the look at which a fit is to stop, the best look, both by other tables, and what the first shows."""
    target = _side_by_side((table.values for table in judge), judge)
    looks: list[tuple[Distribution, Floats, float]] = []
    best = 0
    for look, distribution in enumerate(path):
        view = _side_by_side((distribution.marginal(table.axes) for table in judge), judge)
        looks.append((distribution, view, float(np.vdot(view - target, view - target))))
        best = min(best, look, key=lambda place: looks[place][2])
        if look in {most, best + PATIENCE}:
            break
    _, view, least = looks[best]
    look, distribution = next(
        (look, distribution)
        for look, (distribution, earlier, loss) in enumerate(looks)  # the best is as good as itself
        if loss - least <= 2 * sqrt(_JUDGE_VARIANCE) * float(np.linalg.norm(earlier - view))
    )
    return look, best, distribution


def _share(tree: Distribution, mixture: Distribution, judge: Sequence[Table]) -> float:
    """Return the share of the mixture, by tables that neither was fitted to."""
    first = _side_by_side((tree.marginal(table.axes) for table in judge), judge)
    difference = _side_by_side((mixture.marginal(table.axes) for table in judge), judge) - first
    along = float(difference @ (_side_by_side((table.values for table in judge), judge) - first))
    length = float(difference @ difference)
    if length == 0:
        return 0.0
    supported = along / length - 3 * sqrt(_JUDGE_VARIANCE / length)
    return round(0.75 * min(max(supported, 0.0), 1.0), 2)


def parts_in(tree: JunctionTree, tables: Sequence[Table]) -> list[Table]:
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
