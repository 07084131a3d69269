"""Junction trees: a graph of dependences made chordal, its cliques, and the order in which messages pass.

Eliminating an attribute joins its remaining neighbours to one another; it and they are a bag. Bags that no other
contains are the cliques. Counted from the last attribute eliminated back to the first, each bag is one attribute, given
the others of the bag (its separator), all of which lie in one earlier clique: the running intersection property. So

    P(x) = prod_C P(residual of C | separator of C)

Source: Lauritzen and Spiegelhalter, Local computations with probabilities on graphical structures (1988); Koller and
Friedman, Probabilistic Graphical Models (2009), sections 9.4.3 (min-fill, min-weight) and 10.4.
"""

from collections.abc import Callable, Iterable
from math import prod

from veiltab.common.dataclass import dataclass, replace
from veiltab.researcher.model.measurement import Axes

Edge = tuple[int, int]
"""Two attributes that depend on each other directly, the lower number first."""

Shape = tuple[int, ...]
"""Sizes of the attributes."""

_Cost = Callable[[int, dict[int, set[int]], Shape], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clique:
    """One clique, with the place of each attribute in its array.

    Args:
        separator: attributes shared with the parent, in the order of the parent's axes.
        residual: the other attributes, of which no earlier clique has one.
        parent: number of the parent; None for the root of a component.
    """

    separator: tuple[int, ...]
    residual: tuple[int, ...]
    parent: int | None

    @property
    def axes(self) -> tuple[int, ...]:
        """The attributes in the order of the clique's array."""
        return self.residual + self.separator


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree:
    """The cliques of a chordal graph, every parent before its children (a forest where the graph is not connected)."""

    shape: Shape
    cliques: tuple[Clique, ...]

    def sizes(self, axes: Iterable[int]) -> Shape:
        """Return the sizes of some attributes."""
        return tuple(self.shape[axis] for axis in axes)

    @property
    def cells(self) -> int:
        """Number of cells over all cliques: what memory and time are proportional to."""
        return sum(prod(self.sizes(clique.axes)) for clique in self.cliques)

    def containing(self, axes: Axes) -> int | None:
        """Return the number of the smallest clique that contains `axes`, or None."""
        members = set(axes)
        fitting = [i for i, clique in enumerate(self.cliques) if members.issubset(clique.axes)]
        return min(fitting, key=lambda i: prod(self.sizes(self.cliques[i].axes)), default=None)


def junction_tree(shape: Shape, edges: Iterable[Edge]) -> JunctionTree:
    """Return a junction tree of few cells: the better of elimination by least fill and by smallest bag.

    Args:
        shape: sizes of the attributes, which are the nodes 0, 1, ...

    Returns:
        Cliques that contain every edge and every attribute; no clique contains another.
    """
    edges = list(edges)
    trees = (_tree(shape, _bags(shape, edges, cost)) for cost in (_fill, _weight))
    return min(trees, key=lambda tree: tree.cells)


def _bags(shape: Shape, edges: list[Edge], cost: _Cost) -> list[tuple[int, set[int]]]:
    """Return the attributes in the order of their elimination, each with its neighbours at that moment."""
    neighbours: dict[int, set[int]] = {node: set() for node in range(len(shape))}
    for one, other in edges:
        neighbours[one].add(other)
        neighbours[other].add(one)
    bags = []
    while neighbours:
        node = min(neighbours, key=lambda node: (cost(node, neighbours, shape), node))
        around = neighbours.pop(node)
        for other in around:
            neighbours[other] |= around
            neighbours[other] -= {node, other}
        bags.append((node, around))
    return bags


def _fill(node: int, neighbours: dict[int, set[int]], shape: Shape) -> int:
    """Return the number of pairs that eliminating a node would join, each weighted by the cells of its table."""
    around = sorted(neighbours[node])
    return sum(
        shape[one] * shape[other]
        for place, one in enumerate(around)
        for other in around[place + 1 :]
        if other not in neighbours[one]
    )


def _weight(node: int, neighbours: dict[int, set[int]], shape: Shape) -> int:
    """Return the number of cells of the bag of a node."""
    return shape[node] * prod(shape[other] for other in neighbours[node])


def _tree(shape: Shape, bags: list[tuple[int, set[int]]]) -> JunctionTree:
    place = {node: position for position, (node, _) in enumerate(bags)}
    cliques: list[Clique] = []
    home: dict[int, int] = {}
    for node, around in reversed(bags):
        parent = home[min(around, key=place.__getitem__)] if around else None
        if parent is not None and around == set(cliques[parent].axes):
            clique = cliques[parent]
            cliques[parent] = replace(clique, residual=(*clique.residual, node))
            home[node] = parent
        else:
            home[node] = len(cliques)
            cliques.append(Clique(separator=tuple(sorted(around)), residual=(node,), parent=parent))
    for number, clique in enumerate(cliques):
        if clique.parent is not None:
            order = cliques[clique.parent].axes.index
            cliques[number] = replace(clique, separator=tuple(sorted(clique.separator, key=order)))
    return JunctionTree(shape=shape, cliques=tuple(cliques))
