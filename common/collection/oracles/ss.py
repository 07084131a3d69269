"""Subset selection: report w values; the node's value is among them with a higher probability than any other value."""

from collections.abc import Sequence
from fractions import Fraction
from math import perm
from operator import attrgetter
from typing import ClassVar, Self, cast

import numpy as np

from veiltab.common.collection.oracles.draws import draw_distinct, draw_events
from veiltab.common.collection.oracles.oracle import Counts, Oracle, check_units, check_value
from veiltab.common.collection.oracles.reports import Report, Subset
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import CHUNK
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

# Labels of the source; other values take labels from _OTHERS on.
_OWN, _OTHERS = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(Oracle):
    """Report w of d values: with probability p the node's value and w - 1 others, else w others; support = the subset.

    p = p64 / 2^64,    q = (w - p)/(d - 1),    epsilon = ln( p (d - w) / ((1 - p) w) )

    p is e^epsilon w / (e^epsilon w + d - w) rounded down to a whole number of 2^-64, so that what runs is never less
    private. The others are uniform without replacement, exactly.

    Args:
        size: number of values d, 2 to 65536.
        w: values in a subset, at least 1 and at most d/2: no larger one is ever best.
        p64: p in units of 2^-64, below 2^64 and above w/d.

    Raises:
        InvalidInputError: a value out of range.

    Source: Ye, Barg 2018, "Optimal schemes for discrete distribution estimation under locally differential privacy"
    (and Wang et al. 2016, "Mutual information optimally local private discrete distribution estimation"). The epsilon
    is tight.
    """

    name: ClassVar[str] = "ss"
    w: int
    p64: int

    def _check_parameters(self) -> None:
        if not 1 <= self.w <= self.size // 2:
            raise InvalidInputError(f"{self.w} values of a subset were asked for, not 1 to {self.size // 2}", where="w")
        check_units(self.p64, what="p64")
        if self.p64 * self.size <= self.w * UNIT:
            raise InvalidInputError("p must exceed w/d: the node's value must be likelier than any other", where="p64")

    @classmethod
    def _from_ratio(cls, size: int, gamma: Fraction) -> Self:
        w = best_w(size, gamma)
        return cls(size=size, w=w, p64=int(UNIT * _own(size, w, gamma)))

    @property
    def gamma(self) -> Fraction:
        """Largest likelihood ratio of a report; exact: subsets that hold one value and not the other."""
        return Fraction(self.p64 * (self.size - self.w), (UNIT - self.p64) * self.w)

    @property
    def p(self) -> Fraction:
        """Probability that the support holds the node's own value; exact."""
        return Fraction(self.p64, UNIT)

    @property
    def q(self) -> Fraction:
        """Probability that the support holds any one other value; exact."""
        return (self.w - self.p) / (self.size - 1)

    def together(self, values: int) -> Fraction:
        """Probability that a blanket report supports two given values, or more: any subset of w values is as likely."""
        return Fraction(perm(self.w, values), perm(self.size, values))

    @property
    def report_bytes(self) -> int:
        """Payload of one report, in bytes: w symbols."""
        return self.w * symbol_dtype(self.size).itemsize

    def randomise(self, value: int, source: ByteSource) -> Subset:
        """Draw w other values, and replace the last by the node's value if the subset contains it; see Oracle."""
        check_value(value, self.size)
        others = draw_distinct(self.size - 1, self.w, source, label=_OTHERS)
        others += others >= value
        included = draw_events(1, self.p64, source, label=_OWN).astype(np.int64)[0]
        others[-1] ^= (others[-1] ^ value) & -included
        # Marking the values sorts them in a time that depends on the subset alone, not on the node's value.
        marked = np.zeros(self.size, np.bool_)
        marked[others] = True
        return Subset(values=np.flatnonzero(marked).astype(symbol_dtype(self.size)).tobytes())

    def check(self, report: Report) -> Subset:
        """Return the report if it is a subset of w values in increasing order; see Oracle."""
        if not (isinstance(report, Subset) and isinstance(report.values, bytes)):
            raise InvalidInputError("the report is not a subset", where="report")
        if len(report.values) != self.report_bytes:
            raise InvalidInputError(f"the report does not have {self.report_bytes} bytes", where="report")
        values = self._values(report.values)
        if int(values[-1]) >= self.size or np.any(values[1:] <= values[:-1]):
            raise InvalidInputError(f"the report is not {self.w} increasing values of {self.size}", where="report")
        return report

    @property
    def _rows_at_once(self) -> int:
        return max(1, CHUNK // self.w)

    def _supports(self, reports: Sequence[Report]) -> Counts:
        return np.bincount(self._values(b"".join(map(attrgetter("values"), reports))), minlength=self.size)

    def _values(self, values: bytes) -> Symbols:
        return cast("Symbols", np.frombuffer(values, symbol_dtype(self.size)))


def best_w(size: int, gamma: Fraction) -> int:
    """Return the subset size with the least variance, summed over all values: next to d / (gamma + 1).

    Source: Ye, Barg 2018, for the uniform distribution; the sum is the same for every other one.
    """
    near = int(size / (gamma + 1))
    candidates = (min(max(w, 1), size // 2) for w in (near, near + 1))
    return min(candidates, key=lambda w: _spread(size, w, _own(size, w, gamma)))


def _own(size: int, w: int, gamma: Fraction) -> Fraction:
    """Return the probability p that makes the likelihood ratio gamma."""
    return gamma * w / (gamma * w + size - w)


def _spread(size: int, w: int, p: Fraction) -> Fraction:
    """Return the variance of one node's contribution, summed over all values."""
    q = (w - p) / (size - 1)
    return (p * (1 - p) + (size - 1) * q * (1 - q)) / (p - q) ** 2
