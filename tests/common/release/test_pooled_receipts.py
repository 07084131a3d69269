"""Sums of receipts over tables: what they accept, beside exact sums, and the little noise left out that they find."""

from decimal import Decimal
from fractions import Fraction
from math import comb

import numpy as np

from tests.conftest import spec_with
from veiltab.common.core.numbers.counts import Binomial, accepted_sum
from veiltab.common.release.receipts.canary_changes import ChangesCollector
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.receipts.pooled_receipts import pooled_counts
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import joint_receipt
from veiltab.common.release.table_spec import Column, TableSpec

COLUMNS = (
    Column(attribute="sex", owner="alice", size=3),
    Column(attribute="region", owner="bob", size=8),
    Column(attribute="income", owner="bob", size=2),
)


def receipt_of(spec: TableSpec, rng: np.random.Generator, *, share: float = 1.0, raw: str = "") -> Receipt:
    """Return the receipt of a server that adds a share of its noise, and leaves one column as it came."""
    replaced = rng.random(spec.canaries) < share * spec.server_replacement / 2**64
    lists = {}
    for owner in ("alice", "bob"):
        columns = spec.columns_of(owner)
        sent = [rng.integers(0, column.size, spec.canaries).astype(np.uint8) for column in columns]
        published = [
            np.where(replaced & (column.attribute != raw), rng.integers(0, column.size, len(own)), own).astype(np.uint8)
            for column, own in zip(columns, sent, strict=True)
        ]
        collected = ChangesCollector(columns, most=spec.canaries)
        collected.compare(0, published, sent)
        changes = collected.changes()
        assert changes is not None
        lists[owner] = changes.to_bytes()
    places = np.sort(rng.permutation(spec.uploaded_rows)[: spec.canaries])
    return joint_receipt(spec, lists, CanaryOrders(places=places, rows=spec.uploaded_rows))


def tables() -> list[TableSpec]:
    """Return forty tables of three columns, each with few canaries."""
    shared = {"columns": COLUMNS, "population": 5000, "sample": 5000, "canaries": 1024}
    return [spec_with(**shared, server_replacement=2**64 * (20 + number) // 100) for number in range(40)]


def test_an_honest_server_passes_over_all_tables() -> None:
    rng = np.random.default_rng(1)
    pooled = pooled_counts(receipt_of(spec, rng) for spec in tables())
    assert all(one.passed for one in pooled)
    assert [one.of for one in pooled if one.test is Family.COLUMN] == ["sex", "region", "income"]
    assert sum(one.test is Family.PAIR for one in pooled) == 3
    assert {one.tables for one in pooled} == {40}


def test_a_tenth_of_the_noise_that_no_table_shows_is_found_over_all() -> None:
    rng = np.random.default_rng(2)
    receipts = [receipt_of(spec, rng, share=0.9) for spec in tables()]
    assert all(receipt.passed for receipt in receipts)
    failed = [one for one in pooled_counts(receipts) if not one.passed]
    assert [(one.test, one.of) for one in failed] == [(Family.AMOUNT, "all columns")]
    assert failed[0].sentence() == "over 40 tables together amount (all columns) is not as honest noise has it"


def test_a_column_left_out_of_a_quarter_of_the_tables_is_named() -> None:
    rng = np.random.default_rng(3)
    receipts = [receipt_of(spec, rng, raw="region" if number % 4 == 0 else "") for number, spec in enumerate(tables())]
    assert (Family.COLUMN, "region") in {(one.test, one.of) for one in pooled_counts(receipts) if not one.passed}


def test_the_bounds_of_a_sum_hold_and_are_not_wide() -> None:
    laws = [Binomial(40, Fraction(1, 10)), Binomial(60, Fraction(1, 3)), Binomial(5, Fraction(9, 10))]
    exact = [Fraction(1)]
    for law in laws:
        terms = [comb(law.trials, j) * law.p**j * (1 - law.p) ** (law.trials - j) for j in range(law.trials + 1)]
        exact = [
            sum((exact[i] * terms[j - i] for i in range(len(exact)) if 0 <= j - i < len(terms)), Fraction(0))
            for j in range(len(exact) + law.trials)
        ]
    level = Decimal("1e-4")
    low, high = accepted_sum(laws, level, level)
    assert 0 < sum(exact[:low]) <= Fraction(level)
    assert 0 < sum(exact[high + 1 :]) <= Fraction(level)
    # The exact law would refuse at most a few more.
    assert sum(exact[: low + 3]) > Fraction(level)
    assert sum(exact[high - 2 :]) > Fraction(level)


def test_nothing_is_added_up_of_releases_without_canaries() -> None:
    assert pooled_counts([]) == ()
