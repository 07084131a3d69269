"""What a desk takes from curators and from its own service about the tests of the server."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import spec_with
from tests.made_receipts import made_tests
from tests.researcher.made_status import result_of
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.messages.release_messages import receipt_from_proto, receipt_to_proto
from veiltab.common.release.modes import Sampling
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.researcher.parties.server_findings import curators_test_from_proto
from veiltab.researcher.status.release_status import _result_from_proto
from veiltab.v1 import curator_pb2, release_pb2

DIGESTS = {"sex": b"a" * 32, "salary": b"b" * 32}
SPEC = spec_with(canaries=50)
TESTS = made_tests(SPEC)
OWN, TOGETHER = TESTS.receipts("alice")


def said(**changes: object) -> curator_pb2.GetReceiptResponse:
    fields: dict[str, Any] = {
        "receipts": (OWN, TOGETHER),
        "changes": TESTS.lists,
        "canary_key": b"k" * 32,
        "digests": DIGESTS,
    } | changes
    fields["receipts"] = [receipt_to_proto(receipt, with_counts=True) for receipt in fields["receipts"]]
    return curator_pb2.GetReceiptResponse(**fields)


def test_what_a_curator_says_of_its_test_is_read_whole() -> None:
    test = curators_test_from_proto(said(), SPEC, "alice")
    assert (test.receipts, test.changes, test.canary_key, test.digests) == (
        (OWN.text, TOGETHER.text),
        TESTS.lists,
        b"k" * 32,
        DIGESTS,
    )
    assert "kkk" not in repr(test)
    assert "changes=" not in repr(test).split("receipts=")[0] + repr(test).split("digests=")[1]
    assert test.places_digest == b""
    sampled = replace(SPEC, sampling=Sampling.SERVER)
    tests = made_tests(sampled, canaries=40)
    changes = {"receipts": tests.receipts("alice"), "changes": tests.lists}
    assert (
        curators_test_from_proto(said(**changes, places_digest=b"p" * 32), sampled, "alice").places_digest == b"p" * 32
    )
    for digest in (b"", b"p" * 31):
        with pytest.raises(InvalidInputError):
            curators_test_from_proto(said(**changes, places_digest=digest), sampled, "alice")


@pytest.mark.parametrize(
    "changes",
    [
        {"changes": {}},
        {"changes": {"alice": TESTS.lists["alice"]}},
        {"changes": TESTS.lists | {"carol": b""}},
        {"canary_key": b""},
        {"canary_key": b"k" * 33},
        {"digests": {}},
        {"digests": {"sex": b"a" * 32}},
        {"digests": DIGESTS | {"age": b"c" * 32}},
        {"digests": DIGESTS | {"sex": b"a" * 31}},
        {"places_digest": b"p" * 32},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_what_no_test_shows_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="curator alice: its result of the tests does not fit this release"):
        curators_test_from_proto(said(**changes), SPEC, "alice")


def test_a_receipt_travels_whole_to_who_may_read_counts_and_without_them_to_others() -> None:
    for receipt in TESTS.all_receipts():
        whole, short = (receipt_to_proto(receipt, with_counts=with_counts) for with_counts in (True, False))
        assert receipt_from_proto(whole) == receipt
        assert _result_from_proto(whole) == result_of(receipt)
        assert short.text == ""
        assert set(release_pb2.Receipt.DESCRIPTOR.fields_by_name) == {
            "curator",
            "canaries",
            "expected",
            "sd",
            "passed",
            "text",
        }
        result = _result_from_proto(short)
        assert result == result_of(receipt, with_counts=False)
        assert set(result.facts()) == {"curator", "tested_by", "canaries", "expected", "sd", "passed"}
        assert str(receipt.changed) not in result.sentence()
        with pytest.raises(InvalidInputError, match="this is not a receipt of tests"):
            receipt_from_proto(short)


def test_what_an_analyst_reads_is_the_same_whatever_was_counted() -> None:
    """A count is what a server that draws its noise to a known sum would turn into the sum of rows."""
    first, second = (made_tests(SPEC, seed=seed).all_receipts() for seed in (1, 2))
    for one, other in zip(first, second, strict=True):
        assert one.passed
        assert other.passed
        assert counts_of(one) != counts_of(other)
        assert receipt_to_proto(one, with_counts=False) == receipt_to_proto(other, with_counts=False)


def counts_of(receipt: Receipt) -> list[int]:
    return [one.count for one in receipt.counts]


@pytest.mark.parametrize(
    "changes",
    [
        {"curator": "\x1b[2J"},
        {"canaries": 2**64 - 1},
        {"expected": ""},
        {"expected": "NaN"},
        {"sd": "-1"},
        {"sd": "1e999999999"},
        {"sd": "1" * 300},
        {"text": "{}"},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_result_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"canaries": 50, "expected": "20.5", "sd": "3", "passed": True}
    assert _result_from_proto(release_pb2.Receipt(**fields)).passed
    with pytest.raises(InvalidInputError):
        _result_from_proto(release_pb2.Receipt(**(fields | changes)))
