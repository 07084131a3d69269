"""What a desk takes from curators and from its own service about the tests of the server."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.receipt import receipt_of
from veiltab.researcher.server_check import curators_test_from_proto, receipt_from_proto, receipt_to_proto
from veiltab.v1 import curator_pb2, researcher_pb2

Make = Callable[..., Any]
DIGESTS = {"sex": b"a" * 32, "salary": b"b" * 32}


def said(**changes: object) -> curator_pb2.GetReceiptResponse:
    fields: dict[str, Any] = {"canaries": 50, "changed": 20, "canary_key": b"k" * 32, "digests": DIGESTS}
    return curator_pb2.GetReceiptResponse(**(fields | changes))


def test_what_a_curator_says_of_its_test_is_read_whole(make_spec: Make) -> None:
    test = curators_test_from_proto(said(), make_spec(canaries=50), "alice")
    assert (test.canaries, test.changed, test.canary_key, test.digests) == (50, 20, b"k" * 32, DIGESTS)
    assert "kkk" not in repr(test)
    assert test.places_digest == b""
    sampled = make_spec(canaries=50, sampling=Sampling.SERVER)
    assert curators_test_from_proto(said(places_digest=b"p" * 32), sampled, "alice").places_digest == b"p" * 32
    for digest in (b"", b"p" * 31):
        with pytest.raises(InvalidInputError):
            curators_test_from_proto(said(places_digest=digest), sampled, "alice")


@pytest.mark.parametrize(
    "changes",
    [
        {"canaries": 51},
        {"changed": 51},
        {"canaries": 19},
        {"canaries": 2**64 - 1},
        {"changed": 2**64 - 1},
        {"canary_key": b""},
        {"canary_key": b"k" * 33},
        {"digests": {}},
        {"digests": {"sex": b"a" * 32}},
        {"digests": DIGESTS | {"age": b"c" * 32}},
        {"digests": DIGESTS | {"sex": b"a" * 31}},
        {"places_digest": b"p" * 32},
    ],
    ids=str,
)
def test_what_no_test_shows_is_refused(make_spec: Make, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        curators_test_from_proto(said(**changes), make_spec(canaries=50), "alice")


def test_a_receipt_travels(make_spec: Make) -> None:
    for tester in ("alice", "bob", ""):
        receipt = receipt_of(make_spec(), tester, canaries=50, changed=20)
        assert receipt_from_proto(receipt_to_proto(receipt)) == receipt


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
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_receipt_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"canaries": 50, "changed": 20, "low": 5, "high": 40, "expected": "20.5", "sd": "3"}
    with pytest.raises(InvalidInputError):
        receipt_from_proto(researcher_pb2.Receipt(**(fields | changes)))


def test_a_part_of_the_columns_is_tested_by_its_own_law(make_spec: Make) -> None:
    spec = make_spec(server_replacement=2**62)
    whole, part = (
        receipt_of(spec, "", canaries=1000, changed=1, columns=columns) for columns in (None, spec.columns[:1])
    )
    assert (whole.expected, part.expected) == (Decimal("187.500"), Decimal("125.000"))
    assert receipt_of(spec, "alice", canaries=1000, changed=1).expected == part.expected
