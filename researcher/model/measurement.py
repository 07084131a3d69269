"""What a model is fitted to: noisy tables, pooled where several say something about the same attributes.

A measurement of the attributes S is y = T_S + e, with T_S the true fractions, E e = 0 and Var(e) = 1/w in each of its
K_S cells; the errors of cells count as uncorrelated (they are but for the sum, which is known to be 1). Hence

    pooled over tables of the same S:   y = sum w_t y_t / sum w_t,    w = sum w_t
    summed down to B, a subset of S:    w_B = w_S K_B / K_S           (K_S/K_B cells add up in each)

Values are never clipped or projected: an estimate that is negative in a cell is unbiased as it is.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

Floats = NDArray[np.float64]

Rounded = NDArray[np.floating[Any]]
"""float32 where speed matters, or float64."""

Axes = tuple[int, ...]
"""Attributes as their numbers in the domain."""

ROUNDING = 1e-6
"""How far the sum of a measurement may be from 1."""

MOST_MARGINAL_CELLS = 10_000_000
"""Largest table that is computed on the way to a marginal of a model (80 MB)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """One noisy table.

    Args:
        names: its attributes, each once.
        values: unbiased fractions of the rows, shape (K,), in C order over the sizes of `names`; they sum to 1 and may
            be negative (probabilities).
        weight: 1 / variance of a cell (1 / squared probability).

    Raises:
        InvalidInputError: no attribute or one twice, values that are not finite numbers with the sum 1, or a weight
            that is not positive and finite.
    """

    names: tuple[str, ...]
    values: Floats
    weight: float

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) != len(self.names):
            raise InvalidInputError("the measurement has no attribute, or one of them twice")
        if self.values.ndim != 1 or not np.isfinite(self.values).all():
            raise InvalidInputError("the values of a measurement are a vector of finite numbers", where=self._where)
        if abs(float(self.values.sum()) - 1) > ROUNDING:
            raise InvalidInputError("the values of a measurement do not sum to 1", where=self._where)
        if not (isfinite(self.weight) and self.weight > 0):
            raise InvalidInputError("the weight of a measurement is positive and finite", where=self._where)

    @property
    def _where(self) -> str:
        return f"table {', '.join(self.names)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What is known about a set of attributes.

    Args:
        values: fractions, one axis an attribute (probabilities).
        weight: 1 / variance of a cell.
    """

    axes: Axes
    values: Floats
    weight: float

    def marginal(self, axes: Axes) -> "Table":
        """Return the table summed down to `axes`, a subset of its own."""
        dropped = tuple(place for place, axis in enumerate(self.axes) if axis not in axes)
        values: Floats = self.values.sum(axis=dropped)
        return Table(axes=axes, values=values, weight=self.weight * values.size / self.values.size)


def pooled(tables: Sequence[Table]) -> Table:
    """Return the mean of tables of the same attributes, weighted by their weights."""
    weight = sum(table.weight for table in tables)
    values = sum((table.values * (table.weight / weight) for table in tables), start=np.zeros(tables[0].values.shape))
    return Table(axes=tables[0].axes, values=values, weight=weight)


def tables_of(domain: Domain, measurements: Sequence[Measurement]) -> dict[Axes, Table]:
    """Return one table for each set of attributes that was measured, whatever their order and however often.

    Args:
        domain: all attributes of the model.
        measurements: any number of tables of them.

    Returns:
        Attributes -> table.

    Raises:
        InvalidInputError: an attribute that the domain does not have or that no table has, or values that do not fit
            the sizes.
    """
    groups: dict[Axes, list[Table]] = {}
    for measurement in measurements:
        shape = domain.subset(measurement.names).shape
        if measurement.values.size != np.prod(shape):
            raise InvalidInputError(
                f"the table {', '.join(measurement.names)} has {np.prod(shape)} cells, not {measurement.values.size}"
            )
        places = [domain.names.index(name) for name in measurement.names]
        values = measurement.values.reshape(shape).transpose(np.argsort(places))
        axes = tuple(sorted(places))
        groups.setdefault(axes, []).append(Table(axes=axes, values=values, weight=measurement.weight))
    missing = [name for axis, name in enumerate(domain.names) if not any(axis in axes for axes in groups)]
    if missing:
        raise InvalidInputError(
            f"no table measures {', '.join(missing)}",
            remedy="Model the other attributes, or release a table with each.",
        )
    return {axes: pooled(group) for axes, group in groups.items()}


def one_way(tables: Mapping[Axes, Table], attributes: int) -> list[Table]:
    """Return the pooled table of every single attribute, each of which some table contains."""
    return [pooled([t.marginal((axis,)) for t in tables.values() if axis in t.axes]) for axis in range(attributes)]
