"""k-ary randomised response: report the value, or with some probability a uniform one."""

from collections.abc import Sequence
from fractions import Fraction
from operator import attrgetter
from typing import ClassVar, Self

import numpy as np

from veiltab.common.collection.oracles.draws import draw_symbol, draw_word
from veiltab.common.collection.oracles.oracle import Counts, Oracle, check_units, check_value, is_symbol
from veiltab.common.collection.oracles.reports import Category, Report
from veiltab.common.core.domain import symbol_dtype
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import CHUNK
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

# Label of the source; the noise has the next one.
_REPLACE = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KaryRandomisedResponse(Oracle):
    """Keep the value with probability 1 - r, else replace it by a uniform one (possibly the same); support = {report}.

    p = 1 - r + r/d,    q = r/d,    epsilon = ln(1 + d (1 - r)/r),    r = replacement / 2^64

    Args:
        size: number of values d, 2 to 65536.
        replacement: r in units of 2^-64, below 2^64.

    Raises:
        InvalidInputError: a value out of range.

    Source: Kairouz, Bonawitz, Ramage 2016; direct encoding in Wang, Blocki, Li, Jha 2017. The epsilon is tight.
    """

    name: ClassVar[str] = "krr"
    replacement: int

    def _check_parameters(self) -> None:
        check_units(self.replacement, what="replacement")

    @classmethod
    def _from_ratio(cls, size: int, gamma: Fraction) -> Self:
        return cls(size=size, replacement=GammaDiagonal.from_gamma(size, gamma).replacement)

    @property
    def mechanism(self) -> GammaDiagonal:
        """The equivalent mechanism on a table with one attribute."""
        return GammaDiagonal(cells=self.size, replacement=self.replacement)

    @property
    def gamma(self) -> Fraction:
        """Largest likelihood ratio of a report; exact."""
        return self.mechanism.gamma

    @property
    def p(self) -> Fraction:
        """Probability that the support holds the node's own value; exact."""
        return self.mechanism.retention + self.q

    @property
    def q(self) -> Fraction:
        """Probability that the support holds any one other value; exact."""
        return (1 - self.mechanism.retention) / self.size

    def together(self, values: int) -> Fraction:  # noqa: ARG002 - an Oracle
        """Probability that a blanket report supports two given values, or more: it supports one."""
        return Fraction(0)

    @property
    def report_bytes(self) -> int:
        """Payload of one report, in bytes: one symbol."""
        return symbol_dtype(self.size).itemsize

    def randomise(self, value: int, source: ByteSource) -> Category:
        """Return the report of a node; see Oracle."""
        check_value(value, self.size)
        return Category(symbol=respond(value, self.size, self.replacement, source, label=_REPLACE))

    def check(self, report: Report) -> Category:
        """Return the report if it is a value; see Oracle."""
        if not (isinstance(report, Category) and is_symbol(report.symbol, self.size)):
            raise InvalidInputError(f"the report is not one of {self.size} values", where="report")
        return report

    @property
    def _rows_at_once(self) -> int:
        return CHUNK

    def _supports(self, reports: Sequence[Report]) -> Counts:
        symbols = np.fromiter(map(attrgetter("symbol"), reports), np.int64, len(reports))
        return np.bincount(symbols, minlength=self.size)


def respond(symbol: int, size: int, replacement: int, source: ByteSource, *, label: int) -> int:
    """Return one symbol after k-ary randomised response; the steps are the same whatever the outcome.

    Args:
        symbol: 0..size-1.
        replacement: probability r in units of 2^-64, below 2^64.
        label: of the decision; the noise takes the next one.
    """
    replaced = draw_word(8, source, label=label) < replacement
    noise = draw_symbol(size, source, label=label + 1)
    return symbol ^ ((noise ^ symbol) & -replaced)
