"""What receipts hold and say, and which ones no test of a release can have."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.conftest import refuses, spec_with
from tests.made_receipts import made_tests
from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import amount_receipt, is_right, joint_receipt
from veiltab.common.release.table_spec import Column

COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="salary", owner="bob", size=3),
    Column(attribute="age", owner="alice", size=300),
)
SPEC = spec_with(columns=COLUMNS, server_replacement=2**63, canaries=1000)
TESTS = made_tests(SPEC)


def test_a_receipt_holds_the_counts_of_every_test() -> None:
    own, together = TESTS.receipts("alice")
    assert (own.tester, together.tester, own.canaries, together.canaries) == ("alice", "", 1000, 1000)
    of_each = ["arcs", "seen before", "places", "runs", "repeats"]
    names = [(one.test.value, one.of) for one in together.counts]
    assert names[:7] == [
        ("amount", "all columns"),
        *(("column", name) for name in ("sex", "salary", "age")),
        *(("pair", names) for names in ("sex, salary", "sex, age", "salary, age")),
    ]
    assert [test for test, _ in names[7:]] == of_each
    names = [(one.test.value, one.of) for one in own.counts]
    assert names[:4] == [("amount", "all columns"), ("column", "sex"), ("column", "age"), ("pair", "sex, age")]
    assert [test for test, _ in names[4:]] == of_each
    for receipt, changes in ((own, hashlib.sha256(TESTS.lists["alice"]).hexdigest()), (together, None)):
        assert receipt.passed
        assert not receipt.failures
        assert receipt.changed == receipt.counts[0].count
        assert receipt.changes == changes or changes is None
        assert is_right(receipt, SPEC)
        assert read_canonical(Receipt, canonical_text(receipt)) == receipt


def test_a_receipt_says_what_was_expected() -> None:
    spec = spec_with(server_replacement=2**63, canaries=1000)
    own, together = made_tests(spec).receipts("bob")
    assert (own.expected, own.sd) == (Decimal("250.000"), Decimal("13.693"))
    assert (together.expected, together.sd) == (Decimal("375.000"), Decimal("15.309"))
    assert own.sentence().startswith(f"of 1,000 canaries {own.changed} changed in bob's columns, 250 +- 14 expected;")
    assert f"{together.changed} changed in all columns together, 375 +- 15 expected;" in together.sentence()
    assert (own.tested_by, together.tested_by) == ("curator bob", "curators and desk")


@pytest.mark.parametrize(("share", "is_passed"), [(0.0, False), (0.5, False), (1.0, True), (1.5, False)])
def test_another_amount_of_noise_fails(share: float, *, is_passed: bool) -> None:
    spec = spec_with(server_replacement=2**63, canaries=1000)
    own, together = made_tests(spec, share=share).receipts("bob")
    for receipt, where in ((own, "bob's columns"), (together, "all columns together")):
        assert receipt.passed is is_passed
        assert is_right(receipt, spec)
        if not is_passed:
            low, high = receipt.counts[0].low, receipt.counts[0].high
            assert receipt.failures[0].test is Family.AMOUNT
            assert receipt.sentence().startswith(
                f"{where} fail: amount (all columns): {receipt.changed} canaries changed; {low} to {high} are accepted"
            )
        assert receipt.facts()["passed"] is is_passed


def test_without_canaries_nothing_was_tested() -> None:
    for receipt in made_tests(replace(SPEC, canaries=0)).receipts("alice"):
        assert receipt.passed
        assert is_right(receipt, replace(SPEC, canaries=0))
        assert receipt.sentence().endswith("no canaries, so nothing was tested")


def test_too_many_changes_are_counted_alone() -> None:
    receipt = amount_receipt(SPEC, "alice", canaries=1000, changed=1000)
    assert [one.test for one in receipt.counts] == [Family.AMOUNT]
    assert not receipt.passed
    assert is_right(receipt, SPEC)
    # As many as an honest server changes have a list, and so all tests.
    assert not is_right(amount_receipt(SPEC, "alice", canaries=1000, changed=500), SPEC)


def without(receipt: Receipt, family: Family) -> Receipt:
    return replace(receipt, counts=tuple(one for one in receipt.counts if one.test is not family))


def with_first(receipt: Receipt, **changes: object) -> Receipt:
    first, *others = receipt.counts
    return replace(receipt, counts=(replace(first, **changes), *others))  # type: ignore[arg-type]


def spelt_otherwise(receipt: Receipt, factor: int, zeros: str) -> Receipt:
    amount, other, *rest = receipt.counts
    hits, unit = map(int, str(other.share).split("/"))
    other = replace(other, share=f"{zeros}{factor * hits}/{factor * unit}")
    return replace(receipt, counts=(amount, other, *rest))


FORGERIES: dict[str, Callable[[Receipt], Receipt]] = {
    **{f"without {family.value}": lambda receipt, family=family: without(receipt, family) for family in Family},  # type: ignore[misc]
    "no counts": lambda receipt: replace(receipt, counts=()),
    "the amount alone": lambda receipt: replace(receipt, counts=receipt.counts[:1]),
    "in another order": lambda receipt: replace(receipt, counts=receipt.counts[::-1]),
    "columns in another order": lambda receipt: replace(
        receipt, counts=(receipt.counts[0], receipt.counts[2], receipt.counts[1], *receipt.counts[3:])
    ),
    "a test twice": lambda receipt: replace(receipt, counts=(*receipt.counts, receipt.counts[-1])),
    "a lower bound": lambda receipt: with_first(receipt, low=receipt.counts[0].low - 1),
    "a higher bound": lambda receipt: with_first(receipt, high=receipt.counts[0].high + 1),
    "another law": lambda receipt: with_first(receipt, share="1/2"),
    "no fraction": lambda receipt: with_first(receipt, share="1/0"),
    "a share above 1": lambda receipt: with_first(receipt, share="3/2"),
    "a share that is not reduced": lambda receipt: spelt_otherwise(receipt, 2, ""),
    "a share with a digit more": lambda receipt: spelt_otherwise(receipt, 1, "0"),
    "two laws": lambda receipt: with_first(receipt, marks=3),
    "no law": lambda receipt: with_first(receipt, share=None),
    "another number of changes": lambda receipt: replace(receipt, changed=receipt.changed + 1),
    "more trials than canaries": lambda receipt: with_first(receipt, trials=10**12),
    "fewer canaries": lambda receipt: replace(receipt, canaries=999),
    "more canaries": lambda receipt: replace(receipt, canaries=10**15),
    "another mean": lambda receipt: replace(receipt, expected=receipt.expected + 1),
    "another deviation": lambda receipt: replace(receipt, sd=receipt.sd + 1),
    "of another": lambda receipt: replace(receipt, tester="bob"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("place", [0, 1], ids=["own", "together"])
def test_a_receipt_that_no_test_of_the_release_has_is_not_right(forgery: str, place: int) -> None:
    assert not is_right(FORGERIES[forgery](TESTS.receipts("alice")[place]), SPEC)


@pytest.mark.parametrize(
    "changes",
    [
        {"tester": "\x1b[2J"},
        {"tester": "x" * 10_000},
        {"changes": "none"},
        {"expected": Decimal("NaN")},
        {"expected": Decimal("Infinity")},
        {"expected": Decimal("1e999999")},
        {"sd": Decimal(-1)},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_receipt_has_plain_texts_and_numbers(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        replace(TESTS.together(), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"of": "\x1b[2J"},
        {"of": "x" * 10_000},
        {"share": "1e999999999"},
        {"share": "0.5"},
        {"share": "1_0/20"},
        {"share": f"1/{'9' * 1000}"},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_count_has_plain_texts_and_a_plain_share(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        with_first(TESTS.together(), **changes)


def test_a_receipt_of_fewer_canaries_is_right_where_the_server_samples() -> None:
    spec = replace(SPEC, sampling=Sampling.SERVER, sample=700)
    for receipt in made_tests(spec, canaries=500).receipts("alice"):
        assert (receipt.canaries, receipt.passed) == (500, True)
        assert is_right(receipt, spec)


@pytest.mark.parametrize(
    "garbage", [b"x", b"\xff" * 40, None, "number", "symbol"], ids=["a byte", "bytes", "none", "number", "symbol"]
)
def test_whose_list_is_none_is_named(garbage: bytes | str | None) -> None:
    lists = dict(TESTS.lists)
    changes = CanaryChanges.from_bytes(lists["bob"], SPEC.columns_of("bob"), 1000)
    match garbage:
        case None:
            del lists["bob"]
        case "number":
            lists["bob"] = replace(changes, numbers=changes.numbers + 1000).to_bytes()
        case "symbol":
            lists["bob"] = replace(changes, symbols=(changes.symbols[0] + 3,)).to_bytes()
        case data:
            lists["bob"] = bytes(data)  # type: ignore[arg-type]
    with refuses(FailedReleaseError, where="curator bob"):
        joint_receipt(SPEC, lists, TESTS.orders)


def test_two_holders_of_a_column_state_the_same_changes_of_it() -> None:
    columns = (SPEC.columns[0], replace(SPEC.columns[1], others=("carol", "dan")))
    tests = made_tests(replace(SPEC, columns=columns))
    assert set(tests.lists) == {"alice", "bob", "carol", "dan"}
    assert tests.together().passed
    changes = CanaryChanges.from_bytes(tests.lists["carol"], columns[1:], 1000)
    other = replace(changes, symbols=((changes.symbols[0] + 1) % columns[1].size,)).to_bytes()
    with pytest.raises(FailedReleaseError, match="curator bob or curator carol: they state different changes"):
        joint_receipt(tests.spec, tests.lists | {"carol": other}, tests.orders)
    with pytest.raises(FailedReleaseError, match="curator bob or curator dan: they state different changes"):
        joint_receipt(tests.spec, tests.lists | {"dan": b""}, tests.orders)
