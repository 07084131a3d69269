"""Sums of receipts over tables: what they accept, beside exact sums, and the little noise left out that they find."""

from decimal import Decimal
from fractions import Fraction
from math import comb

import numpy as np

from tests.conftest import spec_with
from tests.made_receipts import made_tests
from veiltab.common.core.numbers.counts import Binomial, accepted_sum
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.pooled_receipts import pooled_counts
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.table_spec import Column, TableSpec

COLUMNS = (
    Column(attribute="sex", owner="alice", size=3),
    Column(attribute="region", owner="bob", size=8),
    Column(attribute="income", owner="bob", size=2),
)


def receipts_of(*, share: float = 1.0, raw: str = "") -> list[Receipt]:
    """Return the receipts of a server that adds a share of its noise, and leaves one column as it came in some tables.

    Args:
        raw: attribute of that column, in every fourth table.
    """
    each = enumerate(tables())
    return [made_tests(one, share=share, seed=n, raw="" if n % 4 else raw).together() for n, one in each]


def tables() -> list[TableSpec]:
    """Return forty tables of three columns, each with few canaries."""
    shared = {"columns": COLUMNS, "population": 5000, "sample": 5000, "canaries": 1024}
    return [spec_with(**shared, server_replacement=2**64 * (20 + number) // 100) for number in range(40)]


def test_an_honest_server_passes_over_all_tables() -> None:
    pooled = pooled_counts(receipts_of())
    assert all(one.passed for one in pooled)
    assert [one.of for one in pooled if one.test is Family.COLUMN] == ["sex", "region", "income"]
    assert sum(one.test is Family.PAIR for one in pooled) == 3
    assert {one.tables for one in pooled} == {40}


def test_a_tenth_of_the_noise_that_no_table_shows_is_found_over_all() -> None:
    receipts = receipts_of(share=0.9)
    assert all(receipt.passed for receipt in receipts)
    failed = [one for one in pooled_counts(receipts) if not one.passed]
    assert [(one.test, one.of) for one in failed] == [(Family.AMOUNT, "all columns")]
    assert failed[0].sentence() == "over 40 tables together amount (all columns) is not as honest noise has it"


def test_a_column_left_out_of_a_quarter_of_the_tables_is_named() -> None:
    pooled = pooled_counts(receipts_of(raw="region"))
    assert (Family.COLUMN, "region") in {(one.test, one.of) for one in pooled if not one.passed}


def test_the_bounds_of_a_sum_hold_and_are_not_wide() -> None:
    shares = {40: Fraction(1, 10), 60: Fraction(1, 3), 5: Fraction(9, 10)}
    exact = np.array([Fraction(1)])
    for n, p in shares.items():
        terms = [comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)]
        exact = np.convolve(exact, np.array(terms))
    level = Decimal("1e-4")
    low, high = accepted_sum([Binomial.of(n, p) for n, p in shares.items()], level, level)
    assert 0 < sum(exact[:low]) <= Fraction(level)
    assert 0 < sum(exact[high + 1 :]) <= Fraction(level)
    # The exact law would refuse at most a few more.
    assert sum(exact[: low + 3]) > Fraction(level)
    assert sum(exact[high - 2 :]) > Fraction(level)


def test_nothing_is_added_up_of_releases_without_canaries() -> None:
    assert pooled_counts([]) == ()
