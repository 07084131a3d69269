"""A desk's test of the server: the curators' own tests, repeated on the columns that the desk holds.

Before it asks for keys, the desk compares its columns with those that the curators tested, and makes the tests of all
columns together on the owners' lists of changed canaries, as every owner did. After it has decrypted, it compares the
lists with what it sees, entry by entry: a curator that stated another change is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeVar

import numpy as np

from veiltab.common.core.canaries import CanaryRows, Places, canary_symbols
from veiltab.common.core.domain import Symbols
from veiltab.common.core.numbers.pieces import Pieces
from veiltab.common.core.symbols import row_slices
from veiltab.common.errors import FailedReleaseError
from veiltab.common.release.receipts.canary_changes import CanaryChanges, ChangesCollector
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import joint_receipt, own_receipt, read_lists
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.researcher.parties.server_findings import CuratorsTest

Value = TypeVar("Value")


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


def tested_together(
    spec: TableSpec, tests: Mapping[str, CuratorsTest], orders: CanaryOrders
) -> tuple[tuple[Receipt, ...], dict[str, CanaryChanges]]:
    """Return the receipts of each curator's columns, then of all together, made here on the lists of the owners.

    A release without canaries has none. Beside them is what each owner's list says.

    Args:
        tests: curator -> its tests; at least one.
        orders: of the canaries that were published to this desk.

    Raises:
        FailedReleaseError: two curators state different lists of some owner, or one a result that the lists do not
            show.
    """
    (first, test), *others = tests.items()
    for (name, other), owner in product(others, test.changes):
        if other.changes[owner] != test.changes[owner]:
            raise FailedReleaseError(
                f"curators {first} and {name} state different lists of the changed canaries in {owner}'s columns",
                where="canaries",
            )
    joint, lists = joint_receipt(spec, test.changes, orders), read_lists(spec, test.changes, len(orders.places))
    own = {name: own_receipt(spec, name, lists[name], orders) for name in tests}
    for name, one in tests.items():
        if one.receipts != (own[name].text, joint.text):
            raise FailedReleaseError(
                f"curator {name} states another result of the tests than the lists of changed canaries show here",
                where="canaries",
            )
    return (*own.values(), joint) if joint.canaries else (), lists


def check_listed_symbols(
    stated: Mapping[str, CanaryChanges], published: CanaryRows, symbols: Mapping[Column, Symbols]
) -> None:
    """Refuse a list of changed canaries whose sent symbols and offsets do not give the published symbols.

    Args:
        stated: owner -> the changes that it stated.
        published: where the canaries stand in the published columns.

    Raises:
        FailedReleaseError: names the curator whose list it is.
    """
    for owner, changes in stated.items():
        rows = published.rows[changes.numbers]
        for column, offsets, values in zip(changes.columns, changes.offsets, changes.symbols, strict=True):
            if not np.array_equal((values + offsets) % column.size, symbols[column][rows]):
                raise FailedReleaseError(
                    f"curator {owner} stated changes of canaries that do not give what the server published",
                    where="canaries",
                )


def check_receipts(receipts: Sequence[Receipt], server: str, *, canaries: int) -> None:
    """Refuse a release in which a test failed, or in which not all tested the same canaries.

    Args:
        receipts: of the curators, and of all columns together.
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
                f"the server did not add the noise of the release: {receipt.sentence()}", where=f"server {server}"
            )


class DecryptedCanaries:
    """Compares the published canaries that a desk decrypts with those that the curators uploaded.

    Args:
        columns: those that the desk decrypts.
        canaries: all canaries of the release, c.
        published: which of them are published.
        lists: owner -> the changes that it stated, of the owners of these columns at least.
    """

    def __init__(
        self,
        canary_key: bytes,
        columns: Sequence[Column],
        canaries: int,
        published: CanaryRows,
        lists: Mapping[str, CanaryChanges],
    ) -> None:
        self._sampled = published.sampled
        self._uploaded = [Pieces(_uploaded(canary_key, column, canaries)) for column in columns]
        self._columns = tuple(columns)
        self._lists = lists
        owners = dict.fromkeys(column.owner for column in columns)
        # Anyone who stated fewer changes than there are is known by that; its others need not be kept.
        self._collected = {
            owner: ChangesCollector(self._of(owner, columns), most=len(lists[owner])) for owner in owners
        }
        self._passed = 0

    def compare(self, part: slice, decrypted: Sequence[Symbols]) -> None:
        """Compare those of the published canaries that come next with what the curators uploaded; a CanaryTest.

        Args:
            decrypted: their symbols in each column.
        """
        if part.start == part.stop:
            return
        some: slice | Places = slice(None)
        length = part.stop - part.start
        if self._sampled is not None:
            some = self._sampled[part] - self._passed
            length = int(some[-1]) + 1
        uploaded = [one.take(length)[some] for one in self._uploaded]
        for owner, collector in self._collected.items():
            collector.compare(part.start, self._of(owner, decrypted), self._of(owner, uploaded))
        self._passed += length

    def check_lists(self) -> None:
        """Refuse other changes of canaries than their owners listed.

        Raises:
            FailedReleaseError: names the first curator whose list differs.
        """
        for owner, collector in self._collected.items():
            changes = collector.changes()
            if changes is None or not self._lists[owner].of(changes.columns).has_same_offsets(changes):
                holders = (holder for one in self._of(owner, self._columns) for holder in one.holders)
                names = " or ".join(f"curator {name}" for name in dict.fromkeys(holders))
                raise FailedReleaseError(
                    f"{names} stated other changes of canaries than this desk decrypts: the curator, or the"
                    " key that it gave, is wrong",
                    where="canaries",
                )

    def _of(self, owner: str, values: Sequence[Value]) -> list[Value]:
        """Return the values of an owner's columns."""
        return [one for one, column in zip(values, self._columns, strict=True) if column.owner == owner]


def _uploaded(canary_key: bytes, column: Column, canaries: int) -> Iterator[Symbols]:
    """Yield the symbols of a column's canaries that the curators uploaded."""
    for part in row_slices(canaries):
        yield canary_symbols(canary_key, column.attribute, column.size, canaries, part)
