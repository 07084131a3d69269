"""The interface of every frequency oracle, and the checks that all of them share.

An oracle turns one value x of 0..d-1 into a report under epsilon-local differential privacy (neighbours: substitution
of the value), and a report into its support, a set of values. With p = P(i in support | x = i) and
q = P(i in support | x != i), the sum of (1{i in support} - q)/(p - q) over all reports estimates without bias how many
of their nodes hold i (Wang, Blocki, Li, Jha, USENIX Security 2017: "pure" protocols).

Randomising takes the same steps for every value, and no draw stops early because of its outcome. So the time of a
report reveals nothing about the value, as far as Python and NumPy allow.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles.reports import Report
from veiltab.common.core.domain import MAX_CATEGORIES
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.numbers.rounding import exp_below, ln_above, parse_epsilon
from veiltab.common.core.randomness import ByteSource
from veiltab.common.dataclass import dataclass, fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.shuffle_two_level import Blanket

Counts = NDArray[np.int64]
"""Supports that hold each value, shape (d,)."""

BYTE_ROWS = 255
"""Supports that never overflow a byte: bytes add up many times faster than longer integers."""

_STEP = Decimal("1e-12")


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle(ABC):
    """A frequency oracle; every parameter is public and a whole number, so that all parties run the same one.

    An oracle is one class and its registration; a class without all methods cannot be instantiated.

    Args:
        size: number of values d, 2 to 65536.
    """

    name: ClassVar[str]

    size: int

    def __post_init__(self) -> None:
        check_size(self.size)
        self._check_parameters()

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise InvalidInputError if a parameter is out of range."""

    @classmethod
    def from_epsilon(cls, size: int, epsilon: Decimal) -> Self:
        """Return the most accurate one that keeps epsilon (nats).

        Raises:
            InvalidInputError: a value out of range.
        """
        check_size(size)
        return cls._from_ratio(size, _granted_ratio(epsilon))

    @classmethod
    @abstractmethod
    def _from_ratio(cls, size: int, gamma: Fraction) -> Self:
        """Return the most accurate one whose likelihood ratio is at most gamma."""

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters that, with name and size, define the oracle; each below 2^64."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "size"}

    @property
    @abstractmethod
    def gamma(self) -> Fraction:
        """Largest likelihood ratio of a report under two values; exact."""

    @property
    def epsilon(self) -> Decimal:
        """Upper bound of ln gamma, nats, a multiple of 1e-12; never above the epsilon that it was made for."""
        return ln_above(self.gamma)

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """Probability that the support holds the node's own value; exact."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """Probability that the support holds any one other value; exact."""

    @abstractmethod
    def together(self, values: int) -> Fraction:
        """Probability that a report of the blanket, which no value makes likelier, supports 2 or 3 given values."""

    @property
    def blanket(self) -> Blanket:
        """The part of a report's law that does not depend on the value: a report supports its own value or does not."""
        one = self.p / (self.p + (1 - self.p) * self.gamma)
        three = self.together(3) if self.size > 2 else None
        return Blanket(gamma=self.gamma, one=one, two=self.together(2), three=three)

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """Payload of one report, in bytes."""

    @abstractmethod
    def randomise(self, value: int, source: ByteSource) -> Report:
        """Return the report of a node.

        Args:
            value: 0..d-1.
            source: of randomness; a node uses the operating system's. A cipher stream serves one report only.

        Raises:
            InvalidInputError: the value is out of range.
        """

    @abstractmethod
    def check(self, report: Report) -> Report:
        """Return the report if a node that follows the oracle could have sent it.

        Raises:
            InvalidInputError: it is malformed, or of another oracle; the message does not reveal its content.
        """

    def aggregate(self, reports: Sequence[Report], counts: Counts) -> None:
        """Add the supports of many reports, all of which passed `check`, to the counts."""
        check_counts(counts, self.size)
        rows = self._rows_at_once
        for start in range(0, len(reports), rows):
            counts += self._supports(reports[start : start + rows])

    @property
    @abstractmethod
    def _rows_at_once(self) -> int:
        """Most reports that `_supports` takes; at most BYTE_ROWS where it counts in bytes."""

    @abstractmethod
    def _supports(self, reports: Sequence[Report]) -> Counts | NDArray[np.uint8]:
        """Return how many of some checked reports support each value, shape (d,)."""


def _granted_ratio(epsilon: Decimal) -> Fraction:
    """Return a likelihood ratio that keeps epsilon, cut to a multiple of 1e-12 nats: at most e^epsilon.

    The cut allows the epsilon that runs to be reported as a multiple of 1e-12, rounded up, without exceeding the
    request.

    Raises:
        InvalidInputError: epsilon is not in [1e-12, 100].
    """
    epsilon = parse_epsilon(epsilon)
    if epsilon < _STEP:
        raise InvalidInputError(f"epsilon must be at least {_STEP}", where="epsilon", remedy="Raise epsilon.")
    return exp_below(epsilon.quantize(_STEP, rounding=ROUND_FLOOR))


def check_size(size: int) -> None:
    """Raise InvalidInputError unless there are 2 to 65536 values."""
    if not 2 <= size <= MAX_CATEGORIES:
        raise InvalidInputError(f"{size} values were given, not 2 to {MAX_CATEGORIES}", where="size")


def check_units(units: int, *, what: str, below: int = UNIT) -> None:
    """Raise InvalidInputError unless a probability in units of 2^-64 lies in 1..below-1."""
    if not 1 <= units < below:
        raise InvalidInputError(f"{what} must be 1 to {below - 1} units of 2^-64, not {units}", where=what)


def check_value(value: int, size: int) -> None:
    """Raise InvalidInputError unless the value is one of 0..size-1; the message does not reveal it."""
    if not is_symbol(value, size):
        raise InvalidInputError(f"the value is not one of 0 to {size - 1}", where="value")


def check_counts(counts: Counts, size: int) -> None:
    """Raise InvalidInputError unless there is one int64 count a value."""
    if counts.shape != (size,) or counts.dtype != np.int64:
        raise InvalidInputError(f"the counts are not int64 of shape ({size},), one a value", where="counts")


def is_symbol(symbol: object, size: int) -> bool:
    """Return whether a received value is a whole number 0..size-1."""
    return type(symbol) is int and 0 <= symbol < size
