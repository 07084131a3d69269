"""A desk's test of the server: the curators' own tests, repeated on the columns that the desk holds.

Before it asks for keys, the desk compares its columns with those that the curators tested; after it has decrypted, it
counts the changed canaries itself, for each curator and over all columns together. A server that serves the desk other
columns than the curators, or that changed rows of its columns together as no noise does, fails here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import canary_symbols
from veiltab.common.core.domain import Symbols
from veiltab.common.core.message_fields import text_from_proto, whole_from_proto
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCanaries:
    """Which of the published canaries changed in which columns of a desk.

    Args:
        changed: column -> (c,) whether a canary is not the symbol that the curators uploaded.
    """

    changed: Mapping[Column, NDArray[np.bool_]]

    @classmethod
    def of(
        cls, canary_key: bytes, decrypted: Mapping[Column, Symbols], published: NDArray[np.int64] | None, canaries: int
    ) -> "ChangedCanaries":
        """Compare decrypted canaries with those that were uploaded.

        Args:
            canary_key: of the release.
            decrypted: column -> symbols of the published canaries in order of their places.
            published: which of the release's canaries these are; None for all.
            canaries: all canaries of the release, c.
        """
        changed = {}
        for column, symbols in decrypted.items():
            uploaded = partial(canary_symbols, canary_key, column.attribute, column.size, canaries)
            sampled = None if published is None else uploaded()[published]
            differs = changed[column] = np.empty(len(symbols), np.bool_)
            for part in row_slices(len(symbols)):
                differs[part] = symbols[part] != (uploaded(part) if sampled is None else sampled[part])
        return cls(changed=changed)

    def count(self, columns: Sequence[Column]) -> int:
        """Return how many canaries changed in any of some columns."""
        return int(np.any([self.changed[column] for column in columns], axis=0).sum())

    def check_counts(self, spec: ReleaseSpec, tests: Mapping[str, CuratorsTest]) -> None:
        """Refuse another number of changed canaries than a curator counted.

        In a part of a curator's columns at most as many have changed as in all.

        Raises:
            FailedReleaseError: names the curator.
        """
        for curator, test in tests.items():
            columns = [column for column in spec.columns_of(curator) if column in self.changed]
            if not columns:
                continue
            count, is_whole = self.count(columns), len(columns) == len(spec.columns_of(curator))
            if count > test.changed or (is_whole and count != test.changed):
                raise FailedReleaseError(
                    f"curator {curator} counted {test.changed:,} changed canaries, and this desk {count:,}",
                    where="canaries",
                )

    def receipt(self, spec: ReleaseSpec) -> Receipt:
        """Return the receipt of the desk's test over all its columns together."""
        columns = tuple(self.changed)
        (canaries,) = {len(changed) for changed in self.changed.values()}
        return receipt_of(spec, DESK, canaries=canaries, changed=self.count(columns), columns=columns)


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
