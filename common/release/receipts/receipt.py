"""Receipts: what the tests of a server's noise on a release's canaries showed.

A receipt holds the number of changed canaries, of them those of each column and pair of columns, and of every other
family of tests the one that speaks the loudest against the server. It says *passed* to an analyst, and no more: in a
column of two symbols a count of changes is the parity of their sum, which a server that draws its noise to a known sum
would turn into the sum of the curators' rows.
"""

import re
from decimal import Decimal
from functools import cached_property
from math import gcd

from veiltab.common.core.numbers.counts import Binomial, CountLaw, Runs
from veiltab.common.core.texts.canonical import KeptRecord
from veiltab.common.core.texts.message_fields import text_from_proto
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.table_spec import MAX_CANARIES

_SHARE = re.compile(r"[0-9]{1,40}/[0-9]{1,40}")
_CHANGES = re.compile(r"([0-9a-f]{64})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountReceipt:
    """One count of a test, and what is accepted of it.

    Args:
        of: in which column, at which places, in which order.
        trials: n of its binomial law, or c of that of runs.
        share: p of its binomial law, "numerator/denominator"; None of runs.
        marks: k of the law of runs; None of others.
        low: fewest that are accepted.
    """

    test: Family
    of: str
    trials: int
    count: int
    low: int
    high: int
    share: str | None = None
    marks: int | None = None

    def __post_init__(self) -> None:
        text_from_proto(self.of, "receipt")
        # Of other texts a fraction can take all memory.
        if self.share is not None and not _SHARE.fullmatch(self.share):
            raise InvalidInputError("the share of a law is not a fraction of two whole numbers", where="receipt")

    @property
    def passed(self) -> bool:
        """Whether the count is accepted."""
        return self.low <= self.count <= self.high

    @property
    def law(self) -> CountLaw:
        """The law of the count where the server is honest.

        Raises:
            ValueError: there is no such law.
        """
        if (self.share is None) == (self.marks is None):
            raise ValueError("a count is binomial or of runs")
        if self.share is not None:
            hits, unit = map(int, self.share.split("/"))
            if hits > unit or gcd(hits, unit) != 1 or self.trials < 0 or f"{hits}/{unit}" != self.share:
                raise ValueError("a share is a reduced fraction from 0 to 1")
            return Binomial(self.trials, hits, unit)
        if not 0 <= (self.marks or 0) <= self.trials:
            raise ValueError("there are at most as many marks as places")
        return Runs(self.trials, self.marks or 0)

    @property
    def name(self) -> str:
        """The test, and of what."""
        return f"{self.test.value} ({self.of})"

    def sentence(self) -> str:
        """Return the count in words."""
        return f"{self.name}: {self.count:,} {self.test.meaning}; {self.low:,} to {self.high:,} are accepted"


@dataclass(frozen=True, kw_only=True)
class Receipt(KeptRecord):
    """The result of the tests that one party made of one release, over some of its columns.

    Args:
        tester: the curator who tested its own columns, or "" for the tests of all columns together.
        canaries: c, rows that were tested.
        changed: k, how many of them changed in any of the tested columns.
        changes: SHA-256 of the list of changed canaries, or of all owners' lists, hexadecimal.
        counts: the amount, each column and each pair of columns, and of every other family of tests the one that speaks
            the loudest against the server; the amount alone, where too many changed for a list.
        expected: c p, to three decimals.
        sd: sqrt(c p (1 - p)), to three decimals.
    """

    tester: str
    canaries: int
    changed: int
    changes: str
    counts: tuple[CountReceipt, ...]
    expected: Decimal
    sd: Decimal

    def __post_init__(self) -> None:
        text_from_proto(self.tester, "receipt")
        if not _CHANGES.fullmatch(self.changes):
            raise InvalidInputError("the digest of a list is not the hexadecimal digits of one", where="receipt")
        if not all(number.is_finite() and 0 <= number <= MAX_CANARIES for number in (self.expected, self.sd)):
            raise InvalidInputError("a number of canaries is not finite, below 0 or too large", where="receipt")

    @cached_property
    def passed(self) -> bool:
        """Whether the server's noise can be that of the release."""
        return all(one.passed for one in self.counts)

    @property
    def failures(self) -> tuple[CountReceipt, ...]:
        """The counts that are not accepted."""
        return tuple(one for one in self.counts if not one.passed)

    @property
    def tested_by(self) -> str:
        """Who tested, in words."""
        return f"curator {self.tester}" if self.tester else "curators and desk"

    @property
    def where(self) -> str:
        """Which columns were tested, in words."""
        return f"{self.tester}'s columns" if self.tester else "all columns together"

    def facts(self) -> dict[str, object]:
        """Return the receipt for JSON; "curator" is empty where all columns were tested."""
        return {
            "curator": self.tester,
            "tested_by": self.tested_by,
            "canaries": self.canaries,
            "changed": self.changed,
            "expected": float(self.expected),
            "sd": float(self.sd),
            "passed": self.passed,
            "tests": [
                {"test": one.test.value, **same_fields(one, ("of", "count", "low", "high", "passed"))}
                for one in self.counts
            ],
        }

    def sentence(self) -> str:
        """Return the receipt in words."""
        if self.failures:
            first, *others = self.failures
            also = f"; also {', '.join(one.name for one in others)}" if others else ""
            return f"{self.where} fail: {first.sentence()}{also}"
        if not self.canaries:
            return f"{self.where}: no canaries, so nothing was tested"
        return (
            f"of {self.canaries:,} canaries {self.changed:,} changed in {self.where}, {round(self.expected):,} +-"
            f" {round(self.sd):,} expected; the tests accept their number, columns, values and places"
        )
