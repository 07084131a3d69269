"""Searches among round numbers: the least one that is enough, and the one before it is not.

A question such as "which epsilon reaches this error?" has an answer that people read, type and put into a request. So
it is looked for among numbers with a few significant digits only, as exact decimals: what is answered was tried as it
stands, and nothing is rounded afterwards.
"""

from collections.abc import Callable
from decimal import Decimal
from math import ceil, inf, log
from typing import Generic, TypeVar

from veiltab.common.dataclass import dataclass

T = TypeVar("T")
U = TypeVar("U")

_STEADY = 3
"""Every third step halves what is left, should the straight line through both ends mislead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundNumbers:
    """The positive numbers with a few significant digits, counted from 0 upward.

    Args:
        digits: significant digits, at least 1.
        least: power of ten of the first number.
    """

    digits: int
    least: int

    @property
    def first(self) -> int:
        """The first number of a decade, as its significant digits: 100 for three of them."""
        return int(10 ** (self.digits - 1))

    @property
    def per_decade(self) -> int:
        """How many numbers there are from one power of ten to before the next."""
        return 9 * self.first

    def at(self, index: int) -> Decimal:
        """Return the number of an index, exactly."""
        decade, place = divmod(index, self.per_decade)
        return Decimal(self.first + place).scaleb(self.least + decade - self.digits + 1)

    def index_below(self, value: Decimal) -> int:
        """Return the index of the largest number that is at most a value; -1 below the first."""
        if value < Decimal(1).scaleb(self.least):
            return -1
        exponent = value.adjusted()
        place = int(value.scaleb(self.digits - 1 - exponent)) - self.first
        return (exponent - self.least) * self.per_decade + place


class WholeNumbers:
    """All whole numbers from 0 to 999, and then those with three significant digits."""

    def at(self, index: int) -> int:
        """Return the number of an index."""
        return index if index < 1000 else int(_THOUSANDS.at(index - 1000))

    def index_below(self, value: int) -> int:
        """Return the index of the largest number that is at most a value, which is at least 0."""
        return value if value < 1000 else 1000 + _THOUSANDS.index_below(Decimal(value))


_THOUSANDS = RoundNumbers(digits=3, least=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Generic[T]):
    """What is looked at in a search, in the order in which an error falls: numbers, or what is made of them.

    Args:
        last: largest index.
        rate: by which the logarithm of the error falls with an index, about.
    """

    at: Callable[[int], T]
    start: int
    last: int
    rate: float

    def of(self, make: Callable[[T], U]) -> "Scale[U]":
        """Return the scale of what is made of each number."""
        return Scale(at=lambda index: make(self.at(index)), start=self.start, last=self.last, rate=self.rate)

    def least(self, excess: Callable[[T], float]) -> T | None:
        """Return the first that is enough, of which the excess is not positive; None if the last is not."""
        index = least_sufficient(lambda one: excess(self.at(one)), start=self.start, last=self.last, rate=self.rate)
        return None if index is None else self.at(index)


def excess_over(aim: float, error: float) -> float:
    """Return how far the logarithm of an error lies above that of an aim; positive only where the error is larger."""
    # Compared as they are: a logarithm would round away what lies just above the aim.
    return max(log(error / aim), 1e-12) if error > aim else min(log(error / aim), 0.0)


def least_sufficient(excess: Callable[[int], float], *, start: int, last: int, rate: float) -> int | None:
    """Return the least index that is enough: it is, and the index before it is not, or is none.

    Args:
        excess: of an index, positive where it is not enough; falls as the index grows, may be infinite.
        last: largest index.
        rate: by how much `excess` falls with each index, about; how far the search looks while only one side is known.

    Returns:
        An index from 0 to `last`, or None if `last` is not enough.
    """
    low, high = -1, last + 1
    above, below = inf, -inf
    at, steps = min(max(start, 0), last), 0
    while high - low > 1:
        value = excess(at)
        if value <= 0:
            high, below = at, value
        else:
            low, above = at, value
        steps += 1
        at = min(max(_next(low, high, above, below, steps, last, rate), low + 1), high - 1)
    return None if high > last else high


def _next(  # noqa: PLR0913, PLR0917 - the state of the search
    low: int, high: int, above: float, below: float, steps: int, last: int, rate: float
) -> int:
    """Return the index to try next, between the two that are known, or beyond the one."""
    reach = 1 << steps
    if low < 0 and below > -inf:
        return high - ceil(-below / rate) - reach
    if high > last:
        return low + (reach * 16 if above == inf else ceil(above / rate) + reach)
    if above == inf or below == -inf or steps % _STEADY == 0:
        return (low + high) // 2
    return ceil(low + (high - low) * above / (above - below))
