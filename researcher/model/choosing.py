"""Which tables show the strongest dependences: the graph of a model, and what a second phase measures again.

The score of a table y of the attributes S, with p_a the pooled one-way estimates, is

    || y - prod_a p_a ||_1 - sum over cells of sqrt(2/pi (1/w + P (1 - P)/n)),    P = prod_a max(p_a, 0)

the second term being what noise, and n rows drawn from independent attributes, are expected to show. First a maximum
spanning tree, then greedily every further table, as long as the junction tree of the graph has few cells.

Source: Chow and Liu (1968), with distance in place of information; McKenna, Miklau, Sheldon, AIM (VLDB 2022).
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from math import pi

import numpy as np

from veiltab.common.core.domain import Domain
from veiltab.researcher.model.junction import Edge, Shape, junction_tree
from veiltab.researcher.model.measurement import Axes, Measurement, Table, one_way, tables_of

MOST_CELLS = 120_000
"""Cells of the junction tree whose tables are measured again, unless said; a file has a larger one (fitting.py)."""


def scores_of(shape: Shape, tables: Mapping[Axes, Table], *, rows: int) -> dict[Axes, float]:
    """Return the score of each table of two attributes or more, the largest first.

    Args:
        tables: what was measured, of every attribute.
        rows: n, rows that the tables describe.

    Returns:
        Attributes -> twice a total variation distance, less what noise adds to it; may be negative.
    """
    margins = one_way(tables, len(shape))
    scores = {axes: _score(table, margins, rows) for axes, table in tables.items() if len(axes) > 1}
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _score(table: Table, margins: Sequence[Table], rows: int) -> float:
    factors = [margins[axis].values for axis in table.axes]
    product = reduce(np.multiply.outer, factors)
    chances = reduce(np.multiply.outer, [np.clip(factor, 0, 1) for factor in factors])
    spread = 1 / table.weight + chances * (1 - chances) / rows
    return float(np.abs(table.values - product).sum() - np.sqrt(2 / pi * spread).sum())


def graph_of(shape: Shape, scores: Mapping[Axes, float], *, most_cells: int, least: float = 0.0) -> list[Axes]:
    """Choose the tables whose attributes depend on one another directly.

    Args:
        scores: of the tables to choose from, the largest first.
        most_cells: of the junction tree of the graph, unless the spanning tree alone has more.
        least: score above which a table is chosen that the spanning tree does not need.

    Returns:
        The attributes of the tables, in the order of their choice: first those of a maximum spanning tree, whose
        junction tree has no cell that was not measured; then every other table whose score is above `least`, without
        any whose graph would have too many cells.
    """
    graph: list[Axes] = []
    edges: set[Edge] = set()
    component = list(range(len(shape)))
    for joins in (True, False):
        for axes, score in scores.items():
            components = {component[axis] for axis in axes}
            if axes in graph or (len(components) < len(axes) if joins else score <= least):
                continue
            more = edges.union(combinations(axes, 2))
            if joins or junction_tree(shape, more).cells <= most_cells:
                graph.append(axes)
                edges = more
                component = [min(components) if one in components else one for one in component]
    return graph


def chosen_tables(
    domain: Domain, measurements: Sequence[Measurement], *, rows: int, count: int
) -> tuple[tuple[str, ...], ...]:
    """Choose which of the measured tables to measure again: those of the graph, then others by their scores.

    Args:
        measurements: what was measured, of every attribute.
        rows: n, rows that the tables describe.

    Returns:
        The chosen tables of two attributes or more, each in the order of the domain; the most important first. A
        function of the arguments alone.

    Raises:
        InvalidInputError: an attribute in no table, or tables that do not fit the domain.
    """
    scores = scores_of(domain.shape, tables_of(domain, measurements), rows=rows)
    ranking = dict.fromkeys((*graph_of(domain.shape, scores, most_cells=MOST_CELLS), *scores))
    return tuple(tuple(domain.names[axis] for axis in axes) for axes in list(ranking)[:count])
