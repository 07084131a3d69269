"""People with numbers, and releases of them: rounded at random, sampled, with noise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tests.researcher.analysis.simulated import releases_of
from veiltab.common.core.domain import Attribute, Domain
from veiltab.researcher.estimates.estimation import Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of some people: numbers with a grid, or symbols with categories.

    Args:
        values: numbers, or symbols.
        grid: points; none for categories.
        categories: names of the symbols.
        number: of which numbers it was rounded.
    """

    values: NDArray[np.generic]
    grid: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    number: str = ""

    def attribute(self, name: str) -> Attribute:
        categories = self.categories or tuple(f"{point:g}" for point in self.grid)
        return Attribute(name=name, categories=categories, number=self.number)

    def moved(self, by: float) -> "Column":
        """Return the same numbers further on, with their grid."""
        return replace(self, values=self.values.astype(np.float64) + by, grid=tuple(point + by for point in self.grid))

    def symbols(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return symbols, numbers rounded at random."""
        if not self.grid:
            return self.values.astype(np.int64)
        points, numbers = np.array(self.grid), self.values.astype(np.float64)
        below = np.clip(np.searchsorted(points, numbers, "right") - 1, 0, len(points) - 2)
        way = (numbers - points[below]) / (points[below + 1] - points[below])
        symbols: NDArray[np.int64] = (below + (rng.random(len(numbers)) < way)).astype(np.int64)
        return symbols


def twins(values: Floats, grid: tuple[float, ...]) -> tuple[Column, Column]:
    """Return a column of numbers twice."""
    one = Column(values=values, grid=grid, number="alice/x")
    return one, one


def estimates(people: Mapping[str, Column], sample: int, kept: float, runs: int, seed: int) -> Iterator[Estimate]:
    """Yield estimates of releases of all columns as one table, each with a rounding of its own.

    Args:
        people: name -> column.
        sample: rows of each release.
        kept: the probability that a symbol stays.
        runs: number of releases.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    domain = Domain(attributes=tuple(column.attribute(name) for name, column in people.items()))
    for _ in range(runs):
        cells = np.ravel_multi_index([column.symbols(rng) for column in people.values()], domain.shape)
        table = np.bincount(cells, minlength=domain.cells).reshape(domain.shape)
        yield from releases_of(table, domain, sample, kept, 1, rng)
