"""Optimised unary encoding: one bit a value; the bit of the node's value is fair, every other bit is rarely set."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from operator import attrgetter
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles.draws import draw_events
from veiltab.common.collection.oracles.oracle import BYTE_ROWS, Oracle, check_units, check_value
from veiltab.common.collection.oracles.reports import Bits, Report
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import CHUNK
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

# Labels of the source.
_OTHERS, _OWN = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisedUnaryEncoding(Oracle):
    """Set the bit of the node's value with probability 1/2 and every other bit with probability q; support = set bits.

    p = 1/2,    q = q64 / 2^64,    epsilon = ln((1 - q)/q)

    q is 1/(e^epsilon + 1) rounded up to a whole number of 2^-64, so that what runs is never less private.

    Args:
        size: number of values d, 2 to 65536.
        q64: q in units of 2^-64, below 2^63.

    Raises:
        InvalidInputError: a value out of range.

    Source: Wang, Blocki, Li, Jha 2017 (OUE). The epsilon is tight.
    """

    name: ClassVar[str] = "oue"
    q64: int

    def _check_parameters(self) -> None:
        check_units(self.q64, what="q64", below=UNIT // 2)

    @classmethod
    def _from_ratio(cls, size: int, gamma: Fraction) -> Self:
        return cls(size=size, q64=ceil(UNIT / (gamma + 1)))

    @property
    def gamma(self) -> Fraction:
        """Largest likelihood ratio of a report; exact. The bits of two values differ: p(1-q)/((1-p)q)."""
        return (1 - self.q) / self.q

    @property
    def p(self) -> Fraction:
        """Probability that the support holds the node's own value; exact."""
        return Fraction(1, 2)

    @property
    def q(self) -> Fraction:
        """Probability that the support holds any one other value; exact."""
        return Fraction(self.q64, UNIT)

    def together(self, values: int) -> Fraction:
        """Probability that a blanket report supports two given values, or more: all bits are set alike."""
        return self.q**values

    @property
    def report_bytes(self) -> int:
        """Payload of one report, in bytes: one bit a value."""
        return (self.size + 7) // 8

    def randomise(self, value: int, source: ByteSource) -> Bits:
        """Return the report of a node; see Oracle."""
        check_value(value, self.size)
        bits = draw_events(self.size, self.q64, source, label=_OTHERS)
        bits[value] = draw_events(1, UNIT // 2, source, label=_OWN)[0]
        return Bits(bits=np.packbits(bits, bitorder="little").tobytes())

    def check(self, report: Report) -> Bits:
        """Return the report if it is a row of bits; see Oracle."""
        if not (isinstance(report, Bits) and isinstance(report.bits, bytes)):
            raise InvalidInputError("the report is not a row of bits", where="report")
        if len(report.bits) != self.report_bytes:
            raise InvalidInputError(f"the report does not have {self.report_bytes} bytes", where="report")
        if self.size % 8 and report.bits[-1] >> self.size % 8:
            raise InvalidInputError(f"the report has bits beyond its {self.size} values", where="report")
        return report

    @property
    def _rows_at_once(self) -> int:
        return min(BYTE_ROWS, 2 * CHUNK // self.size)

    def _supports(self, reports: Sequence[Report]) -> NDArray[np.uint8]:
        block = b"".join(map(attrgetter("bits"), reports))
        packed = np.frombuffer(block, np.uint8).reshape(-1, self.report_bytes)
        bits = np.unpackbits(packed, axis=1, count=self.size, bitorder="little")
        counts: NDArray[np.uint8] = np.add.reduce(bits, axis=0, dtype=np.uint8)
        return counts
