"""Makes the receipts of the tests of a server's noise, and checks those that other parties made."""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import prod

from veiltab.common.core.numbers.counts import Binomial, CountLaw, accepted, is_accepted, likely_distance
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.release.receipts.canary_changes import CanaryChanges, joined, lists_digest
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import (
    ALL_COLUMNS,
    JOINT_LEVEL,
    OWN_LEVEL,
    CanaryOrders,
    Counted,
    law_of,
    levels,
    members,
    noise_tests,
    surprises,
)
from veiltab.common.release.receipts.receipt import CountReceipt, Receipt
from veiltab.common.release.table_spec import Column, TableSpec

_WHOLE = frozenset({Family.AMOUNT, Family.COLUMN, Family.PAIR})
"""Families of which a receipt has every test."""

_PRECISION = 30
_THOUSANDTH = Decimal("0.001")


def own_receipt(spec: TableSpec, tester: str, changes: CanaryChanges, orders: CanaryOrders) -> Receipt:
    """Return the receipt of a curator's tests of its own columns.

    Args:
        orders: of the canaries that were published.
    """
    digest = hashlib.sha256(changes.to_bytes()).hexdigest()
    return _receipt(spec, tester, len(orders.places), noise_tests(changes, orders, _replacement(spec)), digest)


def joint_receipt(spec: TableSpec, lists: Mapping[str, bytes], orders: CanaryOrders) -> Receipt:
    """Return the receipt of the tests of all columns together: the same at every owner and at the desk.

    Args:
        lists: owner -> its list of changed canaries, of every owner.
        orders: of the canaries that were published.

    Raises:
        FailedReleaseError: a list is none; it says whose.
    """
    changes = joined(read_lists(spec, lists, len(orders.places)), spec.columns)
    return _receipt(spec, "", len(orders.places), noise_tests(changes, orders, _replacement(spec)), lists_digest(lists))


def read_lists(spec: TableSpec, lists: Mapping[str, bytes], canaries: int) -> dict[str, CanaryChanges]:
    """Return what the owners' lists say.

    Args:
        lists: owner -> its list, of every owner.
        canaries: how many were published.

    Raises:
        FailedReleaseError: a list is none, or two holders of a column have different ones; it says whose.
    """
    changes = {}
    for owner in sorted(spec.owners):
        try:
            changes[owner] = CanaryChanges.from_bytes(lists[owner], spec.columns_of(owner), canaries)
        except (KeyError, InvalidInputError):
            raise FailedReleaseError(
                "its list of changed canaries is not one of this release", where=f"curator {owner}"
            ) from None
    for column in spec.columns:
        for holder in column.holders[1:]:
            if not changes[column.owner].of([column]).is_same(changes[holder].of([column])):
                raise FailedReleaseError(
                    f"they state different changes of the canaries in {column.attribute}",
                    where=f"curator {column.owner} or curator {holder}",
                )
    return changes


def amount_receipt(spec: TableSpec, tester: str, *, canaries: int, changed: int) -> Receipt:
    """Return the receipt of a curator's test of the number of changed canaries alone; no list of them is kept.

    Args:
        canaries: c that were published.
        changed: k.
    """
    some = change_probability(spec, tested_columns(spec, tester))
    tests: Counted = {ALL_COLUMNS: (changed, (canaries, *some.as_integer_ratio()))}
    return _receipt(spec, tester, canaries, {Family.AMOUNT: tests}, "")


def tested_columns(spec: TableSpec, tester: str) -> tuple[Column, ...]:
    """Return the columns that a curator tests by itself; all columns for ""."""
    return spec.columns_of(tester) if tester else spec.columns


def change_probability(spec: TableSpec, columns: Sequence[Column]) -> Fraction:
    """Return p = r_s (1 - 1/K), exactly; K the cells of the columns."""
    return _replacement(spec) * (1 - Fraction(1, prod(column.size for column in columns)))


def level_of(spec: TableSpec, tester: str) -> Decimal:
    """Return the false alarm of a curator's own tests, or of those of all columns for ""."""
    return OWN_LEVEL / len(spec.owners) if tester else JOINT_LEVEL


def is_right(receipt: Receipt, spec: TableSpec) -> bool:
    """Return whether a receipt is one that tests of a release can have, with the bounds that follow from its laws."""
    columns = tested_columns(spec, receipt.tester)
    if not columns or not 0 <= receipt.changed <= receipt.canaries <= spec.canaries:
        return False
    if not _has_all(receipt, columns) or max([one.trials for one in receipt.counts]) > receipt.canaries:
        # Bounds take as long to compute as the numbers are large.
        return False
    return _has_right_bounds(receipt, spec)


@lru_cache(maxsize=64)
def _has_right_bounds(receipt: Receipt, spec: TableSpec) -> bool:
    columns = tested_columns(spec, receipt.tester)
    sizes, level = tuple(column.size for column in columns), level_of(spec, receipt.tester)
    try:
        laws = [one.law for one in receipt.counts]
        bounds = [accepted(law, *levels(one.test, sizes, level)) for law, one in zip(laws, receipt.counts, strict=True)]
    except (ValueError, ArithmeticError):
        return False
    amount = Binomial.of(receipt.canaries, change_probability(spec, columns))
    return (
        bounds == [(one.low, one.high) for one in receipt.counts]
        and laws[0] == amount
        and receipt.counts[0].count == receipt.changed
        and (receipt.expected, receipt.sd) == _expected(amount)
    )


def _has_all(receipt: Receipt, columns: Sequence[Column]) -> bool:
    """Whether a receipt has the counts of a whole test, or of one that failed by its amount."""
    names = [one.attribute for one in columns]
    listed = [(one.test, one.of) for one in receipt.counts]
    if listed == [(Family.AMOUNT, ALL_COLUMNS)]:
        return not receipt.passed
    expected = [(Family.AMOUNT, ALL_COLUMNS)]
    if len(names) > 1:
        expected += [(Family.COLUMN, name) for name in names]
        expected += [(Family.PAIR, f"{one}, {other}") for one, other in combinations(names, 2)]
    others = [family for family, number in members(tuple(one.size for one in columns)).items() if number]
    others = [family for family in others if family not in _WHOLE]
    return listed[: len(expected)] == expected and [test for test, _ in listed[len(expected) :]] == others


def _receipt(spec: TableSpec, tester: str, canaries: int, tests: Mapping[Family, Counted], digest: str) -> Receipt:
    columns, counts = tested_columns(spec, tester), list[CountReceipt]()
    sizes, level = tuple([column.size for column in columns]), level_of(spec, tester)
    for family, some in tests.items():
        sides = levels(family, sizes, level)
        picks = some if family in _WHOLE else [_loudest(family, some, canaries, sides)]
        counts += [_count_receipt(family, name, some, sides) for name in picks]
    expected, sd = _expected(Binomial.of(canaries, change_probability(spec, columns)))
    return Receipt(
        tester=tester,
        canaries=canaries,
        changed=counts[0].count,
        changes=digest,
        counts=tuple(counts),
        expected=expected,
        sd=sd,
    )


def _loudest(family: Family, tests: Counted, canaries: int, sides: tuple[Decimal, Decimal]) -> str:
    """Return the first test with the largest surprise of those that are refused, or of all if none is.

    A count on the side that speaks for the server, or near the mean, is accepted: only the bounds of the others are
    asked for.
    """
    found, likely = surprises(family, tests), likely_distance(max(canaries, 1), max(sides))
    far = [name for name, surprise in found.items() if surprise > likely]
    refused = [name for name in far if not is_accepted(law_of(family, tests[name][1]), tests[name][0], *sides)]
    return max(refused or found, key=found.__getitem__)


def _count_receipt(family: Family, name: str, tests: Counted, sides: tuple[Decimal, Decimal]) -> CountReceipt:
    count, numbers = tests[name]
    law = law_of(family, numbers)
    low, high = accepted(law, *sides)
    share, marks = (f"{law.hits}/{law.unit}", None) if isinstance(law, Binomial) else (None, numbers[1])
    return CountReceipt(
        test=family, of=name, trials=numbers[0], count=count, low=low, high=high, share=share, marks=marks
    )


@lru_cache(maxsize=64)
def _expected(law: CountLaw) -> tuple[Decimal, Decimal]:
    """Return the mean of a law and its standard deviation, to three decimals."""
    with localcontext(prec=_PRECISION):
        mean, variance = (Decimal(one.numerator) / one.denominator for one in (law.mean, law.variance))
        return mean.quantize(_THOUSANDTH), variance.sqrt().quantize(_THOUSANDTH)


def _replacement(spec: TableSpec) -> Fraction:
    return 1 - spec.server_mechanism.retention
