"""What the tests of a server show of canaries that were changed by chance, from a seed."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import joint_receipt, own_receipt
from veiltab.common.release.table_spec import TableSpec

KEY = bytes(range(32))


@dataclass(frozen=True, kw_only=True, eq=False)
class MadeTests:
    """The lists of changed canaries of a release's owners, and what the tests show of them.

    Args:
        spec: of the release.
        orders: of the canaries that were published.
        lists: owner -> its list.
    """

    spec: TableSpec
    orders: CanaryOrders
    lists: dict[str, bytes]

    def receipts(self, owner: str) -> tuple[Receipt, Receipt]:
        """Return an owner's receipts: of its own columns, then of all together."""
        return _own(self, owner), self.together()

    def together(self) -> Receipt:
        return _joint(self)

    def all_receipts(self) -> tuple[Receipt, ...]:
        """Return the receipts of each owner's columns, then of all together, as a desk has them."""
        return (*(self.receipts(owner)[0] for owner in self.lists), self.together())


@cache
def _own(tests: MadeTests, owner: str) -> Receipt:
    columns, count = tests.spec.columns_of(owner), len(tests.orders.places)
    return own_receipt(tests.spec, owner, CanaryChanges.from_bytes(tests.lists[owner], columns, count), tests.orders)


@cache
def _joint(tests: MadeTests) -> Receipt:
    return joint_receipt(tests.spec, tests.lists, tests.orders)


@cache
def made_tests(
    spec: TableSpec, *, share: float = 1.0, canaries: int | None = None, seed: int = 1, raw: str = ""
) -> MadeTests:
    """Return the tests of a server that draws its noise as it should.

    Args:
        spec: of the release.
        share: of the noise, that is added.
        canaries: so many are published, if the server samples; None for all.
        seed: of the draws.
        raw: attribute of a column that is left as it came; empty for none.
    """
    source = np.random.default_rng(seed)
    places = CanaryPlaces.of(KEY, rows=spec.uploaded_rows, canaries=spec.canaries).all()
    if canaries is not None:
        places = np.sort(source.permutation(places)[:canaries])
    replaced = source.random(len(places)) < share * float(1 - spec.server_mechanism.retention)
    columns = spec.columns
    offsets = {c: source.integers(0, c.size, len(places)) * replaced * (c.attribute != raw) for c in columns}
    sent = {c: source.integers(0, c.size, len(places)) for c in columns}
    lists = {}
    for owner in dict.fromkeys(holder for c in columns for holder in c.holders):
        own = spec.columns_of(owner)
        rows = np.flatnonzero(np.any([offsets[c] != 0 for c in own], axis=0))
        lists[owner] = CanaryChanges(
            columns=own,
            numbers=rows,
            offsets=tuple(offsets[c][rows] for c in own),
            symbols=tuple(sent[c][rows] for c in own),
            is_listed=np.ones(len(rows), np.bool_),
        ).to_bytes()
    return MadeTests(spec=spec, orders=CanaryOrders(places=places, rows=spec.uploaded_rows), lists=lists)


def beautified(receipt: Receipt) -> Receipt:
    """Return a receipt whose bounds accept whatever was counted."""
    return replace(receipt, counts=tuple(replace(one, low=0, high=one.trials) for one in receipt.counts))
