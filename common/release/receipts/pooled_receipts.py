"""The tests of a server over several tables together: a little noise left out of each shows in the sum.

Of every table the receipt of all columns together has the number of changed canaries, and of these the numbers that
changed in each column and in each pair of columns. Their sums over the tables are sums of independent binomial counts.
"""

from collections.abc import Iterable
from decimal import Decimal

from veiltab.common.core.numbers.counts import Binomial, accepted_sum
from veiltab.common.dataclass import dataclass, field
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import FALSE_ALARM
from veiltab.common.release.receipts.receipt import CountReceipt, Receipt

_SHARES = {Family.AMOUNT: Decimal("0.50"), Family.COLUMN: Decimal("0.40"), Family.PAIR: Decimal("0.10")}
_TIMES = 2
"""A release of several tables is tested so often: after those that run once, and after those that run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledCount:
    """A sum of counts over tables.

    Args:
        test: the family of the counts.
        of: in which column or pair of columns; "all columns" of the amount.
        tables: how many have it.
        count: the sum.
        low: fewest that are accepted.
    """

    test: Family
    of: str
    tables: int
    count: int
    low: int
    high: int

    @property
    def passed(self) -> bool:
        """Whether the sum is accepted."""
        return self.low <= self.count <= self.high

    def sentence(self) -> str:
        """Return in words what is refused; without the count, since analysts read it beside counts of the tables."""
        return f"over {self.tables} tables together {self.test.value} ({self.of}) is not as honest noise has it"


@dataclass(slots=True)
class _Pool:
    laws: list[Binomial] = field(default_factory=list)
    count: int = 0


def pooled_counts(receipts: Iterable[Receipt]) -> tuple[PooledCount, ...]:
    """Return the sums over tables, each with what is accepted of it at its share of the false alarm.

    Args:
        receipts: of all columns together, one a table.
    """
    pools: dict[tuple[Family, str], _Pool] = {}
    for receipt in receipts:
        for one in receipt.counts:
            if one.test in _SHARES:
                _add(pools.setdefault((one.test, one.of), _Pool()), one)
    members = {family: sum(test is family for test, _ in pools) for family in _SHARES}
    return tuple(_pooled(test, of, pool, members[test]) for (test, of), pool in pools.items())


def _add(pool: _Pool, receipt: CountReceipt) -> None:
    if not isinstance(receipt.law, Binomial):
        raise TypeError("only binomial counts are added up")
    pool.laws.append(receipt.law)
    pool.count += receipt.count


def _pooled(test: Family, of: str, pool: _Pool, members: int) -> PooledCount:
    side = FALSE_ALARM * _SHARES[test] / members / 2 / _TIMES
    low, high = accepted_sum(pool.laws, side, side)
    return PooledCount(test=test, of=of, tables=len(pool.laws), count=pool.count, low=low, high=high)
