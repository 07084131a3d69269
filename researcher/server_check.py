"""A desk's test of the server: the curators' own tests, repeated on the columns that the desk holds.

Before it asks for keys, the desk compares its columns with those that the curators tested; after it has decrypted, it
counts the changed canaries itself, for each curator and over all columns together. A server that serves the desk other
columns than the curators, or that changed rows of its columns together as no noise does, fails here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from veiltab.common.core.canaries import CanaryRows, Places, canary_symbols
from veiltab.common.core.domain import Symbols
from veiltab.common.core.message_fields import text_from_proto, whole_from_proto
from veiltab.common.core.pieces import Pieces
from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.core.symbols import row_slices
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.release.receipt import Receipt, receipt_of
from veiltab.common.release.spec import MAX_CANARIES, Column, ReleaseSpec
from veiltab.v1 import curator_pb2, researcher_pb2

DESK = ""
"""The tester of the receipt of a desk."""

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorsTest:
    """What a curator says that its test of the server showed.

    Args:
        canaries: how many it tested.
        changed: how many of them changed in any of its columns.
        canary_key: from which places and symbols of the canaries derive.
        digests: attribute -> SHA-256 of its published column, of every column of the release.
        places_digest: SHA-256 of the places that the server sampled; empty unless it samples.
    """

    canaries: int
    changed: int
    canary_key: bytes = field(repr=False)
    digests: Mapping[str, bytes]
    places_digest: bytes


def curators_test_from_proto(message: curator_pb2.GetReceiptResponse, spec: ReleaseSpec, curator: str) -> CuratorsTest:
    """Decode what a curator says of its test.

    Raises:
        InvalidInputError: no test of the release can have shown it.
    """
    said = CuratorsTest(
        canaries=whole_from_proto(message.canaries, "canaries"),
        changed=whole_from_proto(message.changed, "changed"),
        canary_key=message.canary_key,
        digests=dict(message.digests),
        places_digest=message.places_digest,
    )
    digests_fit = set(said.digests) == {column.attribute for column in spec.columns}
    digests_fit = digests_fit and {len(digest) for digest in said.digests.values()} == {_DIGEST_BYTES}
    digests_fit = digests_fit and len(said.places_digest) == (_DIGEST_BYTES if spec.sampling.is_by_server else 0)
    if not (said.changed <= said.canaries <= spec.canaries and len(said.canary_key) == KEY_BYTES and digests_fit):
        raise InvalidInputError("it states what no test of this release shows", where=f"curator {curator}")
    return said


def common_canary_key(tests: Mapping[str, CuratorsTest]) -> bytes:
    """Return the canary key of a release.

    Args:
        tests: curator -> its test; at least one.

    Raises:
        FailedReleaseError: two curators state different ones.
    """
    (first, test), *others = tests.items()
    for name, other in others:
        if other.canary_key != test.canary_key:
            raise FailedReleaseError(f"curators {first} and {name} state different canary keys", where="canaries")
    return test.canary_key


def check_published(
    tests: Mapping[str, CuratorsTest], digests: Mapping[str, bytes], places_digest: bytes, server: str
) -> None:
    """Refuse columns, or sampled places, that are not those of which a curator recorded the digest.

    Args:
        tests: curator -> its test.
        digests: attribute -> SHA-256 of the column that this desk fetched.
        places_digest: SHA-256 of the sampled places that it fetched; empty unless the server samples.
        server: its name.

    Raises:
        FailedReleaseError: names the curator and the attribute.
    """
    for curator, test in tests.items():
        if test.places_digest != places_digest:
            raise FailedReleaseError(
                f"the server claims other sampled places to this desk than to curator {curator}",
                where=f"server {server}",
            )
        for attribute, digest in digests.items():
            if test.digests[attribute] != digest:
                raise FailedReleaseError(
                    f"the server served another column of {attribute} to this desk than to curator {curator}",
                    where=f"server {server}",
                )


def curators_receipts(spec: ReleaseSpec, tests: Mapping[str, CuratorsTest]) -> tuple[Receipt, ...]:
    """Return the receipts of the curators' tests; none of a release without canaries."""
    if not spec.canaries:
        return ()
    return tuple(
        receipt_of(spec, curator, canaries=test.canaries, changed=test.changed) for curator, test in tests.items()
    )


def check_receipts(receipts: Sequence[Receipt], server: str, *, canaries: int) -> None:
    """Refuse a release in which a test failed, or in which not all tested the same canaries.

    Args:
        receipts: of the curators, or of the desk.
        server: its name.
        canaries: those that the server published.

    Raises:
        FailedReleaseError: says what was counted.
    """
    for receipt in receipts:
        if receipt.canaries != canaries:
            raise FailedReleaseError(
                f"{receipt.tested_by} tested {receipt.canaries:,} canaries; {canaries:,} were published to this desk",
                where=f"server {server}",
            )
        if not receipt.passed:
            raise FailedReleaseError(
                f"the server did not add the noise of the release: {receipt.sentence(receipt.tester)}",
                where=f"server {server}",
            )


class ChangedCanaries:
    """Counts how many of the published canaries changed: in the columns of each curator, and in any column of a desk.

    Args:
        canary_key: of the release.
        columns: those that the desk decrypts.
        canaries: all canaries of the release, c.
        published: which of them are published.
    """

    def __init__(self, canary_key: bytes, columns: Sequence[Column], canaries: int, published: CanaryRows) -> None:
        self._columns = tuple(columns)
        self._sampled = published.sampled
        self._uploaded = [Pieces(_uploaded(canary_key, column, canaries)) for column in columns]
        self._passed = 0
        self._compared = 0
        self._changed = dict.fromkeys((DESK, *(column.owner for column in columns)), 0)

    def compare(self, part: slice, decrypted: Sequence[Symbols]) -> None:
        """Compare those of the published canaries that come next with what the curators uploaded; a CanaryTest.

        Args:
            part: which of them.
            decrypted: their symbols in each column.
        """
        if part.start == part.stop:
            return
        chosen: slice | Places = slice(None)
        length = part.stop - part.start
        if self._sampled is not None:
            chosen = self._sampled[part] - self._passed
            length = int(chosen[-1]) + 1
        differ = [
            symbols != uploaded.take(length)[chosen]
            for symbols, uploaded in zip(decrypted, self._uploaded, strict=True)
        ]
        self._passed += length
        self._compared += part.stop - part.start
        for tester in self._changed:
            tested = [one for one, column in zip(differ, self._columns, strict=True) if tester in {DESK, column.owner}]
            self._changed[tester] += int(np.any(tested, axis=0).sum())

    def check_counts(self, spec: ReleaseSpec, tests: Mapping[str, CuratorsTest]) -> None:
        """Refuse another number of changed canaries than a curator counted.

        In a part of a curator's columns at most as many have changed as in all.

        Raises:
            FailedReleaseError: names the curator.
        """
        for curator, test in tests.items():
            count = self._changed.get(curator)
            if count is None:
                continue
            is_whole = set(self._columns).issuperset(spec.columns_of(curator))
            if count > test.changed or (is_whole and count != test.changed):
                raise FailedReleaseError(
                    f"curator {curator} counted {test.changed:,} changed canaries, and this desk {count:,}",
                    where="canaries",
                )

    def receipt(self, spec: ReleaseSpec) -> Receipt:
        """Return the receipt of the desk's test over all its columns together."""
        return receipt_of(spec, DESK, canaries=self._compared, changed=self._changed[DESK], columns=self._columns)


def _uploaded(canary_key: bytes, column: Column, canaries: int) -> Iterator[Symbols]:
    """Yield the symbols of a column's canaries that the curators uploaded."""
    for part in row_slices(canaries):
        yield canary_symbols(canary_key, column.attribute, column.size, canaries, part)


def receipt_to_proto(receipt: Receipt) -> researcher_pb2.Receipt:
    """Return a receipt as it travels."""
    return researcher_pb2.Receipt(
        curator=receipt.tester,
        canaries=receipt.canaries,
        changed=receipt.changed,
        low=receipt.low,
        high=receipt.high,
        expected=str(receipt.expected),
        sd=str(receipt.sd),
    )


def receipt_from_proto(message: researcher_pb2.Receipt) -> Receipt:
    """Return the receipt of a message, or raise InvalidInputError."""
    return Receipt(
        tester=text_from_proto(message.curator, "curator"),
        canaries=whole_from_proto(message.canaries, "canaries"),
        changed=whole_from_proto(message.changed, "changed"),
        low=whole_from_proto(message.low, "low"),
        high=whole_from_proto(message.high, "high"),
        expected=_number_from_proto(message.expected, "expected"),
        sd=_number_from_proto(message.sd, "sd"),
    )


def _number_from_proto(text: str, where: str) -> Decimal:
    try:
        number = Decimal(text_from_proto(text, where))
    except ArithmeticError:
        number = Decimal("NaN")
    if not (number.is_finite() and 0 <= number <= MAX_CANARIES):
        raise InvalidInputError("a number of canaries is expected", where=where)
    return number
