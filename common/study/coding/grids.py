"""Grids of numbers: a number between two public points becomes one of them at random, so that its mean stays.

X with g_i <= X <= g_(i+1) becomes g_(i+1) with probability (X - g_i) / (g_(i+1) - g_i), else g_i: E[g(X)] = X. What is
read of a table is the position of X, not a symbol; `rounded` tosses the coins, afresh for each release and table.
"""

from bisect import bisect_right
from collections.abc import Iterator
from decimal import Decimal
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import MAX_CATEGORIES, PARTS, Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import row_slices
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

_LEAST, _MOST = Decimal("1e-15"), Decimal("1e15")
_LABEL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Which numbers become which symbols: point i is symbol i.

    Args:
        points: at least two, increasing.
        clips: whether a number outside becomes the nearest end; otherwise it is unknown.

    Raises:
        InvalidInputError: the points do not increase, are too many, or are too large or fine to compute with.
    """

    points: tuple[Decimal, ...]
    clips: bool = False

    def __post_init__(self) -> None:
        if not all(point.is_finite() and (not point or _LEAST <= abs(point) <= _MOST) for point in self.points):
            raise InvalidInputError("a point of the grid is not 0 or a number of size 1e-15 to 1e15")
        if len(self.points) < 2 or any(low >= high for low, high in pairwise(self.points)):
            raise InvalidInputError("the grid does not increase", remedy="List at least two points, smallest first.")
        if len(self.points) >= MAX_CATEGORIES:
            raise InvalidInputError(
                f"the grid has {len(self.points)} points, not below {MAX_CATEGORIES}", remedy="Take longer steps."
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The points as texts: the categories."""
        return tuple(f"{point.normalize() + 0:f}" for point in self.points)

    def position(self, number: Decimal) -> int | None:
        """Return the position of a number, at most 2^-17 steps off; None if it lies outside and is not clipped."""
        low, high = self.points[0], self.points[-1]
        if self.is_outside(number):
            if not self.clips:
                return None
            number = low if number < low else high
        place = min(bisect_right(self.points, number), len(self.points) - 1) - 1
        below, above = self.points[place], self.points[place + 1]
        return PARTS * place + int(((number - below) * PARTS / (above - below)).to_integral_value())

    @staticmethod
    def position_of(symbol: int) -> int:
        """Return the position that becomes a symbol, whatever the coins: a point's, or that of missing numbers."""
        return PARTS * symbol

    def is_outside(self, number: Decimal) -> bool:
        """Return whether a number lies below the first point or above the last."""
        return not self.points[0] <= number <= self.points[-1]


def equal_steps(first: Decimal, last: Decimal, step: Decimal) -> tuple[Decimal, ...]:
    """Return first, first + step, ..., last.

    Raises:
        InvalidInputError: the step does not divide the distance, or there are too many.
    """
    if not step > 0 or not last > first:
        raise InvalidInputError("the step is not above 0, or the grid does not increase")
    steps = (last - first) / step
    if steps >= MAX_CATEGORIES or steps != steps.to_integral_value():
        raise InvalidInputError(
            f"{step} does not divide the grid into fewer than {MAX_CATEGORIES} steps", remedy="Choose another step."
        )
    return tuple(first + step * number for number in range(int(steps) + 1))


def decade_steps(ends: tuple[Decimal, ...], each: int) -> tuple[Decimal, ...]:
    """Return points of equal ratio, rounded to two digits, `each` a decade; a first point 0 stands before them.

    Raises:
        InvalidInputError: the ends are not above 0, or there are not 1 to 20 a decade.
    """
    zero = ends[:-2]
    if len(ends) not in {2, 3} or any(zero) or not 0 < ends[-2] < ends[-1] or not 1 <= each <= 20:
        raise InvalidInputError(
            "the grid has no 1 to 20 points a decade from one positive number to another",
            remedy="Write grid = [1, 100000], or [0, 1, 100000], and decade_points = 5.",
        )
    low, high = ends[-2:]
    inner = list[Decimal]()
    for number in count(1):
        exact = low * Decimal(10) ** (Decimal(number) / each)
        point = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1))  # two digits
        if point >= high:
            break
        inner.append(point)
    return (*zero, *sorted({low, *(point for point in inner if point > low), high}))


def rounded(positions: NDArray[np.unsignedinteger], size: int, source: ByteSource) -> Iterator[Symbols]:
    """Yield the symbols of positions chunk by chunk: i + 1 with probability f / PARTS, else i, exactly.

    Args:
        positions: (n,) of type POSITION; may be memory-mapped.
        size: number of categories.
        source: of the coins, for this column of this table alone.
    """
    for chunk, rows in enumerate(row_slices(len(positions))):
        here = positions[rows]
        coins = np.empty(len(here), "<u2")
        source.fill(coins.view(np.uint8).data, label=_LABEL, chunk=chunk)
        symbols: Symbols = (here // PARTS + (coins < here % PARTS)).astype(symbol_dtype(size))  # type: ignore[assignment]
        yield symbols
