"""What every frequency oracle is, and the checks that all of them make.

An oracle turns one value x of 0..d-1 into a report under epsilon-local differential privacy (neighbours: substitution
of the value), and a report into its support, a set of values. With p = P(i in support | x = i) and
q = P(i in support | x != i), the sum of (1{i in support} - q)/(p - q) over all reports estimates without bias how many
of their nodes hold i (Wang, Blocki, Li, Jha, USENIX Security 2017: "pure" protocols).

Whatever the value, randomising takes the same steps, and no draw stops at what it has drawn: the time that a report
took tells nothing of the value, as far as Python and NumPy allow.
"""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles.reports import Report
from veiltab.common.core.domain import MAX_CATEGORIES
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.rounding import exp_below, parse_epsilon
from veiltab.common.errors import InvalidInputError

Counts = NDArray[np.int64]
"""Supports that hold each value, shape (d,)."""

Values = NDArray[np.int64]
"""Values 0..d-1, one a node or one an element of a support."""

_STEP = Decimal("1e-12")


class Oracle(Protocol):
    """A frequency oracle; every parameter is public and a whole number, so that all parties run the same one."""

    name: ClassVar[str]

    @property
    def size(self) -> int:
        """Number of values d, 2 to 65536."""

    @property
    def parameters(self) -> dict[str, int]:
        """What, with name and size, makes the same oracle again; each below 2^64."""

    @property
    def gamma(self) -> Fraction:
        """Largest likelihood ratio of a report under two values; exact."""

    @property
    def epsilon(self) -> Decimal:
        """Upper bound of ln gamma, nats, a multiple of 1e-12; never above the epsilon it was made from."""

    @property
    def p(self) -> Fraction:
        """Probability that the support holds the node's own value; exact."""

    @property
    def q(self) -> Fraction:
        """Probability that the support holds any one other value; exact."""

    @property
    def report_bytes(self) -> int:
        """Payload of one report, in bytes."""

    def randomise(self, value: int, source: ByteSource) -> Report:
        """Return the report of a node.

        Args:
            value: 0..d-1.
            source: what decides; a node takes the operating system's. A cipher stream serves one report, ever.

        Raises:
            InvalidInputError: the value is out of range.
        """

    def randomise_many(self, values: Values, source: ByteSource) -> Sequence[Report]:
        """Return the reports of many nodes, for simulation and measurement; a cipher stream serves one call, ever."""

    def check(self, report: Report) -> Report:
        """Return the report if a node that follows the oracle could have sent it.

        Raises:
            InvalidInputError: it is malformed, or of another oracle; the message tells nothing of its content.
        """

    def support(self, report: Report) -> Values:
        """Return the values that the report supports, in increasing order; raises as `check` does."""

    def add_support(self, report: Report, counts: Counts) -> None:
        """Add one to the count of every value that the report supports; raises as `check` does."""

    def aggregate(self, reports: Sequence[Report], counts: Counts) -> None:
        """Add the supports of many reports, all of which passed `check`, to the counts."""


def granted_ratio(epsilon: Decimal) -> Fraction:
    """Return a likelihood ratio that keeps epsilon, cut to a multiple of 1e-12 nats: at most e^epsilon.

    The cut lets what runs be reported as a multiple of 1e-12, rounded up, without exceeding what was asked for.

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
        raise InvalidInputError(f"an oracle has 2 to {MAX_CATEGORIES} values, not {size}", where="size")


def check_units(units: int, *, what: str, below: int = UNIT) -> None:
    """Raise InvalidInputError unless a probability in units of 2^-64 lies in 1..below-1."""
    if not 1 <= units < below:
        raise InvalidInputError(f"{what} must be 1 to {below - 1} units of 2^-64, not {units}", where=what)


def check_value(value: int, size: int) -> None:
    """Raise InvalidInputError unless the value is one of 0..size-1; the message does not tell it."""
    if not is_symbol(value, size):
        raise InvalidInputError(f"the value is not one of 0 to {size - 1}", where="value")


def check_values(values: Values, size: int) -> None:
    """Raise InvalidInputError unless all values are among 0..size-1."""
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
        raise InvalidInputError("values are one column of whole numbers", where="value")
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < size:
        raise InvalidInputError(f"some values are not among 0 to {size - 1}", where="value")


def check_counts(counts: Counts, size: int) -> None:
    """Raise InvalidInputError unless there is one int64 count a value."""
    if counts.shape != (size,) or counts.dtype != np.int64:
        raise InvalidInputError(f"counts of {size} values are int64 of shape ({size},)", where="counts")


def is_symbol(symbol: object, size: int) -> bool:
    """Say whether something received is a whole number 0..size-1."""
    return type(symbol) is int and 0 <= symbol < size
